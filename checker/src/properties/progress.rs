//! `progress`: a lock that is wanted and held by nobody is granted before long.
//!
//! Once the last fault is over and the last crashed client is down, no lock stays wanted and free for longer than the
//! plan's bound. It is *free* while no client believes that it holds it. It is *wanted* while a client is waiting for
//! an answer, and between two attempts of a client that were both answered in vain. The time before an attempt that was
//! not is not counted: nobody asked, so that nothing shows that the lock could not have been had.

use crate::faults::Quiet;
use crate::grants::{Interval, waits_until};
use crate::names::{Map, NONE};
use crate::operations::{NEVER, Process, Record};
use crate::properties::{Case, Finding, Property, witness};
use crate::sentences::{self, Clock, ms};
use crate::verdict::Witness;

pub(super) const PROPERTY: Property = Property {
    name: "progress",
    summary: "violated when a wanted lock stays ungranted for longer than its bound, once faults are over",
    silent: |case| {
        let unbounded = case.plan.progress_bound_ms == 0;
        case.no_locks()
            .or(unbounded.then_some("the plan has no bound for progress"))
    },
    judge,
};

/// A time in which a lock was wanted, or wanted and free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    lock: u32,
    start: u64,
    end: u64,
}

fn judge(case: &Case<'_>) -> Finding {
    let since = match case.faults.quiet() {
        Quiet::Since(since) => since,
        Quiet::Never(reason) => return Finding::unknown(reason),
    };
    let bound = case.plan.progress_bound_ms.saturating_mul(1_000_000);
    let free = wanted_and_free(&wanted(case.record), held(&case.grants.beliefs));
    let too_long = |span: &Span| span.end.saturating_sub(span.start) > bound;
    let undisturbed = |span: Span| Span {
        start: span.start.max(since),
        ..span
    };
    let mut stuck: Vec<Span> = free.into_iter().map(undisturbed).filter(too_long).collect();
    if !case.complete {
        if let Some(outstanding) = case.faults.outstanding() {
            let reason = format!("{outstanding} was still to come when the history was cut");
            return Finding::unknown(reason);
        }
        for span in &mut stuck {
            span.end = span.end.min(known_until(case.record, span.start));
        }
        stuck.retain(too_long);
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

/// In a history that is cut: until when, from `start` on, all is known that any client did. It may lack what a client
/// did after its own last event, unless the client was down by then.
fn known_until(record: &Record, start: u64) -> u64 {
    let known = |process: &Process| {
        let down = process.crashes.iter().any(|crash| crash.completed <= start);
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
fn wanted(record: &Record) -> Vec<Span> {
    let mut spans = Vec::with_capacity(record.acquires.len());
    // By process and lock: when its latest attempt came out in vain.
    let mut in_vain: Map<(u32, u32), u64> = Map::default();
    for acquire in record
        .acquires
        .iter()
        .filter(|acquire| acquire.lock != NONE)
    {
        let (call, lock) = (&acquire.call, acquire.lock);
        let answered_in_vain = !acquire.granted() && call.completed != NEVER;
        let before = in_vain
            .remove(&(call.process, lock))
            .filter(|_| answered_in_vain);
        let (start, end) = (before.unwrap_or(call.invoked), waits_until(record, call));
        spans.push(Span { lock, start, end });
        if answered_in_vain {
            in_vain.insert((call.process, lock), call.completed);
        }
    }
    spans.sort_unstable();
    merged(spans)
}

fn merged(spans: Vec<Span>) -> Vec<Span> {
    let mut apart: Vec<Span> = Vec::new();
    for span in spans {
        match apart
            .last_mut()
            .filter(|last| last.lock == span.lock && span.start <= last.end)
        {
            Some(last) => last.end = last.end.max(span.end),
            None => apart.push(span),
        }
    }
    apart
}

/// The times in which locks were held as somebody believed, likewise.
fn held(beliefs: &[Interval]) -> Vec<Span> {
    let span = |belief: &Interval| Span {
        lock: belief.lock,
        start: belief.start,
        end: belief.end,
    };
    merged(beliefs.iter().map(span).collect())
}

/// What is left of the wanted times when the held ones are taken out of them. Both are ordered by lock and start.
fn wanted_and_free(wanted: &[Span], held: Vec<Span>) -> Vec<Span> {
    let mut free = Vec::new();
    let mut next = 0;
    for want in wanted {
        while held
            .get(next)
            .is_some_and(|held| (held.lock, held.end) <= (want.lock, want.start))
        {
            next += 1;
        }
        let mut start = want.start;
        // A belief may reach into the next wanted time: it is left for that.
        for held in held[next..]
            .iter()
            .take_while(|held| held.lock == want.lock && held.start < want.end)
        {
            if start < held.start {
                free.push(Span {
                    start,
                    end: held.start,
                    ..*want
                });
            }
            start = held.end;
        }
        if start < want.end {
            free.push(Span { start, ..*want });
        }
    }
    free
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
    let before = |belief: &&Interval| belief.lock == stuck.lock && belief.end <= stuck.start;
    let holder = case
        .grants
        .beliefs
        .iter()
        .filter(before)
        .max_by_key(|belief| belief.end);
    let clock = Clock::telling(stuck.end - stuck.start);
    let since = match holder.map(|belief| &record.acquires[belief.grant as usize]) {
        Some(acquire) => format!(
            "; {} held it before, {}",
            sentences::holder(record, acquire),
            sentences::until(acquire, acquire.end.at, clock)
        ),
        None => String::new(),
    };
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
        .map(|belief| belief.grant)
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
    use super::PROPERTY;
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
        text += &format!("{granted_at} c2 acquire#{op}\n{granted_at}.5 c2 acquire#{op} ok\n");
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

    #[test]
    fn counts_from_the_last_healing_on() {
        let healed = |at: u64| {
            timeline(&format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok
                 20 c1 release#2 grant=1
                 21 nemesis inject#1 step=0 fault=pause on=s1
                 22 nemesis inject#1 ok step=0
                 30 c2 acquire#3
                 {at} nemesis heal#2 step=0 fault=pause on=s1
                 {at} nemesis heal#2 ok step=0
                 3000 c2 acquire#3 ok"
            ))
            .planned("pause", "s1", 100)
        };
        healed(2100).spares(NAME);
        healed(1500).witness(NAME);
    }

    #[test]
    fn says_nothing_while_a_fault_may_be_in_force() {
        let history = timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok
             20 c1 release#2 grant=1
             21 nemesis inject#1 step=0 fault=pause on=s1
             22 nemesis inject#1 ok step=0
             30 c2 acquire#3
             3000 c2 acquire#3 ok",
        )
        .planned("pause", "s1", 100);
        assert_eq!(
            history.reason(NAME),
            "fault `pause` on s1 was never seen to be over"
        );
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
        let planned = timeline(text)
            .and("2001 c1 read#4")
            .planned("pause", "c1", 100)
            .cut();
        assert_eq!(
            planned.reason(NAME),
            "fault `pause` on c1 was still to come when the history was cut"
        );
    }

    #[test]
    fn a_believed_hold_is_no_stuck_lock_even_past_the_cut_of_a_history() {
        let text = "10 c1 acquire#1
             12 c1 acquire#1 ok validity=20
             30 c2 acquire#2
             3000 c2 acquire#2 fail error=busy
             3001 c2 acquire#3";
        timeline(text).holds(NAME);
        timeline(text).cut().spares(NAME);
        timeline(text)
            .bound_ms(0)
            .verdict()
            .properties
            .iter()
            .for_each(|found| assert_ne!(found.name, NAME));
    }
}
