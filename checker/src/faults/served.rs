//! What servers answered, as far as a fault makes that impossible: one that stands still, or is down, answers nobody.

use std::collections::{BTreeSet, HashMap};

use histories::{Deed, Effect, Event, Function, Kind, PlannedFault, Role, STORAGE};

use super::act::Act;
use super::{Faults, does};
use crate::operations::NEVER;

/// What succeeded, by the host that alone can have answered it: the storage, or the lock's only server. Nothing where no
/// planned fault keeps such a host from answering.
#[derive(Default)]
pub(super) struct Served {
    /// The lock's server, if there is one.
    only_server: Option<String>,
    answers: HashMap<String, Answers>,
}

#[derive(Default)]
struct Answers {
    /// When each was asked for, and when it was answered. When all is known: the earliest answer from that one on.
    by_asked: Vec<(u64, u64)>,
}

impl Served {
    /// `hosts` are those of the run that the header names.
    pub(super) fn new(planned: &[PlannedFault], hosts: &BTreeSet<String>) -> Served {
        let is_kept = |fault: &PlannedFault| {
            Role::of(&fault.on) != Some(Role::Client) && fault.does.iter().any(keeps_from_answering)
        };
        if !planned.iter().any(is_kept) {
            return Served::default();
        }
        let mut servers = hosts
            .iter()
            .filter(|host| Role::of(host) == Some(Role::Server));
        let only_server = servers.next().filter(|_| servers.next().is_none()).cloned();
        let asked = only_server.iter().cloned().chain([STORAGE.to_owned()]);
        Served {
            answers: asked.map(|host| (host, Answers::default())).collect(),
            only_server,
        }
    }

    pub(super) fn saw(&mut self, invoked: u64, event: &Event<'_>) {
        if event.kind != Kind::Ok {
            return;
        }
        let host = match event.f {
            Function::Acquire | Function::Extend | Function::Release => self.only_server.as_deref(),
            Function::Read | Function::Write => Some(STORAGE),
            _ => None,
        };
        if let Some(answers) = host.and_then(|host| self.answers.get_mut(host)) {
            answers.by_asked.push((invoked, event.t));
        }
    }

    pub(super) fn finish(mut self) -> Served {
        for answers in self.answers.values_mut() {
            answers.by_asked.sort_unstable();
            let mut earliest = NEVER;
            for (_, answered) in answers.by_asked.iter_mut().rev() {
                earliest = earliest.min(*answered);
                *answered = earliest;
            }
        }
        self
    }

    /// When a host first answered what was asked for after `from`.
    fn first_after(&self, host: &str, from: u64) -> Option<u64> {
        let by_asked = &self.answers.get(host)?.by_asked;
        let later = by_asked.partition_point(|&(asked, _)| asked <= from);
        by_asked.get(later).map(|&(_, answered)| answered)
    }
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
}
