//! What can happen to a history on its way: it is cut, or is no history at all.

use std::collections::BTreeMap;

use histories::{Event, Function, Kind, NEMESIS};
use proptest::prelude::*;

/// Cuts off the last so many events of each process, as a crash does whose file was gathered from several; one is left.
/// What the nemesis did stays: a client that is being crashed is taken to be dead before it is, and so may be proven to
/// have held a lock for longer where nothing is known of its crash.
pub fn cut(events: &[Event<'static>], cuts: &[usize]) -> Vec<Event<'static>> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events {
        *left.entry(&event.process).or_default() += 1;
    }
    left.remove(NEMESIS);
    for ((_, left), cut) in left.iter_mut().zip(cuts) {
        *left = left.saturating_sub(*cut).max(1);
    }
    let mut kept = Vec::new();
    for event in events {
        match left.get_mut(&*event.process) {
            Some(0) => continue,
            Some(left) => *left -= 1,
            None => {}
        }
        kept.push(event.clone());
    }
    kept
}

/// A flaw that a history can have, by which the checker is not to be misled.
#[derive(Clone, Copy, Debug)]
pub enum Flaw {
    /// An operation completes that was never begun.
    NotBegun,
    /// Two operations have one id, by which others speak of both.
    SameId,
    /// A completion is that of another function.
    OtherFunction,
}

/// Gives a history a flaw, at some of its operations.
pub fn flawed(events: &[Event<'static>], flaw: Flaw, at: usize) -> Vec<Event<'static>> {
    let by_client =
        |event: &&Event<'_>| event.process.starts_with('c') && event.kind != Kind::Invoke;
    let completed = events.iter().filter(by_client);
    let ops: Vec<u64> = completed
        .filter(|event| !matches!(event.f, Function::Lost | Function::Exit))
        .map(|event| event.op)
        .collect();
    let mut events = events.to_vec();
    if ops.is_empty() {
        return events;
    }
    let (op, other) = (ops[at % ops.len()], ops[at / ops.len() % ops.len()]);
    match flaw {
        Flaw::NotBegun => {
            let invoked = events
                .iter()
                .position(|event| event.op == op && event.kind == Kind::Invoke);
            // That a process was there before a crash shows in its first event.
            let process = |at: usize| events[at].process.clone();
            let removed =
                invoked.filter(|&at| (0..at).any(|before| process(before) == process(at)));
            removed.map(|at| events.remove(at));
        }
        Flaw::SameId => {
            for event in &mut events {
                event.op = if event.op == op { other } else { event.op };
                event.grant = event
                    .grant
                    .map(|grant| if grant == op { other } else { grant });
            }
        }
        Flaw::OtherFunction => {
            let completion = events
                .iter_mut()
                .find(|event| event.op == op && event.kind != Kind::Invoke);
            if let Some(event) = completion {
                event.f = if event.f == Function::Work {
                    Function::Held
                } else {
                    Function::Work
                };
            }
        }
    }
    events
}

/// Events without rhyme or reason.
pub fn nonsense() -> impl Strategy<Value = Vec<Event<'static>>> {
    let number = || {
        prop::option::weighted(
            0.6,
            prop_oneof![8 => 0_u64..6, 1 => any::<u64>(), 1 => Just(u64::MAX)],
        )
    };
    let f = prop::sample::select(vec![
        Function::Acquire,
        Function::Extend,
        Function::Release,
        Function::Held,
        Function::Lost,
        Function::Work,
        Function::Read,
        Function::Write,
        Function::Point,
        Function::Inject,
        Function::Heal,
        Function::Log,
        Function::Accepted,
        Function::Exit,
    ]);
    let kind = prop::sample::select(vec![Kind::Invoke, Kind::Ok, Kind::Fail, Kind::Info]);
    let process = prop::sample::select(vec!["c1", "c1.2", "c2", "nemesis", "storage", ""]);
    let times = (number(), number(), number(), number());
    let event = (
        f,
        kind,
        process,
        0_u64..8,
        number(),
        times,
        number(),
        number(),
        any::<u8>(),
    )
        .prop_map(
            |(
                f,
                kind,
                process,
                op,
                t,
                (grant, token, validity, ttl_ms),
                version,
                based_on,
                bits,
            )| {
                let mut event = Event::new(t.unwrap_or(2), process, op, kind, f);
                (event.grant, event.token, event.validity, event.ttl_ms) =
                    (grant, token, validity, ttl_ms);
                (event.version, event.based_on, event.entries) = (version, based_on, based_on);
                event.lock = (bits & 1 > 0).then(|| "l".into());
                event.document = (bits & 2 > 0).then(|| "d".into());
                event.value = (bits & 4 > 0).then(|| format!("v{}", bits >> 5).into());
                event.fault = (bits & 8 > 0).then(|| "crash".into());
                event.on = (bits & 16 > 0).then(|| vec!["c1".to_owned()]);
                event.step = version
                    .filter(|version| *version < 3)
                    .map(|version| version as usize);
                event.held = Some(bits & 32 > 0);
                event.error = Some("rejected".into());
                event
            },
        );
    // Ordered, so that most of them are taken.
    prop::collection::vec(event, 0..40).prop_map(|mut events| {
        events.sort_by_key(|event| event.t);
        events
    })
}
