//! `token-order`: tokens rise in the order in which their grants were given, and no two grants share one.
//!
//! Of two grants that were asked for at the same time nobody knows the order, and any two tokens will do. One sweep over
//! the grants, by the earliest instant at which each can have begun, against the highest token of all that had
//! returned before: O(n log n).

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};

use crate::grants::Cuts;
use crate::names::NONE;
use crate::operations::{Acquire, NEVER};
use crate::properties::{Case, Finding, Property, witness};
use crate::sentences::{self, Clock};

pub(super) const PROPERTY: Property = Property {
    name: "token-order",
    summary: "violated when a later grant has a token that is not higher, or when two grants share a token",
    silent: |case| {
        let tokens = case
            .record
            .acquires
            .iter()
            .any(|acquire| acquire.token.is_some());
        case.no_locks()
            .or((!tokens).then_some("no grant has a token"))
    },
    judge,
};

/// A grant with a token.
#[derive(Clone, Copy)]
struct Fenced {
    lock: u32,
    token: u64,
    began: u64,
    returned: u64,
    op: u64,
    grant: u32,
    /// From when on it is left aside.
    cut: u64,
}

/// A grant whose token is wrong, and the earlier one that shows it.
struct Disorder {
    earlier: Fenced,
    later: Fenced,
}

fn judge(case: &Case<'_>, cuts: &Cuts) -> Finding {
    let fenced = |(grant, acquire): (usize, &Acquire)| {
        let cut = cuts.of(grant as u32, acquire.call.op);
        let token = acquire
            .token
            .filter(|_| acquire.granted() && acquire.call.completed < cut)?;
        let (began, returned) = (case.grants.began[grant], acquire.call.completed);
        Some(Fenced {
            lock: acquire.lock,
            token,
            began,
            returned,
            op: acquire.call.op,
            grant: grant as u32,
            cut,
        })
    };
    let mut grants: Vec<Fenced> = case
        .record
        .acquires
        .iter()
        .enumerate()
        .filter_map(fenced)
        .collect();
    let mut disorders = lower(&mut grants);
    disorders.extend(shared(&mut grants));
    // A grant may be wrong in both ways; it counts once, and the witness is the plainer one.
    disorders.sort_by_key(|disorder| {
        (
            disorder.later.returned,
            disorder.later.op,
            disorder.earlier.token,
        )
    });
    disorders.dedup_by_key(|disorder| disorder.later.grant);
    let violations = disorders.len() as u64;
    match disorders.first() {
        Some(first) => Finding::violated(describe(case, first), violations),
        None => Finding::holds(),
    }
}

/// The grants whose token is lower than that of a grant which had returned before they can have begun.
fn lower(grants: &mut [Fenced]) -> Vec<Disorder> {
    grants.sort_unstable_by_key(|grant| (grant.lock, grant.returned, grant.op));
    let by_return = grants.to_vec();
    grants.sort_unstable_by_key(|grant| (grant.lock, grant.began, grant.op));
    let mut returned = by_return.into_iter().peekable();
    let mut highest: Option<Fenced> = None;
    // Those that are left aside from some time on, by lock and that time.
    let mut for_a_time: BTreeMap<(u32, u64, u32), Fenced> = BTreeMap::new();
    let mut disorders = Vec::new();
    for later in grants.iter() {
        while let Some(earlier) =
            returned.next_if(|earlier| (earlier.lock, earlier.returned) < (later.lock, later.began))
        {
            if earlier.cut != NEVER {
                for_a_time.insert((earlier.lock, earlier.cut, earlier.grant), earlier);
                continue;
            }
            let higher =
                |highest: Fenced| highest.lock != earlier.lock || earlier.token > highest.token;
            if highest.is_none_or(higher) {
                highest = Some(earlier);
            }
        }
        let still = for_a_time.range((
            Excluded((later.lock, later.returned, NONE)),
            Included((later.lock, NEVER, NONE)),
        ));
        let mut earlier = highest.iter().chain(still.map(|(_, earlier)| earlier));
        if let Some(&earlier) =
            earlier.find(|earlier| earlier.lock == later.lock && earlier.token > later.token)
        {
            disorders.push(Disorder {
                earlier,
                later: *later,
            });
        }
    }
    disorders
}

