//! What clients waited for under their grants, and how long something held them up.

use std::collections::HashSet;

use histories::Hazard;

use crate::grants::acted_on;
use crate::names::NONE;
use crate::operations::{Acquire, Record};

/// Of a plan, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    pub(super) ttl_ns: u64,
    pub(super) work_ns: u64,
}

/// What the clients of grants waited for.
pub(super) struct Waits {
    /// For the storage, by grant and beginning, apart from each other: their reads and writes in flight.
    for_storage: Vec<(u32, u64, u64)>,
    /// The grants under which they acted on after their release.
    acted_on: HashSet<u32>,
    /// Work lasted as long as planned, as far as the record tells: no client wrote earlier than that.
    work_is_as_planned: bool,
}

impl Waits {
    pub(super) fn of(record: &Record) -> Waits {
        let of_reads = record.reads.iter().map(|read| (read.grant, &read.call));
        let of_writes = record.writes.iter().map(|write| (write.grant, &write.call));
        let in_flight = of_reads
            .chain(of_writes)
            .filter(|(grant, _)| *grant != NONE);
        let mut waits: Vec<_> = in_flight
            .map(|(grant, call)| (grant, call.invoked, call.completed))
            .collect();
        merge(&mut waits);
        Waits {
            for_storage: waits,
            acted_on: acted_on(record),
            work_is_as_planned: !record.has_short_work,
        }
    }

    /// Whether waiting can be why a grant was outlived: whoever acts under one that it has given back does that for itself.
    pub(super) fn may_explain(&self, grant: u32) -> bool {
        !self.acted_on.contains(&grant)
    }

    /// Those of a grant, as far as they lie within this time.
    pub(super) fn within(
        &self,
        grant: u32,
        start: u64,
        end: u64,
    ) -> impl Iterator<Item = (u64, u64)> {
        let first = self
            .for_storage
            .partition_point(|wait| (wait.0, wait.2) < (grant, start));
        let own = self.for_storage[first..]
            .iter()
            .take_while(move |wait| wait.0 == grant && wait.1 <= end);
        own.map(move |&(_, from, until)| (from.max(start), until.min(end)))
            .filter(|(from, until)| from <= until)
    }

    /// The waits of a grant, for the lock as far as that takes of its lease and for the storage, if they make its work about
    /// as long as the lease.
    pub(super) fn as_work(
        &self,
        acquire: &Acquire,
        grant: u32,
        lifetime: (u64, u64),
        plan: Lengths,
    ) -> Vec<HeldUp> {
        let (start, end) = (acquire.call.invoked, acquire.call.completed);
        let start = start.max(acquire.validity.saturating_sub(plan.ttl_ns));
        let for_lock = (start < end).then_some((start, end));
        let waits = for_lock
            .into_iter()
            .chain(self.within(grant, lifetime.0, lifetime.1));
        let waits: Vec<HeldUp> = waits
            .map(|(start, end)| HeldUp {
                hazard: Hazard::WorkHeld,
                is_shown: self.work_is_as_planned,
                began: start,
                start,
                end,
            })
            .collect();
        let waited: u64 = waits.iter().map(|wait| wait.end - wait.start).sum();
        let long = plan.work_ns.saturating_add(waited);
        if long.saturating_mul(5) < plan.ttl_ns.saturating_mul(4) {
            return Vec::new();
        }
        waits
    }
}

/// A time in which something held up the client of a grant.
pub(super) struct HeldUp {
    pub(super) hazard: Hazard,
    pub(super) is_shown: bool,
    /// When what held it up began, be that before the grant or not.
    pub(super) began: u64,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Orders times by what they are of and by their beginnings, and makes one of those of the same that meet.
pub(super) fn merge<Of: Ord>(times: &mut Vec<(Of, u64, u64)>) {
    times.sort_unstable();
    times.dedup_by(|next, last| {
        let one = next.0 == last.0 && next.1 <= last.2;
        if one {
            last.2 = last.2.max(next.2);
        }
        one
    });
}

/// How much of a time is in any of these that count, which are ordered by their beginnings.
pub(super) fn covered(times: &[HeldUp], counts: impl Fn(&HeldUp) -> bool) -> u64 {
    let (mut sum, mut reached) = (0u64, 0);
    for held in times.iter().filter(|held| counts(held)) {
        let start = held.start.max(reached);
        if start < held.end {
            sum = sum.saturating_add(held.end - start);
            reached = held.end;
        }
    }
    sum
}
