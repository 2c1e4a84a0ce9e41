//! `exclusive-belief`: no two clients believe at the same time that they hold one lock.
//!
//! This is linearizability against the owner-aware mutex, whose grants end only by their release or by their client's
//! learning that they are lost. Every lease violates it when its holder is paused for long: that is why one fences.

use crate::grants::conflicts;
use crate::properties::mutual_exclusion::overlap;
use crate::properties::{Case, Finding, Property, witness};
use crate::sentences::{self, Clock, ms};

pub(super) const PROPERTY: Property = Property {
    name: "exclusive-belief",
    summary: "violated when two clients act as the holder of one lock at the same time, even if one's validity is over",
    silent: |case| case.no_locks(),
    judge,
};

fn judge(case: &Case<'_>) -> Finding {
    let record = case.record;
    let conflicts = conflicts(&case.grants.beliefs, record.locks.len());
    let Some((held, came)) = conflicts.first else {
        return Finding::holds();
    };
    let (first, second) = (
        &record.acquires[held.grant as usize],
        &record.acquires[came.grant as usize],
    );
    let overlap = overlap(case, held, came);
    let clock = Clock::telling(overlap);
    let sentence = format!(
        "{} and {} both acted as the holder of {} for {}: {} was granted it at {}, yet {}",
        sentences::holder(record, first),
        sentences::holder(record, second),
        sentences::lock(record, came.lock),
        ms(overlap),
        record.process(&second.call),
        clock.at(came.start),
        sentences::end_of(record, first, clock),
    );
    let operations = vec![first.call.op, second.call.op];
    let mut witness = witness(
        sentence,
        operations,
        vec![
            record.grant_events(held.grant),
            record.grant_events(came.grant),
        ],
    );
    witness.overlap_ms = Some(overlap as f64 / 1e6);
    Finding::violated(witness, conflicts.grants)
}

#[cfg(test)]
mod tests {
    use super::PROPERTY;
    use crate::timeline::timeline;

    const NAME: &str = PROPERTY.name;

    #[test]
    fn identifies_a_client_that_acts_after_its_validity() {
        let history = timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok token=3 validity=310
             400 c2 acquire#2
             402 c2 acquire#2 ok token=4 validity=700
             500 c1 write#3 grant=1 value=a
             502 c1 write#3 fail error=rejected
             600 c2 release#4 grant=2",
        );
        let witness = history.witness(NAME);
        assert_eq!(witness.operations, [1, 2]);
        assert_eq!(witness.overlap_ms, Some(100.0));
        assert_eq!(
            witness.sentence,
            "c1 (grant 1, token 3) and c2 (grant 2, token 4) both acted as the holder of lock `l` for 100.0 ms: \
             c2 was granted it at 0.402 s, yet c1 had a write rejected at 0.502 s"
        );
        history.spares("mutual-exclusion");
    }

    #[test]
    fn spares_a_client_that_learned_of_its_loss_or_died() {
        for end in [
            "390 c1 lost#9 info grant=1",
            "390 nemesis inject#9 fault=crash on=c1",
            "390 c1 release#9 grant=1",
        ] {
            timeline(&format!(
                "10 c1 acquire#1
                 12 c1 acquire#1 ok validity=310
                 {end}
                 400 c2 acquire#2
                 402 c2 acquire#2 ok validity=700"
            ))
            .spares(NAME);
        }
    }

    #[test]
    fn identifies_a_belief_that_nothing_ends() {
        let witness = timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310
             400 c2 acquire#2
             402 c2 acquire#2 ok validity=700",
        )
        .witness(NAME);
        assert_eq!(witness.overlap_ms, Some(0.0));
        assert!(
            witness
                .sentence
                .ends_with("c1 never gave it back nor learned that it had lost it")
        );
    }
}
