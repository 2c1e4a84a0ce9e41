//! `mutual-exclusion`: no two certain holds of one lock overlap.
//!
//! This is linearizability against a mutex whose grants end by their release, or by themselves once their validity is
//! over, in closed form: a certain hold is the time in which the service must take the grant to be held, whatever the
//! order in which it saw the requests. Two that overlap have no order; where none overlap, their order is one.

use crate::grants::{Conflicts, Interval};
use crate::operations::NEVER;
use crate::properties::{Case, Finding, Property, witness};
use crate::sentences::{self, Clock, ms};

pub(super) const PROPERTY: Property = Property {
    name: "mutual-exclusion",
    summary: "violated when two clients hold one lock for certain at the same time: a double holder",
    silent: |case| case.no_locks(),
    judge,
};

fn judge(case: &Case<'_>) -> Finding {
    double_holder(case, &case.grants.conflicts, "certainly held")
}

/// What is found when grants were, or were not, held while others were. A violation is a grant that began to be.
pub(super) fn double_holder(case: &Case<'_>, conflicts: &Conflicts, held: &str) -> Finding {
    let Some(pair) = conflicts.first else {
        return Finding::holds();
    };
    let record = case.record;
    let overlap = overlap(case, pair);
    let clock = Clock::telling(overlap);
    let [first, second] = <[Interval; 2]>::from(pair).map(|hold| {
        let acquire = &record.acquires[hold.grant as usize];
        let (client, from) = (record.process(&acquire.call), clock.at(hold.start));
        let until = sentences::until(acquire, hold.end, clock);
        let name = sentences::holder(record, acquire);
        let events = record.grant_events(hold.grant);
        (
            acquire.call.op,
            name,
            format!("{client} from {from} {until}"),
            events,
        )
    });
    let sentence = format!(
        "{} and {} both {held} {} for {}: {}, and {}",
        first.1,
        second.1,
        sentences::lock(record, pair.1.lock),
        ms(overlap),
        first.2,
        second.2,
    );
    let mut witness = witness(sentence, vec![first.0, second.0], vec![first.3, second.3]);
    witness.overlap_ms = Some(overlap as f64 / 1e6);
    Finding::violated(witness, conflicts.grants)
}

/// For how long two holds overlap, of which the second began later, in nanoseconds. What nothing ends lasts to the
/// history's end.
fn overlap(case: &Case<'_>, (held, came): (Interval, Interval)) -> u64 {
    let end = held.end.min(came.end);
    let end = if end == NEVER { case.record.end } else { end };
    end.saturating_sub(came.start)
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
            "18 c1 extend#9 grant=1\n20 c1 extend#9 fail",
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
            "18 c1 extend#9 grant=1\n20 c1 extend#9 info",
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
    fn a_process_that_goes_on_after_its_crash_holds_what_it_is_granted_then() {
        timeline(
            "20 nemesis inject#9 fault=crash on=c1
             21 nemesis inject#9 ok
             5 c1 point#8
             30 c1 acquire#1
             31 c1 acquire#1 ok validity=310
             40 c2 acquire#2
             41 c2 acquire#2 ok validity=310",
        )
        .witness(NAME);
    }

    #[test]
    fn an_extension_counts_from_its_return_on_and_may_leave_a_gap() {
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
        .holds(NAME);
        let late = extended(
            "100 c2 acquire#3\n101 c2 acquire#3 ok validity=130\n110 c1 extend#2 ok validity=200",
        );
        let witness = late.witness(NAME);
        assert_eq!(witness.overlap_ms, Some(20.0));
        assert!(
            witness.sentence.contains("c1 from 0.110 s until 0.200 s"),
            "{}",
            witness.sentence
        );
        // One that shortens the validity to what is over already takes nothing back.
        timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=100
             14 c2 acquire#3
             15 c2 acquire#3 ok validity=100
             20 c1 extend#2 grant=1
             20 c1 extend#2 ok validity=5",
        )
        .witness(NAME);
        // One that shortens the validity may have done so before it returned.
        extended("92 c2 acquire#3\n93 c2 acquire#3 ok validity=300\n95 c1 extend#2 ok validity=91")
            .holds(NAME);
    }

    #[test]
    fn validity_that_was_over_before_the_grant_returned_counts_for_nothing() {
        timeline(
            "10 c1 acquire#1
             20 c2 acquire#2
             22 c2 acquire#2 ok validity=400
             310 c1 acquire#1 ok validity=300",
        )
        .holds(NAME);
    }

    #[test]
    fn locks_are_apart_and_attempts_of_unknown_outcome_are_left_out() {
        timeline(
            "10 c1 acquire#1 lock=a
             11 c2 acquire#2 lock=b
             12 c1 acquire#1 ok validity=310
             13 c2 acquire#2 ok validity=310
             20 c3 acquire#3 lock=a
             21 c3 acquire#3 info",
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
