//! What clients did, as far as faults wait for it, last until it, or make it impossible.

use std::collections::BTreeSet;

use histories::{Deed, Event, Function, Named, PlannedFault, Role, When, host_of};

use super::{Act, Faults, Trigger};
use crate::operations::NEVER;

impl Faults {
    /// Notes that a client completed an operation: a fault may wait for that, or last until then.
    pub(crate) fn saw(&mut self, process: &str, invoked: u64, event: &Event<'_>) {
        if !self.awaiting {
            return;
        }
        for step in 0..self.planned.len() {
            let planned = &self.planned[step];
            if matches!(&planned.when, When::Event(named) if names(named, process, event)) {
                self.triggered[step].push(Trigger {
                    op: event.op,
                    came: event.t,
                    left: NEVER,
                });
            }
            let until = planned.until.event.as_ref();
            let awaited = until.is_some_and(|named| names(named, process, event));
            let mut injections = self.injections.iter();
            if awaited
                && self.awaited[step].is_none()
                && injections.any(|act| act.step == Some(step) && act.invoked <= invoked)
            {
                self.awaited[step] = Some(event.t);
            }
        }
    }

    /// Notes that a client reached a point: a fault may wait for it.
    pub(crate) fn saw_point(&mut self, event: &Event<'_>) {
        for (planned, seen) in self.planned.iter().zip(&mut self.triggered) {
            if let When::Point {
                client,
                point,
                nth_grant,
            } = &planned.when
                && client == host_of(&event.process)
                && event.point.as_deref() == Some(point)
                && event.nth == Some(*nth_grant)
            {
                seen.push(Trigger {
                    op: event.op,
                    came: event.t,
                    left: NEVER,
                });
            }
        }
    }

    /// Notes that a client left a point.
    pub(crate) fn left_point(&mut self, event: &Event<'_>) {
        for (planned, seen) in self.planned.iter().zip(&mut self.triggered) {
            if matches!(planned.when, When::Point { .. })
                && let Some(trigger) = seen.iter_mut().find(|trigger| trigger.op == event.op)
            {
                trigger.left = event.t;
            }
        }
    }

    /// Notes that a client did something, whose first event came at `since`: it cannot while it is stopped or held.
    pub(crate) fn client_acts(&mut self, since: u64, event: &Event<'_>) {
        for at in 0..self.injections.len() {
            let act = &self.injections[at];
            if since <= act.invoked && self.keeps_from(act, event) && self.healing(act).is_none() {
                self.injections[at].deeds.push(event.t);
            }
        }
    }

    /// Whether an injection keeps a client from this while it is in force.
    fn keeps_from(&self, act: &Act, event: &Event<'_>) -> bool {
        let host = host_of(&event.process);
        let planned = act.step.and_then(|step| self.planned.get(step));
        let planned = planned.filter(|planned| planned.fault == act.fault);
        let does = match &act.told {
            Some(told) => Some(told),
            None => planned.map(|planned| &planned.does),
        };
        act.is_on(host)
            && Role::of(host) == Some(Role::Client)
            && does.is_some_and(|does| {
                does.iter().any(|effect| match effect.effect {
                    Deed::Stops => true,
                    Deed::HoldsWork => is_work(event.f),
                    _ => false,
                })
            })
    }

    /// When a client did something from which this injection certainly kept it.
    pub(super) fn impossible_deed(&self, act: &Act) -> Option<u64> {
        let until = self.healing(act).map_or(NEVER, |heal| heal.invoked);
        let in_force = |t: &&u64| act.in_force() < **t && **t < until;
        let took_place = act.took_place();
        act.deeds
            .iter()
            .find(|t| took_place && in_force(t))
            .copied()
    }

    /// Whether what an injection waited for had come when it was asked for, and was there still.
    pub(super) fn was_due(&self, act: &Act) -> bool {
        let Some((step, planned)) = act
            .step
            .and_then(|step| Some((step, self.planned.get(step)?)))
        else {
            return true;
        };
        match planned.when {
            When::Time { after_ms } => act.invoked >= after_ms.saturating_mul(1_000_000),
            When::Point { .. } => {
                let mut seen = self.triggered[step].iter();
                seen.any(|point| (point.came..=point.left).contains(&act.invoked))
            }
            When::Event(_) => {
                let all = self.injections.iter();
                let earlier = all.filter(|other| other.step.is_some_and(|other| other < step));
                let steps: BTreeSet<_> = earlier.clone().map(|other| other.step).collect();
                let from = earlier.map(|other| other.invoked).max().unwrap_or(0);
                let mut seen = self.triggered[step].iter();
                let came = seen.any(|event| (from..=act.invoked).contains(&event.came));
                came && steps.len() == step
            }
        }
    }
}

/// What a client does one after the other, and not while it is held. What keeps its lease alive goes on.
fn is_work(f: Function) -> bool {
    matches!(
        f,
        Function::Acquire | Function::Read | Function::Write | Function::Work | Function::Release
    )
}

/// Whether a planned fault waits for, or lasts until, an operation of a client.
pub(super) fn are_awaited(planned: &PlannedFault) -> bool {
    planned.until.event.is_some() || matches!(planned.when, When::Event(_))
}

fn names(named: &Named, process: &str, event: &Event<'_>) -> bool {
    named.f == event.f.name()
        && named.outcome == event.kind.name()
        && (named.client == process || named.client == host_of(process))
}
