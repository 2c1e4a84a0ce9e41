//! Whether a fault is shown: it is the one that was planned, its evidence says so, and nothing contradicts it.

use serde_json::{Value, json};

use super::Facts;
use super::faults::{Strike, does_the_same, effects, hosts, planned_step};
use super::history::{FOREVER, History, host_of, is_client, is_server, number, text};
use super::lives::{began, events_of, processes};
use super::operations::Op;
use super::spans::{Span, span};

/// Whether a fault is shown; what is not touches only perhaps.
pub fn is_shown(facts: &Facts, strike: &Strike) -> bool {
    let inject = &strike.inject;
    is_as_planned(facts.history, inject)
        && !was_injected_before(facts, inject)
        && evidence_shows_it(facts.history, inject)
        && was_due(facts, inject)
        && strike
            .on
            .iter()
            .all(|host| is_of_this_run(facts.history, host))
        && delays_to_hosts_of_this_run(facts.history, strike)
        && does_what_he_cannot(facts, strike).is_empty()
}

/// Whether an injection is the planned one, by its invocation and by its completion.
pub fn is_as_planned(history: &History, inject: &Op) -> bool {
    let Some(fault) = planned_step(history, inject) else {
        return false;
    };
    [Some(inject.invoke), inject.done]
        .into_iter()
        .flatten()
        .all(|event| {
            let same =
                |field: &str, wanted: &Value| event[field].is_null() || event[field] == *wanted;
            let on = text(fault, "on").unwrap_or_default();
            let does = effects(history, fault);
            same("step", &inject.invoke["step"])
                && same("fault", &fault["fault"])
                && (history.version() == 1 || does_the_same(event, &does))
                && (event["on"].is_null() || strikes_as_planned(&hosts(event), on))
        })
}

fn strikes_as_planned(struck: &[&str], planned: &str) -> bool {
    match struck {
        [host] if planned == "leader" => is_server(host),
        _ => struck == [planned],
    }
}

/// Whether the planned fault had been injected already: one more is not planned.
fn was_injected_before(facts: &Facts, inject: &Op) -> bool {
    facts.ops.with("inject").any(|other| {
        other.invoke["step"] == inject.invoke["step"]
            && other.places.0 < inject.places.0
            && !other.failed()
    })
}

/// Whether it completed `ok`, with the evidence that the plan asks for.
pub fn evidence_shows_it(history: &History, inject: &Op) -> bool {
    inject.ok()
        && planned_step(history, inject)
            .is_none_or(|fault| shows(history, fault, inject.answer("evidence")))
}

fn shows(history: &History, fault: &Value, evidence: &Value) -> bool {
    let asked = match history.version() {
        1 => shown_by_version_1(fault),
        _ => fault["shows"].clone(),
    };
    let asked = asked.as_object().cloned().unwrap_or_default();
    !asked.is_empty()
        && asked
            .iter()
            .all(|(field, condition)| meets(evidence, field, condition))
}

fn shown_by_version_1(fault: &Value) -> Value {
    match text(fault, "fault") {
        Some("pause") => json!({"states": {"only": "T"}}),
        Some("crash") => json!({"ended": {}}),
        Some("restart") => json!({"pid": {"differs_from": "pid_before"}}),
        Some("delay") => json!({"packets": {"at_least": 1}}),
        Some("long-work") => json!({"completed_meanwhile": {"equals": 0}}),
        Some("clock-step") => {
            let step = fault["with"]["step_ms"].as_i64().unwrap_or(0);
            json!({"measured_step_ms": {"near": step, "within": step.unsigned_abs() as f64 / 2.0}})
        }
        _ => Value::Null,
    }
}

