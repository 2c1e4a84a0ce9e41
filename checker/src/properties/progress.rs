//! `progress`: a lock that is wanted and held by nobody is granted before long.
//!
//! It is *free* while nobody holds it for certain: what a client believes holds nobody off, since a lease is over when its
//! validity is. It is *wanted* while a client is waiting for an answer, and between two attempts of a client of which
//! neither was granted, and which no other grant explains. The time before an attempt that was is not counted: nobody
//! asked, so that nothing shows that the lock could not have been had. Nor does a client want anything while a fault keeps
//! it from asking. A stall is no fault that such a time ends with: what it covers is not counted, and what is left on both
//! sides counts together. Else a busy machine, with a short stall now and then, would hide that a lock is never granted.
//!
//! It is judged during faults too. What the contract does not promise while some fault is in force is no broken promise: such
//! times are taken out when a violation is looked for that nothing excuses.

mod spans;

use histories::host_of;

use self::spans::{Span, counted_in, merged, overlaps, without};
use crate::grants::{Cuts, Interval, waits_until};
use crate::hazards::Excuse;
use crate::names::{Map, NONE};
use crate::operations::{Call, Completion, Process, Record};
use crate::properties::{Case, Finding, Property, witness};
use crate::sentences::{self, Clock, ms};
use crate::verdict::Witness;

pub(super) const PROPERTY: Property = Property {
    name: NAME,
    summary: "violated when a wanted lock that nobody holds stays ungranted for longer than its bound",
    silent: |case| {
        let unbounded = case.plan.progress_bound_ms == 0;
        case.no_locks()
            .or(unbounded.then_some("the plan has no bound for progress"))
    },
    judge,
};

const NAME: &str = "progress";

fn judge(case: &Case<'_>, cuts: &Cuts) -> Finding {
    let bound = case.plan.progress_bound_ms.saturating_mul(1_000_000);
    let mut stuck = free(case, cuts, Stalls::Pass);
    let counted = free(case, cuts, Stalls::AreTakenOut);
    stuck.retain(|span| counted_in(&counted, *span) > bound);
    if !case.complete {
        for span in &mut stuck {
            span.end = span.end.min(known_until(case.record, span.start));
        }
        stuck.retain(|span| counted_in(&counted, *span) > bound);
    }
    match stuck.iter().min_by_key(|span| (span.start, span.lock)) {
        Some(first) if case.hidden_holds => Finding::unknown(format!(
            "{} was wanted for longer than the bound, and may have been held by a grant that the record does not tell of",
            sentences::lock(case.record, first.lock)
        )),
        Some(first) => Finding::violated(describe(case, *first), stuck.len() as u64),
        None => Finding::holds(),
    }
}

/// What becomes of the times that stalls cover.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stalls {
    Pass,
    AreTakenOut,
}

/// The times in which locks were wanted and free, as far as nothing excuses them.
fn free(case: &Case<'_>, cuts: &Cuts, stalls: Stalls) -> Vec<Span> {
    let free = without(&wanted(case, stalls), held(case));
    match cuts.excuse {
        Some(excuse) => without(&free, excused(case, excuse, stalls)),
        None => free,
    }
}

/// The times in which something is about under which the contract does not promise that a lock is granted.
fn excused(case: &Case<'_>, excuse: Excuse, stalls: Stalls) -> Vec<Span> {
    let windows = case.hazards.windows.iter();
    let windows = windows.filter(|window| stalls == Stalls::AreTakenOut || !window.is_stall);
    let said = |hazard| case.contract.said(NAME, hazard).promise;
    let windows: Vec<_> = windows
        .filter(|window| window.from < window.hinders_until)
        .filter(|window| excuse.takes(said(window.hazard), window.is_shown))
        .collect();
    let of_lock = |lock: u32| {
        windows.iter().map(move |window| Span {
            lock,
            start: window.from,
            end: window.hinders_until,
        })
    };
    merged(
        (0..case.record.locks.len() as u32)
            .flat_map(of_lock)
            .collect(),
    )
}

