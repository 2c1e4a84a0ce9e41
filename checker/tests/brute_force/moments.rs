//! Locks, judged millisecond by millisecond.

use std::collections::BTreeMap;

use histories::{Function, Kind};

use crate::random::{BOUND_MS, MS};
use crate::told::{Operation, Told};

/// By grant: for each millisecond, whether it was held from its beginning on to its end.
pub type Moments = BTreeMap<u64, Vec<bool>>;

/// As many milliseconds as anything can last.
fn horizon(told: &Told) -> u64 {
    told.end / MS + 40
}

/// Whether a client still is the holder at an instant, as far as it knows.
fn believes(told: &Told, grant: &Operation, t: u64) -> bool {
    let granted = grant.completed.unwrap();
    let of_grant = |operation: &&Operation| operation.grant == Some(grant.op);
    let ended = told.operations.iter().filter(of_grant).any(|operation| {
        match (operation.f, operation.outcome) {
            (Function::Release, _) => operation.invoked <= t,
            (Function::Extend, Some(Kind::Fail)) => operation.completed.unwrap() <= t,
            (Function::Held, Some(Kind::Ok)) => {
                operation.held == Some(false) && operation.completed.unwrap() <= t
            }
            (Function::Write, Some(Kind::Fail)) => {
                operation.rejected && operation.completed.unwrap() <= t
            }
            _ => false,
        }
    });
    let lost = told
        .losses
        .iter()
        .any(|&(lost, at)| lost == grant.op && at <= t);
    let crashed = told.crashes_of(&grant.process).any(|crash| {
        granted <= crash.completed.unwrap_or(u64::MAX) && crash.invoked.max(granted) <= t
    });
    let exited = told
        .exit_of(&grant.process)
        .is_some_and(|exit| exit >= granted && exit <= t);
    granted <= t && !ended && !lost && !crashed && !exited
}

/// Whether a grant's validity is not over at an instant.
fn is_valid(told: &Told, grant: &Operation, t: u64) -> bool {
    let mut validity = grant.validity.unwrap_or(u64::MAX);
    for extend in told.of_function(Function::Extend) {
        if extend.grant != Some(grant.op) || extend.invoked > t {
            continue;
        }
        let asked = extend
            .ttl_ms
            .map_or(u64::MAX, |ttl_ms| extend.invoked + ttl_ms * MS);
        validity = match extend.outcome {
            Some(Kind::Ok) if extend.returned() <= t => extend.validity.unwrap_or(validity),
            Some(Kind::Ok) => extend.validity.unwrap_or(validity).min(validity),
            None | Some(Kind::Info) => asked.min(validity),
            _ => validity,
        };
    }
    t < validity
}

fn moments(told: &Told, held: impl Fn(&Operation, u64) -> bool) -> Moments {
    let of = |grant: &Operation| (0..horizon(told)).map(|ms| held(grant, ms * MS)).collect();
    told.grants()
        .into_iter()
        .map(|grant| (grant.op, of(grant)))
        .collect()
}

pub fn certain_holds(told: &Told) -> Moments {
    moments(told, |grant, t| {
        believes(told, grant, t) && is_valid(told, grant, t)
    })
}

pub fn beliefs(told: &Told) -> Moments {
    moments(told, |grant, t| believes(told, grant, t))
}

/// Whether two grants are held in one millisecond.
pub fn overlap(held: &Moments, one: u64, other: u64) -> bool {
    held[&one]
        .iter()
        .zip(&held[&other])
        .any(|(one, other)| *one && *other)
}

fn exclusive(told: &Told, held: &Moments, lock: &str) -> bool {
    let grants: Vec<_> = told
        .grants()
        .into_iter()
        .filter(|grant| grant.lock == lock)
        .collect();
    let pairs = grants
        .iter()
        .flat_map(|one| grants.iter().map(move |other| (one.op, other.op)));
    !pairs
        .filter(|(one, other)| one < other)
        .any(|(one, other)| overlap(held, one, other))
}

