//! When each grant was held for certain, how long its client acted as the holder, and which grant is later than which.

mod beliefs;
mod certain;
mod conflicts;
mod cuts;
mod ends;

use crate::names::NONE;
use crate::operations::{Call, NEVER, Record};

pub(crate) use beliefs::acted_on;
pub(crate) use conflicts::{Conflict, Conflicts};
pub(crate) use cuts::{Cuts, acts_under_no_grant};
pub(crate) use ends::end_grants;

/// A time in which somebody held a lock, or acted as if: from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) lock: u32,
    pub(crate) start: u64,
    /// [`NEVER`] if nothing ends it.
    pub(crate) end: u64,
    /// A row of the acquires; [`NONE`] for an act under none.
    pub(crate) grant: u32,
    pub(crate) process: u32,
    /// The acquire, or the act under none.
    pub(crate) op: u64,
    /// It is under an acquire that came out ok.
    pub(crate) granted: bool,
}

/// A grant that was over when its acquire returned. It was one all the same: granted at some instant from its invocation
/// to its return, and held from then until it was over, if that was later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverOnArrival {
    pub(crate) lock: u32,
    /// Its validity, or when its client began to be killed, or gave it up or lost it, if that was earlier.
    pub(crate) over: u64,
    pub(crate) invoked: u64,
    pub(crate) returned: u64,
    /// A row of the acquires.
    pub(crate) grant: u32,
    /// The acquire.
    pub(crate) op: u64,
}

/// The grants of a history.
pub(crate) struct Grants {
    /// The certain holds, by lock and start.
    pub(crate) certain: Vec<Interval>,
    /// The grants that were over when they arrived.
    pub(crate) over_on_arrival: Vec<OverOnArrival>,
    /// The beliefs, by lock and start; one a grant, and those of acts under none.
    pub(crate) beliefs: Vec<Interval>,
    /// By acquire: until when it could be relied on, extensions included; [`NEVER`] without expiry.
    pub(crate) valid_until: Vec<u64>,
    /// See [`certain::Holds::overdue`].
    overdue: Vec<(u32, u64, u64)>,
    /// By acquire: the end of its lease at the earliest, whatever validity was told.
    lives_until: Vec<u64>,
    /// By acquire: until when its client acted as the holder.
    pub(crate) believed_until: Vec<u64>,
    /// By acquire: an instant before which the service cannot have granted it, see [`began`].
    pub(crate) began: Vec<u64>,
}

impl Grants {
    /// `ttl_ns` is how long the plan's leases live.
    pub(crate) fn new(record: &Record, ttl_ns: u64) -> Grants {
        let holds = certain::holds(record, ttl_ns);
        let mut beliefs = beliefs::beliefs(record);
        let mut believed_until = vec![0; record.acquires.len()];
        for belief in beliefs.iter().filter(|belief| belief.grant != NONE) {
            believed_until[belief.grant as usize] = belief.end;
        }
        beliefs.retain(|belief| belief.start < belief.end);
        let mut grants = Grants {
            certain: holds.certain,
            over_on_arrival: holds.over_on_arrival,
            beliefs,
            valid_until: holds.valid_until,
            overdue: holds.overdue,
            lives_until: holds.lives_until,
            believed_until,
            began: Vec::new(),
        };
        let conflicts = grants.double_holds(record.locks.len(), &Cuts::none());
        grants.began = began(record, &grants.certain, &conflicts.exclusive);
        grants
    }

    /// The certain holds that overlap, and the grants over on arrival that were granted inside one.
    pub(crate) fn double_holds(&self, locks: usize, cuts: &Cuts) -> Conflicts {
        let mut conflicts = Conflicts::among(&self.certain, locks, cuts);
        conflicts.add_over_on_arrival(&self.certain, &self.over_on_arrival, cuts);
        conflicts
    }