fn meets(evidence: &Value, field: &str, condition: &Value) -> bool {
    let found = &evidence[field];
    let number = |value: &Value| value.as_f64();
    let condition = condition.as_object().cloned().unwrap_or_default();
    !found.is_null()
        && condition.iter().all(|(word, wanted)| match word.as_str() {
            "only" => found.as_str().is_some_and(|text| {
                !text.is_empty()
                    && text
                        .chars()
                        .all(|c| Some(c.to_string().as_str()) == wanted.as_str())
            }),
            "at_least" => number(found) >= number(wanted) && number(found).is_some(),
            "equals" => {
                found == wanted || number(found).is_some() && number(found) == number(wanted)
            }
            "near" => match (number(found), number(wanted), number(&condition["within"])) {
                (Some(found), Some(near), Some(within)) => (found - near).abs() <= within,
                _ => false,
            },
            "within" => true,
            "differs_from" => {
                let other = &evidence[wanted.as_str().unwrap_or_default()];
                !other.is_null() && other != found
            }
            _ => false,
        })
}

/// Whether an injection was asked for when what it was to wait for had come, and its client was still at its point.
pub fn was_due(facts: &Facts, inject: &Op) -> bool {
    let Some(fault) = planned_step(facts.history, inject) else {
        return true;
    };
    let when = &fault["when"];
    match text(when, "trigger") {
        Some("time") => {
            let after = number(when, "after_ms").unwrap_or(0);
            inject.start >= after.saturating_mul(1_000_000)
        }
        Some("point") => facts.ops.with("point").any(|op| {
            let at_it = op.start..=op.end.unwrap_or(FOREVER);
            Some(host_of(op.process)) == text(when, "client")
                && op.text("point") == text(when, "point")
                && op.number("nth") == number(when, "nth_grant")
                && at_it.contains(&inject.start)
        }),
        _ => facts.ops.of_clients().any(|op| {
            Some(host_of(op.process)) == text(when, "client")
                && Some(op.f) == text(when, "f")
                && Some(op.kind) == text(when, "outcome")
                && op.last() <= inject.start
                && earlier_were_asked_for(facts, inject, op.last())
        }),
    }
}

/// Whether all faults that the plan has before this one had been asked for by then.
fn earlier_were_asked_for(facts: &Facts, inject: &Op, by: u64) -> bool {
    let step = inject.number("step").unwrap_or(0);
    (0..step).all(|earlier| {
        let mut injections = facts.ops.with("inject");
        injections.any(|op| op.number("step") == Some(earlier) && op.start <= by)
    })
}

/// Whether a host is a client of the plan, or one that the header names, if it names any.
pub fn is_of_this_run(history: &History, host: &str) -> bool {
    if is_client(host) {
        let clients = number(history.plan(), "clients").unwrap_or(0);
        return (1..=clients).any(|number| host == format!("c{number}"));
    }
    let named: Vec<&String> = ["servers", "images"]
        .into_iter()
        .filter_map(|field| history.header[field].as_object())
        .flat_map(|named| named.keys())
        .collect();
    let is_host = is_server(host) || host == "storage";
    is_host && (named.is_empty() || named.iter().any(|name| *name == host))
}

/// Whether packets are delayed to hosts of this run, or to all.
pub fn delays_to_hosts_of_this_run(history: &History, strike: &Strike) -> bool {
    let delays = |does: &&Value| text(does, "effect") == Some("delays-packets");
    strike
        .does
        .iter()
        .filter(delays)
        .all(|does| match &does["to"] {
            Value::Null => true,
            Value::String(to) => {
                ["servers", "leader"].contains(&to.as_str()) || is_of_this_run(history, to)
            }
            _ => false,
        })
}

/// What nobody can have answered but one host: the storage, or the only server of the lock.
pub fn answered_by<'f, 'a>(facts: &'f Facts<'a>, host: &str) -> Vec<&'f Op<'a>> {
    let hosts = ["servers", "images"].map(|field| facts.history.header[field].as_object());
    let mut servers: Vec<&String> = hosts
        .into_iter()
        .flatten()
        .flat_map(|hosts| hosts.keys())
        .filter(|name| is_server(name))
        .collect();
    servers.sort();
    servers.dedup();
    let is_answer: fn(&Op) -> bool = match host {
        "storage" => |op| op.ok() && (op.is("read") || op.is("write")),
        _ if servers == [host] => is_answer_of_the_lock,
        _ => |_| false,
    };
    let all = facts.ops.all.iter();
    all.filter(|op| is_answer(op)).collect()
}

