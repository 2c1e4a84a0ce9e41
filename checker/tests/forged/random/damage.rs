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

/// Events without rhyme or reason, ordered, so that most of them are taken.
pub fn nonsense() -> impl Strategy<Value = Vec<Event<'static>>> {
    let number = prop_oneof![8 => 0_u64..6, 1 => any::<u64>(), 1 => Just(u64::MAX)];
    let numbers = prop::collection::vec(prop::option::weighted(0.6, number), 7);
    let event = (
        0..FUNCTIONS.len(),
        0_usize..4,
        0_usize..6,
        0_u64..8,
        numbers,
        any::<u8>(),
    );
    prop::collection::vec(event.prop_map(any_event), 0..40).prop_map(|mut events| {
        events.sort_by_key(|event| event.t);
        events
    })
}

const FUNCTIONS: [Function; 14] = [
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
];

/// Function, type, process, operation, times and numbers, and a bit for each field that is there or not.
type Parts = (usize, usize, usize, u64, Vec<Option<u64>>, u8);

fn any_event((f, kind, process, op, numbers, bits): Parts) -> Event<'static> {
    let kind = [Kind::Invoke, Kind::Ok, Kind::Fail, Kind::Info][kind];
    let process = ["c1", "c1.2", "c2", "nemesis", "storage", ""][process];
    let mut event = Event::new(numbers[0].unwrap_or(2), process, op, kind, FUNCTIONS[f]);
    (event.grant, event.token, event.validity) = (numbers[1], numbers[2], numbers[3]);
    (event.ttl_ms, event.version, event.based_on) = (numbers[4], numbers[5], numbers[6]);
    event.entries = numbers[6];
    event.step = numbers[5]
        .filter(|step| *step < 3)
        .map(|step| step as usize);
    let bit = |number: u8| bits & (1 << number) > 0;
    event.lock = bit(0).then(|| "l".into());
    event.document = bit(1).then(|| "d".into());
    event.value = bit(2).then(|| format!("v{}", bits >> 6).into());
    event.fault = bit(3).then(|| "crash".into());
    event.on = bit(4).then(|| vec!["c1".to_owned()]);
    event.held = Some(bit(5));
    event.error = Some("rejected".into());
    event
}
