//! The record fits itself.

use serde_json::Value;

use super::super::Facts;
use super::super::beliefs::own_acquire;
use super::super::grants::Grant;
use super::super::hazards::{is_on_the_storage, planned_work, work_is_long};
use super::super::history::{History, has_lock, host_of, is_client, number, text};
use super::super::lives::{began, events_of, life, starts};
use super::super::operations::Op;
use super::super::shown::{answered_by, is_of_this_run};
use super::super::storage::{covers, document};
use super::Failures;

pub(super) fn check(facts: &Facts, failures: &mut Failures) {
    failures.0.extend(facts.ops.misfits.iter().cloned());
    one_at_a_time(facts, failures);
    for op in &facts.ops.all {
        names_the_lock_of_its_grant(facts, op, failures);
        failures.unless(is_under_its_own_grant(facts, op), || {
            format!("{} is under no grant of its process", op.id)
        });
    }
    for write in facts.ops.with("write") {
        carries_its_token(facts, write, failures);
        failures.unless(!is_rejected(write) || is_provoked(facts, write), || {
            format!("write {} was rejected for no reason", write.id)
        });
        failures.unless(facts.can_be_based(write), || {
            format!(
                "write {} is based on what its client cannot have read",
                write.id
            )
        });
    }
    for op in facts
        .ops
        .of_clients()
        .filter(|op| op.is("read") || op.is("write"))
    {
        tells_what_it_read_or_wrote(op, failures);
    }
    one_lock_keeps_a_document(facts, failures);
    all_say_their_base_or_none(facts, failures);
    for remark in remarks_of_grants(facts.history) {
        failures.unless(is_of_a_grant(facts, remark), || {
            format!("{remark} is of no grant of its process")
        });
    }
    rows_are_of_writes(facts, failures);
    rows_are_there_once(facts, failures);
    rows_are_of_a_reading(facts, failures);
    no_other_condition(facts, failures);
    stalls_fit_what_was_done(facts, failures);
    let may_be_short = !work_is_long(facts.history);
    failures.unless(may_be_short || works_as_planned(facts), || {
        "somebody writes sooner than the plan's work is done".to_owned()
    });
    all_have_tokens_or_none(facts, failures);
    leases_are_the_plans(facts, failures);
}

fn one_at_a_time(facts: &Facts, failures: &mut Failures) {
    let kind = |op: &Op| match op.f {
        "acquire" | "extend" | "release" | "held" => 1,
        "read" | "write" => 2,
        _ => 0,
    };
    let all: Vec<&Op> = facts.ops.of_clients().filter(|op| kind(op) > 0).collect();
    for (place, one) in all.iter().enumerate() {
        for other in &all[place + 1..] {
            let same = one.process == other.process && kind(one) == kind(other);
            let done = one.places.1.is_some_and(|end| end < other.places.0);
            failures.unless(!same || done, || {
                format!("{} and {} at a time", one.id, other.id)
            });
        }
    }
}

fn names_the_lock_of_its_grant(facts: &Facts, op: &Op, failures: &mut Failures) {
    if !["extend", "release", "held"].contains(&op.f) {
        return;
    }
    let of_grant = op
        .grant()
        .and_then(|id| facts.ops.acquire(id)?.text("lock"));
    let fits = match (op.text("lock"), of_grant) {
        (Some(named), Some(lock)) => named == lock,
        _ => true,
    };
    failures.unless(fits, || {
        format!("{} names another lock than its grant's", op.id)
    });
}

/// Whether somebody may have held a lock of whom the record does not tell.
pub fn hides_holds(facts: &Facts) -> bool {
    !facts.ops.misfits.is_empty()
        || facts
            .ops
            .all
            .iter()
            .any(|op| !is_under_its_own_grant(facts, op))
        || remarks_of_grants(facts.history).any(|remark| !is_of_a_grant(facts, remark))
}

