//! `document`: reads and writes of a document are linearizable, as operations on a register with versions.
//!
//! Every write that takes effect makes a version higher than all before; a read returns the version that is there, with
//! its value. Since versions are in the history, the order of writes is known, and no search is needed. The history of a
//! document is linearizable if and only if
//!
//! 1. every version but 0 has one writer, and every write makes one version;
//! 2. every read returns the value of its version's writer (that of version 0 is empty);
//! 3. no operation precedes another in real time (returns before the other is invoked) against the order of versions: a
//!    read of version x, or a write of it, precedes neither a read of a version < x nor a write of a version <= x.
//!
//! *Only if*: each is plain. *If*: give a write of version n the key (n, 0) and a read of it the key (n, 1). By 3 an
//! operation that precedes another has no higher key, and a lower one if the other is a write. So real time and the
//! order of keys together have no cycle: along a cycle of both the keys would never fall, hence stay equal, and among
//! operations of one key, which are reads of one version or one write, only real time orders, which has no cycles. Any
//! order of all operations that extends both is a linearization: between the write of n and the next write stand exactly
//! the reads of n. A write of unknown outcome has no return: it precedes nothing.
//!
//! By 3 only the highest version that was seen before an invocation matters, so one sweep by time decides: O(n log n).
//!
//! Versions need only rise: the proof asks for no gap to be absent, so that a revision will do for a version.

mod contradiction;

use self::contradiction::{Backwards, Contradiction, Operation, describe};
use crate::grants::Cuts;
use crate::names::{Map, NONE};
use crate::operations::{Call, Completion, NEVER, Read};
use crate::properties::{Case, Finding, Property};
use crate::storage::{Accepted, StorageOrder};

pub(super) const PROPERTY: Property = Property {
    name: "document",
    summary: "violated when reads and writes are not linearizable: an acknowledged write vanished, a read went back in time",
    silent: |case| case.no_documents(),
    judge,
};

fn judge(case: &Case<'_>, _cuts: &Cuts) -> Finding {
    let mut found = versions(case);
    found.extend(log(case));
    found.extend(order(case));
    let (contradictions, doubt) = reads(case);
    found.extend(contradictions);
    // An operation may contradict in several ways; it counts once, and the first way found is the plainest.
    found.sort_by_key(|contradiction| {
        let call = contradiction.operation().call(case.record);
        (call.completed, call.op)
    });
    found.dedup_by_key(|contradiction| contradiction.operation());
    match (found.first(), doubt) {
        (Some(first), _) => Finding::violated(describe(case.record, first), found.len() as u64),
        (None, Some(reason)) => Finding::unknown(reason),
        (None, None) => Finding::holds(),
    }
}

/// Whether something can be concluded from what a process did: not if it went on after its death.
fn lived(case: &Case<'_>, call: &Call) -> bool {
    !case.record.processes[call.process as usize].outlives_its_death()
}

/// Whether something can be concluded from a write. Of one that is based on what its client cannot have read the record
/// is at fault.
fn is_sound(case: &Case<'_>, write: u32) -> bool {
    let write = &case.record.writes[write as usize];
    !write.unread && lived(case, &write.call)
}

/// The writes that the storage accepted and from which something can be concluded.
fn accepted<'a>(case: &'a Case<'_>) -> impl Iterator<Item = &'a Accepted> {
    let accepted = case.storage.accepted.iter();
    accepted.filter(|accepted| is_sound(case, accepted.write))
}

