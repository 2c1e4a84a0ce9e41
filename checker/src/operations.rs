//! The operations of a history as tables: one row an operation, names and values as numbers.

mod deaths;
mod events;

use histories::{Kind, Role};

pub(crate) use self::deaths::{Crashes, Death, Deaths};
use crate::index::{Index, Known};
use crate::names::Names;

/// An instant that never comes, or that nobody knows: later than all others.
pub(crate) const NEVER: u64 = u64::MAX;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The history does not say.
    Pending,
    /// It happened.
    Ok,
    /// It did not happen.
    Fail,
    /// Its client does not know.
    Info,
}

/// What all operations have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) op: u64,
    /// In nanoseconds since the run's base, as all instants here.
    pub(crate) invoked: u64,
    /// [`NEVER`] while it is pending.
    pub(crate) completed: u64,
    pub(crate) process: u32,
    pub(crate) completion: Completion,
}

impl Call {
    pub(crate) fn begun(op: u64, process: u32, invoked: u64) -> Call {
        Call {
            op,
            invoked,
            completed: NEVER,
            process,
            completion: Completion::Pending,
        }
    }

    pub(crate) fn complete(&mut self, t: u64, kind: Kind) {
        self.completed = t;
        self.completion = match kind {
            Kind::Ok => Completion::Ok,
            Kind::Fail => Completion::Fail,
            Kind::Info | Kind::Invoke => Completion::Info,
        };
    }

    pub(crate) fn ok(&self) -> bool {
        self.completion == Completion::Ok
    }

    /// It may or may not have happened, as far as its client knows.
    pub(crate) fn unknown(&self) -> bool {
        matches!(self.completion, Completion::Pending | Completion::Info)
    }

    /// When it was known what came of it, or else when it was invoked.
    pub(crate) fn known_at(&self) -> u64 {
        if self.ok() {
            self.completed
        } else {
            self.invoked
        }
    }

    /// When it had returned for certain: [`NEVER`] if it may still happen.
    pub(crate) fn returned(&self) -> u64 {
        if self.ok() { self.completed } else { NEVER }
    }
}

/// How a client stopped to be the holder, and knew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It did not.
    StillHolds,
    /// It asked to give the lock back.
    Released,
    /// It was told.
    Lost,
    /// It asked for more time in vain.
    NotExtended,
    /// Its write was rejected.
    Rejected,
    /// It asked whether it still held the lock, and did not.
    NotHeld,
    /// The nemesis crashed it.
    Crashed,
    /// It ended.
    Exited,
    /// An event that does not fit the others may have told it.
    Unclear,
    /// The history is cut, and what the client did next is not in it.
    CutOff,
}

impl Why {
    /// Whether the client's own doing, or what it was told, ended it.
    pub(crate) fn is_told(self) -> bool {
        use Why::*;
        matches!(
            self,
            Released | Lost | NotExtended | Rejected | NotHeld | Exited
        )
    }
}

/// When and why a grant's client stopped to be the holder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) at: u64,
    pub(crate) op: u64,
    pub(crate) why: Why,
}

/// An attempt to get a lock; one that came out ok is a grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acquire {
    pub(crate) call: Call,
    /// [`NONE`] for an acquire that the history lacks and later operations speak of.
    pub(crate) lock: u32,
    pub(crate) token: Option<u64>,
    /// Whether it failed for another reason than that somebody had the lock: it may not even have reached the service.
    pub(crate) refused: bool,
    /// Until when the grant may be relied on; [`NEVER`] where it does not expire.
    pub(crate) validity: u64,
    pub(crate) end: End,
    /// When the server on which a grant without expiry was held was killed, else [`NEVER`]: the grant ended then, and its
    /// client may not know.
    pub(crate) server_died: u64,
}

impl Acquire {
    pub(crate) fn new(call: Call, lock: u32) -> Acquire {
        let (at, op, why) = (NEVER, 0, Why::StillHolds);
        Acquire {
            call,
            lock,
            token: None,
            refused: false,
            validity: NEVER,
            end: End { at, op, why },
            server_died: NEVER,
        }
    }

