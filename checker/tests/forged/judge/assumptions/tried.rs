//! The run tried something.

use serde_json::Value;

use super::super::Facts;
use super::super::faults::{
    does_the_same, effects, healing, heals, hosts, planned_step, took_hold,
};
use super::super::history::{History, has_lock, host_of, number, text};
use super::super::operations::Op;
use super::super::shown::{evidence_shows_it, is_as_planned, was_due};
use super::super::spans::span;
use super::{Failures, struck};

pub(super) fn check(facts: &Facts, failures: &mut Failures) {
    for inject in facts.ops.with("inject") {
        failures.unless(is_as_planned(facts.history, inject), || {
            format!("inject {} was not planned so", inject.id)
        });
        failures.unless(evidence_shows_it(facts.history, inject), || {
            format!("nothing shows that inject {} took hold", inject.id)
        });
        failures.unless(was_due(facts, inject), || {
            format!(
                "inject {} was not asked for when its trigger came",
                inject.id
            )
        });
        let healed = healed_in_time(facts, inject);
        failures.unless(healed, || {
            format!("inject {} was not healed in time", inject.id)
        });
    }
    struck::check(facts, failures);
    for heal in facts.ops.with("heal") {
        heals_what_was_injected(facts, heal, failures);
    }
    every_fault_once(facts, failures);
    in_the_plans_order(facts, failures);
    failures.unless(competed(facts), || "no two clients competed".to_owned());
    for wish in facts.ops.with("acquire") {
        let is_another = |other: &Op| {
            other.text("lock") == wish.text("lock")
                && host_of(other.process) != host_of(wish.process)
        };
        let wanted_by_two = facts.ops.with("acquire").any(is_another);
        failures.unless(wanted_by_two || !has_lock(facts.history), || {
            format!("only one client asked for the lock of {}", wish.id)
        });
    }
}

fn every_fault_once(facts: &Facts, failures: &mut Failures) {
    for step in 0..facts.history.planned().len() {
        let times = facts
            .ops
            .with("inject")
            .filter(|inject| number(inject.invoke, "step") == Some(step as u64))
            .count();
        failures.unless(times == 1, || {
            format!("fault {step} was injected {times} times")
        });
    }
}

fn in_the_plans_order(facts: &Facts, failures: &mut Failures) {
    if facts.history.version() == 1 {
        return;
    }
    let injections: Vec<(u64, &Value, &Op)> = facts
        .ops
        .with("inject")
        .filter_map(|op| {
            let fault = planned_step(facts.history, op)?;
            Some((number(op.invoke, "step")?, &fault["when"], op))
        })
        .collect();
    for (step, when, inject) in &injections {
        for (other_step, other_when, other) in &injections {
            let swapped = step < other_step && when == other_when && inject.start > other.start;
            failures.unless(!swapped, || {
                format!("faults {step} and {other_step} are swapped")
            });
        }
    }
}

fn healed_in_time(facts: &Facts, inject: &Op) -> bool {
    let Some(fault) = planned_step(facts.history, inject).filter(|fault| heals(fault)) else {
        return true;
    };
    healing(&facts.ops, inject).is_some_and(|heal| {
        let after = number(&fault["until"], "after_ms");
        let event = &fault["until"]["event"];
        let least = after.unwrap_or(0).saturating_mul(1_000_000);
        let since = took_hold(inject).unwrap_or(inject.start);
        // Without either it healed only since it may not last longer.
        (after.is_some() || !event.is_null())
            && heal.start >= since.saturating_add(least)
            && event_came(facts, event, inject, heal)
    })
}

/// Whether the client completed what the fault was to last for, before its healing was asked for.
fn event_came(facts: &Facts, event: &Value, inject: &Op, heal: &Op) -> bool {
    event.is_null()
        || facts.ops.of_clients().any(|op| {
            Some(host_of(op.process)) == text(event, "client")
                && Some(op.f) == text(event, "f")
                && Some(op.kind) == text(event, "outcome")
                && op.start >= inject.start
                && op.last() <= heal.start
        })
}

/// A healing is of a fault that was injected before, and names its fault, hosts and effects, as far as it names any.
fn heals_what_was_injected(facts: &Facts, heal: &Op, failures: &mut Failures) {
    let is_its =
        |inject: &&Op| inject.invoke["step"] == heal.invoke["step"] && inject.start <= heal.start;
    let injections: Vec<&Op> = facts.ops.with("inject").filter(is_its).collect();
    failures.unless(!injections.is_empty(), || {
        format!("heal {} is of what was not injected", heal.id)
    });
    for inject in injections {
        let fits = [Some(heal.invoke), heal.done]
            .into_iter()
            .flatten()
            .all(|event| fits_its_injection(facts.history, event, inject));
        failures.unless(fits, || {
            format!("heal {} is not as inject {} was", heal.id, inject.id)
        });
    }
}

fn fits_its_injection(history: &History, heal: &Value, inject: &Op) -> bool {
    let same = |field: &str, wanted: &Value| heal[field].is_null() || heal[field] == *wanted;
    let does = effects(history, inject.invoke);
    same("step", &inject.invoke["step"])
        && same("fault", &inject.invoke["fault"])
        && (history.version() == 1 || does_the_same(heal, &does))
        && (heal["on"].is_null() || hosts(heal) == hosts(inject.done.unwrap_or(inject.invoke)))
}

/// Whether an acquire of one client was in flight while another had a certain hold, and both were granted the lock.
fn competed(facts: &Facts) -> bool {
    if !has_lock(facts.history) {
        return true;
    }
    // Whoever was turned away for another reason may not have reached the service.
    let is_refused = |wish: &Op| wish.failed() && wish.answer("error") != "busy";
    let mut wishes = facts.ops.with("acquire").filter(|wish| !is_refused(wish));
    wishes.any(|wish| {
        let lock = wish.text("lock").unwrap_or_default();
        let host = host_of(wish.process);
        let of_lock = || facts.grants.iter().filter(move |grant| grant.lock == lock);
        let is_granted = of_lock().any(|grant| host_of(grant.acquire.process) == host);
        let in_flight = span(wish.start, wish.end.unwrap_or(facts.end));
        is_granted
            && of_lock().any(|grant| {
                host_of(grant.acquire.process) != host
                    && grant.holds.iter().any(|hold| hold.overlaps(in_flight))
            })
    })
}
