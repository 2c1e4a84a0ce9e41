//! Armed rules: clients that are stopped, held or told of, and those who watch.

use std::time::Duration;

use containers::agent::protocol::{Action, At, Notice, Rule, Signal};
use containers::agent::{Agent, Watch};

use crate::host::{Host, PATIENCE, failure};

fn arm(agent: &mut Agent, action: Action) {
    let at = At::Point {
        point: "before-write".to_owned(),
        nth_grant: 1,
    };
    let rule = Rule {
        rule: 1,
        at,
        action,
    };
    agent.arm(vec![rule]).unwrap();
}

fn next(watch: &mut Watch) -> Notice {
    watch.next(PATIENCE).unwrap().expect("a notice comes")
}

fn op_of(notice: &Notice) -> u64 {
    match notice {
        Notice::Reached { op, .. } => *op,
        other => panic!("not a client's notice: {other:?}"),
    }
}

#[test]
fn an_armed_stop_stops_the_client_where_it_is_and_then_tells() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Stop);
    let mut watch = host.agent().watch().unwrap();
    host.start_client(2);
    let Notice::Reached {
        rule: 1,
        op: 1,
        reached_ns,
        stopped_ns: Some(stopped_ns),
        states,
        ..
    } = next(&mut watch)
    else {
        panic!("not the notice of a stop");
    };
    assert_eq!(states, "T");
    assert!(reached_ns < stopped_ns);
    assert_eq!(agent.look("client").unwrap().states, "T");
    host.expect_log_of_client("life 1\n");

    arm(&mut agent, Action::Tell);
    agent.signal("client", Signal::Continue).unwrap();
    host.expect_log_of_client("life 1\npassed 1\npassed 2\n");
}

#[test]
fn a_held_client_goes_on_at_proceed() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Hold);
    agent.proceed(1).unwrap();
    host.start_client(2);
    let mut watch = host.agent().watch().unwrap();
    assert_eq!(op_of(&next(&mut watch)), 1);
    agent.proceed(2).unwrap();
    host.expect_log_of_client("life 1\n");
    assert_eq!(agent.held().unwrap(), [1]);
    agent.proceed(1).unwrap();
    assert_eq!(op_of(&next(&mut watch)), 2);
    host.expect_log_of_client("life 1\npassed 1\n");

    // Another arming lets go whoever is held.
    arm(&mut agent, Action::Tell);
    host.expect_log_of_client("life 1\npassed 1\npassed 2\n");
    assert!(agent.held().unwrap().is_empty());
}

#[test]
fn a_client_that_dies_while_it_is_held_is_forgotten() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Hold);
    host.start_client(1);
    let mut watch = host.agent().watch().unwrap();
    next(&mut watch);
    agent.signal("client", Signal::Kill).unwrap();
    assert!(
        matches!(next(&mut watch), Notice::Ended { life: 1, ended, .. } if ended == "signal 9")
    );
    agent.restart("client").unwrap();
    assert_eq!(op_of(&next(&mut watch)), 1);
    agent.proceed(1).unwrap();
    host.expect_log_of_client("life 1\nlife 2\npassed 1\n");
}

#[test]
fn every_watcher_gets_every_notice_since_the_arming() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Tell);
    let mut early = host.agent().watch().unwrap();
    host.start_client(100);
    for op in 1..=100 {
        assert_eq!(op_of(&next(&mut early)), op);
    }
    let ended = next(&mut early);
    assert!(
        matches!(&ended, Notice::Ended { process, ended, .. } if process == "client" && ended == "exit 0")
    );
    let mut late = host.agent().watch().unwrap();
    for op in 1..=100 {
        assert_eq!(op_of(&next(&mut late)), op);
    }
    assert_eq!(next(&mut late), ended);
    assert_eq!(late.next(Duration::from_millis(1)).unwrap(), None);

    arm(&mut agent, Action::Tell);
    let mut after = host.agent().watch().unwrap();
    assert_eq!(after.next(Duration::from_millis(1)).unwrap(), None);
}

#[test]
fn only_a_process_of_the_agent_is_stopped() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Stop);
    let error = failure(host.agent().reached(1, 1, 1, 1));
    assert!(error.contains("not a process of this agent"), "{error}");
    assert!(failure(host.agent().reached(2, 1, 1, 1)).contains("not armed"));
}