/// The grants that begin to be held while another of their lock is; of two that begin together, the one that ends last.
pub fn late(told: &Told, held: &Moments) -> Vec<u64> {
    let grants = told.grants();
    let is_late = |grant: &&&Operation| {
        let others = || {
            grants
                .iter()
                .filter(|other| other.lock == grant.lock && other.op != grant.op)
        };
        runs(&held[&grant.op]).into_iter().any(|run| {
            let before = |other: &u64, its: (usize, usize)| {
                its.0 <= run.0 && run.0 < its.1 && (its.0, its.1, *other) < (run.0, run.1, grant.op)
            };
            others().any(|other| {
                runs(&held[&other.op])
                    .into_iter()
                    .any(|its| before(&other.op, its))
            })
        })
    };
    grants
        .iter()
        .filter(is_late)
        .map(|grant| grant.op)
        .collect()
}

/// From when to when something is held, over and over.
fn runs(held: &[bool]) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut start = None;
    for (ms, held) in held.iter().chain([&false]).enumerate() {
        match (start, held) {
            (None, true) => start = Some(ms),
            (Some(began), false) => {
                runs.push((began, ms));
                start = None;
            }
            _ => {}
        }
    }
    runs
}

/// By acquire: when its grant can have begun at the earliest.
pub fn began(told: &Told, holds: &Moments) -> BTreeMap<u64, u64> {
    let began = |acquire: &Operation| {
        let certain = acquire.outcome == Some(Kind::Ok)
            && holds[&acquire.op][(acquire.completed.unwrap() / MS) as usize]
            && exclusive(told, holds, &acquire.lock);
        if !certain {
            return acquire.invoked;
        }
        let others = told
            .grants()
            .into_iter()
            .filter(|grant| grant.lock == acquire.lock && grant.op != acquire.op);
        let held_before = |grant: &Operation| {
            let before = 0..acquire.completed.unwrap() / MS;
            before
                .rev()
                .find(|&ms| holds[&grant.op][ms as usize])
                .map_or(0, |ms| (ms + 1) * MS)
        };
        others
            .map(held_before)
            .max()
            .unwrap_or(0)
            .max(acquire.invoked)
    };
    told.of_function(Function::Acquire)
        .map(|acquire| (acquire.op, began(acquire)))
        .collect()
}

/// Until when a client waits for the answer to an acquire.
fn answered(told: &Told, acquire: &Operation) -> u64 {
    if let Some(completed) = acquire.completed {
        return completed;
    }
    let crashes = told
        .crashes_of(&acquire.process)
        .filter(|crash| acquire.invoked <= crash.completed.unwrap_or(u64::MAX))
        .map(|crash| crash.invoked.max(acquire.invoked));
    let exit = told
        .exit_of(&acquire.process)
        .filter(|&exit| exit >= acquire.invoked);
    crashes.chain(exit).min().unwrap_or(told.end)
}

/// Whether a lock is wanted and free for longer than the bound.
pub fn stuck(told: &Told, beliefs: &Moments) -> bool {
    let mut quiet = 0;
    for crash in told.crashes.iter().filter(|crash| !crash.failed) {
        match crash.completed {
            Some(completed) => quiet = quiet.max(completed),
            None => return false,
        }
    }
    ["l", "other"].iter().any(|lock| {
        let mut run = 0;
        (quiet / MS..horizon(told)).any(|ms| {
            let held = told
                .grants()
                .iter()
                .any(|grant| grant.lock == *lock && beliefs[&grant.op][ms as usize]);
            run = if !held && wanted(told, lock, ms * MS) {
                run + 1
            } else {
                0
            };
            run > BOUND_MS
        })
    })
}

/// Whether anybody wants a lock in the millisecond from an instant on.
fn wanted(told: &Told, lock: &str, t: u64) -> bool {
    let attempts: Vec<_> = told
        .of_function(Function::Acquire)
        .filter(|acquire| acquire.lock == lock)
        .collect();
    let in_flight = |acquire: &&&Operation| acquire.invoked <= t && t < answered(told, acquire);
    let between = |acquire: &&&Operation| {
        let next = attempts
            .iter()
            .find(|next| next.process == acquire.process && next.op > acquire.op);
        let in_vain =
            !acquire.is(Function::Acquire, Kind::Ok) && acquire.completed.is_some_and(|at| at <= t);
        let again = |next: &&Operation| {
            t < next.invoked && matches!(next.outcome, Some(Kind::Fail | Kind::Info))
        };
        in_vain && next.is_some_and(again)
    };
    attempts
        .iter()
        .find(in_flight)
        .or_else(|| attempts.iter().find(between))
        .is_some()
}