/// Whether the lock's servers answered: that another has the lock is an answer too.
fn is_answer_of_the_lock(op: &Op) -> bool {
    let is_busy = op.is("acquire") && op.failed() && op.answer("error") == "busy";
    let is_asked = ["acquire", "extend", "release"].iter().any(|f| op.is(f));
    is_asked && (op.ok() || is_busy)
}

/// Who is stopped does nothing at all, whose work is held no work, and a server that stands still or is down answers
/// nobody. Says who does it all the same.
pub fn does_what_he_cannot(facts: &Facts, strike: &Strike) -> Vec<String> {
    let Some(from) = strike.took_hold() else {
        return Vec::new();
    };
    let to = strike.healed.map_or(FOREVER, |(start, _)| start);
    let mut said = Vec::new();
    for host in strike
        .on
        .iter()
        .filter(|_| strike.does_any(&["stops", "kills"]))
    {
        let is_within = |op: &&Op| from < op.start && op.end.is_some_and(|end| end < to);
        if answered_by(facts, host).iter().any(is_within) {
            said.push(format!("{host} answers while it cannot"));
        }
    }
    said.extend(comes_too_soon(facts, strike, span(from, to)));
    for process in struck_processes(facts, strike) {
        let does = |is_it: fn(&Value) -> bool| {
            events_of(facts.history, process)
                .filter(|event| is_it(event))
                .filter_map(|event| number(event, "t"))
                .any(|t| from < t && t < to)
        };
        if strike.does_any(&["stops"]) && does(is_of_the_living) {
            said.push(format!("{process} acts while it is stopped"));
        }
        if strike.does_any(&["holds-work"]) && does(is_work) {
            said.push(format!("{process} works while its work is held"));
        }
    }
    said
}

/// Answers that contradict a delay of packets: they came in less than half of the time by which each packet is delayed.
fn comes_too_soon(facts: &Facts, strike: &Strike, time: Span) -> Vec<String> {
    let mut said = Vec::new();
    let delays = |does: &&Value| text(does, "effect") == Some("delays-packets");
    for does in strike.does.iter().filter(delays) {
        let Some(each) = number(does, "each_ms") else {
            continue;
        };
        let half = each.saturating_mul(1_000_000) / 2;
        for host in strike.on.iter().filter(|host| is_client(host)) {
            let is_too_soon = |op: &&&Op| {
                host_of(op.process) == *host
                    && time.from < op.start
                    && op
                        .end
                        .is_some_and(|end| end < time.to && end - op.start < half)
            };
            for op in answered_by_those(facts, text(does, "to"))
                .iter()
                .filter(is_too_soon)
            {
                said.push(format!("{} comes too soon", op.id));
            }
        }
    }
    said
}

/// What was answered by those to whom packets are held: the storage, the lock's only server, all servers, or all.
fn answered_by_those<'f, 'a>(facts: &'f Facts<'a>, to: Option<&str>) -> Vec<&'f Op<'a>> {
    let of_lock = || facts.ops.all.iter().filter(|op| is_answer_of_the_lock(op));
    match to {
        Some("servers") => of_lock().collect(),
        Some(host) => answered_by(facts, host),
        None => {
            let mut all = answered_by(facts, "storage");
            all.extend(of_lock());
            all
        }
    }
}

/// The processes of clients that were there when a fault struck their host.
fn struck_processes<'a>(facts: &Facts<'a>, strike: &Strike) -> Vec<&'a str> {
    let is_struck = |process: &&str| {
        is_client(process)
            && strike.on.contains(&host_of(process))
            && began(facts.history, process) <= Some(strike.inject.start)
    };
    let all = processes(facts.history);
    all.into_iter().filter(is_struck).collect()
}

fn is_of_the_living(event: &Value) -> bool {
    text(event, "f") != Some("exit")
}

pub fn is_work(event: &Value) -> bool {
    let work = ["acquire", "read", "write", "work", "release"];
    work.contains(&text(event, "f").unwrap_or_default())
}
