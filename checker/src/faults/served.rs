//! What servers answered, as far as a fault makes that impossible: one that stands still, or is down, answers nobody.

use std::collections::HashMap;

use histories::{Deed, Effect, PlannedFault, Role, STORAGE};

use super::act::Act;
use super::{Faults, does};
use crate::operations::{Acquire, Call, Completion, HostStall, NEVER, Record};

/// What was answered, by the host that alone can have answered it: the storage, or the lock's only server. Nothing where
/// nothing is said to have kept such a host from answering.
#[derive(Default)]
pub(super) struct Served(HashMap<String, Answers>);

#[derive(Default)]
struct Answers {
    /// When each was asked for, in order, and the earliest answer to this one and those asked for later.
    by_asked: Vec<(u64, u64)>,
}

impl Served {
    /// `only_server` is the lock's, if it has one alone.
    pub(super) fn of(
        record: &Record,
        planned: &[PlannedFault],
        only_server: Option<&String>,
    ) -> Served {
        let is_kept = |fault: &PlannedFault| {
            Role::of(&fault.on) != Some(Role::Client) && fault.does.iter().any(keeps_from_answering)
        };
        if record.host_stalls.is_empty() && !planned.iter().any(is_kept) {
            return Served::default();
        }
        let of_server = only_server.map(|server| (server.clone(), Answers::of(by_lock(record))));
        let of_storage = (STORAGE.to_owned(), Answers::of(by_storage(record)));
        Served(of_server.into_iter().chain([of_storage]).collect())
    }

    /// When a host first answered what was asked for after `from`.
    fn first_after(&self, host: &str, from: u64) -> Option<u64> {
        let by_asked = &self.0.get(host)?.by_asked;
        let later = by_asked.partition_point(|&(asked, _)| asked <= from);
        by_asked.get(later).map(|&(_, answered)| answered)
    }
}

impl Answers {
    fn of<'r>(calls: impl Iterator<Item = &'r Call>) -> Answers {
        let mut by_asked: Vec<_> = calls.map(|call| (call.invoked, call.completed)).collect();
        by_asked.sort_unstable();
        let mut earliest = NEVER;
        for (_, answered) in by_asked.iter_mut().rev() {
            earliest = earliest.min(*answered);
            *answered = earliest;
        }
        Answers { by_asked }
    }
}

/// What the lock's servers answered: that another has the lock is an answer too.
pub(super) fn by_lock(record: &Record) -> impl Iterator<Item = &Call> {
    let is_answered =
        |acquire: &&Acquire| acquire.call.completion == Completion::Fail && !acquire.refused;
    let busy = record.acquires.iter().filter(is_answered);
    let acquires = record.acquires.iter().filter(|acquire| acquire.granted());
    let extends = record.extends.iter().filter(|extend| !extend.renewed);
    let done = extends
        .map(|extend| &extend.call)
        .chain(record.releases.iter().map(|release| &release.call))
        .filter(|call| call.ok());
    busy.chain(acquires)
        .map(|acquire| &acquire.call)
        .chain(done)
}

/// What the storage answered.
pub(super) fn by_storage(record: &Record) -> impl Iterator<Item = &Call> {
    let reads = record.reads.iter().map(|read| &read.call);
    let writes = record.writes.iter().map(|write| &write.call);
    reads.chain(writes).filter(|call| call.ok())
}

fn keeps_from_answering(effect: &Effect) -> bool {
    matches!(effect.effect, Deed::Stops | Deed::Kills)
}

impl Faults {
    /// Which host answered, and when, what was asked for and answered while this injection certainly kept it from that.
    pub(super) fn impossible_answer<'a>(&self, at: usize, act: &'a Act) -> Option<(&'a str, u64)> {
        if !act.took_place()
            || !does(&self.plan.planned, act)
                .iter()
                .any(keeps_from_answering)
        {
            return None;
        }
        let until = self.healing(at).map_or(NEVER, |heal| heal.invoked);
        act.on.iter().find_map(|host| {
            let answered = self.served.first_after(host, act.in_force())?;
            (answered < until).then_some((host.as_str(), answered))
        })
    }

    /// Whether a server or the storage answered what was asked for while it is said to have stood still.
    pub(crate) fn answered_within(&self, stall: &HostStall) -> bool {
        let answered = self.served.first_after(&stall.host, stall.from);
        answered.is_some_and(|answered| answered < stall.until)
    }
}
