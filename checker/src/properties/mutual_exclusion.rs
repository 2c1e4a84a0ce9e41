//! `mutual-exclusion`: no two certain holds of one lock overlap.
//!
//! This is linearizability against a mutex whose grants end by their release, or by themselves once their validity is
//! over, in closed form: a certain hold is the time in which the service must take the grant to be held, whatever the
//! order in which it saw the requests. Two that overlap have no order; where none overlap, their order is one.

use crate::grants::{Conflict, Conflicts, Cuts, Interval, OverOnArrival};
use crate::names::NONE;
use crate::operations::NEVER;
use crate::properties::{Case, Finding, Property, witness};
use crate::sentences::{self, Clock, ms};
use crate::verdict::Witness;

pub(super) const PROPERTY: Property = Property {
    name: "mutual-exclusion",
    summary: "violated when two clients hold one lock for certain at the same time: a double holder",
    silent: |case| case.no_locks(),
    judge,
};

fn judge(case: &Case<'_>, cuts: &Cuts) -> Finding {
    let conflicts = case.grants.double_holds(case.record.locks.len(), cuts);
    found(case, &conflicts, &case.grants.certain, "certainly held")
}

/// What is found when somebody held a lock, or acted as its holder, while another did. A violation is one that began to.
pub(super) fn found(
    case: &Case<'_>,
    conflicts: &Conflicts,
    intervals: &[Interval],
    held: &str,
) -> Finding {
    let witness = match conflicts.first {
        None => return Finding::holds(),
        Some(Conflict::Overlap(there, came)) => {
            let whole = |part: Interval| {
                let same = |whole: &&Interval| {
                    (whole.op, whole.start) == (part.op, part.start)
                        && whole.process == part.process
                };
                intervals.iter().find(same).copied().unwrap_or(part)
            };
            overlap(case, whole(there), whole(came), held)
        }
        Some(Conflict::Inside(there, came)) => inside(case, there, came),
    };
    Finding::violated(witness, conflicts.count)
}

/// Two that overlap, of which the second began later.
fn overlap(case: &Case<'_>, there: Interval, came: Interval, held: &str) -> Witness {
    let record = case.record;
    // What nothing ends lasts to the history's end.
    let end = match there.end.min(came.end) {
        NEVER => record.end,
        end => end,
    };
    let lasted = end.saturating_sub(came.start);
    let clock = Clock::telling(lasted);
    let [first, second] = [there, came].map(|held| told(case, &held, clock));
    let sentence = format!(
        "{} and {} both {held} {} for {}: {}, and {}",
        first.name,
        second.name,
        sentences::lock(record, came.lock),
        ms(lasted),
        first.time,
        second.time,
    );
    let events = vec![first.events, second.events];
    let mut witness = witness(sentence, vec![there.op, came.op], events);
    witness.overlap_ms = Some(lasted as f64 / 1e6);
    witness
}

/// A grant that was over when it arrived, granted while another certainly held.
fn inside(case: &Case<'_>, there: Interval, came: OverOnArrival) -> Witness {
    let record = case.record;
    let late = &record.acquires[came.grant as usize];
    let clock = Clock::telling(there.end.min(record.end).saturating_sub(came.returned));
    let first = told(case, &there, clock);
    let sentence = format!(
        "{} was granted {} by {}, when it was over since {}, although {} certainly held it: {}",
        sentences::holder(record, late),
        sentences::lock(record, there.lock),
        clock.at(came.returned),
        clock.at(came.over),
        first.name,
        first.time,
    );
    let events = vec![first.events, record.grant_events(came.grant)];
    witness(sentence, vec![there.op, late.call.op], events)
}

/// How a sentence tells of one that held a lock, or acted as its holder.
struct Told {
    name: String,
    time: String,
    events: Vec<histories::Event<'static>>,
}

