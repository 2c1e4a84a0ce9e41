//! Which injection, healing, step and host belong to which, found once so that no two lists are compared pair by pair.

use std::collections::BTreeMap;
use std::sync::Arc;

use histories::{Deed, Effect, PlannedFault};

use super::act::Act;
use super::lives::{Start, Starts};
use super::{does, has};
use crate::names::Map;
use crate::operations::{Completion, Death, Deaths, NEVER};

/// See the module. Acts are meant by their places among the injections or the healings, both of which are in the order of
/// their invocations.
pub(super) struct Links {
    /// By injection: the healing of it that took place first.
    pub(super) healed_by: Vec<Option<usize>>,
    /// By healing: the injection that it is of, the first one where several are.
    pub(super) heals: Vec<Option<usize>>,
    /// By planned fault.
    pub(super) steps: Vec<OfStep>,
    pub(super) hosts: BTreeMap<String, OnHost>,
}

/// What became of one planned fault.
#[derive(Clone, Default)]
pub(super) struct OfStep {
    /// Its first injection, the first that did not fail, and the first that took place.
    pub(super) first: Option<usize>,
    pub(super) first_tried: Option<usize>,
    pub(super) first_in_place: Option<usize>,
    pub(super) last_healing: Option<usize>,
    /// When the last injection of an earlier fault was asked for; `None` if one of those faults never was.
    asked_before: Option<u64>,
}

/// What faults did to one host.
#[derive(Default)]
pub(super) struct OnHost {
    pub(super) starts: Starts,
    /// Those that took place or may have.
    pub(super) deaths: Arc<Deaths>,
    /// By invocation: planned faults that kill, and the latest end of those so far.
    deadly: Vec<(u64, u64)>,
}

/// By what a healing is known to be of an injection: both are of one step, or both of none and of the same fault and hosts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Same<'a> {
    Step(usize),
    Deed(&'a str, &'a [String]),
}

impl Same<'_> {
    fn of(act: &Act) -> Same<'_> {
        match act.step {
            Some(step) => Same::Step(step),
            None => Same::Deed(&act.fault, &act.on),
        }
    }
}

/// The places of acts, by what makes them the same.
fn by_sameness(acts: &[Act], counts: impl Fn(&Act) -> bool) -> Map<Same<'_>, Vec<usize>> {
    let mut places: Map<Same<'_>, Vec<usize>> = Map::default();
    for (place, act) in acts.iter().enumerate().filter(|(_, act)| counts(act)) {
        places.entry(Same::of(act)).or_default().push(place);
    }
    places
}

impl Links {
    pub(super) fn new(planned: &[PlannedFault], injections: &[Act], healings: &[Act]) -> Links {
        let healed_by = healed_by(injections, healings);
        Links {
            heals: heals(injections, healings),
            steps: steps(planned, injections, healings),
            hosts: hosts(planned, injections, healings, &healed_by),
            healed_by,
        }
    }

    /// When the last injection of a fault before this step was asked for, if all of those faults were.
    pub(super) fn asked_before(&self, step: usize) -> Option<u64> {
        self.steps.get(step)?.asked_before
    }
}

fn healed_by(injections: &[Act], healings: &[Act]) -> Vec<Option<usize>> {
    let took_place = by_sameness(healings, Act::took_place);
    let healing = |act: &Act| {
        let same = took_place.get(&Same::of(act))?;
        let first = same.partition_point(|&heal| healings[heal].invoked < act.invoked);
        same.get(first).copied()
    };
    injections.iter().map(healing).collect()
}

fn heals(injections: &[Act], healings: &[Act]) -> Vec<Option<usize>> {
    let all = by_sameness(injections, |_| true);
    let injection = |heal: &Act| {
        let &first = all.get(&Same::of(heal))?.first()?;
        (injections[first].invoked <= heal.invoked).then_some(first)
    };
    healings.iter().map(injection).collect()
}

