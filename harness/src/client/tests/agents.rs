//! What an agent hears of its client, and what the client does meanwhile.

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use containers::agent::protocol::{Action, At, Reply, Request, Rule};
use histories::{Function, Kind};
use tempfile::TempDir;

use super::{Bench, Setting, WHOLE_ROUND, runtime};
use crate::workloads::workload;

/// An agent that writes down what it is told, and answers when it is let.
pub(super) struct FakeAgent {
    _folder: TempDir,
    pub socket: PathBuf,
    pub told: mpsc::Receiver<Request>,
    answer: mpsc::Sender<()>,
}

impl FakeAgent {
    pub fn new() -> FakeAgent {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("c1.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let (tell, told) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let answers = std::sync::Arc::new(std::sync::Mutex::new(answers));
            for connection in listener.incoming() {
                let (tell, answers) = (tell.clone(), answers.clone());
                std::thread::spawn(move || {
                    let mut connection = connection.unwrap();
                    let lines = BufReader::new(connection.try_clone().unwrap()).lines();
                    for line in lines.map_while(Result::ok) {
                        tell.send(serde_json::from_str(&line).unwrap()).unwrap();
                        answers.lock().unwrap().recv().unwrap();
                        let reply = serde_json::to_string(&Reply::Done).unwrap();
                        writeln!(connection, "{reply}").unwrap();
                    }
                });
            }
        });
        FakeAgent {
            _folder: folder,
            socket,
            told,
            answer,
        }
    }

    pub fn let_answer(&self, times: usize) {
        (0..times).for_each(|_| self.answer.send(()).unwrap());
    }
}

pub(super) fn at_point(point: &str, nth_grant: u64, action: Action) -> Rule {
    Rule {
        rule: 5,
        at: At::Point {
            point: point.to_owned(),
            nth_grant,
        },
        action,
    }
}

#[test]
fn an_armed_point_is_reached_at_its_grant_and_no_other() {
    let agent = FakeAgent::new();
    agent.let_answer(1);
    let mut bench = Bench::new(Setting {
        rules: vec![at_point("before-write", 2, Action::Stop)],
        agent: Some(agent.socket.clone()),
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.course(), WHOLE_ROUND);
    bench.round();
    bench.round();
    let events = bench.events();
    let points: Vec<_> = events
        .iter()
        .filter(|event| event.f == Function::Point)
        .collect();
    assert_eq!(points.len(), 2, "{points:?}");
    assert_eq!(
        (points[0].point.as_deref(), points[0].nth),
        (Some("before-write"), Some(2))
    );
    assert_eq!(points[0].op, points[1].op);
    let told: Vec<Request> = agent.told.try_iter().collect();
    let reached = Request::Reached {
        rule: 5,
        reached_ns: points[0].t,
        invoked_ns: points[0].t,
        op: points[0].op,
    };
    assert_eq!(told, [reached]);
    let at = events
        .iter()
        .position(|event| event.f == Function::Point)
        .unwrap();
    assert_eq!(events[at + 2].f, Function::Write);
}

#[test]
fn a_completion_that_a_rule_names_is_told_each_time() {
    let agent = FakeAgent::new();
    agent.let_answer(2);
    let at = At::Event {
        f: "write".to_owned(),
        outcome: "ok".to_owned(),
    };
    let mut bench = Bench::new(Setting {
        rules: vec![Rule {
            rule: 9,
            at,
            action: Action::Tell,
        }],
        agent: Some(agent.socket.clone()),
        ..Setting::default()
    });
    bench.round();
    bench.round();
    let events = bench.events();
    let of = |kind| {
        events
            .iter()
            .filter(move |event| event.f == Function::Write && event.kind == kind)
    };
    let expected: Vec<Request> = of(Kind::Invoke)
        .zip(of(Kind::Ok))
        .map(|(invoke, ok)| Request::Reached {
            rule: 9,
            reached_ns: ok.t,
            invoked_ns: invoke.t,
            op: ok.op,
        })
        .collect();
    assert_eq!(expected.len(), 2);
    assert_eq!(agent.told.try_iter().collect::<Vec<_>>(), expected);
}

/// Whether a background task of the client, such as a keep-alive, runs while the client is kept at a point.
fn background_runs(action: Action, within: Duration) -> bool {
    let agent = FakeAgent::new();
    let rule = at_point("after-acquire", 1, action);
    let mut bench = Bench::new(Setting {
        rules: vec![rule],
        agent: Some(agent.socket.clone()),
        ..Setting::default()
    });
    let (beat, heard) = mpsc::channel();
    let kept = std::thread::spawn(move || {
        agent.told.recv().unwrap();
        // Whatever was said before the client got there does not count.
        heard.try_iter().for_each(drop);
        let runs = heard.recv_timeout(within).is_ok();
        agent.let_answer(1);
        runs
    });
    runtime().block_on(async {
        tokio::spawn(async move {
            while beat.send(()).is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        workload("document")
            .unwrap()
            .round(&mut bench.client)
            .await
            .unwrap();
    });
    kept.join().unwrap()
}

#[test]
fn a_held_client_lives_and_a_stopped_one_stands_still() {
    assert!(background_runs(Action::Hold, Duration::from_secs(30)));
    assert!(!background_runs(Action::Stop, Duration::from_millis(300)));
}
