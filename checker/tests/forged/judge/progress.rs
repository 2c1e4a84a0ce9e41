//! A lock that was wanted and free for longer than its bound.

use serde_json::Value;

use super::Facts;
use super::faults::{Strike, delayed};
use super::grants::Grant;
use super::hazards::{Hazard, held_at_points, stalls as stalls_of_all};
use super::history::{Ending, FOREVER, host_of, is_client, number, text};
use super::lives::{events_of, processes};
use super::operations::Op;
use super::spans::{Span, common, span, united, without};

/// A time in which a lock was wanted and free.
pub struct Free {
    whole: Span,
    /// Where it counts: where somebody who was not stalled wanted it.
    counts: Vec<Span>,
}

/// The times in which one lock was wanted and free for longer than the bound, for every lock.
pub fn too_long(facts: &Facts) -> Vec<Free> {
    let free = |lock, with_stalls| without(&wanted(facts, lock, with_stalls), &held(facts, lock));
    let of_lock = |lock| {
        let counts = free(lock, false);
        free(lock, true).into_iter().map(move |free| {
            let whole = span(free.from, free.to.min(known_until(facts, free.from)));
            let counts = common(&[whole], &counts);
            Free { whole, counts }
        })
    };
    locks(facts)
        .into_iter()
        .flat_map(of_lock)
        .filter(|free| length(&free.counts) > bound(facts))
        .collect()
}

fn length(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.length()).sum()
}

/// In a history that is cut: until when from this instant on all is known that any process did that was not down by then.
fn known_until(facts: &Facts, from: u64) -> u64 {
    if facts.history.ending != Ending::Cut {
        return FOREVER;
    }
    let last = |process: &str| {
        events_of(facts.history, process)
            .filter_map(|e| number(e, "t"))
            .max()
    };
    let up = processes(facts.history).into_iter().filter(|process| {
        let deaths = facts.deaths(process);
        let exited = deaths
            .iter()
            .any(|death| death.from == death.to && Some(death.to) == last(process));
        is_client(process) && !exited && !deaths.iter().any(|death| death.to <= from)
    });
    up.filter_map(last).min().unwrap_or(facts.end)
}

/// The plan's bound in nanoseconds.
pub fn bound(facts: &Facts) -> u64 {
    number(facts.history.plan(), "progress_bound_ms").unwrap_or(0) * 1_000_000
}

fn locks<'a>(facts: &Facts<'a>) -> Vec<&'a str> {
    let mut locks: Vec<&str> = facts.ops.with("acquire").map(lock_of).collect();
    locks.sort_unstable();
    locks.dedup();
    locks
}

fn lock_of<'a>(op: &Op<'a>) -> &'a str {
    op.text("lock").unwrap_or_default()
}

fn held(facts: &Facts, lock: &str) -> Vec<Span> {
    let grants = facts.grants.iter().filter(|grant| grant.lock == lock);
    united(grants.flat_map(held_in_time).collect())
}

/// When it was certainly held, and was to be.
fn held_in_time(grant: &Grant) -> Vec<Span> {
    without(&grant.holds, &united(grant.overdue.clone()))
}

/// Under what a client can't want anything.
const CANNOT_WANT: [&str; 4] = ["stops", "kills", "restarts", "holds-work"];

/// Whether a client can't ask the lock's servers for anything within the bound: it takes some eight packets.
fn cuts_off(facts: &Facts, strike: &Strike) -> bool {
    let is_to_servers = |does: &&Value| {
        text(does, "effect") == Some("delays-packets")
            && delayed(text(does, "to")).contains(&"client-cut-off")
    };
    strike.does.iter().filter(is_to_servers).any(|does| {
        let each = number(does, "each_ms").unwrap_or(FOREVER);
        each.saturating_mul(8_000_000) >= bound(facts)
    })
}

/// When somebody wanted it, with or without the times in which that client was stalled.
fn wanted(facts: &Facts, lock: &str, with_stalls: bool) -> Vec<Span> {
    let mut processes: Vec<&str> = facts.ops.with("acquire").map(|op| op.process).collect();
    processes.sort_unstable();
    processes.dedup();
    let all = processes.into_iter().flat_map(|process| {
        let struck: Vec<Span> = facts
            .strikes
            .iter()
            .filter(|strike| is_client(process) && strike.on.contains(&host_of(process)))
            .filter(|strike| strike.does_any(&CANNOT_WANT) || cuts_off(facts, strike))
            .map(Strike::time)
            .chain(stalls(facts, process).into_iter().filter(|_| !with_stalls))
            .collect();
        without(&wanted_by(facts, process, lock), &struck)
    });
    united(all.collect())
}

/// The recorded stalls of a process's host.
fn stalls(facts: &Facts, process: &str) -> Vec<Span> {
    stalls_of_all(facts)
        .chain(held_at_points(facts))
        .filter(|stall| stall.host.as_deref() == Some(host_of(process)))
        .map(|stall| stall.time)
        .collect()
}

fn wanted_by(facts: &Facts, process: &str, lock: &str) -> Vec<Span> {
    let attempts: Vec<&Op> = facts
        .ops
        .with("acquire")
        .filter(|op| op.process == process && lock_of(op) == lock)
        .collect();
    let death = facts.deaths(process).iter().map(|d| d.from).min();
    let end = death.unwrap_or(FOREVER).min(facts.end);
    let mut times: Vec<Span> = attempts
        .iter()
        .map(|op| span(op.start, op.end.unwrap_or(end)))
        .collect();
    times.extend(
        attempts
            .windows(2)
            .filter(|pair| pair.iter().all(|op| !op.ok()))
            .filter(|pair| {
                let tried = span(pair[0].start, pair[1].end.unwrap_or(end));
                !grants_explain(facts, lock, tried)
            })
            .map(|pair| span(pair[0].last(), pair[1].start)),
    );
    times
}

/// Whether a grant of a lock explains that nobody else was granted it in this time.
fn grants_explain(facts: &Facts, lock: &str, tried: Span) -> bool {
    let of_lock = facts.grants.iter().filter(|grant| grant.lock == lock);
    let mut times = of_lock.flat_map(|grant| {
        let asked = grant.acquire.start;
        // Whoever was granted it at the instant at which it asked had it at that instant.
        let in_flight = span(asked, grant.returned.max(asked + 1));
        held_in_time(grant).into_iter().chain([in_flight])
    });
    times.any(|time| time.overlaps(tried))
}

/// What is left of a time after the hazards of these names are taken out, on whichever host: still too long? A stall
/// takes its own time and no more: what is before it and what is after it count together.
pub fn is_still_too_long(facts: &Facts, free: &Free, taken: impl Fn(&Hazard) -> bool) -> bool {
    let of = |is_stall: bool| -> Vec<Span> {
        facts
            .hazards
            .iter()
            .filter(|hazard| hazard.is_stall == is_stall && taken(hazard))
            .map(|hazard| match hazard.name {
                "server-clock-back" => span(hazard.time.from, FOREVER),
                _ => hazard.until_healed,
            })
            .collect()
    };
    let stalls = of(true);
    without(&[free.whole], &of(false))
        .into_iter()
        .any(|left| length(&without(&common(&[left], &free.counts), &stalls)) > bound(facts))
}

/// How much of a time is in any of these.
pub fn length_in(whole: Span, times: Vec<Span>) -> u64 {
    common(&[whole], &united(times))
        .iter()
        .map(|s| s.length())
        .sum()
}
