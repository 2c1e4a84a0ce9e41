//! Tokens and writes, judged pair by pair.

use std::collections::BTreeMap;

use histories::{Function, Kind};

use crate::told::{Operation, Told};

/// The grants whose token is wrong.
pub fn token_disorders(told: &Told, began: &BTreeMap<u64, u64>) -> Vec<u64> {
    let grants: Vec<_> = told
        .grants()
        .into_iter()
        .filter(|grant| grant.token.is_some())
        .collect();
    let wrong = |later: &&&Operation| {
        grants.iter().any(|earlier| {
            let before = earlier.returned() < began[&later.op];
            let returned_before = (earlier.returned(), earlier.op) < (later.returned(), later.op);
            earlier.lock == later.lock
                && ((before && earlier.token >= later.token)
                    || (returned_before && earlier.token == later.token))
        })
    };
    grants.iter().filter(wrong).map(|grant| grant.op).collect()
}

/// The accepted writes: operation and version.
pub fn accepted(told: &Told) -> Vec<(u64, u64)> {
    let mut accepted: Vec<(u64, u64)> = told
        .rows
        .iter()
        .map(|(op, version, _)| (*op, *version))
        .collect();
    accepted.extend(
        told.of_function(Function::Write)
            .filter_map(|write| Some((write.op, write.version?))),
    );
    let logged: Vec<u64> = told.rows.iter().map(|(op, ..)| *op).collect();
    for write in told
        .of_function(Function::Write)
        .filter(|write| write.outcome != Some(Kind::Ok) && !logged.contains(&write.op))
    {
        for read in told
            .operations
            .iter()
            .filter(|read| read.is(Function::Read, Kind::Ok))
        {
            let version = read.version.unwrap();
            if read.value == write.value && version > 0 {
                accepted.push((write.op, version));
            }
        }
    }
    accepted.sort_unstable();
    accepted.dedup();
    accepted
}

/// Whether grant `h` is later than grant `g`.
fn is_later(told: &Told, began: &BTreeMap<u64, u64>, h: u64, g: u64) -> bool {
    let (later, earlier) = (told.get(h), told.get(g));
    if later.lock != earlier.lock {
        return false;
    }
    if earlier.returned() < began[&h] {
        return true;
    }
    if later.returned() < began[&g] {
        return false;
    }
    matches!((later.token, earlier.token), (Some(later), Some(earlier)) if later > earlier)
}

/// The accepted writes that are stale.
pub fn stale(told: &Told, began: &BTreeMap<u64, u64>, accepted: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let is_stale = |&(op, version): &(u64, u64)| {
        let before = accepted.iter().filter(|(_, earlier)| *earlier < version);
        before.into_iter().any(
            |&(other, _)| match (told.get(op).grant, told.get(other).grant) {
                (Some(mine), Some(its)) => is_later(told, began, its, mine),
                _ => false,
            },
        )
    };
    accepted.iter().copied().filter(is_stale).collect()
}

/// The accepted writes that replaced what they had not seen.
pub fn lost_updates(told: &Told, accepted: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let writer = |op: u64| {
        let write = told.get(op);
        write
            .grant
            .map_or_else(|| write.process.clone(), |grant| grant.to_string())
    };
    let loses = |&(op, version): &(u64, u64)| {
        let based_on = told.get(op).based_on;
        let unseen = |&(other, between): &(u64, u64)| {
            based_on.is_some_and(|based_on| based_on < between)
                && between < version
                && writer(other) != writer(op)
        };
        accepted.iter().any(unseen)
    };
    accepted.iter().copied().filter(loses).collect()
}