fn is_under_its_own_grant(facts: &Facts, op: &Op) -> bool {
    let is_act = ["read", "write", "work"].contains(&op.f);
    let needs = match is_act {
        true => has_lock(facts.history),
        false => ["extend", "release"].contains(&op.f),
    };
    match op.grant() {
        None => !needs,
        Some(_) => own_acquire(&facts.ops, op).is_some_and(|acquire| {
            let answered = acquire.places.1.is_some_and(|place| place < op.places.0);
            match is_act {
                true => answered && acquire.ok(),
                false => !(answered && acquire.failed()),
            }
        }),
    }
}

fn remarks_of_grants(history: &History) -> impl Iterator<Item = &Value> {
    ["lost", "renewed"]
        .into_iter()
        .flat_map(|f| history.remarks_of(f))
}

fn is_of_a_grant(facts: &Facts, remark: &Value) -> bool {
    let t = number(remark, "t").unwrap_or_default();
    let acquire = number(remark, "grant").and_then(|id| facts.ops.acquire(id));
    acquire.is_some_and(|acquire| {
        Some(acquire.process) == text(remark, "process")
            && acquire.start <= t
            && !(acquire.failed() && acquire.last() <= t)
    })
}

fn tells_what_it_read_or_wrote(op: &Op, failures: &mut Failures) {
    let tells = !op.ok() || op.answer("version").is_u64();
    failures.unless(tells, || format!("{} tells no version", op.id));
    let tells = match op.is("write") {
        true => op.text("value").is_some(),
        false => !op.ok() || op.answer("value").is_string(),
    };
    failures.unless(tells, || format!("{} tells no value", op.id));
}

/// What is read or written of a document is under grants of one lock.
fn one_lock_keeps_a_document(facts: &Facts, failures: &mut Failures) {
    let is_about = |op: &&Op| op.is("read") || op.is("write");
    let lock_of = |op: &Op| own_acquire(&facts.ops, op).and_then(|own| own.text("lock"));
    for one in facts.ops.all.iter().filter(is_about) {
        for other in facts.ops.all.iter().filter(is_about) {
            let fits = document(one) != document(other)
                || lock_of(one)
                    .zip(lock_of(other))
                    .is_none_or(|(one, other)| one == other);
            failures.unless(fits, || {
                format!("{} and {} are under grants of two locks", one.id, other.id)
            });
        }
    }
}

fn all_say_their_base_or_none(facts: &Facts, failures: &mut Failures) {
    let says = |write: &Op| write.number("based_on").is_some();
    let some_say = facts.ops.with("write").any(says);
    for write in facts.ops.with("write") {
        failures.unless(says(write) || !some_say, || {
            format!("write {} is based on nothing, and others are not", write.id)
        });
    }
}

fn carries_its_token(facts: &Facts, write: &Op, failures: &mut Failures) {
    let granted = facts
        .grants
        .iter()
        .find(|grant| Some(grant.acquire.id) == write.grant())
        .and_then(|grant| grant.token);
    let fits = match write.number("token") {
        Some(sent) => Some(sent) == granted,
        None => !needs_tokens(facts),
    };
    failures.unless(fits, || {
        format!("write {} lacks the token of its grant", write.id)
    });
}

fn is_rejected(write: &Op) -> bool {
    write.failed() && write.answer("error") == "rejected"
}

/// Whether a write of the same document with a higher token, which was not rejected, had begun when this was rejected.
fn is_provoked(facts: &Facts, write: &Op) -> bool {
    let by_a_higher_token = |other: &Op| {
        !is_rejected(other)
            && document(other) == document(write)
            && other.number("token") > write.number("token")
            && other.start < write.last()
    };
    facts.history.version() == 1
        || needs_tokens(facts) && facts.ops.with("write").any(by_a_higher_token)
}

/// Version 1 has no `write_condition`; there the policies that fence need tokens.
fn needs_tokens(facts: &Facts) -> bool {
    let plan = facts.history.plan();
    let is_fenced = text(plan, "policy").is_some_and(|policy| policy.starts_with("fenced"));
    match facts.history.version() {
        1 => is_fenced,
        _ => text(plan, "write_condition") == Some("token"),
    }
}

fn rows_are_of_writes(facts: &Facts, failures: &mut Failures) {
    for row in &facts.storage.rows {
        let write = facts
            .ops
            .with("write")
            .find(|write| Some(write.id) == number(row.event, "op"));
        let fits = write.is_some_and(|write| {
            row.is_of(document(write))
                && write.text("value") == text(row.event, "value")
                && write.number("token") == number(row.event, "token")
        });
        failures.unless(fits, || {
            format!("a row of the log is of no write: {}", row.event)
        });
    }
}