/// In a history that is cut: until when, from `start` on, all is known that any client did. It may lack what a client
/// did after its own last event, unless the client was down by then.
fn known_until(record: &Record, start: u64) -> u64 {
    let known = |process: &Process| {
        let down = process
            .crashes
            .first_done()
            .is_some_and(|done| done <= start);
        let exited = process.exits.last() == Some(&process.last_event);
        (!down && !exited).then_some(process.last_event)
    };
    record
        .processes
        .iter()
        .filter_map(known)
        .min()
        .unwrap_or(record.end)
}

/// The times in which locks were wanted by anybody, by lock and start, apart from each other.
fn wanted(case: &Case<'_>, stalls: Stalls) -> Vec<Span> {
    let record = case.record;
    let granted = granted(case);
    let mut spans = Vec::with_capacity(record.acquires.len());
    // By process and lock: its latest attempt, if that was in vain.
    let mut in_vain: Map<(u32, u32), Call> = Map::default();
    for acquire in record
        .acquires
        .iter()
        .filter(|acquire| acquire.lock != NONE)
    {
        let (call, lock) = (&acquire.call, acquire.lock);
        let was_in_vain = call.completion != Completion::Ok;
        let end = waits_until(record, call);
        let both = |before: &Call| Span {
            lock,
            start: before.invoked,
            end,
        };
        let before = in_vain.remove(&(call.process, lock));
        let before = before.filter(|before| was_in_vain && !overlaps(&granted, both(before)));
        let start = before.map_or(call.invoked, |before| before.completed);
        let wanted = Span { lock, start, end };
        match disturbed(case, call.process, wanted, stalls) {
            disturbances if disturbances.is_empty() => spans.push(wanted),
            disturbances => spans.extend(without(&[wanted], disturbances)),
        }
        if was_in_vain {
            in_vain.insert((call.process, lock), *call);
        }
    }
    merged(spans)
}

/// The times that explain why attempts were in vain: each grant's while it was asked for, and while it was held for certain.
fn granted(case: &Case<'_>) -> Vec<Span> {
    let acquires = &case.record.acquires;
    let granted = acquires.iter().filter(|acquire| acquire.granted());
    let asked = granted.map(|acquire| Span {
        lock: acquire.lock,
        start: acquire.call.invoked,
        end: acquire.call.completed,
    });
    merged(asked.chain(held(case)).collect())
}

/// The times within a span in which a fault or a stall held up the host of a process.
fn disturbed(case: &Case<'_>, process: u32, span: Span, stalls: Stalls) -> Vec<Span> {
    let host = host_of(case.record.names.text(process));
    let all = &case.hazards.disturbances;
    let here = all.meeting(host, span.start, span.end);
    let here = here.filter(|here| stalls == Stalls::AreTakenOut || !here.is_stall);
    let here = here.filter(|here| here.from < span.end && span.start < here.until);
    let spans = here.map(|here| Span {
        lock: span.lock,
        start: here.from,
        end: here.until,
    });
    merged(spans.collect())
}

/// The times in which locks were held for certain, and were to be, likewise: that a lease is extended when it should be
/// over shows that it was not, and not that nobody had to wait for it.
fn held(case: &Case<'_>) -> Vec<Span> {
    let span = |hold: Interval| Span {
        lock: hold.lock,
        start: hold.start,
        end: hold.end,
    };
    merged(case.grants.held_in_time().map(span).collect())
}

