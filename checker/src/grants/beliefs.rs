//! Beliefs: the times in which clients act as the holder, granted or not.

use std::collections::HashSet;

use crate::grants::Interval;
use crate::names::NONE;
use crate::operations::{Acquire, Call, Completion, NEVER, Record, Write};

/// What was done under one acquire: from its first act to the end of its last.
#[derive(Clone, Copy)]
struct Acts {
    first: u64,
    last: u64,
}

/// The beliefs, by lock and start. One of a grant that came when its client had given it up ends before it begins.
pub(super) fn beliefs(record: &Record) -> Vec<Interval> {
    let mut acts: Vec<Option<Acts>> = vec![None; record.acquires.len()];
    let mut beliefs = Vec::with_capacity(record.acquires.len() / 2);
    let only_lock = (record.locks.len() == 1).then_some(0);
    for (call, grant, until) in all_acts(record) {
        let acquire = record.acquire(grant).filter(|acquire| acquire.lock != NONE);
        if acquire.is_some() {
            let acts = acts[grant as usize].get_or_insert(Acts {
                first: call.invoked,
                last: until,
            });
            acts.first = acts.first.min(call.invoked);
            acts.last = acts.last.max(until);
        } else if let Some(lock) = only_lock {
            beliefs.push(Interval {
                lock,
                start: call.invoked,
                // An act at an instant is one all the same.
                end: until.max(call.invoked.saturating_add(1)),
                grant: NONE,
                process: call.process,
                op: call.op,
                granted: false,
            });
        }
    }
    let asked_back = asked_back(record);
    for (row, acquire) in record.acquires.iter().enumerate() {
        let given_up = acquire.end.at.min(asked_back[row]);
        beliefs.extend(belief(row as u32, acquire, acts[row], given_up));
    }
    beliefs.sort_unstable();
    beliefs
}

/// All acts: their calls, the rows of their acquires, and until when they last.
fn all_acts(record: &Record) -> impl Iterator<Item = (Call, u32, u64)> {
    let worked_until = |call: &Call| match call.completion {
        Completion::Pending => call.invoked,
        _ => call.completed,
    };
    let works = record.works.iter();
    let works = works.map(move |work| (work.call, work.grant, worked_until(&work.call)));
    let committed = committing_releases(record);
    let writes = record.writes.iter().map(move |write| {
        let until = written_until(write, &committed);
        (write.call, write.grant, until)
    });
    works.chain(writes)
}

/// The grants under which their clients still began to act when they had asked to release them.
pub(crate) fn acted_on(record: &Record) -> HashSet<u32> {
    let asked_back = asked_back(record);
    let is_late = |(call, grant, _): &(Call, u32, u64)| {
        let asked_back = asked_back.get(*grant as usize);
        asked_back.is_some_and(|&asked| call.invoked > asked)
    };
    all_acts(record)
        .filter(is_late)
        .map(|(_, grant, _)| grant)
        .collect()
}

/// By acquire: when its client asked first to release it, whatever came of that: it acts no more then.
fn asked_back(record: &Record) -> Vec<u64> {
    let mut asked_back = vec![NEVER; record.acquires.len()];
    for release in &record.releases {
        if let Some(asked) = asked_back.get_mut(release.grant as usize) {
            *asked = release.call.invoked.min(*asked);
        }
    }
    asked_back
}

/// By acquire: the first release of it that happened or may have, from its invocation to its completion.
fn committing_releases(record: &Record) -> Vec<Option<(u64, u64)>> {
    let mut releases = vec![None; record.acquires.len()];
    for release in record.releases.iter().filter(|release| !release.is_void()) {
        if let Some(slot) = releases.get_mut(release.grant as usize) {
            slot.get_or_insert((release.call.invoked, release.call.completed));
        }
    }
    releases
}

/// Until when a write is an act: an accepted one until it completed, any other at its invocation. One that was
/// invoked before its grant's release and completed within it was committed by that release.
fn written_until(write: &Write, releases: &[Option<(u64, u64)>]) -> u64 {
    let Call {
        invoked, completed, ..
    } = write.call;
    if !write.call.ok() {
        return invoked;
    }
    let release = releases.get(write.grant as usize).copied().flatten();
    let committed = release.is_some_and(|(asked, answered)| {
        invoked < asked && (asked..=answered).contains(&completed)
    });
    if committed { invoked } else { completed }
}

/// The belief of an acquire: of a grant from its return until its client gave it up, or its last act, of any other while it
/// was acted under.
fn belief(row: u32, acquire: &Acquire, acts: Option<Acts>, given_up: u64) -> Option<Interval> {
    if acquire.lock == NONE {
        return None;
    }
    let (start, end) = if acquire.granted() {
        let last = acts.map_or(0, |acts| acts.last);
        (acquire.call.completed, given_up.max(last))
    } else {
        let acts = acts?;
        (acts.first, acts.last.max(acts.first.saturating_add(1)))
    };
    Some(Interval {
        lock: acquire.lock,
        start,
        end,
        grant: row,
        process: acquire.call.process,
        op: acquire.call.op,
        granted: acquire.granted(),
    })
}
