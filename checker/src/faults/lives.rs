//! Which faults end processes, which start them again, and what was there to be struck.

use histories::{Deed, Effect, Role};

use super::{Act, Faults};
use crate::operations::{Completion, Death};

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

/// An injection that took place, on one of its hosts.
pub(crate) struct Blow<'a> {
    pub(crate) fault: &'a str,
    pub(crate) host: &'a str,
    pub(crate) op: u64,
    pub(crate) invoked: u64,
    pub(crate) completed: u64,
}

impl Faults {
    /// The starts on a host, by when they were asked for: a restart is one itself, and the healing of what kills.
    pub(crate) fn starts(&self, host: &str) -> Vec<Start> {
        let mut starts = Vec::new();
        let tried = self.injections.iter().filter(|act| act.is_on(host));
        for act in tried.filter(|act| act.completion != Completion::Fail) {
            let does = self.does(act);
            if has(&does, Deed::Restarts) {
                starts.push(Start {
                    asked: act.invoked,
                    of: act.op,
                    is_certain: act.took_place(),
                });
            }
            if has(&does, Deed::Kills) {
                let healings = self.healings.iter().filter(|heal| heal.heals(act));
                let healings = healings.filter(|heal| heal.completion != Completion::Fail);
                // Nothing has to be started where nothing may have been killed.
                starts.extend(healings.map(|heal| Start {
                    asked: heal.invoked,
                    of: act.op,
                    is_certain: act.took_place() && heal.took_place(),
                }));
            }
        }
        starts.sort_unstable();
        starts
    }

    /// Every host that was struck, by what struck it.
    pub(crate) fn blows(&self) -> impl Iterator<Item = Blow<'_>> {
        let took_place = self.injections.iter().filter(|act| act.took_place());
        took_place.flat_map(|act| {
            act.on.iter().map(|host| Blow {
                fault: &act.fault,
                host,
                op: act.op,
                invoked: act.invoked,
                completed: act.completed,
            })
        })
    }

    /// The last death of a server, or of the storage, before it was struck.
    pub(crate) fn died_before(&self, blow: &Blow<'_>) -> Option<Death> {
        if Role::of(blow.host) == Some(Role::Client) {
            return None;
        }
        let here = self.deaths().filter(|crash| {
            crash.on.iter().any(|host| host == blow.host) && crash.death.op != blow.op
        });
        here.map(|crash| crash.death)
            .filter(|death| death.completed < blow.invoked)
            .max_by_key(|death| death.completed)
    }
}

impl Act {
    /// Whether it strikes a host.
    pub(super) fn is_on(&self, host: &str) -> bool {
        self.on.iter().any(|on| on == host)
    }

    /// Whether this healing, however it ended, is of that injection.
    pub(super) fn heals(&self, injection: &Act) -> bool {
        let same = match injection.step {
            Some(step) => self.step == Some(step),
            None => self.step.is_none() && self.fault == injection.fault && self.on == injection.on,
        };
        same && self.invoked >= injection.invoked
    }
}

fn has(does: &[Effect], deed: Deed) -> bool {
    does.iter().any(|effect| effect.effect == deed)
}