fn describe(case: &Case<'_>, stuck: Span) -> Witness {
    let record = case.record;
    let in_vain = |row: &usize| {
        let acquire = &record.acquires[*row];
        let during =
            acquire.call.invoked <= stuck.end && waits_until(record, &acquire.call) > stuck.start;
        acquire.lock == stuck.lock && during
    };
    let attempts: Vec<usize> = (0..record.acquires.len()).filter(in_vain).collect();
    let before = |hold: &&Interval| hold.lock == stuck.lock && hold.end <= stuck.start;
    let holder = case
        .grants
        .certain
        .iter()
        .filter(before)
        .max_by_key(|hold| hold.end);
    let clock = Clock::telling(stuck.end - stuck.start);
    let since = holder.map_or_else(String::new, |hold| {
        let acquire = &record.acquires[hold.grant as usize];
        format!(
            "; {} held it before, {}",
            sentences::holder(record, acquire),
            sentences::until(acquire, hold.end, clock)
        )
    });
    let sentence = format!(
        "{} was wanted and held by nobody for {}, from {} to {}, while the bound is {} ms: {} in that time{since}",
        sentences::lock(record, stuck.lock),
        ms(stuck.end - stuck.start),
        clock.at(stuck.start),
        clock.at(stuck.end),
        case.plan.progress_bound_ms,
        sentences::count(attempts.len() as u64, "attempt"),
    );
    let ends = [attempts.first(), attempts.last()]
        .into_iter()
        .flatten()
        .map(|&row| row as u32);
    let mut rows: Vec<u32> = holder
        .map(|hold| hold.grant)
        .into_iter()
        .chain(ends)
        .collect();
    rows.dedup();
    let operations = rows
        .iter()
        .map(|&row| record.acquires[row as usize].call.op)
        .collect();
    let events = rows.iter().map(|&row| record.grant_events(row)).collect();
    let mut witness = witness(sentence, operations, events);
    witness.overlap_ms = Some((stuck.end - stuck.start) as f64 / 1e6);
    witness
}

#[cfg(test)]
mod tests {
    use histories::{Hazard, Promise};

    use super::PROPERTY;
    use crate::Class;
    use crate::timeline::{Timeline, timeline};

    const NAME: &str = PROPERTY.name;

    /// c1 holds the lock and is crashed at 100 ms; c2 asks in vain every 300 ms until `granted_at`.
    fn crashed(granted_at: u64) -> Timeline {
        let mut text = String::from(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310
             99 nemesis inject#1 step=0 fault=crash on=c1
             100 nemesis inject#1 ok step=0 fault=crash on=c1\n",
        );
        let mut op = 100;
        for t in (110..granted_at).step_by(300) {
            text += &format!("{t} c2 acquire#{op}\n{t}.5 c2 acquire#{op} fail error=busy\n");
            op += 1;
        }
        let valid = granted_at + 300;
        text += &format!(
            "{granted_at} c2 acquire#{op}\n{granted_at}.5 c2 acquire#{op} ok validity={valid}\n"
        );
        timeline(&text).planned("crash", "c1", 0)
    }

    #[test]
    fn identifies_a_lock_that_stays_stuck_after_its_holder_crashed() {
        crashed(1500).cut().witness(NAME);
        let witness = crashed(1500).witness(NAME);
        assert_eq!(witness.operations, [1, 100, 104]);
        assert_eq!(witness.overlap_ms, Some(1200.5));
        assert_eq!(
            witness.sentence,
            "lock `l` was wanted and held by nobody for 1200.5 ms, from 0.110 s to 1.310 s, while the bound is 1000 ms: \
             5 attempts in that time; c1 (grant 1) held it before, until 0.099 s, when it was crashed"
        );
    }

    #[test]
    fn spares_one_that_is_granted_in_time() {
        crashed(900).holds(NAME);
        crashed(900).cut().spares(NAME);
        // Nobody asked from 1010.5 ms on, so nothing shows that the lock could not have been had.
        crashed(1100).holds(NAME);
    }

