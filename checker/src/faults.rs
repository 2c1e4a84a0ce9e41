//! The faults of a history: what was planned, what was injected, what healed, and what shows it.

mod act;
mod clients;
mod delayed;
mod failures;
mod gathering;
mod links;
mod lives;
mod served;

use std::collections::BTreeSet;

use histories::{Deed, Effect, PlannedFault, Role};

use self::act::Act;
use self::clients::{Awaited, Deeds};
use self::delayed::Prompt;
use self::links::{Links, OnHost};
use self::served::Served;
use crate::contract::stays;
use crate::operations::{Completion, Death, NEVER, Process};
use crate::verdict::FaultReport;

pub(crate) use self::clients::is_work;
pub(crate) use self::gathering::Gathering;
pub(crate) use self::lives::{Blow, Starts};

/// A fault as long as it was in force, or may have been.
pub(crate) struct InForce<'a> {
    pub(crate) on: &'a [String],
    pub(crate) does: Vec<Effect>,
    /// From its injection's invocation on.
    pub(crate) from: u64,
    /// Until its healing was done; [`NEVER`] if it was not.
    pub(crate) until: u64,
    /// When its healing began, if it did.
    pub(crate) heals_from: Option<u64>,
    /// By host: when a client that it keeps from something did that again first, once its healing began.
    pub(crate) acts_again: Vec<Option<u64>>,
    /// Whether the plan never heals it.
    pub(crate) stays: bool,
    /// Whether it was planned, has its evidence, and nothing contradicts it.
    pub(crate) is_shown: bool,
}

impl InForce<'_> {
    /// The roles of the hosts that it struck, each once; `None` for a name of no host.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (&str, Option<Role>)> {
        self.on.iter().map(|host| (host.as_str(), Role::of(host)))
    }
}

/// A death of processes on some hosts.
pub(crate) struct Crash<'a> {
    pub(crate) on: &'a [String],
    pub(crate) death: Death,
}

/// What the header says of faults, and of who can be struck.
struct Plan {
    planned: Vec<PlannedFault>,
    /// Whether the format says in which order faults of one trigger strike.
    ordered: bool,
    /// How many clients the plan has.
    clients: u32,
    /// The hosts that the header names; none where it names none.
    hosts: BTreeSet<String>,
}

impl Plan {
    /// The lock's server, if the header names one alone.
    fn only_server(&self) -> Option<&String> {
        let is_server = |host: &&String| Role::of(host) == Some(Role::Server);
        let mut servers = self.hosts.iter().filter(is_server);
        servers.next().filter(|_| servers.next().is_none())
    }
}

/// The faults of a history beside those of its plan.
pub(crate) struct Faults {
    plan: Plan,
    injections: Vec<Act>,
    healings: Vec<Act>,
    awaited: Awaited,
    deeds: Deeds,
    served: Served,
    prompt: Prompt,
    links: Links,
}

/// What an injection does: as it says itself, else as the plan says of that fault.
fn does(planned: &[PlannedFault], act: &Act) -> Vec<Effect> {
    let planned = act.step.and_then(|step| planned.get(step));
    let planned = planned.filter(|planned| planned.fault == act.fault);
    match (&act.told, planned) {
        (Some(told), _) if !told.is_empty() => told.clone(),
        (None, Some(planned)) if !planned.does.is_empty() => planned.does.clone(),
        _ => vec![Effect::of(Deed::Unforeseen)],
    }
}

fn has(does: &[Effect], deed: Deed) -> bool {
    does.iter().any(|effect| effect.effect == deed)
}

impl Faults {
    /// When the first fault was asked for.
    pub(crate) fn first(&self) -> Option<u64> {
        self.injections.iter().map(|act| act.invoked).min()
    }

