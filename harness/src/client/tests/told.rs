//! What a client is told, or finds out, while it does something else: losses, renewals, and its own stalls.

use std::thread;
use std::time::{Duration, Instant};

use containers::agent::protocol::Action;
use histories::{Function, Kind};

use super::agents::{FakeAgent, at_point};
use super::{Bench, Setting, runtime, written};

/// No test waits longer for anything: what takes so long will not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than any heartbeat may be late.
const STANDSTILL: Duration = Duration::from_millis(60);

/// A bench whose client was held at a point, and was let go when an event of `f` was written down, which is what it was
/// told of there.
fn told_while_held(point: &str, f: Function) -> Bench {
    let agent = FakeAgent::new();
    let mut bench = Bench::new(Setting {
        rules: vec![at_point(point, 1, Action::Hold)],
        agent: Some(agent.socket.clone()),
        ..Setting::default()
    });
    let (path, teller, renewed) = (bench.path(), bench.teller.clone(), bench.renewed.clone());
    let held = thread::spawn(move || {
        agent.told.recv().unwrap();
        match f {
            Function::Renewed => drop(renewed.send_replace(5_000_000_000)),
            _ => drop(teller.send_replace(Some("the session was closed".to_owned()))),
        }
        let limit = Instant::now() + PATIENCE;
        while !written(&path).iter().any(|event| event.f == f) {
            assert!(Instant::now() < limit, "no {f:?} while it is held");
            thread::sleep(Duration::from_millis(1));
        }
        agent.let_answer(1);
    });
    bench.round();
    held.join().unwrap();
    bench
}

#[test]
fn a_loss_that_is_told_while_the_client_is_held_ends_its_work_at_once() {
    let bench = told_while_held("before-write", Function::Lost);
    assert_eq!(
        bench.course()[5..],
        [
            "point invoke",
            "work ok",
            "lost info",
            "point ok",
            "release invoke",
            "release ok"
        ]
    );
}

#[test]
fn a_loss_that_is_told_before_the_work_leaves_none_to_begin() {
    let bench = told_while_held("after-acquire", Function::Lost);
    let events = bench.events();
    assert!(events.iter().all(|event| event.f != Function::Work));
}

#[test]
fn a_renewal_is_written_down_while_the_client_is_held() {
    let bench = told_while_held("after-read", Function::Renewed);
    let (renewed, acquire) = (bench.last(Function::Renewed), bench.last(Function::Acquire));
    assert_eq!(renewed.kind, Kind::Info);
    assert_eq!(renewed.grant, Some(acquire.op));
    assert_eq!(renewed.validity, Some(5_000_000_000));
    let mut events = bench.events();
    events.retain(|event| event.f == Function::Renewed);
    assert_eq!(events.len(), 1, "{events:?}");
}

#[test]
fn a_validity_that_is_no_later_is_no_renewal() {
    let mut bench = Bench::new(Setting::default());
    bench.renewed.send_replace(1);
    bench.round();
    assert!(
        bench
            .events()
            .iter()
            .all(|event| event.f != Function::Renewed)
    );
}

#[test]
fn a_stall_is_written_down_before_what_the_client_does_next() {
    let bench = Bench::new(Setting::default());
    let work = bench.record.invoke(Function::Work, |_| {}).unwrap();
    thread::sleep(STANDSTILL);
    bench.record.complete(work, Kind::Ok, |_| {}).unwrap();
    let events = written(&bench.path());
    let [.., stall, done] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!((stall.f, stall.kind), (Function::Stall, Kind::Info));
    assert_eq!((done.f, done.op), (Function::Work, work.op));
    let stalled_ns = stall.stalled_ns.unwrap();
    assert!(u128::from(stalled_ns) >= STANDSTILL.as_nanos(), "{stall:?}");
}

#[test]
fn a_stall_of_a_client_that_does_nothing_is_written_down_too() {
    let bench = Bench::new(Setting::default());
    let waiting = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        thread::sleep(STANDSTILL);
        let limit = Instant::now() + PATIENCE;
        while written(&bench.path()).is_empty() {
            assert!(Instant::now() < limit, "no stall is written down");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    runtime().block_on(async {
        tokio::select! {
            () = waiting => {}
            failed = bench.record.keep_beating() => panic!("{failed}"),
        }
    });
    let all = written(&bench.path());
    let long = |stalled_ns: u64| u128::from(stalled_ns) >= STANDSTILL.as_nanos();
    assert!(
        all.iter().any(|event| event.stalled_ns.is_some_and(long)),
        "{all:?}"
    );
}
