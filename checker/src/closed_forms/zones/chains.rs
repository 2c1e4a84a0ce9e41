//! Which values followed which directly, by cas.

use std::ops::Range;

use super::clusters::{Clusters, UNWRITTEN};
use super::times::Times;
use crate::linearizability::History;
use crate::names::NONE;

/// Where the clusters stand that cas link: those of a chain side by side.
pub(super) struct Chains {
    /// The first return, as an index of [`Times::returns`], up to which more than one cas found the same value, or one found
    /// what nothing wrote; or the number of returns.
    pub(super) end: usize,
    /// The calls that prove what was found there.
    pub(super) culprits: Vec<u32>,
    /// By cluster: the first cluster of its chain.
    roots: Vec<u32>,
    /// By cluster: its place in a row of all.
    places: Vec<u32>,
    /// By cluster, for the first of a chain: the length of the chain.
    lengths: Vec<u32>,
}

/// The clusters which a history needs, in the order in which it comes to need them.
struct Growth<'c> {
    clusters: &'c Clusters,
    /// By cluster: the call whose return made it needed, or [`NONE`].
    needed_by: Vec<u32>,
    /// By cluster: the needed cluster that follows directly, or [`NONE`].
    next: Vec<u32>,
}

/// What came of it that a call needs its cluster.
enum Growing {
    Done,
    /// These calls have no order.
    Broken(Vec<u32>),
    /// Each of some values was written by a cas that found another of them.
    Ring,
}

impl Growth<'_> {
    fn need(&mut self, call: u32) -> Growing {
        let mut cluster = self.clusters.of[call as usize];
        let mut follower = NONE;
        loop {
            if cluster == UNWRITTEN {
                return Growing::Broken(vec![call]);
            }
            let at = cluster as usize;
            if follower != NONE {
                if self.next[at] != NONE {
                    let rival = self.needed_by[self.next[at] as usize];
                    return Growing::Broken(vec![rival, call]);
                }
                self.next[at] = follower;
            }
            if self.needed_by[at] != NONE {
                let ring = follower != NONE && self.needed_by[at] == call;
                return if ring { Growing::Ring } else { Growing::Done };
            }
            self.needed_by[at] = call;
            follower = cluster;
            cluster = self.clusters.parent(cluster);
            if cluster == NONE {
                return Growing::Done;
            }
        }
    }
}

impl Chains {
    /// `None` if cas lead in a ring.
    pub(super) fn of<O>(
        history: &History<O>,
        times: &Times,
        clusters: &Clusters,
    ) -> Option<Chains> {
        let count = clusters.clusters.len();
        let mut chains = Chains {
            end: times.returns.len(),
            culprits: Vec::new(),
            roots: (0..count as u32).collect(),
            places: (0..count as u32).collect(),
            lengths: vec![1; count],
        };
        if !clusters.linked {
            return Some(chains);
        }
        let mut growth = Growth {
            clusters,
            needed_by: vec![NONE; count],
            next: vec![NONE; count],
        };
        for (at, &call) in times.returns.iter().enumerate() {
            if !history.calls()[call as usize].certain {
                continue;
            }
            match growth.need(call) {
                Growing::Done => {}
                Growing::Ring => return None,
                Growing::Broken(culprits) => {
                    (chains.end, chains.culprits) = (at, culprits);
                    break;
                }
            }
        }
        chains.lay_out(&growth);
        Some(chains)
    }

    fn lay_out(&mut self, growth: &Growth<'_>) {
        let mut place = 0;
        for root in 0..growth.next.len() as u32 {
            if growth.clusters.parent(root) != NONE {
                continue;
            }
            let first = place;
            let mut cluster = root;
            while cluster != NONE {
                self.roots[cluster as usize] = root;
                self.places[cluster as usize] = place;
                place += 1;
                cluster = growth.next[cluster as usize];
            }
            self.lengths[root as usize] = place - first;
        }
    }

    pub(super) fn root(&self, cluster: u32) -> u32 {
        self.roots[cluster as usize]
    }

    pub(super) fn place(&self, cluster: u32) -> usize {
        self.places[cluster as usize] as usize
    }

    /// The places of a cluster's chain.
    pub(super) fn places(&self, cluster: u32) -> Range<usize> {
        let root = self.root(cluster);
        let first = self.place(root);
        first..first + self.lengths[root as usize] as usize
    }
}