    /// The faults that took place or may have.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = InForce<'_>> {
        let tried = self.injections.iter().enumerate();
        let tried = tried.filter(|(_, act)| act.completion != Completion::Fail);
        tried.map(|(at, act)| {
            let heal = self.healing(at);
            InForce {
                on: &act.on,
                does: does(&self.plan.planned, act),
                from: act.invoked,
                until: heal.map_or(NEVER, |heal| heal.completed),
                heals_from: heal.map(|heal| heal.invoked),
                acts_again: self.acts_again(at),
                stays: self.lasts_to_the_end(act),
                is_shown: self.doubt(at).is_none(),
            }
        })
    }

    /// The deaths that took place or may have.
    pub(crate) fn deaths(&self) -> impl Iterator<Item = Crash<'_>> {
        let kills = |act: &&Act| {
            act.completion != Completion::Fail
                && does(&self.plan.planned, act).iter().any(Effect::is_deadly)
        };
        self.injections.iter().filter(kills).map(|act| Crash {
            on: &act.on,
            death: act.death(),
        })
    }

    /// Whether a host is one of this run, as far as its header tells.
    pub(crate) fn knows(&self, host: &str) -> bool {
        match Role::of(host) {
            Some(Role::Client) => {
                let number = host[1..].parse::<u32>();
                number.is_ok_and(|number| number <= self.plan.clients)
            }
            Some(_) => self.plan.hosts.is_empty() || self.plan.hosts.contains(host),
            None => false,
        }
    }

    /// The deaths of the lock's servers.
    pub(crate) fn server_deaths(&self) -> impl Iterator<Item = Death> {
        let of_server = |crash: &Crash<'_>| {
            crash
                .on
                .iter()
                .any(|host| Role::of(host) == Some(Role::Server))
        };
        self.deaths().filter(of_server).map(|crash| crash.death)
    }

    /// Whether the plan has a fault that kills on this host, and it was in force at this time.
    pub(crate) fn explains_death(&self, host: &str, at: u64) -> bool {
        let here = self.links.hosts.get(host);
        here.is_some_and(|here| here.explains_death(at))
    }

    /// Whether a planned fault killed a process on this host.
    pub(crate) fn killed(&self, host: &str) -> bool {
        let here = self.links.hosts.get(host);
        here.is_some_and(OnHost::was_killed)
    }

    /// When and how a client's process on this host ended first that nobody asked to end, and that no fault explains.
    pub(crate) fn end_by_others<'p>(
        &self,
        host: &str,
        process: &'p Process,
    ) -> Option<(u64, &'p str)> {
        let (at, how) = process.odd_exit.as_ref()?;
        let killed = !process.crashes.is_empty() && self.killed(host);
        (!killed).then_some((*at, how.as_str()))
    }

    fn lasts_to_the_end(&self, injection: &Act) -> bool {
        let until = injection
            .step
            .and_then(|step| self.plan.planned.get(step))
            .map(|planned| &planned.until);
        until.is_none_or(stays)
    }

    /// The healing of an injection that took place first.
    fn healing(&self, at: usize) -> Option<&Act> {
        self.links.healed_by[at].map(|heal| &self.healings[heal])
    }

    /// From when on nothing disturbed the run any more: the last healing, or the injection of what was never to heal. `None`
    /// if something was never seen to be over.
    pub(crate) fn quiet_since(&self) -> Option<u64> {
        let tried = |(_, act): &(usize, &Act)| act.completion != Completion::Fail;
        let over = |(at, act): (usize, &Act)| match self.healing(at) {
            _ if self.lasts_to_the_end(act) && act.took_place() => Some(act.completed),
            Some(heal) => Some(heal.completed),
            None => None,
        };
        let mut since = 0;
        for act in self.injections.iter().enumerate().filter(tried) {
            since = since.max(over(act)?);
        }
        Some(since)
    }

    /// The faults as they happened.
    pub(crate) fn reports(&self) -> Vec<FaultReport> {
        let report = |(at, act): (usize, &Act)| {
            let heal = self.healing(at);
            FaultReport {
                fault: act.fault.clone(),
                on: act.on.clone(),
                engine: act.engine.clone(),
                took_hold: matches!(act.completion, Completion::Ok),
                injected_ns: matches!(act.completion, Completion::Ok | Completion::Info)
                    .then(|| act.in_force()),
                healed_ns: heal.map(|heal| heal.completed),
                evidence: act.evidence.clone(),
                heal_evidence: heal.map(|heal| heal.evidence.clone()).unwrap_or_default(),
            }
        };
        // They are in the order of their invocations.
        self.injections.iter().enumerate().map(report).collect()
    }
}