/// Versions with several writers, writes with several versions, and writes that cannot have made theirs.
fn versions(case: &Case<'_>) -> Vec<Contradiction> {
    let record = case.record;
    let mut found = Vec::new();
    let mut version_of = vec![None; record.writes.len()];
    let mut before: Option<Accepted> = None;
    for accepted in accepted(case) {
        let write = &record.writes[accepted.write as usize];
        let same = before.filter(|before| {
            (before.document, before.version) == (accepted.document, accepted.version)
        });
        if let Some(first) = same {
            found.push(Contradiction::SharedVersion {
                first: first.write,
                second: accepted.write,
                version: accepted.version,
            });
        }
        match version_of[accepted.write as usize].replace(accepted.version) {
            Some(first) => found.push(Contradiction::TakenTwice {
                write: accepted.write,
                first,
                second: accepted.version,
            }),
            None if write.call.completion == Completion::Fail => {
                found.push(Contradiction::FailedYetAccepted {
                    write: accepted.write,
                    version: accepted.version,
                    logged: case.storage.logged[accepted.write as usize],
                });
            }
            None => {}
        }
        if accepted.version == 0 {
            found.push(Contradiction::MadeNothing {
                write: accepted.write,
            });
        }
        if write
            .based_on
            .is_some_and(|based_on| based_on >= accepted.version)
        {
            found.push(Contradiction::BasedOnLater {
                write: accepted.write,
                version: accepted.version,
            });
        }
        before = Some(*accepted);
    }
    found
}

/// What the storage's log contradicts.
fn log(case: &Case<'_>) -> Vec<Contradiction> {
    let (record, storage) = (case.record, &case.storage);
    let mut found = Vec::new();
    for (row, write) in record
        .writes
        .iter()
        .enumerate()
        .filter(|&(row, write)| write.call.ok() && !storage.logged[row])
        .filter(|&(row, _)| is_sound(case, row as u32))
    {
        let logged_until = storage.logged_until(write.document);
        if StorageOrder::would_log(record, row as u32)
            && logged_until.is_some_and(|logged| write.call.completed < logged)
        {
            found.push(Contradiction::Vanished { write: row as u32 });
        }
    }
    found
}

/// Reads that did not return what their version's writer wrote, and why one of them may or may not have, if so.
fn reads(case: &Case<'_>) -> (Vec<Contradiction>, Option<String>) {
    let record = case.record;
    let mut found = Vec::new();
    let mut unwritten = Vec::new();
    for (row, read) in record.reads.iter().enumerate() {
        let Some(version) = read.version.filter(|_| lived(case, &read.call)) else {
            continue;
        };
        let writers = case.storage.writers(read.document, version);
        let fits = |value: u32| read.value == NONE || value == NONE || value == read.value;
        let may_be_its_own = |accepted: &Accepted| {
            !is_sound(case, accepted.write) || fits(record.writes[accepted.write as usize].value)
        };
        if version == 0 {
            if !record.values.text(read.value).is_empty() {
                found.push(Contradiction::OtherValue {
                    read: row as u32,
                    writer: None,
                });
            }
        } else if writers.is_empty() {
            unwritten.push(row as u32);
        } else if !writers.iter().any(may_be_its_own) && !is_a_stranger(case, read) {
            found.push(Contradiction::OtherValue {
                read: row as u32,
                writer: Some(writers[0].write),
            });
        } else if is_unlogged(case, read, writers) {
            found.push(Contradiction::Unlogged {
                read: row as u32,
                writer: writers[0].write,
            });
        }
    }
    let mut doubt = None;
    if !unwritten.is_empty() {
        let open = first_open_write_of_value(case);
        for row in unwritten {
            let read = &record.reads[row as usize];
            if nobody_wrote(case, read, &open) {
                found.push(Contradiction::Unwritten { read: row });
            } else {
                doubt.get_or_insert_with(|| {
                    let version = read.version.unwrap_or_default();
                    format!(
                        "read {} returned version {version}, and nothing tells which write made it",
                        read.call.op
                    )
                });
            }
        }
    }
    (found, doubt)
}

/// Whether what a read returned may have been made by a write that no client began, as the log has it.
fn is_a_stranger(case: &Case<'_>, read: &Read) -> bool {
    let made = (read.document, read.version.unwrap_or_default());
    case.storage.strangers.contains(&made)
}

/// Whether a read returned what only reads show to have been written, and a later log lacks.
fn is_unlogged(case: &Case<'_>, read: &Read, writers: &[Accepted]) -> bool {
    if is_a_stranger(case, read) {
        return false;
    }
    let logged_until = case.storage.logged_until(read.document);
    let unlogged = |accepted: &Accepted| {
        let write = accepted.write as usize;
        case.record.writes[write].call.unknown()
            && is_sound(case, accepted.write)
            && !case.storage.logged[write]
            && StorageOrder::would_log(case.record, accepted.write)
    };
    logged_until.is_some_and(|logged| read.call.completed < logged) && writers.iter().all(unlogged)
}

