//! The faults of a history: what was planned, what was injected, what healed, and what shows it.

use histories::{Event, Function, Kind, Named, Plan, PlannedFault, When, host_of};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::operations::{Completion, Death, NEVER};
use crate::sentences::{ms, ordinal};
use crate::verdict::FaultReport;

/// One injection, or one healing.
#[derive(Clone, Debug)]
struct Act {
    op: u64,
    step: Option<usize>,
    fault: String,
    on: Vec<String>,
    engine: String,
    invoked: u64,
    completed: u64,
    completion: Completion,
    evidence: Map<String, Value>,
    error: String,
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

    /// What is known only when it is over is told on its completion, what is known before on its invocation.
    fn take(&mut self, event: &Event<'_>) {
        self.step = self.step.or(event.step);
        if let Some(on) = &event.on {
            self.on.clone_from(on);
        }
        if let Some(engine) = &event.engine {
            self.engine = engine.to_string();
        }
        if let Some(evidence) = &event.evidence {
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

/// A crash of a host on which clients may run.
pub(crate) struct Crash<'a> {
    pub(crate) on: &'a [String],
    pub(crate) death: Death,
}

/// From when on nothing disturbed the run any more.
pub(crate) enum Quiet {
    /// From this instant on.
    Since(u64),
    /// Never, as far as the history tells.
    Never(String),
}

/// The faults of a history beside those of its plan.
pub(crate) struct Faults {
    planned: Vec<PlannedFault>,
    injections: Vec<Act>,
    healings: Vec<Act>,
    /// When the operation that a planned fault lasts for was seen to complete, by step.
    awaited: Vec<Option<u64>>,
    awaiting: bool,
}

impl Faults {
    pub(crate) fn new(plan: &Plan) -> Faults {
        Faults {
            planned: plan.faults.clone(),
            injections: Vec::new(),
            healings: Vec::new(),
            awaited: vec![None; plan.faults.len()],
            awaiting: plan.faults.iter().any(|fault| fault.until.event.is_some()),
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
            act.take(event);
            return Ok(());
        }
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
            engine: String::new(),
            invoked: event.t,
            completed: NEVER,
            completion: Completion::Pending,
            evidence: Map::new(),
            error: String::new(),
        };
        act.take(event);
        acts.push(act);
        Ok(())
    }

    /// Notes that a client completed an operation: a fault may last until then.
    pub(crate) fn saw(&mut self, process: &str, invoked: u64, event: &Event<'_>) {
        if !self.awaiting {
            return;
        }
        let injected = |step| {
            self.injections
                .iter()
                .any(|act| act.step == Some(step) && act.invoked <= invoked)
        };
        for (step, planned) in self.planned.iter().enumerate() {
            let awaited = planned
                .until
                .event
                .as_ref()
                .is_some_and(|named| names(named, process, event));
            if awaited && self.awaited[step].is_none() && injected(step) {
                self.awaited[step] = Some(event.t);
            }
        }
    }

    /// When the first fault was asked for.
    pub(crate) fn first(&self) -> Option<u64> {
        self.injections.iter().map(|act| act.invoked).min()
    }

    /// The crashes that took place or may have.
    pub(crate) fn crashes(&self) -> impl Iterator<Item = Crash<'_>> {
        let crashed = |act: &&Act| {
            matches!(act.fault.as_str(), "crash" | "restart") && act.completion != Completion::Fail
        };
        self.injections.iter().filter(crashed).map(|act| Crash {
            on: &act.on,
            death: Death {
                op: act.op,
                invoked: act.invoked,
                completed: act.completed,
            },
        })
    }

    fn lasts_to_the_end(&self, injection: &Act) -> bool {
        let until = injection
            .step
            .and_then(|step| self.planned.get(step))
            .map(|planned| &planned.until);
        until.is_none_or(|until| {
            until.after_ms.is_none() && until.event.is_none() && until.at_most_ms.is_none()
        })
    }

    /// The healing of an injection that took place first.
    fn healing(&self, injection: &Act) -> Option<&Act> {
        let same = |heal: &&Act| match injection.step {
            Some(step) => heal.step == Some(step),
            None => heal.step.is_none() && heal.fault == injection.fault && heal.on == injection.on,
        };
        self.healings
            .iter()
            .filter(same)
            .find(|heal| heal.took_place() && heal.invoked >= injection.invoked)
    }

