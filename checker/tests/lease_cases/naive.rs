//! The rules of docs/verdicts.md for certain holds, as plainly as can be: every two grants are compared.

use checker::Answer;
use serde_json::Value;

use crate::history::{Told, answer};

/// What the rules come to for one grant.
struct Grant {
    /// When its acquire was invoked, and when it returned.
    asked: (u64, u64),
    /// When it was over, by what was told until it arrived.
    over: u64,
    /// The times for which it was held, each up to but not including its end.
    holds: Vec<(u64, u64)>,
}

/// What the rules say.
pub fn judge(told: &Told) -> Answer {
    let events = told.events();
    let is_grant = |event: &&Value| event["f"] == "acquire" && event["type"] == "ok";
    let grants: Vec<Grant> = events
        .iter()
        .filter(is_grant)
        .map(|acquire| grant(events, acquire))
        .collect();
    let violated = grants.iter().enumerate().any(|(at, one)| {
        grants.iter().skip(at + 1).any(|other| {
            overlap(one, other) || arrived_within(one, other) || arrived_within(other, one)
        })
    });
    answer(violated)
}

fn overlap(one: &Grant, other: &Grant) -> bool {
    one.holds.iter().any(|hold| {
        let meets = |met: &(u64, u64)| hold.0 < met.1 && met.0 < hold.1;
        other.holds.iter().any(meets)
    })
}

/// Whether one was over when it arrived, and there was no instant from its invocation until then at which it can have been
/// granted: then it was held from that instant until it was over, if that was later.
fn arrived_within(one: &Grant, other: &Grant) -> bool {
    let (invoked, returned) = one.asked;
    let covers = |hold: &(u64, u64)| returned < hold.1 && (hold.0 < one.over || hold.0 <= invoked);
    one.over <= returned && other.holds.iter().any(covers)
}

fn grant(events: &[Value], acquire: &Value) -> Grant {
    let number = |event: &Value, field: &str| event[field].as_u64();
    let time = |event: &Value| number(event, "t").expect("a time");
    let of = |event: &&Value| invocation(events, event)["grant"] == acquire["op"];
    let end = events
        .iter()
        .filter(|event| of(event) || is_exit(event, acquire))
        .filter_map(|event| given_up(events, event))
        .min()
        .unwrap_or(u64::MAX);
    let returned = time(acquire);
    let validity = number(acquire, "validity").unwrap_or(u64::MAX);
    let (mut start, mut until) = (returned, validity);
    let mut holds = Vec::new();
    for event in events.iter().filter(of) {
        let invoked = time(invocation(events, event));
        let until_told = number(event, "validity").unwrap_or(until);
        match (event["f"].as_str(), event["type"].as_str()) {
            (Some("extend"), Some("ok")) if invoked < end => until = until_told.max(invoked),
            (Some("extend"), Some("invoke")) if completion(events, event).is_none() => {
                until = until.min(asked(event));
            }
            (Some("extend"), Some("info")) => {
                until = until.min(asked(invocation(events, event)));
            }
            (Some("renewed"), _) if invoked < end => {
                if until <= invoked {
                    holds.push((start, until.min(end)));
                    start = invoked;
                }
                until = until_told;
            }
            _ => {}
        }
    }
    holds.push((start, until.min(end)));
    holds.retain(|hold| hold.0 < hold.1);
    Grant {
        asked: (time(invocation(events, acquire)), returned),
        over: validity.min(end),
        holds,
    }
}

fn is_exit(event: &Value, acquire: &Value) -> bool {
    event["f"] == "exit" && event["process"] == acquire["process"]
}

/// Until when an extension asked for more.
fn asked(invocation: &Value) -> u64 {
    let ttl_ms = invocation["ttl_ms"].as_u64().unwrap_or(0);
    invocation["t"].as_u64().expect("a time") + ttl_ms * 1_000_000
}

/// When an event says that a client gave up a grant or learned of its loss.
fn given_up(events: &[Value], event: &Value) -> Option<u64> {
    let lost = event["lost"] == true;
    let gives_up = match (event["f"].as_str(), event["type"].as_str()) {
        (Some("lost" | "exit"), _) => true,
        (Some("extend"), Some("fail")) => lost,
        (Some("release"), Some("invoke")) => completion(events, event)
            .is_none_or(|completion| completion["type"] != "fail" || completion["lost"] == true),
        _ => false,
    };
    gives_up.then(|| event["t"].as_u64().expect("a time"))
}

fn invocation<'e>(events: &'e [Value], event: &'e Value) -> &'e Value {
    let is_its = |other: &&Value| other["op"] == event["op"] && other["type"] == "invoke";
    events.iter().find(is_its).unwrap_or(event)
}

fn completion<'e>(events: &'e [Value], event: &Value) -> Option<&'e Value> {
    let is_its = |other: &&Value| other["op"] == event["op"] && other["type"] != "invoke";
    events.iter().find(is_its)
}
