//! The faults of a history: what was planned, what was injected, what healed, and what shows it.

mod clients;
mod failures;
mod lives;

use std::collections::BTreeSet;

use histories::{Deed, Effect, Event, Function, Header, Kind, LEADER, PlannedFault, Role};
use serde_json::{Map, Value};

use crate::contract::stays;
use crate::error::Error;
use crate::operations::{Completion, Death, NEVER, Process};
use crate::verdict::FaultReport;

pub(crate) use lives::Blow;

/// One injection, or one healing.
#[derive(Clone, Debug)]
struct Act {
    op: u64,
    step: Option<usize>,
    fault: String,
    on: Vec<String>,
    /// What the event says that it does, if it says so.
    told: Option<Vec<Effect>>,
    engine: String,
    invoked: u64,
    completed: u64,
    completion: Completion,
    evidence: Map<String, Value>,
    error: String,
    /// Whether its completion says something else of it than its invocation did.
    contradicts_itself: bool,
    /// Whether it ended without having begun.
    unbegun: bool,
    /// Whether one of the same operation was begun before.
    is_again: bool,
    /// When those did something that it keeps them from, from its invocation to the end of its healing.
    deeds: Vec<u64>,
}

impl Act {
    fn took_place(&self) -> bool {
        self.completion == Completion::Ok
    }

    /// From when on it was in force: as its evidence tells, which is gathered later, or else when it was recorded.
    fn in_force(&self) -> u64 {
        let told = self.evidence.get("took_hold_ns").and_then(Value::as_u64);
        told.map_or(self.completed, |told| {
            told.clamp(self.invoked, self.completed)
        })
    }

    /// Whether a healing says nothing else of what it heals than that said of itself.
    fn is_of(&self, injection: &Act) -> bool {
        let same_host = self.on == injection.on || self.on.iter().all(|host| host == LEADER);
        let same_deeds =
            self.told.is_none() || injection.told.is_none() || self.told == injection.told;
        self.fault == injection.fault && same_host && same_deeds && !self.contradicts_itself
    }

    /// Whether a completion says nothing else of it. Which host leads is known only when it is over.
    fn fits(&self, event: &Event<'_>) -> bool {
        let leader = self.on.iter().any(|host| host == LEADER);
        let same = event.step.is_none_or(|step| self.step == Some(step))
            && event
                .fault
                .as_deref()
                .is_none_or(|fault| fault == self.fault)
            && event.on.as_ref().is_none_or(|on| leader || *on == self.on);
        same && (event.does.is_none() || self.told.is_none() || event.does == self.told)
    }

    /// What is known only when it is over is told on its completion, what is known before on its invocation.
    fn take(&mut self, event: &Event<'_>, does_stands_in_events: bool) {
        if event.kind != Kind::Invoke {
            self.contradicts_itself |= !self.fits(event);
        }
        self.step = self.step.or(event.step);
        if let Some(on) = &event.on {
            self.on.clone_from(on);
        }
        if let Some(does) = event.does.as_ref().filter(|_| does_stands_in_events) {
            self.told = Some(does.clone());
        }
        if let Some(engine) = &event.engine {
            self.engine = engine.to_string();
        }
        if let Some(evidence) = event
            .evidence
            .as_ref()
            .filter(|_| event.kind != Kind::Invoke)
        {
            self.evidence.clone_from(evidence);
        }
        if let Some(error) = &event.error {
            self.error = error.to_string();
        }
        self.completion = match event.kind {
            Kind::Invoke => return,
            Kind::Ok => Completion::Ok,
            Kind::Fail => Completion::Fail,
            Kind::Info => Completion::Info,
        };
        self.completed = event.t;
    }
}

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

/// What a fault waits for: it came, and lasted.
struct Trigger {
    op: u64,
    came: u64,
    /// [`NEVER`] for an event, which is what happened, and for a point that its client did not leave.
    left: u64,
}

/// A death of processes on some hosts.
pub(crate) struct Crash<'a> {
    pub(crate) on: &'a [String],
    pub(crate) death: Death,
}

/// The faults of a history beside those of its plan.
pub(crate) struct Faults {
    planned: Vec<PlannedFault>,
    /// Whether the format says in which order faults of one trigger strike.
    ordered: bool,
    /// Whether events say what they do; in version 1 the plan's faults alone do, by their names.
    does_stands_in_events: bool,
    injections: Vec<Act>,
    healings: Vec<Act>,
    /// When the operation that a planned fault lasts for was seen to complete, by step.
    awaited: Vec<Option<u64>>,
    /// What a planned fault waits for, as it was seen, by step.
    triggered: Vec<Vec<Trigger>>,
    /// Whether any fault waits for, or lasts until, what a client does.
    awaiting: bool,
    /// How many clients the plan has.
    clients: u32,
    /// The hosts that the header names; none where it names none.
    hosts: BTreeSet<String>,
}

impl Faults {
    pub(crate) fn new(header: &Header) -> Faults {
        let planned = header.plan.faults.clone();
        let hosts = header.servers.keys().chain(header.images.keys());
        Faults {
            ordered: header.fencepost > 1,
            does_stands_in_events: header.fencepost > 1,
            injections: Vec::new(),
            healings: Vec::new(),
            awaited: vec![None; planned.len()],
            triggered: planned.iter().map(|_| Vec::new()).collect(),
            awaiting: planned.iter().any(clients::are_awaited),
            clients: header.plan.clients,
            hosts: hosts.cloned().collect(),
            planned,
        }
    }

