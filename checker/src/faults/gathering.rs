//! The faults of a history while its events come in.

use std::collections::BTreeSet;

use histories::{Event, Function, Header, Kind, PlannedFault};
use serde_json::Map as Object;

use super::act::Act;
use super::clients::{Awaited, Deeds};
use super::delayed::Prompt;
use super::links::Links;
use super::served::Served;
use super::{Faults, Plan};
use crate::error::Error;
use crate::names::Map;
use crate::operations::{Completion, NEVER, Record};

/// What of faults, and of what clients do, came in so far. What an act is in the end its last event says, so that nothing is
/// compared before all are there.
pub(crate) struct Gathering {
    plan: Plan,
    /// Whether events say what they do; in version 1 the plan's faults alone do, by their names.
    does_stands_in_events: bool,
    injections: Acts,
    healings: Acts,
    awaited: Awaited,
    deeds: Deeds,
}

/// Injections or healings, in the order in which they were begun.
#[derive(Default)]
struct Acts {
    all: Vec<Act>,
    /// By operation: those of it that are in flight. One that is here was begun.
    in_flight: Map<u64, Vec<usize>>,
}

impl Gathering {
    pub(crate) fn new(header: &Header) -> Gathering {
        let planned = header.plan.faults.clone();
        let hosts: BTreeSet<String> = header
            .servers
            .keys()
            .chain(header.images.keys())
            .cloned()
            .collect();
        Gathering {
            does_stands_in_events: header.fencepost > 1,
            injections: Acts::default(),
            healings: Acts::default(),
            awaited: Awaited::new(&planned),
            deeds: Deeds::new(&planned),
            plan: Plan {
                planned,
                ordered: header.fencepost > 1,
                clients: header.plan.clients,
                hosts,
            },
        }
    }

    /// Takes an `inject` or a `heal`.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let acts = if event.f == Function::Inject {
            &mut self.injections
        } else {
            &mut self.healings
        };
        let does_stands_in_events = self.does_stands_in_events;
        if event.kind != Kind::Invoke
            && let Some(act) = acts.in_flight.get_mut(&event.op).and_then(Vec::pop)
        {
            acts.all[act].take(event, does_stands_in_events);
            return Ok(());
        }
        let planned = event.step.and_then(|step| self.plan.planned.get(step));
        let is_again = acts.in_flight.contains_key(&event.op);
        let mut act = begun(event, planned, is_again)?;
        act.take(event, does_stands_in_events);
        let in_flight = acts.in_flight.entry(event.op).or_default();
        if act.completion == Completion::Pending {
            in_flight.push(acts.all.len());
        }
        acts.all.push(act);
        Ok(())
    }

    /// Notes that a client completed an operation: a fault may wait for that, or last until then, or make it impossible.
    pub(crate) fn saw(&mut self, process: &str, invoked: u64, event: &Event<'_>) {
        self.awaited.saw(process, invoked, event);
    }

    /// Notes that a client reached a point: a fault may wait for it.
    pub(crate) fn saw_point(&mut self, event: &Event<'_>) {
        self.awaited.saw_point(event);
    }

    /// Whether a planned fault strikes when this client is at this point under its so manieth grant.
    pub(crate) fn waits_at(&self, client: &str, point: &str, nth: u64) -> bool {
        self.awaited.waits_at(client, point, nth)
    }

    /// Whether any planned fault waits for a client to be somewhere.
    pub(crate) fn wait_at_points(&self) -> bool {
        self.awaited.wait_at_points()
    }

    /// Notes that a client left a point.
    pub(crate) fn left_point(&mut self, event: &Event<'_>) {
        self.awaited.left_point(event);
    }

    /// Notes that a client did something, whose first event came at `since`: it cannot while it is stopped or held.
    pub(crate) fn client_acts(&mut self, since: u64, event: &Event<'_>) {
        if !self.injections.all.is_empty() {
            self.deeds.note(since, event);
        }
    }

    /// All that came in, once nothing more does. `record` is what clients and storage did.
    pub(crate) fn finish(self, record: &Record) -> Faults {
        let (injections, healings) = (self.injections.all, self.healings.all);
        let links = Links::new(&self.plan.planned, &injections, &healings);
        let planned = &self.plan.planned;
        let only_server = self.plan.only_server();
        let served = Served::of(record, planned, only_server);
        let prompt = Prompt::of(record, planned, only_server.cloned());
        Faults {
            plan: self.plan,
            injections,
            healings,
            awaited: self.awaited.finish(),
            deeds: self.deeds.finish(),
            served,
            prompt,
            links,
        }
    }
}

/// An act of which nothing is known but that this is its first event.
fn begun(event: &Event<'_>, planned: Option<&PlannedFault>, is_again: bool) -> Result<Act, Error> {
    let fault = event
        .fault
        .as_deref()
        .or(planned.map(|planned| planned.fault.as_str()));
    let missing = Error::Missing {
        op: event.op,
        f: event.f,
        field: "fault",
    };
    Ok(Act {
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
        evidence: Object::new(),
        error: String::new(),
        contradicts_itself: false,
        unbegun: event.kind != Kind::Invoke,
        is_again,
    })
}