/// Each row is told within a reading of its document's log.
fn rows_are_of_a_reading(facts: &Facts, failures: &mut Failures) {
    for row in &facts.storage.rows {
        let is_told_by = |log: &Op| {
            let told = log.places.0..log.places.1.unwrap_or(usize::MAX);
            told.contains(&row.place) && covers(log, text(row.event, "document"))
        };
        failures.unless(facts.ops.with("log").any(is_told_by), || {
            format!("a row is of no reading of the log: {}", row.event)
        });
    }
}

fn no_other_condition(facts: &Facts, failures: &mut Failures) {
    let condition = &facts.history.plan()["write_condition"];
    let is_known = condition.is_null() || condition == "token" || facts.history.version() == 1;
    failures.unless(is_known, || {
        format!("the plan has a write condition that is not known: {condition}")
    });
}

fn rows_are_there_once(facts: &Facts, failures: &mut Failures) {
    for write in facts.ops.with("write") {
        let rows = || {
            facts
                .storage
                .rows
                .iter()
                .filter(|row| number(row.event, "op") == Some(write.id))
        };
        failures.unless(rows().count() < 2, || {
            format!("the log has write {} twice", write.id)
        });
        failures.unless(
            rows().all(|row| number(row.event, "t") >= Some(write.start)),
            || format!("the log has write {} before it began", write.id),
        );
    }
}

/// Whether what else is told contradicts a recorded stall: what its process did meanwhile, or who that is.
pub fn contradicts(facts: &Facts, stall: &Value) -> bool {
    let process = text(stall, "process").unwrap_or_default();
    let (from, to) = (
        began_to_stall(stall),
        number(stall, "t").unwrap_or_default(),
    );
    if !is_client(process) {
        let host = host_of(process);
        let is_within = |op: &&Op| from < op.start && op.end.is_some_and(|end| end < to);
        let answers = answered_by(facts, host).iter().any(is_within);
        return answers || !is_of_this_run(facts.history, host);
    }
    let mut failures = Failures(Vec::new());
    match is_on_the_storage(stall) {
        true => had_asked_the_storage(facts, stall, &mut failures),
        false => has_no_events(facts, stall, &mut failures),
    }
    !failures.0.is_empty() || !is_of_this_run_and_alive(facts, process)
}

/// Whether a process is a client of the plan, in a life for which enough starts had been asked for when it began, and does
/// nothing after its death.
pub fn is_of_this_run_and_alive(facts: &Facts, process: &str) -> bool {
    let (Some(life), Some(began)) = (life(process), began(facts.history, process)) else {
        return false;
    };
    let starts = starts(facts, host_of(process));
    let asked = starts.iter().filter(|start| start.asked <= began).count();
    is_of_this_run(facts.history, host_of(process))
        && life - 1 <= asked as u64
        && !facts.undead.contains(&process)
}

/// The stalls that clients recorded of themselves. One of no length is none.
fn stalls(history: &History) -> impl Iterator<Item = &Value> {
    let is_one = |stall: &&Value| stall["on"].is_null() || is_on_the_storage(stall);
    history
        .remarks_of("stall")
        .filter(|stall| text(stall, "process").is_some_and(is_client))
        .filter(|stall| number(stall, "stalled_ns").is_some_and(|length| length > 0))
        .filter(is_one)
}

/// When a stall began.
fn began_to_stall(stall: &Value) -> u64 {
    let end = number(stall, "t").unwrap_or_default();
    end.saturating_sub(number(stall, "stalled_ns").unwrap_or_default())
}

fn stalls_fit_what_was_done(facts: &Facts, failures: &mut Failures) {
    for stall in stalls(facts.history) {
        match is_on_the_storage(stall) {
            true => had_asked_the_storage(facts, stall, failures),
            false => has_no_events(facts, stall, failures),
        }
    }
}

