//! What a history must be like for the checker to say of anything that it holds.
//!
//! A failed assumption never hides a violation. So that no flaw of the record makes one up, a flawed event may end a
//! hold, but never begins one and never adds a write; and what is proven by the absence of an event (nobody holds the
//! lock, no write made this version) is not proven by a record that lost some.

mod killed;
mod processes;

use std::collections::HashSet;

use histories::{Plan, Seal, host_of};

use crate::faults::Faults;
use crate::grants::{Grants, waits_until};
use crate::names::NONE;
use crate::operations::{Acquire, Record, Write};
use crate::plausible;
use crate::sentences::{self, count};
use crate::storage::StorageOrder;

/// The kinds of flaws that single events have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flaw {
    /// Two operations have one id.
    Duplicate,
    /// An operation completed that was not in flight.
    Uninvoked,
    /// A completion contradicts its invocation.
    Mismatch,
    /// A client began an operation while another of its kind was in flight.
    Overlap,
    /// An operation was done under a grant that its process did not have.
    NotGranted,
    /// What is done to a lock names another lock than its grant does.
    OtherLock,
    /// A document is read or written under grants of two locks.
    TwoLocks,
    /// A write carries another token than its grant, or none where the storage goes by it.
    OtherToken,
    /// A grant has no token where others of its lock have.
    Tokenless,
    /// A client asked for a lease of another length than the plan's.
    OtherTtl,
    /// A grant or its extension tells no validity where it has to.
    NoValidity,
    /// A validity is later than the plan's leases live.
    LongLease,
    /// A client cannot have read what it says its write was based on.
    Unread,
    /// The storage answered without a version.
    NoVersion,
    /// A read or a write does not tell its value.
    NoValue,
    /// A write does not say what it was based on, though others do.
    Baseless,
    /// The storage's log has a write that no client began.
    Stranger,
    /// The storage's log has another value or token than was sent.
    OtherInLog,
    /// The storage's log was read to its end, and has not as many rows as it says.
    PartialLog,
    /// A row was told when the log of its document was not read.
    OutsideLog,
    /// The storage's log has a write twice.
    TwiceInLog,
    /// The storage's log has a write that began after that was told.
    Foreseen,
    /// A remark or a row of the log that is not of its type or of its process.
    Untold,
    /// A client did something while it stood still, or did not wait when it was kept waiting.
    Awake,
    /// The storage rejected a write for which it had no reason.
    Unprovoked,
    /// A client wrote before its work had lasted as long as the plan makes it.
    ShortWork,
}

/// The flaws that were found: of each kind the first, and how many there are.
#[derive(Default)]
pub(crate) struct Flaws {
    found: Vec<(Flaw, String, u64)>,
}

impl Flaws {
    /// Notes a flaw. The sentence is made for the first of its kind only.
    pub(crate) fn note(&mut self, flaw: Flaw, sentence: impl FnOnce() -> String) {
        match self.found.iter_mut().find(|(kind, ..)| *kind == flaw) {
            Some((.., times)) => *times += 1,
            None => self.found.push((flaw, sentence(), 1)),
        }
    }

    /// Whether events were left aside, so that what they told is not known.
    pub(crate) fn lose_events(&self) -> bool {
        let lost = |flaw: Flaw| {
            matches!(
                flaw,
                Flaw::Duplicate | Flaw::Uninvoked | Flaw::Mismatch | Flaw::Untold
            )
        };
        self.found.iter().any(|&(flaw, ..)| lost(flaw))
    }

    /// Whether clients may have held locks by other grants than those that are known.
    pub(crate) fn hide_holds(&self) -> bool {
        self.lose_events()
            || self
                .found
                .iter()
                .any(|&(flaw, ..)| flaw == Flaw::NotGranted)
    }

    fn sentences(mut self) -> impl Iterator<Item = String> {
        self.found.sort_by_key(|(flaw, ..)| *flaw);
        self.found.into_iter().map(|(_, first, times)| match times {
            1 => first,
            _ => format!("{first} (and {} more like it)", times - 1),
        })
    }
}