/// Whether no write at all can have made what a read returned, when none is known to have made its version.
fn nobody_wrote(case: &Case<'_>, read: &Read, open: &Map<(u32, u32), u64>) -> bool {
    if is_a_stranger(case, read) {
        return false;
    }
    if case
        .storage
        .logged_until(read.document)
        .is_some_and(|logged| read.call.completed < logged)
    {
        return true;
    }
    // Every write that a read can have seen was begun before the read returned, and stands in a history that is whole.
    let began_later = |value: u32| {
        let first = open.get(&(read.document, value));
        first.is_none_or(|&invoked| invoked > read.call.completed)
    };
    let whole = case.complete && !case.lost_events;
    whole
        && match read.value {
            NONE => began_later(ANY),
            value => began_later(value) && began_later(NONE),
        }
}

/// Whatever value; no value has this number.
const ANY: u32 = NONE - 1;

/// By document and value, and by document and [`ANY`]: when a write of that value whose outcome or version nothing tells was
/// invoked first.
fn first_open_write_of_value(case: &Case<'_>) -> Map<(u32, u32), u64> {
    let mut open = Map::default();
    for (row, write) in case.record.writes.iter().enumerate() {
        if case.storage.made_no_known_version(case.record, row as u32)
            && write.call.completion != Completion::Fail
        {
            for value in [write.value, ANY] {
                open.entry((write.document, value))
                    .or_insert(write.call.invoked);
            }
        }
    }
    open
}

/// An operation in the sweep by time.
#[derive(Clone, Copy)]
struct Seen {
    document: u32,
    version: u64,
    invoked: u64,
    returned: u64,
    operation: Operation,
}

/// The reads and the accepted writes of known versions.
fn all_seen(case: &Case<'_>) -> Vec<Seen> {
    let record = case.record;
    let seen = |document, version, call: &Call, operation| Seen {
        document,
        version,
        invoked: call.invoked,
        returned: call.returned(),
        operation,
    };
    let reads = record.reads.iter().enumerate();
    let reads = reads.filter(|(_, read)| lived(case, &read.call));
    let reads = reads.filter_map(|(row, read)| {
        let operation = Operation::Read(row as u32);
        Some(seen(read.document, read.version?, &read.call, operation))
    });
    let writes = accepted(case).map(|accepted| {
        let call = &record.writes[accepted.write as usize].call;
        let operation = Operation::Write(accepted.write);
        seen(accepted.document, accepted.version, call, operation)
    });
    reads.chain(writes).collect()
}

/// Operations that contradict the order of versions: one sweep over the invocations, beside the returns before them.
fn order(case: &Case<'_>) -> Vec<Contradiction> {
    let mut seen = all_seen(case);
    seen.sort_by_key(|seen| seen.returned);
    let returns = seen.clone();
    seen.sort_by_key(|seen| seen.invoked);
    let mut returns = returns
        .iter()
        .filter(|seen| seen.returned != NEVER)
        .peekable();
    let mut highest: Vec<Option<Seen>> = vec![None; case.record.documents.len()];
    let mut found = Vec::new();
    for later in &seen {
        while let Some(earlier) = returns.next_if(|earlier| earlier.returned < later.invoked) {
            let highest = &mut highest[earlier.document as usize];
            if highest.is_none_or(|highest| earlier.version > highest.version) {
                *highest = Some(*earlier);
            }
        }
        let against = |earlier: &Seen| match later.operation {
            Operation::Read(_) => later.version < earlier.version,
            Operation::Write(_) => later.version <= earlier.version,
        };
        if let Some(earlier) = highest[later.document as usize].filter(against) {
            found.push(Contradiction::Backwards(Backwards {
                earlier: earlier.operation,
                earlier_version: earlier.version,
                later: later.operation,
                later_version: later.version,
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests;
