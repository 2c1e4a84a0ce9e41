//! A client that a fault kills holds its grant until its last event: it lives for some time after the kill was asked for.

use super::super::Facts;
use super::super::faults::{Strike, strikes};
use super::super::grants::{Grant, grants};
use super::super::history::{number, text};
use super::super::lives::{events_of, kills};
use super::Failures;

/// Nobody was granted a lock between the instant at which a kill was asked for and the last event of who was killed, whose
/// grant would have been held still.
pub(super) fn check(facts: &Facts, failures: &mut Failures) {
    for strike in facts.strikes.iter().filter(|strike| strike.kills()) {
        let unharmed = grants_without(facts, strike);
        for grant in &facts.grants {
            let process = grant.acquire.process;
            let is_ended_by_it = kills(facts.history, strike, process)
                && grant
                    .holds
                    .iter()
                    .any(|hold| hold.to == strike.inject.start);
            let lived = strike.inject.start..last_act(facts, process);
            let is_beside = |other: &Grant| {
                other.lock == grant.lock
                    && other.acquire.process != process
                    && lived.start < other.returned
                    && lived.contains(&other.returned)
                    && is_held(&unharmed, grant, other.returned)
            };
            failures.unless(
                !(is_ended_by_it && facts.grants.iter().any(is_beside)),
                || format!("{process} was killed, lived on, and another had its lock"),
            );
        }
    }
}

/// The grants as they were if this had not struck.
fn grants_without<'a>(facts: &Facts<'a>, struck: &Strike) -> Vec<Grant<'a>> {
    let mut left = strikes(facts.history, &facts.ops);
    left.retain(|strike| strike.inject.places != struck.inject.places);
    grants(facts.history, &facts.ops, &left)
}

fn is_held(grants: &[Grant], like: &Grant, at: u64) -> bool {
    grants
        .iter()
        .filter(|grant| grant.acquire.places == like.acquire.places)
        .flat_map(|grant| &grant.holds)
        .any(|hold| (hold.from..hold.to).contains(&at))
}

/// The time of the last event of a process; an exit tells of its death and is none.
fn last_act(facts: &Facts, process: &str) -> u64 {
    events_of(facts.history, process)
        .filter(|event| text(event, "f") != Some("exit"))
        .filter_map(|event| number(event, "t"))
        .max()
        .unwrap_or(0)
}
