//! Who held a lock, or acted as its holder, while another did.

use crate::grants::{Cuts, Interval, OverOnArrival};

/// Two that held at once: the one that was there, and the one that came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Conflict {
    /// The second began while the first went on.
    Overlap(Interval, Interval),
    /// The second arrived when it was over, and had been granted while the first went on.
    Inside(Interval, OverOnArrival),
}

impl Conflict {
    /// When it was there.
    fn at(&self) -> u64 {
        match self {
            Conflict::Overlap(_, came) => came.start,
            Conflict::Inside(_, came) => came.returned,
        }
    }
}

/// Those that held, or acted as the holder, while another did.
#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    /// How many began to while another did.
    pub(crate) count: u64,
    /// The first of them.
    pub(crate) first: Option<Conflict>,
    /// By lock: whether it has none.
    pub(crate) exclusive: Vec<bool>,
}

/// Of the intervals of one lock so far, those that end last.
#[derive(Default)]
struct Longest {
    /// Of all.
    of_all: Option<Interval>,
    /// Of those that are of another process than that one.
    of_others: Option<Interval>,
    /// Of the grants.
    of_grants: Option<Interval>,
}

impl Longest {
    /// One that an interval, which starts now, is in conflict with. Two acts of one process without grants of their own
    /// are none.
    fn against(&self, interval: &Interval) -> Option<Interval> {
        let others = [
            self.of_grants.filter(|_| interval.granted),
            self.of_all,
            self.of_others,
        ];
        let conflicts = |other: &Interval| {
            let apart = other.process != interval.process || (other.granted && interval.granted);
            apart && interval.start < other.end
        };
        others.into_iter().flatten().find(conflicts)
    }

    fn add(&mut self, interval: Interval) {
        let longer = |slot: &Option<Interval>| slot.is_none_or(|other| interval.end > other.end);
        if interval.granted && longer(&self.of_grants) {
            self.of_grants = Some(interval);
        }
        match self.of_all {
            Some(all) if interval.end <= all.end => {
                if interval.process != all.process && longer(&self.of_others) {
                    self.of_others = Some(interval);
                }
            }
            Some(all) => {
                if all.process != interval.process {
                    self.of_others = Some(all);
                }
                self.of_all = Some(interval);
            }
            None => self.of_all = Some(interval),
        }
    }
}

impl Conflicts {
    /// Finds the intervals that began while another went on, in one sweep over intervals ordered by lock and start.
    ///
    /// It is enough to remember those that end last: an interval that overlaps any other overlaps one of them.
    pub(crate) fn among(intervals: &[Interval], locks: usize, cuts: &Cuts) -> Conflicts {
        let mut conflicts = Conflicts {
            exclusive: vec![true; locks],
            ..Conflicts::default()
        };
        let mut caught: Vec<(u32, u64)> = Vec::new();
        for of_lock in intervals.chunk_by(|a, b| a.lock == b.lock) {
            let mut longest = Longest::default();
            for whole in of_lock {
                let end = whole.end.min(cuts.of(whole.grant, whole.op));
                let interval = Interval { end, ..*whole };
                if interval.start >= end {
                    continue;
                }
                if let Some(held) = longest.against(&interval) {
                    caught.push((interval.grant, interval.op));
                    conflicts.exclusive[interval.lock as usize] = false;
                    conflicts.take(Conflict::Overlap(held, interval));
                }
                longest.add(interval);
            }
        }
        caught.sort_unstable();
        caught.dedup();
        conflicts.count = caught.len() as u64;
        conflicts
    }

    /// Adds the grants that were over on arrival and granted while another certainly held. `holds` are ordered by lock
    /// and start.
    pub(super) fn add_over_on_arrival(
        &mut self,
        holds: &[Interval],
        points: &[OverOnArrival],
        cuts: &Cuts,
    ) {
        if points.is_empty() {
            return;
        }
        let reach = |hold: &Interval| hold.end.min(cuts.of(hold.grant, hold.op));
        // By hold: the one of its lock that ends last, of those up to it.
        let mut longest: Vec<usize> = Vec::with_capacity(holds.len());
        for (at, hold) in holds.iter().enumerate() {
            let before = longest.last().copied();
            let before = before.filter(|&before| {
                holds[before].lock == hold.lock && reach(&holds[before]) >= reach(hold)
            });
            longest.push(before.unwrap_or(at));
        }
        for point in points {
            // Those that began before it was over, or before it was asked for.
            let until = point.over.max(point.invoked.saturating_add(1));
            let began = holds.partition_point(|hold| (hold.lock, hold.start) < (point.lock, until));
            let Some(held) = began.checked_sub(1).map(|at| holds[longest[at]]) else {
                continue;
            };
            // Until it arrived there was no instant at which it could have been granted.
            let inside = held.lock == point.lock && point.returned < reach(&held);
            if inside && point.returned < cuts.of(point.grant, point.op) {
                self.count += 1;
                self.exclusive[point.lock as usize] = false;
                self.take(Conflict::Inside(held, *point));
            }
        }
    }

    fn take(&mut self, conflict: Conflict) {
        if self.first.is_none_or(|first| conflict.at() < first.at()) {
            self.first = Some(conflict);
        }
    }
}