    /// Takes an `inject` or a `heal`.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let acts = if event.f == Function::Inject {
            &mut self.injections
        } else {
            &mut self.healings
        };
        let begun = acts
            .iter_mut()
            .rfind(|act| act.op == event.op && act.completion == Completion::Pending);
        if event.kind != Kind::Invoke
            && let Some(act) = begun
        {
            act.take(event, self.does_stands_in_events);
            return Ok(());
        }
        let is_again = acts.iter().any(|act| act.op == event.op);
        let planned = event.step.and_then(|step| self.planned.get(step));
        let fault = event
            .fault
            .as_deref()
            .or(planned.map(|planned| planned.fault.as_str()));
        let missing = Error::Missing {
            op: event.op,
            f: event.f,
            field: "fault",
        };
        let mut act = Act {
            op: event.op,
            step: event.step,
            fault: fault.ok_or(missing)?.to_owned(),
            on: planned
                .map(|planned| vec![planned.on.clone()])
                .unwrap_or_default(),
            told: None,
            engine: String::new(),
            invoked: event.t,
            completed: NEVER,
            completion: Completion::Pending,
            evidence: Map::new(),
            error: String::new(),
            contradicts_itself: false,
            unbegun: event.kind != Kind::Invoke,
            is_again,
            deeds: Vec::new(),
        };
        act.take(event, self.does_stands_in_events);
        acts.push(act);
        Ok(())
    }

    /// When the first fault was asked for.
    pub(crate) fn first(&self) -> Option<u64> {
        self.injections.iter().map(|act| act.invoked).min()
    }

    /// What an injection does: as it says itself, else as the plan says of that fault.
    fn does(&self, act: &Act) -> Vec<Effect> {
        let planned = act.step.and_then(|step| self.planned.get(step));
        let planned = planned.filter(|planned| planned.fault == act.fault);
        match (&act.told, planned) {
            (Some(told), _) if !told.is_empty() => told.clone(),
            (None, Some(planned)) if !planned.does.is_empty() => planned.does.clone(),
            _ => vec![Effect::of(Deed::Unforeseen)],
        }
    }

    /// The faults that took place or may have.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = InForce<'_>> {
        let tried = self.injections.iter().enumerate();
        let tried = tried.filter(|(_, act)| act.completion != Completion::Fail);
        tried.map(|(at, act)| {
            let heal = self.healing(act);
            InForce {
                on: &act.on,
                does: self.does(act),
                from: act.invoked,
                until: heal.map_or(NEVER, |heal| heal.completed),
                heals_from: heal.map(|heal| heal.invoked),
                stays: self.lasts_to_the_end(act),
                is_shown: self.doubt(at).is_none(),
            }
        })
    }

    /// The deaths that took place or may have.
    pub(crate) fn deaths(&self) -> impl Iterator<Item = Crash<'_>> {
        let kills = |act: &&Act| {
            act.completion != Completion::Fail && self.does(act).iter().any(Effect::is_deadly)
        };
        self.injections.iter().filter(kills).map(|act| Crash {
            on: &act.on,
            death: Death {
                op: act.op,
                invoked: act.invoked,
                completed: act.completed,
            },
        })
    }

    /// Whether a host is one of this run, as far as its header tells.
    pub(crate) fn knows(&self, host: &str) -> bool {
        match Role::of(host) {
            Some(Role::Client) => {
                let number = host[1..].parse::<u32>();
                number.is_ok_and(|number| number <= self.clients)
            }
            Some(_) => self.hosts.is_empty() || self.hosts.contains(host),
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
        self.injections.iter().any(|act| {
            let planned = act.step.is_some_and(|step| step < self.planned.len());
            let until = self.healing(act).map_or(NEVER, |heal| heal.completed);
            planned
                && act.completion != Completion::Fail
                && act.is_on(host)
                && self.does(act).iter().any(Effect::is_deadly)
                && (act.invoked..=until).contains(&at)
        })
    }

    /// Whether a planned fault killed a process on this host.
    pub(crate) fn killed(&self, host: &str) -> bool {
        self.injections
            .iter()
            .any(|act| self.explains_death(host, act.invoked))
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
            .and_then(|step| self.planned.get(step))
            .map(|planned| &planned.until);
        until.is_none_or(stays)
    }

    /// The healing of an injection that took place first.
    fn healing(&self, injection: &Act) -> Option<&Act> {
        let mut healings = self.healings.iter();
        healings.find(|heal| heal.took_place() && heal.heals(injection))
    }

    /// From when on nothing disturbed the run any more: the last healing, or the injection of what was never to heal. `None`
    /// if something was never seen to be over.
    pub(crate) fn quiet_since(&self) -> Option<u64> {
        let tried = |act: &&Act| act.completion != Completion::Fail;
        let over = |act: &Act| match self.healing(act) {
            _ if self.lasts_to_the_end(act) && act.took_place() => Some(act.completed),
            Some(heal) => Some(heal.completed),
            None => None,
        };
        let mut since = 0;
        for act in self.injections.iter().filter(tried) {
            since = since.max(over(act)?);
        }
        Some(since)
    }

    fn was_tried(&self, step: usize) -> bool {
        self.injections.iter().any(|act| act.step == Some(step))
    }

    /// The faults as they happened.
    pub(crate) fn reports(&self) -> Vec<FaultReport> {
        let mut acts: Vec<&Act> = self.injections.iter().collect();
        acts.sort_by_key(|act| act.invoked);
        let report = |act: &Act| {
            let heal = self.healing(act);
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
        acts.into_iter().map(report).collect()
    }
}
