//! How long a client acts as the holder, with a grant and without.

use super::grants::{Grant, releases};
use super::history::FOREVER;
use super::operations::{Op, Operations};
use super::spans::{Span, span};

/// A grant with the belief in it, or acts without one.
pub struct Party<'a> {
    /// Who acts.
    pub process: &'a str,
    /// Its grant, if it is one: its place among the grants.
    pub grant: Option<usize>,
    /// The lock, where it is known.
    pub lock: Option<&'a str>,
    /// How long the client acts as the holder.
    pub belief: Span,
    /// From the acquire's invocation to the end of hold and belief.
    pub lifetime: Span,
    /// Until when the grant may be relied on.
    pub validity: Option<u64>,
    /// The works and writes.
    pub acts: Vec<u64>,
    /// Whether one of them began after its client had asked to release the grant.
    pub acts_on: bool,
}

/// All parties: the grants in their order, then acts without one.
pub fn parties<'a>(ops: &Operations<'a>, grants: &[Grant<'a>]) -> Vec<Party<'a>> {
    let mut all: Vec<Party> = grants
        .iter()
        .enumerate()
        .map(|(place, grant)| of_grant(ops, place, grant))
        .collect();
    all.extend(
        ops.with("acquire")
            .filter(|op| !op.ok())
            .filter_map(|acquire| of_failed_acquire(ops, acquire)),
    );
    let strays: Vec<&Op> = acts(ops)
        .filter(|act| own_acquire(ops, act).is_none())
        .collect();
    all.extend(strays.into_iter().map(|act| of_stray(ops, act)));
    all
}

fn acts<'o, 'a>(ops: &'o Operations<'a>) -> impl Iterator<Item = &'o Op<'a>> {
    ops.all.iter().filter(|op| op.is("work") || op.is("write"))
}

/// The acquire under which something was done, if it is one of the same process that was asked for before.
pub fn own_acquire<'o, 'a>(ops: &'o Operations<'a>, act: &Op) -> Option<&'o Op<'a>> {
    ops.acquire(act.grant()?)
        .filter(|acquire| acquire.process == act.process && acquire.places.0 < act.places.0)
}

fn acts_under<'o, 'a>(ops: &'o Operations<'a>, acquire: &Op<'a>) -> Vec<&'o Op<'a>> {
    acts(ops)
        .filter(|act| own_acquire(ops, act).is_some_and(|own| own.places == acquire.places))
        .collect()
}

fn of_grant<'a>(ops: &Operations<'a>, place: usize, grant: &Grant<'a>) -> Party<'a> {
    let acts = acts_under(ops, &grant.acquire);
    let last = acts.iter().map(|act| lasts(ops, act).to).max().unwrap_or(0);
    // Who asks to release it acts no more, though nothing may come of that.
    let asked_back = ops
        .with("release")
        .filter(|op| op.grant() == Some(grant.acquire.id) && op.process == grant.acquire.process)
        .map(|op| op.start);
    let asked_back = asked_back.min().unwrap_or(FOREVER);
    let end = asked_back.min(grant.given_up).max(last);
    let held = grant.holds.iter().map(|hold| hold.to).max().unwrap_or(0);
    Party {
        process: grant.acquire.process,
        grant: Some(place),
        lock: Some(grant.lock),
        belief: span(grant.returned, end),
        lifetime: span(grant.acquire.start, end.max(held).max(grant.returned)),
        // Who tells too short a validity does not make its client late.
        validity: grant.validity.map(|told| told.max(grant.lives_until)),
        acts: acts.iter().map(|act| act.id).collect(),
        acts_on: acts.iter().any(|act| act.start > asked_back),
    }
}

fn of_failed_acquire<'a>(ops: &Operations<'a>, acquire: &Op<'a>) -> Option<Party<'a>> {
    let acts = acts_under(ops, acquire);
    let times: Vec<Span> = acts.iter().map(|act| lasts(ops, act)).collect();
    let from = times.iter().map(|time| time.from).min()?;
    let to = times.iter().map(|time| time.to).max()?;
    Some(Party {
        process: acquire.process,
        grant: None,
        lock: Some(acquire.text("lock").unwrap_or_default()),
        belief: at_least_an_instant(span(from, to)),
        lifetime: span(acquire.start, to),
        validity: None,
        acts: acts.iter().map(|act| act.id).collect(),
        acts_on: false,
    })
}

fn of_stray<'a>(ops: &Operations<'a>, act: &Op<'a>) -> Party<'a> {
    let time = at_least_an_instant(lasts(ops, act));
    Party {
        process: act.process,
        grant: None,
        lock: the_only_lock(ops),
        belief: time,
        lifetime: time,
        validity: None,
        acts: vec![act.id],
        acts_on: false,
    }
}

/// The lock, where the history has one.
fn the_only_lock<'a>(ops: &Operations<'a>) -> Option<&'a str> {
    let mut locks: Vec<&str> = ops
        .with("acquire")
        .map(|op| op.text("lock").unwrap_or_default())
        .collect();
    locks.sort_unstable();
    locks.dedup();
    match locks[..] {
        [lock] => Some(lock),
        _ => None,
    }
}

/// How long an act lasts, which may be an instant.
fn lasts(ops: &Operations, act: &Op) -> Span {
    let instant = span(act.start, act.start);
    match act.end {
        Some(end) if act.is("work") => span(act.start, end),
        Some(end) if act.ok() && !committed_by_release(ops, act, end) => span(act.start, end),
        _ => instant,
    }
}

/// Acts without a grant are beliefs all the same, however short.
fn at_least_an_instant(time: Span) -> Span {
    span(time.from, time.to.max(time.from + 1))
}

fn committed_by_release(ops: &Operations, write: &Op, end: u64) -> bool {
    own_acquire(ops, write).is_some_and(|acquire| {
        let first = releases(ops, acquire).min_by_key(|release| release.start);
        first.is_some_and(|release| {
            write.start < release.start
                && release.start <= end
                && end <= release.end.unwrap_or(FOREVER)
        })
    })
}
