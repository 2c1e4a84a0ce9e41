//! Takes the calls in the order of their returns, until one breaks a rule.

use super::chains::Chains;
use super::clusters::{Clusters, INITIAL, UNWRITTEN};
use super::times::{BEGINNING, Times};
use crate::linearizability::{History, NEVER};
use crate::names::NONE;
use crate::segment_tree::SegmentTree;

/// The zone of a chain, or of one cluster of it.
#[derive(Clone, Copy)]
struct Zone {
    /// The rank of the earliest return.
    first: u32,
    /// The latest invocation, as the rank of the last return before it.
    last: u32,
    /// The call that returned first, if it is not the initial value that was there.
    first_call: u32,
    /// The call that began last.
    last_call: u32,
}

/// The zone of no calls.
const NOTHING: Zone = Zone {
    first: NEVER,
    last: 0,
    first_call: NONE,
    last_call: NONE,
};

impl Zone {
    fn with(mut self, other: Zone) -> Zone {
        if other.first < self.first {
            (self.first, self.first_call) = (other.first, other.first_call);
        }
        if other.last > self.last {
            (self.last, self.last_call) = (other.last, other.last_call);
        }
        self
    }
}

/// The state of the sweep.
pub(super) struct Sweep<'h, O> {
    history: &'h History<O>,
    times: &'h Times,
    clusters: &'h Clusters,
    chains: &'h Chains,
    /// By cluster: the call whose return made it needed, or [`NONE`].
    needed_by: Vec<u32>,
    /// By the first cluster of a chain: the zone of the chain.
    zones: Vec<Zone>,
    /// By the rank of a return: the latest invocation of the chain for which it is the earliest return.
    latest: SegmentTree<u32>,
    /// If there are chains of several clusters: what is known of each.
    links: Option<Links>,
}

/// By place of a cluster: its zone.
struct Links {
    zones: Vec<Zone>,
    /// The latest invocations.
    latest: SegmentTree<u32>,
    /// The earliest returns, counted from the end of time.
    earliest: SegmentTree<u32>,
}

/// The calls that break a rule: a few more of them than need be, in any order and some twice.
type Suspects = Vec<u32>;

impl<'h, O> Sweep<'h, O> {
    pub(super) fn new(
        history: &'h History<O>,
        times: &'h Times,
        clusters: &'h Clusters,
        chains: &'h Chains,
    ) -> Sweep<'h, O> {
        let count = clusters.clusters.len();
        Sweep {
            history,
            times,
            clusters,
            chains,
            needed_by: vec![NONE; count],
            zones: vec![NOTHING; count],
            latest: SegmentTree::new(times.end()),
            links: clusters.linked.then(|| Links {
                zones: vec![NOTHING; count],
                latest: SegmentTree::new(count),
                earliest: SegmentTree::new(count),
            }),
        }
    }

    /// The first call whose return breaks a rule, and calls that break one with it.
    pub(super) fn run(mut self) -> Option<(u32, Suspects)> {
        for &call in &self.times.returns[..self.chains.end] {
            if !self.history.calls()[call as usize].certain {
                continue;
            }
            let suspects = match self.clusters.of[call as usize] {
                UNWRITTEN => Some(vec![call]),
                cluster => self.add(call, cluster),
            };
            if let Some(suspects) = suspects {
                return Some((call, suspects));
            }
        }
        let broken = self.times.returns.get(self.chains.end)?;
        Some((*broken, self.chains.culprits.clone()))
    }

    /// Adds a call that returned, and all writes without which it could not have had its outcome.
    fn add(&mut self, call: u32, found: u32) -> Option<Suspects> {
        let mut added = NOTHING;
        let mut cluster = found;
        while cluster != NONE && self.needed_by[cluster as usize] == NONE {
            self.needed_by[cluster as usize] = call;
            let zone = self.zone_of_writer(cluster);
            if let Some(suspects) = self.link(call, cluster, zone) {
                return Some(suspects);
            }
            added = added.with(zone);
            cluster = self.clusters.parent(cluster);
        }
        let writer = self.clusters.writer(found);
        if writer != call {
            let zone = self.zone_of(call);
            if writer != NONE && zone.first <= self.times.before[writer as usize] {
                return Some(vec![call]);
            }
            if let Some(suspects) = self.link(call, found, zone) {
                return Some(suspects);
            }
            added = added.with(zone);
        }
        self.widen(call, self.chains.root(found), added)
    }

    fn zone_of(&self, call: u32) -> Zone {
        Zone {
            first: self.times.ranks[call as usize],
            last: self.times.before[call as usize],
            first_call: call,
            last_call: call,
        }
    }

    fn zone_of_writer(&self, cluster: u32) -> Zone {
        match self.clusters.writer(cluster) {
            NONE => Zone {
                first: BEGINNING,
                ..NOTHING
            },
            writer => self.zone_of(writer),
        }
    }

    /// Adds a call to its cluster, unless the call breaks the order of its chain.
    fn link(&mut self, call: u32, cluster: u32, zone: Zone) -> Option<Suspects> {
        let place = self.chains.place(cluster);
        let chain = self.chains.places(cluster);
        if chain.len() == 1 {
            return None;
        }
        let links = self.links.as_mut()?;
        let earlier = links.latest.find(chain.start..place, zone.first);
        let later = place + 1..chain.end;
        let later = links.earliest.find(later, NEVER - zone.last);
        if let Some(rival) = earlier.or(later) {
            let Zone {
                first_call,
                last_call,
                ..
            } = links.zones[rival];
            return Some(self.suspects(call, [first_call, last_call]));
        }
        let all = links.zones[place].with(zone);
        links.zones[place] = all;
        links.latest.set(place, all.last);
        links.earliest.set(place, NEVER - all.first);
        None
    }

    /// Widens the zone of a chain, unless it comes into conflict with another chain's.
    fn widen(&mut self, call: u32, root: u32, added: Zone) -> Option<Suspects> {
        let old = self.zones[root as usize];
        let new = old.with(added);
        // What was known under another earliest return stays true, and is no rival: nothing of this chain began after a
        // return that belongs to a later value.
        let from = if new.first == old.first {
            old.last + 1
        } else {
            0
        };
        let rival = self
            .latest
            .find(from as usize..new.last as usize + 1, new.first);
        if let Some(rank) = rival {
            let cluster = match self.times.returned_at(rank as u32) {
                Some(first) => self.clusters.of[first as usize],
                None => INITIAL,
            };
            let rival = self.zones[self.chains.root(cluster) as usize];
            let ends = [rival, new].map(|zone| [zone.first_call, zone.last_call]);
            return Some(self.suspects(call, ends.into_iter().flatten()));
        }
        self.zones[root as usize] = new;
        self.latest.set(new.first as usize, new.last);
        None
    }

    /// The calls that certainly happened by the return of a call: of these, and of those that made the clusters of these
    /// needed.
    fn suspects(&self, call: u32, calls: impl IntoIterator<Item = u32>) -> Suspects {
        let needing = |call: u32| self.needed_by[self.clusters.of[call as usize] as usize];
        let by_then = |&other: &u32| {
            self.history.calls()[other as usize].certain
                && self.times.ranks[other as usize] <= self.times.ranks[call as usize]
        };
        calls
            .into_iter()
            .filter(|&other| other != NONE)
            .flat_map(|other| [other, needing(other)])
            .chain([call])
            .filter(by_then)
            .collect()
    }
}
