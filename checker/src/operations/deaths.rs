//! The crashes that end processes.

use std::sync::Arc;

use crate::segment_tree::SegmentTree;

/// A crash that ends a process at some time from its invocation to its completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) op: u64,
    pub(crate) invoked: u64,
    /// [`NEVER`](super::NEVER) if nobody says that it is done.
    pub(crate) completed: u64,
}

/// The deaths on one host, in the order in which they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Deaths {
    all: Vec<Death>,
    completed: SegmentTree<u64>,
    /// By death: the least completion from that one on.
    completed_min: Vec<u64>,
}

impl Deaths {
    pub(crate) fn new(all: Vec<Death>) -> Deaths {
        let mut completed_min: Vec<u64> = all.iter().map(|death| death.completed).collect();
        for at in (1..all.len()).rev() {
            completed_min[at - 1] = completed_min[at - 1].min(completed_min[at]);
        }
        Deaths {
            completed: SegmentTree::of(all.iter().map(|death| death.completed)),
            completed_min,
            all,
        }
    }

    /// How many were asked for before this instant.
    pub(crate) fn asked_before(&self, t: u64) -> usize {
        self.all.partition_point(|death| death.invoked < t)
    }

    pub(crate) fn all(&self) -> &[Death] {
        &self.all
    }
}

/// What crashed a process: the deaths on its host that were asked for since it began. All lives of a host share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crashes {
    on_host: Arc<Deaths>,
    first: usize,
}

impl Crashes {
    /// Those of a process whose first event came at `since`: one that comes to life after a crash began is the next one.
    pub(crate) fn since(since: u64, on_host: Arc<Deaths>) -> Crashes {
        Crashes {
            first: on_host.asked_before(since),
            on_host,
        }
    }

    /// The one that was asked for first.
    pub(crate) fn first(&self) -> Option<&Death> {
        self.on_host.all.get(self.first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// When the first crash had completed.
    pub(crate) fn first_done(&self) -> Option<u64> {
        self.on_host.completed_min.get(self.first).copied()
    }

    /// The one that was asked for first of those that were done at `t` or later.
    pub(crate) fn first_done_since(&self, t: u64) -> Option<&Death> {
        let range = self.first..self.on_host.all.len();
        let found = self.on_host.completed.find(range, t)?;
        Some(&self.on_host.all[found])
    }
}
