//! The violations of each property but `document` and `progress`.

use super::Facts;
use super::beliefs::Party;
use super::grants::{conflict_on_arrival, first_overlap};
use super::operations::Op;
use super::storage::{Write, document};

/// One violation: when it happened, and the parties of its witness by their places.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The instant.
    pub at: u64,
    /// The witness's parties.
    pub parties: Vec<usize>,
}

/// Certain holds of two grants of one lock overlap, or one that was over on arrival conflicts with one.
pub fn mutual_exclusion(facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (a, one) in facts.grants.iter().enumerate() {
        for (b, other) in facts.grants.iter().enumerate() {
            if a == b || one.lock != other.lock {
                continue;
            }
            let overlap = first_overlap(one, other).filter(|_| a < b);
            for at in overlap.into_iter().chain(conflict_on_arrival(one, other)) {
                found.push(Violation {
                    at,
                    parties: vec![a, b],
                });
            }
        }
    }
    found
}

/// Beliefs of two processes, or of two grants, in one lock overlap.
pub fn exclusive_belief(facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (a, one) in facts.parties.iter().enumerate() {
        for (b, other) in facts.parties.iter().enumerate().skip(a + 1) {
            let apart =
                one.process != other.process || one.grant.is_some() && other.grant.is_some();
            let same_lock = one.lock.is_some() && one.lock == other.lock;
            if apart && same_lock && one.belief.overlaps(other.belief) {
                found.push(Violation {
                    at: one.belief.from.max(other.belief.from),
                    parties: vec![a, b],
                });
            }
        }
    }
    found
}

fn began_after(facts: &Facts, later: usize, earlier: usize) -> bool {
    let (one, other) = (&facts.grants[later], &facts.grants[earlier]);
    one.lock == other.lock && facts.began[later] > other.returned
}

/// Whether the first is the later of two grants.
fn is_later(facts: &Facts, one: usize, other: usize) -> bool {
    let tokens = (facts.grants[one].token, facts.grants[other].token);
    let same_lock = facts.grants[one].lock == facts.grants[other].lock;
    let has_higher = matches!(tokens, (Some(one), Some(other)) if one > other);
    same_lock && !began_after(facts, other, one) && (began_after(facts, one, other) || has_higher)
}

/// A grant that began later has a lower token, or two share one.
pub fn token_order(facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (a, one) in facts.grants.iter().enumerate() {
        for (b, other) in facts.grants.iter().enumerate() {
            let (Some(token), Some(others)) = (one.token, other.token) else {
                continue;
            };
            let shared = a < b && one.lock == other.lock && token == others;
            if shared || token < others && began_after(facts, a, b) {
                found.push(Violation {
                    at: one.returned.max(other.returned),
                    parties: vec![a, b],
                });
            }
        }
    }
    found
}

/// The storage accepted a write of a grant after it had accepted one of a later grant.
pub fn no_stale_write(facts: &Facts) -> Vec<Violation> {
    let grant_of = |write: &Write| {
        let party = facts.party_of(&write.op)?;
        Some((party, facts.parties[party].grant?))
    };
    let mut found = Vec::new();
    for (first, second) in in_order(facts) {
        let (Some((a, one)), Some((b, other))) = (grant_of(first), grant_of(second)) else {
            continue;
        };
        if is_later(facts, one, other) {
            found.push(Violation {
                at: second.op.known_at(),
                parties: vec![a, b],
            });
        }
    }
    found
}

/// An accepted write was based on a version that another grant's accepted write had already replaced.
pub fn no_lost_update(facts: &Facts) -> Vec<Violation> {
    in_order(facts)
        .into_iter()
        .filter(|(between, late)| {
            let owner = |op: &Op| (op.process.to_owned(), op.grant());
            let base = late.op.number("based_on");
            base.is_some_and(|base| between.version > Some(base))
                && owner(&between.op) != owner(&late.op)
                && [between, late].iter().all(|w| facts.can_be_based(&w.op))
        })
        .map(|(between, late)| Violation {
            at: late.op.known_at(),
            parties: [between, late]
                .iter()
                .filter_map(|write| facts.party_of(&write.op))
                .collect(),
        })
        .collect()
}

/// All pairs of accepted writes of one document, in the order in which they were accepted.
fn in_order<'f, 'a>(facts: &'f Facts<'a>) -> Vec<(&'f Write<'a>, &'f Write<'a>)> {
    let writes = &facts.storage.writes;
    writes
        .iter()
        .flat_map(|first| writes.iter().map(move |second| (first, second)))
        .filter(|(first, second)| {
            document(&first.op) == document(&second.op)
                && first.version.is_some()
                && first.version < second.version
        })
        .collect()
}

impl Party<'_> {
    /// Whether its belief went on after its validity.
    pub fn is_outlived(&self) -> bool {
        self.validity
            .is_some_and(|validity| self.belief.to > validity)
    }
}