    /// The certain holds without the times in which they were overdue, by grant in the order of those.
    pub(crate) fn held_in_time(&self) -> impl Iterator<Item = Interval> {
        self.certain.iter().flat_map(|hold| {
            let first = self.overdue.partition_point(|late| late.0 < hold.grant);
            let own = self.overdue[first..].iter();
            let own = own.take_while(|late| late.0 == hold.grant);
            let ends = own.clone().map(|late| late.1).chain([hold.end]);
            let starts = [hold.start].into_iter().chain(own.map(|late| late.2));
            starts.zip(ends).filter_map(|(start, end)| {
                let (start, end) = (start.max(hold.start), end.min(hold.end));
                (start < end).then_some(Interval {
                    start,
                    end,
                    ..*hold
                })
            })
        })
    }

    /// Whether a grant was outlived: its client still acted as the holder when it could not be relied on any more.
    pub(crate) fn was_outlived(&self, grant: u32) -> bool {
        self.believed_until[grant as usize] > self.relied_on_until(grant)
    }

    /// Until when a grant can be relied on: who tells too short a validity does not make its client late.
    pub(crate) fn relied_on_until(&self, grant: u32) -> u64 {
        let grant = grant as usize;
        self.valid_until[grant].max(self.lives_until[grant])
    }

    /// How many grants were outlived.
    pub(crate) fn outlived(&self) -> u64 {
        let outlived = |grant: &u32| {
            let believed_until = self.believed_until[*grant as usize];
            believed_until != NEVER && self.was_outlived(*grant)
        };
        (0..self.valid_until.len() as u32).filter(outlived).count() as u64
    }

    /// From when to when a grant, or an attempt, concerns its client: from its invocation to the end of hold and belief.
    pub(crate) fn lifetime(&self, record: &Record, grant: u32) -> (u64, u64) {
        let call = &record.acquires[grant as usize].call;
        let valid_until = if call.ok() {
            let held_until =
                self.valid_until[grant as usize].min(record.acquires[grant as usize].end.at);
            held_until.max(call.completed)
        } else {
            call.completed
        };
        (
            call.invoked,
            valid_until.max(self.believed_until[grant as usize]),
        )
    }
}

/// Until when a process waits for the answer to an acquire: the answer, its own end, or that of the history.
pub(crate) fn waits_until(record: &Record, call: &Call) -> u64 {
    if call.completed != NEVER {
        return call.completed;
    }
    let process = &record.processes[call.process as usize];
    let crash = process.crashes.first_done_since(call.invoked);
    let exits = process
        .exits
        .iter()
        .copied()
        .filter(|&exit| exit >= call.invoked);
    exits
        .chain(crash.map(|crash| crash.invoked.max(call.invoked)))
        .min()
        .unwrap_or(record.end)
}

/// By acquire: an instant before which the service cannot have granted it, unless the lock had two holders.
///
/// That is its invocation; yet a service that waits may be asked long before it grants. Take a grant h that is held for
/// certain when its acquire returns, at `h.ok`, and a certain hold [a, b) of another grant with b <= `h.ok`. Once
/// granted, h stays granted at least until `h.ok`. Had the service granted it before b, then from max(a, the grant of h)
/// up to b both would have been held: a double holder. So h began at b or later, for the last such b.
///
/// Where the certain holds of a lock do overlap its exclusion is refuted, and the invocation is all that is known. The
/// same goes for a grant whose validity was over when its acquire returned: nobody knows how long it was held.
fn began(record: &Record, certain: &[Interval], exclusive: &[bool]) -> Vec<u64> {
    let mut began: Vec<u64> = record
        .acquires
        .iter()
        .map(|acquire| acquire.call.invoked)
        .collect();
    for pair in certain.windows(2) {
        let [before, hold] = [pair[0], pair[1]];
        let returned = record.acquires[hold.grant as usize].call.completed;
        if before.lock == hold.lock && exclusive[hold.lock as usize] && hold.start == returned {
            let began = &mut began[hold.grant as usize];
            *began = before.end.max(*began);
        }
    }
    began
}
