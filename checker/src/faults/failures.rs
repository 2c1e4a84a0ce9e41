//! What went otherwise than planned.

use std::collections::BTreeMap;

use histories::{LEADER, Role, SERVERS, When};
use serde_json::Value;

use super::Faults;
use super::act::Act;
use crate::operations::Completion;
use crate::sentences::{Clock, ms, ordinal};

impl Faults {
    /// What went otherwise than planned, a fragment each.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for (step, planned) in self.plan.planned.iter().enumerate() {
            let name = format!("fault `{}` on {}", planned.fault, planned.on);
            if self.links.steps[step].first.is_none() {
                failures.push(format!(
                    "{name} was never injected: its trigger ({}) was not reached",
                    trigger(&planned.when)
                ));
            }
        }
        let acts = || self.injections.iter().chain(&self.healings);
        failures.extend(acts().filter(|act| act.is_again).map(|act| {
            format!(
                "{} has an operation (op {}) that another has",
                on(act),
                act.op
            )
        }));
        failures.extend(acts().filter(|act| act.unbegun).map(|act| {
            format!(
                "{} was injected or healed (op {}) without having begun to be",
                on(act),
                act.op
            )
        }));
        failures.extend(self.out_of_order());
        for at in 0..self.injections.len() {
            failures.extend(self.doubt(at).or_else(|| self.failure_to_heal(at)));
        }
        failures
            .extend((0..self.healings.len()).filter_map(|heal| self.unlike_its_injection(heal)));
        failures
    }

    /// Why an injection may not have done what was planned, if so.
    pub(super) fn doubt(&self, at: usize) -> Option<String> {
        let act = &self.injections[at];
        self.unlike_the_plan(at)
            .or_else(|| self.failure_to_inject(act))
            .or_else(|| self.contradicted(at))
    }

    /// How an injection differs from what was planned, if it does.
    fn unlike_the_plan(&self, at: usize) -> Option<String> {
        let act = &self.injections[at];
        let Some(planned) = act.step.map(|step| self.plan.planned.get(step)) else {
            return Some(format!("{} was not planned", on(act)));
        };
        let planned = planned?;
        let where_planned = match act.on.as_slice() {
            [host] if planned.on == LEADER => Role::of(host) == Some(Role::Server),
            [host] => *host == planned.on,
            _ => false,
        };
        let as_planned = act.told.as_ref().is_none_or(|told| *told == planned.does);
        if act.fault != planned.fault || !where_planned || !as_planned || act.contradicts_itself {
            return Some(format!(
                "{} is not what was planned: `{}` on {}",
                on(act),
                planned.fault,
                planned.on
            ));
        }
        let of_step = act.step.and_then(|step| self.links.steps.get(step));
        let first = of_step.and_then(|of_step| of_step.first_tried);
        first
            .is_some_and(|first| first < at)
            .then(|| format!("{} was injected twice", on(act)))
    }

    /// Faults of one trigger that did not strike in the plan's order.
    fn out_of_order(&self) -> Option<String> {
        if !self.plan.ordered {
            return None;
        }
        // By trigger: the latest of those so far. Plans have few triggers, and each names its client.
        let mut latest: BTreeMap<String, u64> = BTreeMap::new();
        for (step, planned) in self.plan.planned.iter().enumerate() {
            let Some(act) = self.links.steps[step].first_in_place else {
                continue;
            };
            let act = &self.injections[act];
            let before = latest.entry(trigger(&planned.when)).or_insert(0);
            if act.invoked < *before {
                return Some(format!(
                    "{} struck before a fault of the same trigger that the plan has first",
                    on(act)
                ));
            }
            *before = act.invoked;
        }
        None
    }

    fn failure_to_inject(&self, act: &Act) -> Option<String> {
        let because = if act.error.is_empty() {
            String::new()
        } else {
            format!(": {}", act.error)
        };
        match act.completion {
            _ if act.step.is_some_and(|step| step >= self.plan.planned.len()) => Some(format!(
                "{} is step {} of a plan that has none of that number",
                on(act),
                act.step.unwrap_or_default()
            )),
            Completion::Ok if act.evidence.is_empty() => {
                Some(format!("{} has no evidence that it took hold", on(act)))
            }
            Completion::Ok => self.unmet(act),
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

    /// What the evidence of an injection does not say, though the plan asks for it.
    fn unmet(&self, act: &Act) -> Option<String> {
        let planned = self.plan.planned.get(act.step?)?;
        if planned.shows.is_empty() {
            return Some(format!(
                "{} has no evidence that counts: its plan does not say what shows that it took hold",
                on(act)
            ));
        }
        let mut shows = planned.shows.iter();
        let (field, _) = shows.find(|(field, expected)| !expected.is_met(field, &act.evidence))?;
        let found = act.evidence.get(field);
        let found = found.map_or("missing".to_owned(), Value::to_string);
        Some(format!(
            "{} has evidence that does not show it: `{field}` is {found}",
            on(act)
        ))
    }

    /// What else of the history an injection cannot be true with.
    fn contradicted(&self, at: usize) -> Option<String> {
        let act = &self.injections[at];
        let planned = self.plan.planned.get(act.step?)?;
        if let Some(host) = act.on.iter().find(|host| !self.knows(host)) {
            return Some(format!(
                "{} struck {host}, which is no host of this run",
                on(act)
            ));
        }
        let does = act.told.as_ref().unwrap_or(&planned.does);
        let mut to = does.iter().filter_map(|effect| effect.to.as_deref());
        let is_host = |to: &&str| *to != SERVERS && *to != LEADER;
        if let Some(to) = to.find(|to| is_host(to) && !self.knows(to)) {
            return Some(format!(
                "{} is about packets to {to}, which is no host of this run",
                on(act)
            ));
        }
        if !self.was_due(act) {
            return Some(format!(
                "{} did not strike when its trigger had come ({})",
                on(act),
                trigger(&planned.when)
            ));
        }
        if let Some((host, answered)) = self.impossible_answer(at, act) {
            let at = Clock::telling(0).at(answered);
            return Some(format!(
                "{host} answered at {at} what was asked for while {} kept it from that",
                on(act)
            ));
        }
        if let Some((host, answered)) = self.prompt_answer(at, act) {
            let at = Clock::telling(0).at(answered);
            return Some(format!(
                "{host} had an answer at {at} sooner than the packets come that {} holds up",
                on(act)
            ));
        }
        let deed = self.impossible_deed(at)?;
        let at = Clock::telling(0).at(deed);
        Some(format!(
            "{} did something at {at}, while {} kept it from that",
            act.on.join(", "),
            on(act)
        ))
    }

    /// How a healing differs from what was injected, if it does.
    fn unlike_its_injection(&self, at: usize) -> Option<String> {
        let heal = &self.healings[at];
        match self.links.heals[at].map(|act| &self.injections[act]) {
            Some(act) if heal.is_of(act) => None,
            Some(act) => Some(format!(
                "{} was healed by what is not its healing: {}",
                on(act),
                on(heal)
            )),
            None => Some(format!("{} healed, and was not injected before", on(heal))),
        }
    }

    fn failure_to_heal(&self, at: usize) -> Option<String> {
        let act = &self.injections[at];
        let step = act.step?;
        if self.lasts_to_the_end(act) {
            return None;
        }
        let of_step = self.links.steps.get(step)?;
        let Some(heal) = self.healing(at) else {
            let because = of_step
                .last_healing
                .map(|heal| format!(": {}", self.healings[heal].error))
                .filter(|because| because.len() > 2);
            return Some(format!(
                "{} was not seen to heal{}",
                on(act),
                because.unwrap_or_default()
            ));
        };
        let until = &self.plan.planned[step].until;
        let lasted = heal.invoked.saturating_sub(act.in_force());
        let from = of_step.first.map(|first| self.injections[first].invoked);
        let seen = until.event.as_ref().zip(from);
        let seen = seen.and_then(|(named, from)| self.awaited.first_since(named, from));
        let seen = seen.is_some_and(|seen| seen <= heal.invoked);
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