fn told(case: &Case<'_>, held: &Interval, clock: Clock) -> Told {
    let record = case.record;
    let (client, from) = (record.names.text(held.process), clock.at(held.start));
    if held.grant == NONE {
        return Told {
            name: format!("{client} (op {}, without a grant)", held.op),
            time: format!("{client} from {from}"),
            events: record.act_events(held.op),
        };
    }
    let acquire = &record.acquires[held.grant as usize];
    let name = match held.granted {
        true => sentences::holder(record, acquire),
        false => format!("{client} (acquire {}, not known to be granted)", held.op),
    };
    let until = match held.granted {
        true => sentences::until(acquire, held.end, clock),
        false => format!("until {}, by its last act", clock.at(held.end)),
    };
    let mut events = record.grant_events(held.grant);
    // An act after the grant's end is what proves it.
    if held.end != NEVER && held.end > acquire.end.at {
        events.extend(record.acts_under(held.grant, acquire.end.at));
    }
    Told {
        name,
        time: format!("{client} from {from} {until}"),
        events,
    }
}

#[cfg(test)]
mod tests {
    use super::PROPERTY;
    use crate::timeline::timeline;

    const NAME: &str = PROPERTY.name;

    #[test]
    fn identifies_two_holders_and_says_for_how_long() {
        let witness = timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok token=3 validity=310
             20 c2 acquire#2
             22.5 c2 acquire#2 ok token=4 validity=320
             200 c2 release#3 grant=2
             400 c1 release#4 grant=1",
        )
        .witness(NAME);
        assert_eq!(witness.operations, [1, 2]);
        assert_eq!(witness.overlap_ms, Some(177.5));
        assert_eq!(
            witness.sentence,
            "c1 (grant 1, token 3) and c2 (grant 2, token 4) both certainly held lock `l` for 177.5 ms: \
             c1 from 0.012 s until 0.310 s, when its validity was over, and \
             c2 from 0.022 s until 0.200 s, when it gave it back"
        );
        let shown: Vec<_> = witness
            .events
            .iter()
            .map(|event| (event.t / 1_000_000, event.op))
            .collect();
        assert_eq!(
            shown,
            [(10, 1), (12, 1), (20, 2), (22, 2), (200, 3), (400, 4)]
        );
    }

    #[test]
    fn identifies_holders_of_a_lock_without_expiry_up_to_the_end_of_the_history() {
        let history = timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok
             20 c2 acquire#2
             22 c2 acquire#2 ok
             50 c3 acquire#3",
        );
        assert_eq!(history.witness(NAME).overlap_ms, Some(28.0));
    }

    #[test]
    fn spares_a_grant_after_validity_and_one_that_touches() {
        timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310
             300 c2 acquire#2
             310 c2 acquire#2 ok validity=600
             600 c1 acquire#3
             601 c1 acquire#3 ok validity=900",
        )
        .holds(NAME);
    }

    #[test]
    fn spares_a_grant_that_was_given_back_though_the_release_is_still_in_flight() {
        timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310
             20 c1 release#2 grant=1
             25 c2 acquire#3
             26 c2 acquire#3 ok validity=310
             90 c1 release#2 info",
        )
        .holds(NAME);
    }

    #[test]
    fn every_way_to_learn_of_the_loss_ends_a_hold() {
        let ways = [
            "20 c1 lost#9 info grant=1",
            "18 c1 extend#9 grant=1\n20 c1 extend#9 fail lost=true",
            "18 c1 held#9 grant=1\n20 c1 held#9 ok held=false",
            "18 c1 write#9 grant=1 value=a\n20 c1 write#9 fail error=rejected",
            "20 c1 exit#9 info",
            "20 nemesis inject#9 fault=crash on=c1\n21 nemesis inject#9 ok",
        ];
        for way in ways {
            let text = format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok validity=310
                 {way}
                 22 c2 acquire#2
                 24 c2 acquire#2 ok validity=310"
            );
            timeline(&text).spares(NAME);
            timeline(
                &text
                    .replace("\n                 22 c2", "\n 22 c2")
                    .replace("24 c2", "30 c2"),
            )
            .spares(NAME);
        }
        let told_otherwise = [
            "18 c1 extend#9 grant=1 ttl_ms=300\n20 c1 extend#9 info",
            "18 c1 extend#9 grant=1\n20 c1 extend#9 fail",
            "18 c1 release#9 grant=1\n20 c1 release#9 fail",
            "18 c1 held#9 grant=1\n20 c1 held#9 ok held=true",
            "18 c1 write#9 grant=1 value=a\n20 c1 write#9 fail error=conflict",
            "20 c3 exit#9 info",
            "20 nemesis inject#9 fault=crash on=c1\n21 nemesis inject#9 fail",
            "20 nemesis inject#9 fault=pause on=c1\n21 nemesis inject#9 ok",
        ];
        for other in told_otherwise {
            let text = format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok validity=310
                 {other}
                 22 c2 acquire#2
                 24 c2 acquire#2 ok validity=310"
            );
            timeline(&text).witness(NAME);
        }
    }

    #[test]
    fn a_grant_taken_while_its_client_is_being_crashed_is_certain_of_nothing() {
        timeline(
            "10 c1 acquire#1
             20 nemesis inject#9 fault=crash on=c1
             21 c1 acquire#1 ok validity=310
             22 nemesis inject#9 ok
             23 c2 acquire#2
             24 c2 acquire#2 ok validity=310",
        )
        .spares(NAME);
    }

    #[test]
    fn the_next_life_of_a_restarted_client_holds_what_it_is_granted() {
        timeline(
            "10 c1 acquire#1
             11 c1 acquire#1 fail error=busy
             20 nemesis inject#9 fault=restart on=c1
             21 c1.2 acquire#2
             22 c1.2 acquire#2 ok validity=310
             23 nemesis inject#9 ok
             24 c2 acquire#3
             25 c2 acquire#3 ok validity=310",
        )
        .witness(NAME);
    }

    #[test]
    fn nobody_believes_a_process_that_goes_on_after_its_death() {
        timeline(
            "20 nemesis inject#9 fault=crash on=c1
             21 nemesis inject#9 ok
             5 c1 point#8
             30 c1 acquire#1
             31 c1 acquire#1 ok validity=310
             40 c2 acquire#2
             41 c2 acquire#2 ok validity=310",
        )
        .spares(NAME);
    }

    #[test]
    fn an_extension_that_succeeded_proves_that_there_was_no_gap() {
        let extended = |second: &str| {
            timeline(&format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok validity=100
                 90 c1 extend#2 grant=1
                 {second}"
            ))
        };
        extended(
            "95 c1 extend#2 ok validity=200\n150 c2 acquire#3\n160 c2 acquire#3 ok validity=300",
        )
        .witness(NAME);
        extended(
            "100 c2 acquire#3\n101 c2 acquire#3 ok validity=110\n110 c1 extend#2 ok validity=200",
        )
        .witness(NAME);
        // One that certainly was not done says nothing, and the validity goes on to its end.
        extended("95 c1 extend#2 fail\n97 c2 acquire#3\n98 c2 acquire#3 ok validity=300")
            .witness(NAME);
        extended("95 c1 extend#2 fail\n99 c2 acquire#3\n100 c2 acquire#3 ok validity=300")
            .holds(NAME);
    }

    #[test]
    fn an_extension_that_shortens_the_validity_may_have_done_so_since_it_was_asked_for() {
        let shortened = |before: &str, after: &str| {
            timeline(&format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok validity=100
                 {before}
                 90 c1 extend#2 grant=1
                 {after}
                 95 c1 extend#2 ok validity=91"
            ))
        };
        shortened("", "92 c2 acquire#3\n93 c2 acquire#3 ok validity=300").holds(NAME);
        shortened("14 c2 acquire#3\n15 c2 acquire#3 ok validity=100", "").witness(NAME);
    }

    #[test]
    fn a_renewal_in_the_background_keeps_a_grant() {
        let renewed = |at: u64| {
            timeline(&format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok validity=100
                 {at} c1 renewed#2 info grant=1 validity=200
                 150 c2 acquire#3
                 160 c2 acquire#3 ok validity=300"
            ))
        };
        renewed(90).witness(NAME);
        renewed(120).witness(NAME);
        timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=100
             105 c2 acquire#3
             106 c2 acquire#3 ok validity=110
             120 c1 renewed#2 info grant=1 validity=200",
        )
        .holds(NAME);
    }

    #[test]
    fn a_grant_that_was_over_on_arrival_was_one_all_the_same() {
        let inside = |until: u64| {
            timeline(&format!(
                "10 c1 acquire#1
                 20 c2 acquire#2
                 22 c2 acquire#2 ok validity={until}
                 310 c1 acquire#1 ok validity=300"
            ))
        };
        let witness = inside(400).witness(NAME);
        assert_eq!(witness.operations, [2, 1]);
        assert_eq!(
            witness.sentence,
            "c1 (grant 1) was granted lock `l` by 0.310 s, when it was over since 0.300 s, although \
             c2 (grant 2) certainly held it: c2 from 0.022 s until 0.400 s, when its validity was over"
        );
        // It may have been granted after all, late, when the other's hold was over.
        inside(310).holds(NAME);
        inside(290).holds(NAME);
        // More time that came when it was over proves nothing of the time before.
        inside(400)
            .and("320 c1 renewed#3 info grant=1 validity=600")
            .witness(NAME);
    }

    #[test]
    fn a_grant_without_expiry_ends_with_its_server() {
        let killed = |server: &str| {
            timeline(&format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok
                 20 nemesis inject#9 fault=restart on={server}
                 21 nemesis inject#9 ok
                 30 c2 acquire#2
                 32 c2 acquire#2 ok
                 50 c1 lost#8 info grant=1"
            ))
        };
        killed("s1").spares(NAME);
        killed("storage").witness(NAME);
    }

    #[test]
    fn locks_are_apart_and_attempts_of_unknown_outcome_are_left_out() {
        timeline(
            "10 c1 acquire#1 lock=a
             11 c2 acquire#2 lock=b
             12 c1 acquire#1 ok lock=a validity=310
             13 c2 acquire#2 ok lock=b validity=310
             20 c3 acquire#3 lock=a
             21 c3 acquire#3 info lock=a",
        )
        .holds(NAME);
    }

    #[test]
    fn counts_the_grants_that_came_while_another_was_held() {
        let verdict = timeline(
            "10 c1 acquire#1
             11 c1 acquire#1 ok validity=1000
             20 c2 acquire#2
             21 c2 acquire#2 ok validity=100
             200 c3 acquire#3
             201 c3 acquire#3 ok validity=400
             300 c2 acquire#4
             301 c2 acquire#4 ok validity=1200
             1100 c1 acquire#5
             1101 c1 acquire#5 ok validity=1150
             1200 c1 acquire#6
             1201 c1 acquire#6 ok validity=1250",
        )
        .verdict();
        assert_eq!(verdict.property(NAME).unwrap().violations, 4);
    }

    #[test]
    fn a_history_that_is_cut_says_nothing_of_what_a_client_did_after_its_last_event() {
        let history = "10 c1 acquire#1
             11 c1 acquire#1 ok validity=1000
             20 c2 acquire#2
             21 c2 acquire#2 ok validity=1000";
        timeline(history).cut().spares(NAME);
        timeline(&format!(
            "{history}\n22 c1 read#3 grant=1\n23 c2 read#4 grant=2"
        ))
        .cut()
        .witness(NAME);
    }
}
