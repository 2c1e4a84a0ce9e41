//! Which faults end processes, which start them again, and what was there to be struck.

use std::sync::Arc;

use histories::{host_of, life_of};

use super::Faults;
use crate::names::Map;
use crate::operations::{Death, Deaths};

/// A process that was started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start {
    /// When that was asked for.
    pub(crate) asked: u64,
    /// The injection that it is of.
    pub(crate) of: u64,
    /// Whether it is known to have happened.
    pub(crate) is_certain: bool,
}

/// The starts on a host, by when they were asked for: a restart is one itself, and the healing of what kills.
#[derive(Default)]
pub(crate) struct Starts {
    all: Vec<Start>,
    /// By start: the next one that is of another injection.
    next_other: Vec<usize>,
    /// By injection: when the first start of it was asked for.
    first_of: Map<u64, u64>,
}

impl Starts {
    pub(super) fn new(mut all: Vec<Start>) -> Starts {
        all.sort_unstable();
        let mut next_other = vec![all.len(); all.len()];
        for at in (1..all.len()).rev() {
            next_other[at - 1] = if all[at - 1].of == all[at].of {
                next_other[at]
            } else {
                at
            };
        }
        let mut first_of = Map::default();
        for start in &all {
            first_of.entry(start.of).or_insert(start.asked);
        }
        Starts {
            all,
            next_other,
            first_of,
        }
    }

    /// How many of them are known to have happened.
    pub(crate) fn certain(&self) -> usize {
        self.all.iter().filter(|start| start.is_certain).count()
    }

    pub(crate) fn get(&self, nth: usize) -> Option<&Start> {
        self.all.get(nth)
    }

    /// Whether something was started again after a death, or by what caused it, that was asked for at `by` or before and is
    /// not of the injection `but`. What restarts is asked for before the death that it causes.
    pub(crate) fn follow(&self, death: &Death, by: u64, but: u64) -> bool {
        let own = self.first_of.get(&death.op);
        if own.is_some_and(|&asked| asked <= by) && death.op != but {
            return true;
        }
        let first = self
            .all
            .partition_point(|start| start.asked < death.completed);
        let end = self.all.partition_point(|start| start.asked <= by);
        let found = self.all.get(first).is_some_and(|start| start.of != but);
        first < end && (found || self.next_other[first] < end)
    }
}

/// An injection that took place, on one of its hosts.
pub(crate) struct Blow<'a> {
    pub(crate) fault: &'a str,
    pub(crate) host: &'a str,
    pub(crate) op: u64,
    pub(crate) invoked: u64,
    pub(crate) completed: u64,
}

impl Faults {
    /// The starts on a host; `None` if nothing was started there, ended or struck by what kills.
    pub(crate) fn starts(&self, host: &str) -> Option<&Starts> {
        self.links.hosts.get(host).map(|here| &here.starts)
    }

    /// Whether a process is a client of the plan, in its first life or in a later one that something had started: a fault or a
    /// healing was asked to start it before its first event, which came at `began`.
    pub(crate) fn knows_process(&self, name: &str, began: u64) -> bool {
        let host = host_of(name);
        self.knows(host)
            && match life_of(name) {
                None => false,
                Some(1) => true,
                Some(life) => self.starts(host).is_some_and(|starts| {
                    let start = starts.get(life as usize - 2);
                    start.is_some_and(|start| start.asked <= began)
                }),
            }
    }

    /// Every host that was struck, by what struck it. One whose operation another had before is a failure of its own.
    pub(crate) fn blows(&self) -> impl Iterator<Item = Blow<'_>> {
        let took_place = self.injections.iter().filter(|act| act.took_place());
        took_place.filter(|act| !act.is_again).flat_map(|act| {
            act.on.iter().map(|host| Blow {
                fault: &act.fault,
                host,
                op: act.op,
                invoked: act.invoked,
                completed: act.completed,
            })
        })
    }

    /// The deaths on a host that took place or may have.
    pub(crate) fn deaths_on(&self, host: &str) -> Arc<Deaths> {
        let here = self.links.hosts.get(host);
        here.map(|here| Arc::clone(&here.deaths))
            .unwrap_or_default()
    }
}
