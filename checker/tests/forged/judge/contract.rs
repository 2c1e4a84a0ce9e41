//! What the contract says, which hazards touch whom, and the class that follows.

use serde_json::Value;

use super::Facts;
use super::faults::{effects, hazards_of, heals, step_back};
use super::hazards::{HOLDS_UP, Hazard, work_is_long};
use super::history::{FOREVER, History, is_server, number, text};
use super::progress::{Free, is_still_too_long};
use super::properties::Violation;
use super::touches::{Touch, touches, touches_of_landing};

/// What the contract says of a property under a hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It holds.
    Promised,
    /// It need not hold.
    NotPromised,
    /// Nobody said.
    Unspecified,
}

/// The clause for this property and hazard.
pub fn promise(history: &History, property: &str, hazard: &str) -> Promise {
    let clauses = history.header["contract"].as_array();
    let says = |word: &str| {
        clauses.is_some_and(|clauses| {
            clauses.iter().any(|clause| {
                let under = clause["under"].as_array().map_or(&[][..], Vec::as_slice);
                text(clause, "property") == Some(property)
                    && text(clause, "promise") == Some(word)
                    && under.iter().any(|name| name == hazard)
            })
        })
    };
    match (says("not-promised"), says("promised")) {
        (true, false) => Promise::NotPromised,
        (false, true) => Promise::Promised,
        _ => Promise::Unspecified,
    }
}

/// Whether any clause is about this property.
pub fn speaks_of(history: &History, property: &str) -> bool {
    history.header["contract"]
        .as_array()
        .is_some_and(|clauses| {
            clauses
                .iter()
                .any(|clause| text(clause, "property") == Some(property))
        })
}

/// The class of one violation.
fn class_of(facts: &Facts, property: &str, violation: &Violation) -> &'static str {
    let touches: Vec<Touch> = violation
        .parties
        .iter()
        .flat_map(|&party| {
            let party = &facts.parties[party];
            let mut all = touches(facts, party);
            if ["no-stale-write", "no-lost-update"].contains(&property) {
                all.extend(touches_of_landing(facts, party));
            }
            all
        })
        .filter(|touch| touch.from <= violation.at)
        .collect();
    let says = |hazard: &str| promise(facts.history, property, hazard);
    let excused = touches
        .iter()
        .any(|touch| !touch.perhaps && says(touch.name) == Promise::NotPromised);
    // What touches perhaps is unclear, but where it is promised all the same.
    let unclear = touches.iter().any(|touch| match says(touch.name) {
        Promise::Unspecified => true,
        Promise::NotPromised => touch.perhaps,
        Promise::Promised => false,
    });
    match says("nothing") {
        _ if excused => "limit-shown",
        Promise::NotPromised => "limit-shown",
        _ if unclear => "unspecified",
        Promise::Unspecified => "unspecified",
        Promise::Promised => "broken",
    }
}

/// The gravest class of all violations.
pub fn gravest(facts: &Facts, property: &str, violations: &[Violation]) -> &'static str {
    let classes = violations.iter().map(|one| class_of(facts, property, one));
    graver(classes)
}

fn graver(classes: impl Iterator<Item = &'static str>) -> &'static str {
    let classes: Vec<&str> = classes.collect();
    ["broken", "unspecified", "limit-shown"]
        .into_iter()
        .find(|class| classes.contains(class))
        .expect("there is a violation")
}

/// The class of times in which a lock was wanted and free for too long.
pub fn class_of_progress(facts: &Facts, times: &[Free]) -> &'static str {
    let says = |hazard: &str| promise(facts.history, "progress", hazard);
    graver(times.iter().map(|time| {
        let limit = |hazard: &Hazard| hazard.is_shown && says(hazard.name) == Promise::NotPromised;
        if says("nothing") == Promise::NotPromised || !is_still_too_long(facts, time, limit) {
            return "limit-shown";
        }
        let not_promised = |hazard: &Hazard| says(hazard.name) != Promise::Promised;
        let unclear = says("nothing") == Promise::Unspecified;
        match unclear || !is_still_too_long(facts, time, not_promised) {
            true => "unspecified",
            false => "broken",
        }
    }))
}

/// The class of a property that holds.
pub fn class_of_holding(history: &History, property: &str) -> &'static str {
    let mut hazards = planned_hazards(history);
    hazards.push("nothing");
    let says = |word| {
        hazards
            .iter()
            .any(|hazard| promise(history, property, hazard) == word)
    };
    match (says(Promise::NotPromised), says(Promise::Unspecified)) {
        (true, _) => "limit-not-shown",
        (_, true) => "unspecified",
        _ => "kept",
    }
}

fn planned_hazards(history: &History) -> Vec<&'static str> {
    let mut all = Vec::new();
    for fault in history.planned() {
        let does = effects(history, fault);
        for name in hazards_of(&does, text(fault, "on").unwrap_or_default(), heals(fault)) {
            if !HOLDS_UP.contains(&name) || is_long(history, fault, &does) {
                all.push(name);
            }
            all.extend(step_back(name).filter(|_| heals(fault)));
        }
    }
    if work_is_long(history) {
        all.push("work-held");
    }
    if strikes_several_servers(history) {
        all.push("unforeseen");
    }
    all
}

fn strikes_several_servers(history: &History) -> bool {
    let on = history
        .planned()
        .iter()
        .filter_map(|fault| text(fault, "on"));
    let mut servers: Vec<&str> = on.filter(|on| is_server(on) || *on == "leader").collect();
    servers.sort_unstable();
    servers.dedup();
    servers.len() > 1
}

/// Whether a fault may last four fifths of the TTL; a delay of packets, an eighth of that.
fn is_long(history: &History, fault: &Value, does: &[Value]) -> bool {
    let delay = does
        .iter()
        .find(|effect| text(effect, "effect") == Some("delays-packets"));
    let lasts = match delay {
        Some(delay) => number(delay, "each_ms")
            .unwrap_or(FOREVER)
            .saturating_mul(8),
        None => longest_ms(&fault["until"]),
    };
    lasts.saturating_mul(5_000_000) >= 4 * history.ttl()
}

fn longest_ms(until: &Value) -> u64 {
    let named = match until["event"].is_null() {
        true => number(until, "after_ms").unwrap_or(FOREVER),
        false => FOREVER,
    };
    named.min(number(until, "at_most_ms").unwrap_or(FOREVER))
}