    pub(crate) fn granted(&self) -> bool {
        self.call.ok()
    }
}

/// A request for more time, or more time that came in the background.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extend {
    pub(crate) call: Call,
    /// A row of the acquires.
    pub(crate) grant: u32,
    pub(crate) validity: Option<u64>,
    pub(crate) ttl_ms: Option<u64>,
    /// It came in the background, at one instant.
    pub(crate) renewed: bool,
}

/// A request to give the lock back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) call: Call,
    /// A row of the acquires.
    pub(crate) grant: u32,
    /// It failed because the lock was gone already.
    pub(crate) lost: bool,
}

impl Release {
    /// Whether it certainly changed nothing.
    pub(crate) fn is_void(&self) -> bool {
        self.call.completion == Completion::Fail && !self.lost
    }
}

/// The work that a lock protects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) call: Call,
    /// A row of the acquires.
    pub(crate) grant: u32,
}

/// A read of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) call: Call,
    pub(crate) document: u32,
    pub(crate) grant: u32,
    pub(crate) version: Option<u64>,
    pub(crate) value: u32,
}

/// A write of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) call: Call,
    pub(crate) document: u32,
    pub(crate) grant: u32,
    pub(crate) token: Option<u64>,
    pub(crate) based_on: Option<u64>,
    pub(crate) version: Option<u64>,
    pub(crate) value: u32,
    pub(crate) rejected: bool,
    /// Its client cannot have read what it says the write was based on.
    pub(crate) unread: bool,
}

/// One row of the storage's log of accepted writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRow {
    /// When it was told.
    pub(crate) t: u64,
    pub(crate) op: u64,
    pub(crate) document: u32,
    pub(crate) version: u64,
    pub(crate) value: u32,
    pub(crate) token: Option<u64>,
}

/// One reading of that log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRead {
    pub(crate) call: Call,
    /// [`NONE`] for the log of all documents.
    pub(crate) document: u32,
    pub(crate) entries: Option<u64>,
    pub(crate) rows: u64,
}

/// A time in which a client stood still or was kept waiting, as it says itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// Whether what else it did in that time contradicts it.
    pub(crate) is_contradicted: bool,
}

/// A time in which a server stood still.
#[derive(Clone, Debug)]
pub(crate) struct HostStall {
    pub(crate) host: String,
    pub(crate) role: Role,
    pub(crate) from: u64,
    pub(crate) until: u64,
}

/// A process of a client, in one of its lives.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) first_event: u64,
    pub(crate) last_event: u64,
    /// The last event that came before `last_event`, and not at the same instant.
    pub(crate) event_before: Option<u64>,
    /// When it did something last: its end and its stalls are none of its doing.
    pub(crate) last_deed: u64,
    /// How many locks it was granted so far.
    pub(crate) grants: u64,
    /// When it did work, in order, where planned faults wait at points.
    pub(crate) worked: Vec<u64>,
    /// When it stood still, by itself or because the machine did.
    pub(crate) stalls: Vec<Stall>,
    /// When the storage kept it waiting for long.
    pub(crate) waits: Vec<Stall>,
    /// When it ended, in order; a name that is used again ends again.
    pub(crate) exits: Vec<u64>,
    /// The first exit other than `exit 0`: the process was killed then, or failed.
    pub(crate) killed: Option<u64>,
    /// The first of them that the run did not ask for, as far as that tells: when, and how.
    pub(crate) odd_exit: Option<(u64, String)>,
    /// What crashed it; known when all events are.
    pub(crate) crashes: Crashes,
    /// When it had events that do not fit the others, in order: what they told it is not known.
    pub(crate) unclear: Vec<u64>,
    /// Likewise, when releases and extensions ended of which nobody knows when they were asked for.
    pub(crate) unclear_since_when: Vec<u64>,
    /// Its lock operation in flight.
    pub(crate) lock_op: Option<u64>,
    /// Its storage operation in flight.
    pub(crate) storage_op: Option<u64>,
}