fn steps(planned: &[PlannedFault], injections: &[Act], healings: &[Act]) -> Vec<OfStep> {
    let mut steps = vec![OfStep::default(); planned.len()];
    let mut last_asked = vec![0; planned.len()];
    for (place, act) in injections.iter().enumerate() {
        let Some(of) = act.step.and_then(|step| steps.get_mut(step)) else {
            continue;
        };
        of.first.get_or_insert(place);
        if act.completion != Completion::Fail {
            of.first_tried.get_or_insert(place);
        }
        if act.took_place() {
            of.first_in_place.get_or_insert(place);
        }
        last_asked[act.step.unwrap_or_default()] = act.invoked;
    }
    for (place, heal) in healings.iter().enumerate() {
        if let Some(of) = heal.step.and_then(|step| steps.get_mut(step)) {
            of.last_healing = Some(place);
        }
    }
    let mut asked = Some(0);
    for (of, last) in steps.iter_mut().zip(last_asked) {
        of.asked_before = asked;
        asked = asked
            .filter(|_| of.first.is_some())
            .map(|asked: u64| asked.max(last));
    }
    steps
}

fn hosts(
    planned: &[PlannedFault],
    injections: &[Act],
    healings: &[Act],
    healed_by: &[Option<usize>],
) -> BTreeMap<String, OnHost> {
    let mut hosts: BTreeMap<String, OnHost> = BTreeMap::new();
    let mut deaths: BTreeMap<&str, Vec<Death>> = BTreeMap::new();
    let mut starts: BTreeMap<&str, Vec<Start>> = BTreeMap::new();
    let tried = injections.iter().zip(healed_by);
    for (act, healed_by) in tried.filter(|(act, _)| act.completion != Completion::Fail) {
        let does = does(planned, act);
        for host in &act.on {
            if has(&does, Deed::Restarts) {
                starts.entry(host).or_default().push(Start {
                    asked: act.invoked,
                    of: act.op,
                    is_certain: act.took_place(),
                });
            }
            if !does.iter().any(Effect::is_deadly) {
                continue;
            }
            if act.step.is_some_and(|step| step < planned.len()) {
                let until = healed_by.map_or(NEVER, |heal| healings[heal].completed);
                hosts
                    .entry(host.clone())
                    .or_default()
                    .add_deadly(act.invoked, until);
            }
            deaths.entry(host).or_default().push(act.death());
        }
    }
    for (host, start) in starts_by_healing(planned, injections, healings) {
        starts.entry(host).or_default().push(start);
    }
    for (host, starts) in starts {
        hosts.entry(host.to_owned()).or_default().starts = Starts::new(starts);
    }
    for (host, deaths) in deaths {
        hosts.entry(host.to_owned()).or_default().deaths = Arc::new(Deaths::new(deaths));
    }
    hosts
}

/// What the healings of faults that kill start again, each once: what was injected twice was not planned, and is healed at
/// once. Nothing has to be started where nothing may have been killed.
fn starts_by_healing<'a>(
    planned: &[PlannedFault],
    injections: &'a [Act],
    healings: &'a [Act],
) -> Vec<(&'a str, Start)> {
    let kills =
        |act: &Act| act.completion != Completion::Fail && has(&does(planned, act), Deed::Kills);
    let killed = by_sameness(injections, kills);
    let mut starts = Vec::new();
    let tried = healings
        .iter()
        .filter(|heal| heal.completion != Completion::Fail);
    for heal in tried {
        let Some(same) = killed.get(&Same::of(heal)) else {
            continue;
        };
        let before = same.partition_point(|&act| injections[act].invoked <= heal.invoked);
        let Some(&act) = same[..before].last() else {
            continue;
        };
        let act = &injections[act];
        starts.extend(act.on.iter().map(|host| {
            let start = Start {
                asked: heal.invoked,
                of: act.op,
                is_certain: act.took_place() && heal.took_place(),
            };
            (host.as_str(), start)
        }));
    }
    starts
}

impl OnHost {
    fn add_deadly(&mut self, from: u64, until: u64) {
        let latest = self.deadly.last().map_or(0, |&(_, until)| until);
        self.deadly.push((from, latest.max(until)));
    }

    /// Whether a planned fault that kills was in force at this instant.
    pub(super) fn explains_death(&self, at: u64) -> bool {
        let begun = self.deadly.partition_point(|&(from, _)| from <= at);
        begun > 0 && at <= self.deadly[begun - 1].1
    }

    /// Whether the plan has a fault that killed here.
    pub(super) fn was_killed(&self) -> bool {
        !self.deadly.is_empty()
    }
}
