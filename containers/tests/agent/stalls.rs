//! Stalls: an agent that stands still tells those who watch for that.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use containers::agent::protocol::{Lookout, Notice, Signal, Touch};
use containers::agent::{ALIVE_EVERY, AgentError, Watch};

use crate::host::{Host, PATIENCE, command, scheduling, shell, wait_until};

/// The name of the thread that beats.
const HEARTBEAT: &str = "heartbeat";

const STANDSTILL: Duration = Duration::from_millis(100);

/// The next notice that says more than that the agent is there.
fn next(watch: &mut Watch) -> Notice {
    loop {
        match watch.next(PATIENCE).unwrap().expect("a notice comes") {
            Notice::Alive => {}
            notice => return notice,
        }
    }
}

#[test]
fn an_agent_that_looks_out_says_that_it_is_there() {
    let host = Host::start();
    let mut watch = host.agent().watch_and_look_out(Lookout::Stops).unwrap();
    let notice = watch.next(PATIENCE).unwrap();
    assert_eq!(notice, Some(Notice::Alive));
    let mut unwatched = host.agent().watch().unwrap();
    assert_eq!(unwatched.next(2 * ALIVE_EVERY).unwrap(), None);
}

#[test]
fn nothing_is_waited_for_from_an_agent_that_is_known_to_stand_still() {
    let host = Host::start();
    let mut agent = host.agent().unless(Arc::new(AtomicBool::new(true)));
    let bound = Duration::from_secs(60);
    match agent.run(["sleep", "60"], bound) {
        Err(AgentError::TimedOut { waited, .. }) => assert!(waited < bound / 4, "{waited:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_standstill_is_told_with_its_length() {
    let host = Host::start();
    let mut watch = host
        .agent()
        .watch_and_look_out(Lookout::StopsAndStalls)
        .unwrap();
    let mut told_of_it = || {
        // The first may come before the heartbeat does.
        host.stand_still(STANDSTILL);
        let notice = watch.next(STANDSTILL).unwrap();
        matches!(notice, Some(Notice::Stalled { at_ns, stalled_ns })
            if stalled_ns >= STANDSTILL.as_nanos() as u64 && at_ns > stalled_ns)
    };
    wait_until("the stall is told", &mut told_of_it);
}

#[test]
fn where_nobody_watches_for_stalls_none_is_told() {
    let host = Host::start();
    let mut watch = host.agent().watch().unwrap();
    host.stand_still(STANDSTILL);
    host.agent().start("client", command(&["true"])).unwrap();
    assert!(matches!(next(&mut watch), Notice::Ended { .. }));
}

#[test]
fn a_heartbeat_is_scheduled_as_servers_are_and_ends_with_its_watch() {
    let host = Host::start();
    let watch = host
        .agent()
        .watch_and_look_out(Lookout::StopsAndStalls)
        .unwrap();
    wait_until("it beats", || host.scheduling_of(HEARTBEAT).is_some());
    // This process has the scheduling that the agent was started with.
    let usual = scheduling("/proc/self/stat");
    assert_eq!(host.scheduling_of(HEARTBEAT), usual);
    drop(watch);
    wait_until("it beats no more", || {
        host.scheduling_of(HEARTBEAT).is_none()
    });
}

#[test]
fn who_stops_a_process_or_lets_it_go_on_from_outside_is_told_and_the_agent_itself_is_not() {
    let touched = |by_agent: &[Signal], by_others: Option<&str>| {
        let host = Host::start();
        let mut agent = host.agent();
        let pid = agent
            .start("server", command(&["sleep", "60"]))
            .unwrap()
            .pid;
        let mut watch = host.agent().watch_and_look_out(Lookout::Stops).unwrap();
        for signal in by_agent {
            agent.signal("server", *signal).unwrap();
        }
        if let Some(signal) = by_others {
            let kill = ["kill", signal, &pid.to_string()].map(str::to_owned);
            agent.run(kill, PATIENCE).unwrap();
            return Some(next(&mut watch));
        }
        watch.next(Duration::from_millis(500)).unwrap()
    };
    let (stop, proceed) = (Signal::Stop, Signal::Continue);
    let is_told = |notice: Option<Notice>, by: Touch| matches!(notice, Some(Notice::Touched { touch, .. }) if touch == by);
    assert!(is_told(touched(&[], Some("-STOP")), Touch::Stopped));
    assert!(is_told(touched(&[stop], Some("-CONT")), Touch::Proceeds));
    assert!(is_told(
        touched(&[stop, proceed], Some("-STOP")),
        Touch::Stopped
    ));
    assert_eq!(touched(&[stop], None), None);
    assert_eq!(touched(&[stop, proceed], None), None);
}

#[test]
fn a_process_whose_output_is_the_alarm_is_told_with_that_line() {
    let host = Host::start();
    let mut server = shell("echo started; sleep 0.1; echo ended by hand >&2; sleep 60");
    server.alarms = vec!["by hand".to_owned()];
    let mut watch = host.agent().watch_and_look_out(Lookout::Stops).unwrap();
    host.agent().start("server", server).unwrap();
    let by = Touch::Alarm("ended by hand".to_owned());
    assert!(matches!(next(&mut watch), Notice::Touched { touch, .. } if touch == by));
}
