//! One injection, or one healing, as its events tell it.

use histories::{Effect, Event, Kind, LEADER};
use serde_json::{Map, Value};

use crate::operations::{Completion, Death};

/// One injection, or one healing.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) op: u64,
    pub(super) step: Option<usize>,
    pub(super) fault: String,
    pub(super) on: Vec<String>,
    /// What the event says that it does, if it says so.
    pub(super) told: Option<Vec<Effect>>,
    pub(super) engine: String,
    pub(super) invoked: u64,
    pub(super) completed: u64,
    pub(super) completion: Completion,
    pub(super) evidence: Map<String, Value>,
    pub(super) error: String,
    /// Whether its completion says something else of it than its invocation did.
    pub(super) contradicts_itself: bool,
    /// Whether it ended without having begun.
    pub(super) unbegun: bool,
    /// Whether one of the same operation was begun before.
    pub(super) is_again: bool,
}

impl Act {
    pub(super) fn took_place(&self) -> bool {
        self.completion == Completion::Ok
    }

    /// From when on it was in force: as its evidence tells, which is gathered later, or else when it was recorded.
    pub(super) fn in_force(&self) -> u64 {
        let told = self.evidence.get("took_hold_ns").and_then(Value::as_u64);
        told.map_or(self.completed, |told| {
            told.clamp(self.invoked, self.completed)
        })
    }

    /// Whether a healing says nothing else of what it heals than that said of itself.
    pub(super) fn is_of(&self, injection: &Act) -> bool {
        let same_host = self.on == injection.on || self.on.iter().all(|host| host == LEADER);
        let same_deeds =
            self.told.is_none() || injection.told.is_none() || self.told == injection.told;
        self.fault == injection.fault && same_host && same_deeds && !self.contradicts_itself
    }

    /// Whether a completion says nothing else of it. Which host leads is known only when it is over.
    pub(super) fn fits(&self, event: &Event<'_>) -> bool {
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
    pub(super) fn take(&mut self, event: &Event<'_>, does_stands_in_events: bool) {
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

    /// The death that it caused, where it kills.
    pub(super) fn death(&self) -> Death {
        Death {
            op: self.op,
            invoked: self.invoked,
            completed: self.completed,
        }
    }
}
