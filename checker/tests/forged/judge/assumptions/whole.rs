//! The record is whole.

use super::super::Facts;
use super::super::faults::{healing, heals, planned_step};
use super::super::history::{Ending, FOREVER, number, text};
use super::super::operations::Op;
use super::super::storage::{Write, covers, document, is_complete};
use super::{Failures, lives};

pub(super) fn check(facts: &Facts, failures: &mut Failures) {
    let ending = facts.history.ending;
    failures.unless(ending != Ending::Cut, || "the history is cut".to_owned());
    failures.unless(ending != Ending::Edited, || {
        "the history was edited".to_owned()
    });
    let times = facts.history.events.iter().map(|event| number(event, "t"));
    failures.unless(ending == Ending::Cut || times.is_sorted(), || {
        "the events are not in order".to_owned()
    });
    something_worked(facts, failures);
    lives::check(facts, failures);
    the_log_was_read(facts, failures);
}

fn something_worked(facts: &Facts, failures: &mut Failures) {
    let injections: Vec<&Op> = facts.ops.with("inject").collect();
    let first = injections
        .iter()
        .map(|op| op.start)
        .min()
        .unwrap_or(FOREVER);
    let last = injections
        .iter()
        .map(|op| over(facts, op))
        .max()
        .unwrap_or(0);
    failures.unless(facts.ops.of_clients().next().is_some(), || {
        "no client did anything".to_owned()
    });
    let has = |f: &str| facts.ops.with(f).next().is_some();
    let is_work = |op: &&Op| match has("acquire") {
        true => op.is("acquire"),
        false => op.is("read") || op.is("write"),
    };
    let worked = || facts.ops.of_clients().filter(is_work).filter(|op| op.ok());
    failures.unless(
        injections.is_empty() || worked().any(|op| op.last() <= first),
        || "nothing worked before the first fault".to_owned(),
    );
    failures.unless(
        !has("acquire") || worked().any(|op| op.last() >= last),
        || "no lock was granted after the last fault".to_owned(),
    );
    let is_accepted = |write: &Write| {
        write.version.is_some()
            && (write.op.start >= last || write.op.ok() && write.op.last() >= last)
    };
    let stored = has("read") || has("write");
    failures.unless(
        !stored || facts.storage.writes.iter().any(is_accepted),
        || "no write was accepted after the last fault".to_owned(),
    );
}

/// When a fault was over; one that was never healed, or is to last to the end, when it was injected.
fn over(facts: &Facts, inject: &Op) -> u64 {
    let lasts = planned_step(facts.history, inject).is_none_or(|fault| !heals(fault));
    let healed = healing(&facts.ops, inject).filter(|_| !lasts || !inject.ok());
    healed.map_or(inject.last(), Op::last)
}

fn the_log_was_read(facts: &Facts, failures: &mut Failures) {
    for log in facts.ops.with("log").filter(|log| log.ok()) {
        failures.unless(is_complete(log, &facts.storage.rows), || {
            format!("the log {} has not as many rows as it says", log.id)
        });
    }
    let storage = text(facts.history.plan(), "storage").unwrap_or_default();
    if ["", "none"].contains(&storage) {
        return;
    }
    let logs = &facts.storage.logs;
    failures.unless(!logs.is_empty(), || {
        "the storage's log was not read to its end".to_owned()
    });
    let of = |log: &Op| log.text("document").map(str::to_owned);
    let is_again = |at: usize, log: &Op| {
        logs[..at].iter().any(|before| {
            let both = (of(before), of(log));
            both.0 == both.1 || both.0.is_none() || both.1.is_none()
        })
    };
    failures.unless(
        !logs.iter().enumerate().any(|(at, log)| is_again(at, log)),
        || "a log was read twice".to_owned(),
    );
    for write in &facts.storage.writes {
        let read = logs
            .iter()
            .any(|log| covers(log, Some(document(&write.op))) && log.start >= write.op.known_at());
        failures.unless(read, || {
            format!("the log was not read after write {}", write.op.id)
        });
    }
}
