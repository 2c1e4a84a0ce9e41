//! `exclusive-belief`: no two clients believe at the same time that they hold one lock.
//!
//! This is linearizability against the owner-aware mutex, whose grants end only by their release or by their client's
//! learning that they are lost, yet not before the last act under them; and who acts without a grant acts all the same. Every lease violates it when its holder is paused for long: that is why one fences.

use crate::grants::{Conflicts, Cuts};
use crate::properties::mutual_exclusion::found;
use crate::properties::{Case, Finding, Property};

pub(super) const PROPERTY: Property = Property {
    name: "exclusive-belief",
    summary: "violated when two clients act as the holder of one lock at the same time, even if one's validity is over",
    silent: |case| case.no_locks(),
    judge,
};

fn judge(case: &Case<'_>, cuts: &Cuts) -> Finding {
    let beliefs = &case.grants.beliefs;
    let conflicts = Conflicts::among(beliefs, case.record.locks.len(), cuts);
    found(case, &conflicts, beliefs, "acted as the holder of")
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
             c1 from 0.012 s until 0.502 s, when a write of it was rejected, and \
             c2 from 0.402 s until 0.600 s, when it gave it back"
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
                .ends_with("c1 from 0.012 s to the end of the history, and c2 from 0.402 s to the end of the history")
        );
    }

    #[test]
    fn acting_under_an_attempt_that_failed_is_acting_as_the_holder_of_that_lock() {
        timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310
             13 c2 acquire#2
             14 c2 acquire#2 fail
             15 c3 acquire#3 lock=other
             16 c3 acquire#3 fail lock=other
             20 c2 work#4 grant=2
             30 c2 work#4 ok",
        )
        .witness(NAME);
        // Its write comes before its work, and is what overlaps.
        timeline(
            "10 c2 acquire#2
             11 c2 acquire#2 fail
             12 c1 acquire#1
             14 c1 acquire#1 ok validity=310
             13 c2 write#5 grant=2 value=a
             15 c2 write#5 ok version=1
             16 c1 release#6 grant=1
             17 c1 release#6 ok
             20 c2 work#4 grant=2
             30 c2 work#4 ok",
        )
        .witness(NAME);
    }
}