    #[test]
    fn identifies_an_attempt_that_hangs_to_the_end_of_the_history() {
        let hangs = |end: u64| {
            timeline(&format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok
                 20 c1 release#2 grant=1
                 21 c2 acquire#3
                 {end} c1 exit#4 info"
            ))
        };
        hangs(1500).witness(NAME);
        hangs(900).holds(NAME);
    }

    #[test]
    fn a_client_that_ended_or_gave_up_wants_nothing() {
        let start = "10 c1 acquire#1\n12 c1 acquire#1 ok\n20 c1 release#2 grant=1\n21 c2 acquire#3";
        for end in [
            "500 c2 exit#9 info",
            "500 c2 acquire#3 fail error=busy",
            "500 nemesis inject#9 fault=crash on=c2",
        ] {
            timeline(&format!("{start}\n{end}\n3000 c1 exit#10 info")).spares(NAME);
        }
        timeline(&format!("{start}\n3000 c1 exit#10 info")).witness(NAME);
    }

    /// A server is paused from 21 ms on, while c2 waits for a lock that nobody holds.
    fn paused(healed_at: Option<u64>) -> Timeline {
        let heal = healed_at.map_or(String::new(), |at| {
            format!("{at} nemesis heal#2 step=0 fault=pause on=s1\n{at} nemesis heal#2 ok step=0\n")
        });
        timeline(&format!(
            "10 c1 acquire#1
             12 c1 acquire#1 ok
             20 c1 release#2 grant=1
             21 nemesis inject#1 step=0 fault=pause on=s1
             22 nemesis inject#1 ok step=0
             30 c2 acquire#3
             {heal}3000 c2 acquire#3 ok"
        ))
        .planned("pause", "s1", 100)
        .says(NAME, Promise::Promised, &[Hazard::Nothing])
    }

    #[test]
    fn is_judged_during_a_fault_as_the_contract_says() {
        let says = |healed_at, promise| {
            let history = paused(healed_at).says(NAME, promise, &[Hazard::ServerStopped]);
            history.class(NAME)
        };
        for healed_at in [Some(2100), None] {
            let limit = says(healed_at, Promise::NotPromised);
            assert_eq!(limit, Class::LimitShown, "{healed_at:?}");
            assert_eq!(says(healed_at, Promise::Promised), Class::Broken);
            assert_eq!(
                paused(healed_at).class(NAME),
                Class::Unspecified,
                "nobody said"
            );
        }
        let after_it_healed = says(Some(1500), Promise::NotPromised);
        assert_eq!(
            after_it_healed,
            Class::Broken,
            "1500 ms are too long without it"
        );
    }

    #[test]
    fn a_client_that_is_held_up_itself_wants_nothing() {
        let stalled = |more: &str| {
            timeline(&format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok
                 20 c1 release#2 grant=1
                 30 c2 acquire#3
                 {more}
                 2000 c2 acquire#3 ok"
            ))
        };
        stalled("").witness(NAME);
        stalled("1900 c2 stall#9 info stalled_ms=1800").spares(NAME);
        stalled("1900 c1 stall#9 info stalled_ms=1800").witness(NAME);
    }

    #[test]
    fn short_stalls_take_their_time_and_no_more() {
        let mut text = String::from(
            "10 c1 acquire#1
             12 c1 acquire#1 ok
             20 c1 release#2 grant=1
             30 c2 acquire#3\n",
        );
        for t in (400..1600).step_by(400) {
            text += &format!("{t} c2 stall#{} info stalled_ms=20\n", 10 + t);
        }
        let until = |t: u64| timeline(&format!("{text}{t} c2 acquire#3 ok"));
        until(1800).witness(NAME);
        until(1050).spares(NAME);
    }

    #[test]
    fn work_under_a_grant_that_is_not_known_may_be_why_a_lock_is_not_free() {
        let text = "10 c1 acquire#1
             12 c1 acquire#1 info
             13 c2 acquire#2
             2000 c2 acquire#2 fail error=busy";
        timeline(text).witness(NAME);
        let reason = timeline(text).and("20 c1 work#3 grant=1").reason(NAME);
        assert!(reason.contains("may have been held by a grant"), "{reason}");
    }

    #[test]
    fn a_history_that_is_cut_may_lack_the_grant() {
        let text = "10 c1 acquire#1
             12 c1 acquire#1 ok
             20 c1 release#2 grant=1
             30 c2 acquire#3
             2000 c2 acquire#3 fail error=busy";
        timeline(text).witness(NAME);
        timeline(text).cut().spares(NAME);
        timeline(text).and("2001 c1 read#4").cut().witness(NAME);
        timeline(text).and("500 c1 exit#4 info").cut().witness(NAME);
    }

    #[test]
    fn a_lease_holds_nobody_off_after_its_validity() {
        let text = "10 c1 acquire#1
             12 c1 acquire#1 ok validity=20
             30 c2 acquire#2
             3000 c2 acquire#2 fail error=busy
             3001 c1 read#4";
        timeline(text).witness(NAME);
        timeline(text).cut().witness(NAME);
        timeline(&text.replace("validity=20", "validity=2900")).spares(NAME);
        timeline(&text.replace("validity=20", "")).spares(NAME);
        timeline(text)
            .bound_ms(0)
            .verdict()
            .properties
            .iter()
            .for_each(|found| assert_ne!(found.name, NAME));
    }
}
