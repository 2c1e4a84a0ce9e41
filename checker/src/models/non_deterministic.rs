//! Models that may go several ways, as models that remember all of them.

use std::fmt::Debug;
use std::hash::Hash;

use super::Model;

/// An object that may go several ways from one state by one operation.
pub trait NonDeterministicModel: Sync {
    /// What the object remembers. The order is any that is total: it makes sets of states comparable.
    type State: Clone + Ord + Hash + Debug + Send + Sync;

    /// As [`Model::Operation`].
    type Operation: Clone + Eq + Hash + Debug + Send + Sync;

    /// The states that are possible before the first operation.
    fn initial(&self) -> Vec<Self::State>;

    /// The states that are possible after an operation, in any order; none if an object in this state does not do it.
    fn step(&self, state: &Self::State, operation: &Self::Operation) -> Vec<Self::State>;

    /// An operation as people write it.
    fn describe(&self, operation: &Self::Operation) -> String {
        format!("{operation:?}")
    }
}

/// A deterministic model of a non-deterministic one, by the powerset construction (Rabin and Scott, "Finite automata and
/// their decision problems", 1959, section 5): its state is the sorted set of the states that are possible.
///
/// Legal, with a coin that shows heads or tails and no operation to turn it:
///
/// ```text
///  A:  |- heads -|
///  B:               |- heads -|
/// ```
///
/// Illegal:
///
/// ```text
///  A:  |- heads -|
///  B:               |- tails -|
/// ```
pub struct NonDeterministic<M>(pub M);

fn set<S: Ord>(mut states: Vec<S>) -> Vec<S> {
    states.sort_unstable();
    states.dedup();
    states
}

impl<M: NonDeterministicModel> Model for NonDeterministic<M> {
    type State = Vec<M::State>;
    type Operation = M::Operation;

    fn initial(&self) -> Self::State {
        set(self.0.initial())
    }

    fn step(&self, states: &Self::State, operation: &M::Operation) -> Option<Self::State> {
        let after = states
            .iter()
            .flat_map(|state| self.0.step(state, operation))
            .collect();
        Some(set(after)).filter(|states| !states.is_empty())
    }

    fn describe(&self, operation: &M::Operation) -> String {
        self.0.describe(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Coin;

    impl NonDeterministicModel for Coin {
        type State = bool;
        type Operation = bool;

        fn initial(&self) -> Vec<bool> {
            vec![true, false, true]
        }

        fn step(&self, &state: &bool, &seen: &bool) -> Vec<bool> {
            if state == seen { vec![state] } else { vec![] }
        }
    }

    #[test]
    fn keeps_the_ways_that_remain() {
        let coin = NonDeterministic(Coin);
        assert_eq!(coin.initial(), [false, true]);
        let heads = coin.step(&coin.initial(), &true);
        assert_eq!(heads, Some(vec![true]));
        assert_eq!(coin.step(&vec![true], &false), None);
    }
}
