//! From when on each grant is left aside, because something that is about then explains what becomes of it.

use crate::hazards::Excuse;
use crate::names::{Map, NONE};
use crate::operations::{Acquire, Call, Completion, Process, Record};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts {
    /// By acquire; empty where none is left aside.
    of_grants: Vec<u64>,
    /// By operation: of acts under no grant of their process.
    of_acts: Map<u64, u64>,
    /// What excuses are for, if it is for them that something is left aside.
    pub(crate) excuse: Option<Excuse>,
}

impl Cuts {
    /// Nothing is left aside.
    pub(crate) fn none() -> Cuts {
        Cuts::default()
    }

    /// Nothing but what processes did that have events after their death: of them nobody knows what is true.
    pub(crate) fn of_the_undead(record: &Record) -> Cuts {
        let undead = |process: &Process| process.outlives_its_death();
        if !record.processes.iter().any(undead) {
            return Cuts::none();
        }
        let cut = |call: &Call| {
            let process = &record.processes[call.process as usize];
            if undead(process) { 0 } else { u64::MAX }
        };
        // Of an acquire that is not there nobody knows whose it is.
        let of_grant = |acquire: &Acquire| match acquire.lock {
            NONE => u64::MAX,
            _ => cut(&acquire.call),
        };
        Cuts::new(
            record.acquires.iter().map(of_grant).collect(),
            acts_under_no_grant(record).map(|(call, _)| (call.op, cut(&call))),
            None,
        )
    }

    pub(crate) fn new(
        of_grants: Vec<u64>,
        of_acts: impl Iterator<Item = (u64, u64)>,
        excuse: Option<Excuse>,
    ) -> Cuts {
        Cuts {
            of_grants,
            of_acts: of_acts.collect(),
            excuse,
        }
    }

    /// From when on an operation is left aside: with its grant, or for itself if it has none.
    pub(crate) fn of(&self, grant: u32, op: u64) -> u64 {
        let of_grant = self.of_grants.get(grant as usize);
        let of_act = self.of_acts.get(&op);
        of_grant
            .into_iter()
            .chain(of_act)
            .copied()
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Whether an operation is left aside at this instant.
    pub(crate) fn leave_aside(&self, grant: u32, op: u64, at: u64) -> bool {
        self.of(grant, op) <= at
    }
}

/// The acts under no grant of their process, and until when each of them lasts.
pub(crate) fn acts_under_no_grant(record: &Record) -> impl Iterator<Item = (Call, u64)> {
    let bare = |grant: u32| {
        let acquire = record.acquire(grant);
        acquire.is_none_or(|acquire| acquire.lock == NONE)
    };
    let until = |call: &Call| match call.completion {
        Completion::Pending => call.invoked,
        _ => call.completed,
    };
    let works = record.works.iter().map(|work| (work.call, work.grant));
    let writes = record.writes.iter().map(|write| (write.call, write.grant));
    works
        .chain(writes)
        .filter(move |(_, grant)| bare(*grant))
        .map(move |(call, _)| (call, until(&call)))
}