/// What the assumptions are about.
pub(crate) struct Assumed<'a> {
    pub(crate) record: &'a Record,
    pub(crate) storage: &'a StorageOrder,
    pub(crate) grants: &'a Grants,
    pub(crate) faults: &'a Faults,
    pub(crate) plan: &'a Plan,
    pub(crate) seal: Seal,
    /// Whether its events are not in the order of their times, as only in a history that is cut.
    pub(crate) is_unordered: bool,
}

/// The assumptions that failed, the gravest first.
pub(crate) fn failures(assumed: &Assumed<'_>, flaws: Flaws) -> Vec<String> {
    let Assumed {
        record,
        storage,
        grants,
        faults,
        ..
    } = *assumed;
    let mut failures = Vec::new();
    match assumed.seal {
        Seal::Cut => failures.push(format!(
            "the history is cut after {}",
            count(record.events, "event")
        )),
        Seal::Edited => failures.push(
            "the history was edited after it was closed: its digest is not that of its content"
                .to_owned(),
        ),
        Seal::Sealed | Seal::Unsealed => {}
    }
    if assumed.is_unordered && assumed.seal != Seal::Cut {
        failures.push("its events are not in the order of their times".to_owned());
    }
    if record.operations == 0 {
        failures.push("no client did anything".to_owned());
    }
    // Whatever else is wrong often follows from these.
    failures.extend(processes::ended_by_others(record, faults));
    failures.extend(flaws.sentences());
    failures.extend(faults.failures());
    if assumed.seal != Seal::Cut {
        failures.extend(processes::failures(record, faults, assumed.plan.clients));
        failures.extend(unread_log(assumed));
    }
    let condition = assumed.plan.write_condition.as_deref();
    failures.extend(
        condition
            .filter(|condition| *condition != plausible::TOKEN)
            .map(|condition| {
                format!("the plan's storage goes by `{condition}`, of which nothing is known")
            }),
    );
    if record.operations > 0 {
        failures.extend(killed::outlived_by(record, grants));
        failures.extend(idle_before(record, faults));
        failures.extend(idle_after(record, storage, faults));
        failures.extend(uncontended(assumed));
    }
    failures
}

/// Whether the storage's log of accepted writes was not read to its end after the last write.
fn unread_log(assumed: &Assumed<'_>) -> Option<String> {
    let Assumed {
        record,
        storage,
        plan,
        ..
    } = *assumed;
    if plan.storage.is_empty() {
        return None;
    }
    if !storage.log_was_read() {
        return Some("the storage's log was never read to its end".to_owned());
    }
    if let Some(document) = storage.read_again {
        let which = match document {
            NONE => "the storage's log".to_owned(),
            document => format!("the storage's log of `{}`", record.documents.text(document)),
        };
        return Some(format!(
            "{which} was read to its end twice: whether both readings agree is not looked at"
        ));
    }
    let late = |write: &&Write| {
        storage
            .logged_until(write.document)
            .is_none_or(|read| read < write.call.known_at())
    };
    let write = record.writes.iter().find(late)?;
    Some(format!(
        "the storage's log was not read to its end after {}",
        sentences::write(record, write)
    ))
}