    /// From when on nothing disturbed the run any more: the last healing, or the injection of what was never to heal.
    pub(crate) fn quiet(&self) -> Quiet {
        let mut since = 0;
        let tried = |act: &&Act| act.completion != Completion::Fail;
        for act in self.injections.iter().filter(tried) {
            let healed = self.healing(act).map(|heal| heal.completed);
            let over = match (healed, self.lasts_to_the_end(act)) {
                (_, true) if act.took_place() => act.in_force(),
                (Some(healed), _) => healed,
                (None, _) => return Quiet::Never(format!("{} was never seen to be over", on(act))),
            };
            since = since.max(over);
        }
        Quiet::Since(since)
    }

    /// The first planned fault that was not injected.
    pub(crate) fn outstanding(&self) -> Option<String> {
        let mut planned = self.planned.iter().enumerate();
        let (_, first) = planned.find(|&(step, _)| !self.was_tried(step))?;
        Some(format!("fault `{}` on {}", first.fault, first.on))
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

    /// What went otherwise than planned, a fragment each.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for (step, planned) in self.planned.iter().enumerate() {
            let name = format!("fault `{}` on {}", planned.fault, planned.on);
            if !self.was_tried(step) {
                failures.push(format!(
                    "{name} was never injected: its trigger ({}) was not reached",
                    trigger(&planned.when)
                ));
            }
        }
        for (at, act) in self.injections.iter().enumerate() {
            let again = |other: &Act| act.step.is_some() && other.step == act.step;
            if act.completion == Completion::Fail && self.injections[at + 1..].iter().any(again) {
                continue;
            }
            failures.extend(
                self.failure_to_inject(act)
                    .or_else(|| self.failure_to_heal(act)),
            );
        }
        failures
    }

    fn failure_to_inject(&self, act: &Act) -> Option<String> {
        let because = if act.error.is_empty() {
            String::new()
        } else {
            format!(": {}", act.error)
        };
        match act.completion {
            _ if act.step.is_some_and(|step| step >= self.planned.len()) => Some(format!(
                "{} is step {} of a plan that has none of that number",
                on(act),
                act.step.unwrap_or_default()
            )),
            Completion::Ok if act.evidence.is_empty() => {
                Some(format!("{} has no evidence that it took hold", on(act)))
            }
            Completion::Ok => None,
            Completion::Info => Some(format!(
                "{} has no evidence that it took hold{because}",
                on(act)
            )),
            Completion::Fail => Some(format!("{} was not injected{because}", on(act))),
            Completion::Pending => Some(format!(
                "{} has no evidence that it took hold: its injection never came to an end",
                on(act)
            )),
        }
    }

    fn failure_to_heal(&self, act: &Act) -> Option<String> {
        let step = act.step?;
        if self.lasts_to_the_end(act) {
            return None;
        }
        let Some(heal) = self.healing(act) else {
            let tried = self
                .healings
                .iter()
                .rev()
                .find(|heal| heal.step == Some(step));
            let because = tried
                .map(|heal| format!(": {}", heal.error))
                .filter(|because| because.len() > 2);
            return Some(format!(
                "{} was not seen to heal{}",
                on(act),
                because.unwrap_or_default()
            ));
        };
        let until = &self.planned[step].until;
        let lasted = heal.completed.saturating_sub(act.invoked);
        let seen = self.awaited[step].is_some_and(|seen| seen <= heal.completed);
        match (&until.event, until.after_ms, until.at_most_ms) {
            (Some(named), ..) if !seen => Some(format!(
                "{} healed after {}, before {} completed the `{}` ({}) that it was to last for",
                on(act),
                ms(lasted),
                named.client,
                named.f,
                named.outcome
            )),
            (_, Some(after_ms), _) if lasted < after_ms.saturating_mul(1_000_000) => Some(format!(
                "{} healed after {} of its {after_ms} ms",
                on(act),
                ms(lasted)
            )),
            (None, None, Some(at_most_ms)) => Some(format!(
                "{} healed only because it may not last longer than {at_most_ms} ms",
                on(act)
            )),
            _ => None,
        }
    }
}

fn on(act: &Act) -> String {
    format!("fault `{}` on {}", act.fault, act.on.join(", "))
}

fn names(named: &Named, process: &str, event: &Event<'_>) -> bool {
    named.f == event.f.name()
        && named.outcome == event.kind.name()
        && (named.client == process || named.client == host_of(process))
}

fn trigger(when: &When) -> String {
    match when {
        When::Time { after_ms } => format!("{after_ms} ms after the start"),
        When::Point {
            client,
            point,
            nth_grant,
        } => format!("{client} at `{point}` of its {} grant", ordinal(*nth_grant)),
        When::Event(named) => format!(
            "{} completes `{}` with `{}`",
            named.client, named.f, named.outcome
        ),
    }
}