impl Process {
    /// A process whose first event is at this instant.
    pub(crate) fn seen_at(t: u64) -> Process {
        Process {
            first_event: t,
            last_event: t,
            event_before: None,
            last_deed: t,
            grants: 0,
            worked: Vec::new(),
            stalls: Vec::new(),
            waits: Vec::new(),
            exits: Vec::new(),
            killed: None,
            odd_exit: None,
            crashes: Crashes::default(),
            unclear: Vec::new(),
            unclear_since_when: Vec::new(),
            lock_op: None,
            storage_op: None,
        }
    }

    pub(crate) fn saw_event(&mut self, t: u64) {
        if t > self.last_event {
            self.event_before = Some(self.last_event);
            self.last_event = t;
        }
    }

    /// When it died first, at the earliest.
    pub(crate) fn first_death(&self) -> Option<u64> {
        let crash = self.crashes.first().map(|crash| crash.invoked);
        self.exits.iter().copied().chain(crash).min()
    }

    /// The time from its last deed until it had been killed for certain: had it stood still by then, it could not say so.
    pub(crate) fn silent_until_killed(&self) -> Option<(u64, u64)> {
        let crashed = self.crashes.first_done();
        let killed = self.killed.into_iter().chain(crashed).min()?;
        (self.last_deed < killed).then_some((self.last_deed, killed))
    }

    /// Whether it did anything after it had died: then one of the two did not happen, and nobody knows which.
    pub(crate) fn outlives_its_death(&self) -> bool {
        let crashed = self
            .crashes
            .first_done()
            .is_some_and(|done| done < self.last_deed);
        let exited = self.exits.iter().any(|&exit| exit < self.last_deed);
        crashed || exited
    }
}

/// All that clients and storage did.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) names: Names,
    pub(crate) processes: Vec<Process>,
    pub(crate) locks: Names,
    pub(crate) documents: Names,
    pub(crate) values: Names,
    pub(crate) acquires: Vec<Acquire>,
    pub(crate) index: Index,
    pub(crate) extends: Vec<Extend>,
    pub(crate) releases: Vec<Release>,
    pub(crate) works: Vec<Work>,
    /// Whether somebody's work was shorter than the plan makes it.
    pub(crate) has_short_work: bool,
    pub(crate) reads: Vec<Read>,
    pub(crate) writes: Vec<Write>,
    pub(crate) log_rows: Vec<LogRow>,
    pub(crate) log_reads: Vec<LogRead>,
    /// How many operations clients began.
    pub(crate) operations: u64,
    /// How many of those ended unknown that are counted here alone: release, held, work.
    pub(crate) other_unknown: u64,
    /// The ends of processes that are no clients: host, when, and how.
    pub(crate) host_exits: Vec<(String, u64, String)>,
    /// The grants whose clients were killed, with the instants at which these gave them up or lost them by what they were told.
    pub(crate) killed: Vec<(u32, u64)>,
    /// The stalls of servers.
    pub(crate) host_stalls: Vec<HostStall>,
    /// How many events there are.
    pub(crate) events: u64,
    /// When the last event happened.
    pub(crate) end: u64,
}

impl Record {
    /// Notes that the client of a grant stopped to be the holder; the first time counts.
    pub(crate) fn end_grant(&mut self, grant: u32, at: u64, op: u64, why: Why) {
        if let Some(acquire) = self.acquires.get_mut(grant as usize)
            && at < acquire.end.at
        {
            acquire.end = End { at, op, why };
        }
    }

    /// The row of an acquire.
    pub(crate) fn acquire_of(&self, op: u64) -> Option<u32> {
        match self.index.get(op) {
            Known::Acquire(row) => Some(row),
            _ => None,
        }
    }

    /// Whether an operation of this id was begun.
    pub(crate) fn has(&self, op: u64) -> bool {
        self.index.get(op) != Known::Unused
    }

    /// The acquire that a row means, if it means one.
    pub(crate) fn acquire(&self, grant: u32) -> Option<&Acquire> {
        self.acquires.get(grant as usize)
    }

    pub(crate) fn process(&self, call: &Call) -> &str {
        self.names.text(call.process)
    }
}