/// The grants whose token a grant that returned before them has, too.
fn shared(grants: &mut [Fenced]) -> Vec<Disorder> {
    grants.sort_unstable_by_key(|grant| (grant.lock, grant.token, grant.returned, grant.op));
    let same = |a: &Fenced, b: &Fenced| (a.lock, a.token) == (b.lock, b.token);
    let mut disorders = Vec::new();
    for sharing in grants.chunk_by(same) {
        // Of those before it, the one that is left aside last.
        let mut last = sharing[0];
        for later in &sharing[1..] {
            if later.returned < last.cut {
                disorders.push(Disorder {
                    earlier: last,
                    later: *later,
                });
            }
            if later.cut > last.cut {
                last = *later;
            }
        }
    }
    disorders
}

fn describe(case: &Case<'_>, disorder: &Disorder) -> crate::Witness {
    let record = case.record;
    let Disorder { earlier, later } = disorder;
    let (first, second) = (
        &record.acquires[earlier.grant as usize],
        &record.acquires[later.grant as usize],
    );
    let names = (
        sentences::holder(record, first),
        sentences::holder(record, second),
    );
    let lock = sentences::lock(record, later.lock);
    let clock = Clock::telling(later.returned - earlier.returned);
    let sentence = if earlier.token == later.token {
        format!(
            "{} and {} share a token of {lock}: granted at {} and at {}",
            names.0,
            names.1,
            clock.at(earlier.returned),
            clock.at(later.returned)
        )
    } else {
        format!(
            "{} was granted {lock} at {} with a lower token than {}, granted at {} before it",
            names.1,
            clock.at(later.returned),
            names.0,
            clock.at(earlier.returned)
        )
    };
    let events = vec![
        record.grant_events(earlier.grant),
        record.grant_events(later.grant),
    ];
    witness(sentence, vec![earlier.op, later.op], events)
}

#[cfg(test)]
mod tests {
    use super::PROPERTY;
    use crate::timeline::timeline;

    const NAME: &str = PROPERTY.name;

    #[test]
    fn identifies_a_token_that_falls() {
        let witness = timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok token=7
             20 c1 release#2 grant=1
             21 c1 release#2 ok
             30 c2 acquire#3
             32 c2 acquire#3 ok token=6",
        )
        .witness(NAME);
        assert_eq!(witness.operations, [1, 3]);
        assert_eq!(
            witness.sentence,
            "c2 (grant 3, token 6) was granted lock `l` at 0.032 s with a lower token than \
             c1 (grant 1, token 7), granted at 0.012 s before it"
        );
    }

    #[test]
    fn identifies_a_token_that_two_grants_share_even_if_nobody_knows_their_order() {
        let verdict = timeline(
            "10 c1 acquire#1
             11 c2 acquire#2
             12 c1 acquire#1 ok token=7
             13 c2 acquire#2 ok token=7",
        )
        .verdict();
        let found = verdict.property(NAME).unwrap();
        assert_eq!(found.violations, 1);
        assert!(
            found
                .outcome
                .witness()
                .unwrap()
                .sentence
                .contains("share a token")
        );
    }

    #[test]
    fn spares_any_order_of_grants_that_were_asked_for_together() {
        timeline(
            "10 c1 acquire#1
             11 c2 acquire#2
             12 c1 acquire#1 ok token=8 validity=13
             14 c2 acquire#2 ok token=7 validity=14",
        )
        .holds(NAME);
    }

    #[test]
    fn identifies_a_waiter_that_was_granted_after_the_holder_with_a_lower_token() {
        // c2 asks long before; yet it cannot have been granted while c1 held.
        timeline(
            "10 c2 acquire#2
             11 c1 acquire#1
             12 c1 acquire#1 ok token=8 validity=310
             50 c1 release#3 grant=1
             60 c2 acquire#2 ok token=7 validity=310",
        )
        .witness(NAME);
    }

    #[test]
    fn leaves_out_grants_without_a_token_and_other_locks() {
        timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok token=7 validity=20
             30 c2 acquire#2
             32 c2 acquire#2 ok validity=40
             50 c2 acquire#3 lock=other
             52 c2 acquire#3 ok token=1 validity=60
             70 c2 acquire#4
             72 c2 acquire#4 ok token=8 validity=90",
        )
        .spares(NAME);
    }

    #[test]
    fn a_history_without_tokens_does_not_speak_to_it() {
        let history = timeline("10 c1 acquire#1\n12 c1 acquire#1 ok");
        assert!(history.verdict().property(NAME).is_none());
        let asked = history
            .judge(crate::Options::only([NAME]).unwrap())
            .unwrap();
        let reason = asked.property(NAME).unwrap().outcome.reason().unwrap();
        assert_eq!(
            reason,
            "the history says nothing of it: no grant has a token"
        );
    }
}