fn has_no_events(facts: &Facts, stall: &Value, failures: &mut Failures) {
    let (from, to) = (
        began_to_stall(stall),
        number(stall, "t").unwrap_or_default(),
    );
    let process = text(stall, "process").unwrap_or_default();
    let is_within = |t: u64| from.saturating_add(5_000_000) < t && t < to;
    let acts = events_of(facts.history, process)
        .filter_map(|event| number(event, "t"))
        .any(is_within);
    failures.unless(!acts, || format!("{process} acts within its stall"));
}

fn had_asked_the_storage(facts: &Facts, stall: &Value, failures: &mut Failures) {
    let from = began_to_stall(stall);
    let process = text(stall, "process").unwrap_or_default();
    let place = facts.history.events.iter().position(|event| event == stall);
    let is_in_flight = |op: &Op| {
        op.process == process
            && (op.is("read") || op.is("write"))
            && op.start <= from
            && Some(op.places.0) < place
            && op.places.1.is_none_or(|done| Some(done) > place)
    };
    failures.unless(facts.ops.of_clients().any(is_in_flight), || {
        format!("{process} was not waiting for the storage")
    });
}

/// Whether work is as long as the plan makes it: nobody writes within it before it has lasted that long.
pub fn works_as_planned(facts: &Facts) -> bool {
    let planned = planned_work(facts.history);
    facts.ops.with("work").all(|work| {
        let done = work.start.saturating_add(planned);
        let until = done.min(work.end.unwrap_or(done));
        let is_within = |write: &Op| (work.start..until).contains(&write.start);
        !facts
            .ops
            .with("write")
            .any(|write| write.process == work.process && is_within(write))
    })
}

/// Leases are of the plan's length, and whoever asked for one or has one knows until when.
fn leases_are_the_plans(facts: &Facts, failures: &mut Failures) {
    let planned = number(facts.history.plan(), "ttl_ms").unwrap_or(0);
    let longest = |told: u64| told.saturating_add(planned.saturating_mul(1_000_000));
    for op in &facts.ops.all {
        let asks = ["acquire", "extend"].contains(&op.f);
        let named = op.number("ttl_ms").filter(|_| asks);
        let fits = named.is_none_or(|named| match op.is("acquire") {
            true => named == planned,
            false => named <= planned,
        });
        failures.unless(fits, || {
            format!("{} asks for another TTL than the plan's", op.id)
        });
        let told = op.answer("validity").as_u64();
        if asks && op.ok() {
            failures.unless(told.is_none_or(|told| told <= longest(op.last())), || {
                format!("{} tells too long a validity", op.id)
            });
            failures.unless(named.is_none() || told.is_some(), || {
                format!("{} tells no validity", op.id)
            });
        }
    }
    for renewed in facts.history.remarks_of("renewed") {
        let at = number(renewed, "t").unwrap_or_default();
        failures.unless(number(renewed, "validity") <= Some(longest(at)), || {
            format!("a renewal tells too long a validity: {renewed}")
        });
    }
    all_have_validities_or_none(facts, failures);
}

fn all_have_validities_or_none(facts: &Facts, failures: &mut Failures) {
    let expires = |grant: &&Grant| grant.acquire.answer("validity").is_u64();
    for one in facts.grants.iter().filter(expires) {
        for other in facts.grants.iter().filter(|other| other.lock == one.lock) {
            failures.unless(expires(&other), || {
                format!(
                    "grant {} has no validity, and others have",
                    other.acquire.id
                )
            });
        }
        for extend in facts.ops.with("extend").filter(|op| op.ok()) {
            let is_of_it =
                own_acquire(&facts.ops, extend).is_some_and(|own| own.places == one.acquire.places);
            failures.unless(!is_of_it || extend.answer("validity").is_u64(), || {
                format!("extension {} tells no validity", extend.id)
            });
        }
    }
}

fn all_have_tokens_or_none(facts: &Facts, failures: &mut Failures) {
    for one in facts.grants.iter().filter(|grant| grant.token.is_some()) {
        for other in facts.grants.iter().filter(|other| other.lock == one.lock) {
            failures.unless(other.token.is_some(), || {
                format!("grant {} has no token, and others have", other.acquire.id)
            });
        }
    }
}
