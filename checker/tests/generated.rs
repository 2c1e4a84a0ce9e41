//! One thing wrong in a long history that is right otherwise is found, and nothing else is.

#[path = "../benches/generator.rs"]
mod generator;

use checker::{Answer, Checker, Options, Verdict, Witness};
use histories::{Event, Function, Kind};

const OPERATIONS: u64 = 5_000;

fn history() -> Vec<Event<'static>> {
    let mut events = Vec::new();
    generator::generate(OPERATIONS, 7, |event| {
        events.push(event.clone().into_owned())
    });
    events
}

fn judge(events: &[Event<'_>]) -> Verdict {
    let mut checker = Checker::new(&generator::header(7), Options::default());
    for event in events {
        checker
            .push(event)
            .expect("generated histories can be understood");
    }
    checker.finish(histories::Seal::Sealed)
}

/// The `nth` event of a kind.
fn nth<'e>(
    events: &'e mut [Event<'static>],
    f: Function,
    kind: Kind,
    nth: usize,
) -> &'e mut Event<'static> {
    let mut found = events
        .iter_mut()
        .filter(|event| event.f == f && event.kind == kind);
    found.nth(nth).expect("the history is long enough")
}

/// The one property that is violated, once, and its witness.
fn only_violation(events: &[Event<'_>]) -> (String, Witness) {
    let violated = |answer| answer == Answer::Violated;
    let mut found = judge(events).properties;
    found.retain(|found| violated(found.outcome.answer()));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].violations, 1);
    (
        found[0].name.clone(),
        found[0].outcome.witness().expect("it is violated").clone(),
    )
}

#[test]
fn a_history_that_is_right_holds_and_is_the_same_every_time() {
    let verdict = judge(&history());
    assert_eq!(verdict.assumptions, Vec::<String>::new());
    assert_eq!(verdict.outcome, Answer::Holds);
    assert_eq!(verdict.properties.len(), checker::properties().len());
    assert!(verdict.counts.operations >= OPERATIONS);
    assert_eq!(verdict, judge(&history()));
}

#[test]
fn a_token_that_falls_is_found() {
    let mut events = history();
    let wrong = events
        .iter_mut()
        .filter(|event| event.f == Function::Acquire && event.kind == Kind::Ok)
        .nth(100);
    let wrong = wrong.expect("the history is long enough");
    // Between the tokens of the grants before it, so that it is shared with none after it.
    wrong.token = Some(99);
    let op = wrong.op;
    let (name, witness) = only_violation(&events);
    assert_eq!((name.as_str(), witness.operations[1]), ("token-order", op));
}

#[test]
fn a_second_holder_is_found() {
    let mut events = history();
    let busy = events
        .iter_mut()
        .filter(|event| event.f == Function::Acquire && event.kind == Kind::Fail)
        .nth(100);
    let busy = busy.expect("the history is long enough");
    let grant = busy.op;
    (busy.kind, busy.error) = (Kind::Ok, None);
    // Valid for so short that it is over before its client asks again.
    busy.validity = Some(busy.t + 1_000);
    let verdict = judge(&events);
    let violated: Vec<_> = verdict
        .properties
        .iter()
        .filter(|found| found.outcome.answer() == Answer::Violated)
        .map(|found| {
            (
                found.name.as_str(),
                found.outcome.witness().expect("it is violated"),
            )
        })
        .collect();
    assert_eq!(violated[0].0, "mutual-exclusion");
    assert!(violated[0].1.operations.contains(&grant));
    assert_eq!(violated[0].1.overlap_ms, Some(0.001));
    assert_eq!(violated[1].0, "exclusive-belief");
    assert_eq!(violated.len(), 2);
}

#[test]
fn a_stale_write_is_found() {
    let mut events = history();
    // A write that was never answered and is in the log a version too late, where the next grant has written already.
    let rows: Vec<usize> = (0..events.len())
        .filter(|&at| events[at].f == Function::Accepted)
        .collect();
    let [early, late] = [rows[200], rows[201]];
    let (version, next) = (events[early].version, events[late].version);
    (events[early].version, events[late].version) = (next, version);
    let (stale, ahead) = (events[early].op, events[late].op);
    for event in &mut events {
        if event.f == Function::Write
            && event.kind == Kind::Ok
            && [stale, ahead].contains(&event.op)
        {
            (event.kind, event.version) = (Kind::Info, None);
        }
    }
    let verdict = judge(&events);
    let found = verdict.property("no-stale-write").expect("it is spoken to");
    let witness = found.outcome.witness().expect("it is violated");
    assert_eq!(
        (found.violations, &witness.operations),
        (1, &vec![ahead, stale])
    );
}

#[test]
fn a_lost_update_is_found() {
    let mut events = history();
    let write = nth(&mut events, Function::Write, Kind::Invoke, 100);
    write.based_on = write.based_on.map(|version| version - 1);
    let (op, grant) = (write.op, write.grant);
    // Had it read the version that it replaced, the record would contradict itself.
    let own = |event: &&mut Event<'_>| event.f == Function::Read && event.grant == grant;
    let read = events
        .iter_mut()
        .filter(own)
        .find(|read| read.kind == Kind::Ok);
    let read = read.expect("it read before it wrote");
    (read.kind, read.version, read.value) = (Kind::Info, None, None);
    let (name, witness) = only_violation(&events);
    assert_eq!(
        (name.as_str(), witness.operations[1]),
        ("no-lost-update", op)
    );
}

#[test]
fn a_read_that_goes_back_is_found() {
    let mut events = history();
    let before = nth(&mut events, Function::Read, Kind::Ok, 99).clone();
    let read = nth(&mut events, Function::Read, Kind::Ok, 100);
    (read.version, read.value) = (before.version, before.value);
    let op = read.op;
    let (name, witness) = only_violation(&events);
    assert_eq!((name.as_str(), witness.operations[1]), ("document", op));
}

#[test]
fn a_write_that_vanished_is_found() {
    let mut events = history();
    let row = (0..events.len())
        .filter(|&at| events[at].f == Function::Accepted)
        .nth(100);
    let removed = events.remove(row.expect("the history is long enough"));
    let done = nth(&mut events, Function::Log, Kind::Ok, 0);
    done.entries = done.entries.map(|entries| entries - 1);
    let (name, witness) = only_violation(&events);
    assert_eq!(
        (name.as_str(), witness.operations),
        ("document", vec![removed.op])
    );
}

#[test]
fn a_stuck_lock_is_found() {
    let mut events = history();
    // After some release every grant is told as a busy lock, and what was done under it is gone.
    let moment = nth(&mut events, Function::Release, Kind::Ok, 20).t;
    let log = |event: &Event<'_>| matches!(event.f, Function::Log | Function::Accepted);
    events.retain(|event| event.t <= moment || event.f == Function::Acquire || log(event));
    let later = events.iter_mut().filter(|event| event.t > moment);
    for event in later.filter(|event| event.f == Function::Acquire && event.kind == Kind::Ok) {
        (event.kind, event.token, event.validity) = (Kind::Fail, None, None);
    }
    let verdict = judge(&events);
    let progress = verdict.property("progress").expect("it is spoken to");
    let witness = progress.outcome.witness().expect("it is violated");
    assert!(witness.overlap_ms.expect("it lasts") > 1000.0);
    assert_eq!(progress.violations, 1);
}