/// Whether no two clients competed for the lock: nothing was contended then, and so nothing was shown.
fn uncontended(assumed: &Assumed<'_>) -> Option<String> {
    if assumed.plan.lock.is_empty() {
        return None;
    }
    let Assumed { record, grants, .. } = *assumed;
    let client = |acquire: &Acquire| host_of(record.names.text(acquire.call.process));
    let mut granted = record.acquires.iter().filter(|acquire| acquire.granted());
    let first = granted.next().map(client);
    if !granted.any(|acquire| Some(client(acquire)) != first) {
        return Some("no two clients were granted the lock: nothing was contended".to_owned());
    }
    let had: HashSet<(&str, u32)> = record
        .acquires
        .iter()
        .filter(|acquire| acquire.granted())
        .map(|acquire| (client(acquire), acquire.lock))
        .collect();
    let asked = record
        .acquires
        .iter()
        .filter(|acquire| acquire.lock != NONE && !acquire.refused)
        .filter(|acquire| had.contains(&(client(acquire), acquire.lock)));
    let competes = |acquire: &Acquire| {
        let until = waits_until(record, &acquire.call);
        let began = grants
            .certain
            .partition_point(|hold| (hold.lock, hold.start) < (acquire.lock, until));
        // Where the lock excludes, the one before the last can still have been held when it was asked for.
        let held = grants.certain[..began].iter().rev().take(HOLDS_LOOKED_AT);
        held.filter(|hold| hold.lock == acquire.lock && hold.end > acquire.call.invoked)
            .any(|hold| host_of(record.names.text(hold.process)) != client(acquire))
    };
    let mut asked = asked;
    if !asked.any(competes) {
        return Some(
            "no client asked for the lock while another held it: nothing was contended".to_owned(),
        );
    }
    asked_for_by_one(record).map(|lock| {
        let lock = sentences::lock(record, lock);
        format!("only one client asked for {lock}: nothing was contended")
    })
}

/// A lock for which no two clients asked, if there is one: who says that a grant is of another lock would hide it there.
fn asked_for_by_one(record: &Record) -> Option<u32> {
    let mut first_asked = vec![None; record.locks.len()];
    let mut by_two = vec![false; record.locks.len()];
    for acquire in record
        .acquires
        .iter()
        .filter(|acquire| acquire.lock != NONE)
    {
        let host = host_of(record.names.text(acquire.call.process));
        let lock = acquire.lock as usize;
        by_two[lock] |= *first_asked[lock].get_or_insert(host) != host;
    }
    let alone = by_two.iter().position(|by_two| !by_two);
    alone.map(|lock| lock as u32)
}

/// So many holds before the end of a wait are looked at for one of another client.
const HOLDS_LOOKED_AT: usize = 16;

/// Whether nothing worked before the first fault: then it may have been broken from the start.
fn idle_before(record: &Record, faults: &Faults) -> Option<String> {
    let first = faults.first()?;
    let worked = if record.locks.is_empty() {
        let read = record
            .reads
            .iter()
            .any(|read| read.call.ok() && read.call.completed <= first);
        read || record
            .writes
            .iter()
            .any(|write| write.call.ok() && write.call.completed <= first)
    } else {
        record
            .acquires
            .iter()
            .any(|acquire| acquire.granted() && acquire.call.completed <= first)
    };
    let what = if record.locks.is_empty() {
        "no read or write succeeded"
    } else {
        "no lock was granted"
    };
    (!worked).then(|| format!("{what} before the first fault"))
}

/// What did not work after the last fault was over, of those things that clients tried at all.
fn idle_after(record: &Record, storage: &StorageOrder, faults: &Faults) -> Vec<String> {
    let (since, when) = match (faults.first(), faults.quiet_since()) {
        (None, _) => (0, ""),
        (Some(_), Some(since)) => (since, " after the last fault was over"),
        // That a fault did not heal is a failure of its own.
        (Some(_), None) => return Vec::new(),
    };
    let mut idle = Vec::new();
    let granted = || {
        record
            .acquires
            .iter()
            .any(|acquire| acquire.granted() && acquire.call.completed >= since)
    };
    if !record.locks.is_empty() && !granted() {
        idle.push(format!("no lock was granted{when}"));
    }
    let accepted = || {
        storage.accepted.iter().any(|accepted| {
            let call = &record.writes[accepted.write as usize].call;
            call.invoked >= since || (call.ok() && call.completed >= since)
        })
    };
    let stored = !record.reads.is_empty() || !record.writes.is_empty();
    if stored && !accepted() {
        idle.push(format!("no write was accepted{when}"));
    }
    idle
}
#[cfg(test)]
mod tests;
