//! Sequential models: what an object does when its operations come one at a time.

pub mod cas_register;
pub mod fenced_mutex;
pub mod fenced_register;
mod guess;
#[cfg(test)]
mod laws;
pub mod lease_mutex;
mod list;
pub(crate) mod locking;
pub mod map;
pub mod mutex;
pub mod non_deterministic;
pub mod owner_aware_mutex;
mod recorded;
pub mod reentrant_fenced_mutex;
pub mod reentrant_mutex;
pub mod register;
pub mod semaphore;
mod text;
mod values;

use std::fmt::Debug;
use std::hash::Hash;

use crate::linearizability::{Decision, History};

pub use guess::Seen;
pub use list::{Kind, Setup, kinds};
pub use locking::Owner;
pub use recorded::{Misfit, Outcome, Recorded, Told};
pub use text::Text;
pub use values::{Datum, Values};

/// An object whose operations come one at a time.
///
/// A history is linearizable when its calls can be put into one order, each at an instant between its invocation and its
/// return, in which every operation, with the outcome that its client saw, is a step of the model (Herlihy and Wing,
/// "Linearizability: a correctness condition for concurrent objects", 1990).
///
/// Two functions are required. A counter that is added to and read:
///
/// ```
/// use checker::linearizability::{Call, Decision, History, Limits, linearizable};
/// use checker::models::Model;
///
/// #[derive(Clone, PartialEq, Eq, Hash, Debug)]
/// enum Operation {
///     Add(i64),
///     Read(i64),
/// }
///
/// struct Counter;
///
/// impl Model for Counter {
///     type State = i64;
///     type Operation = Operation;
///
///     fn initial(&self) -> i64 {
///         0
///     }
///
///     fn step(&self, &sum: &i64, operation: &Operation) -> Option<i64> {
///         match *operation {
///             Operation::Add(amount) => sum.checked_add(amount),
///             Operation::Read(found) => (found == sum).then_some(sum),
///         }
///     }
/// }
///
/// let call = |operation, process, invoked, returned| Call {
///     operation,
///     id: u64::from(invoked),
///     process,
///     invoked,
///     returned,
///     certain: true,
/// };
/// let judge = |calls| linearizable(&Counter, &History::new(calls), &Limits::default());
/// let add = || call(Operation::Add(1), 0, 0, 2);
/// assert_eq!(judge(vec![add(), call(Operation::Read(0), 1, 1, 3)]), Decision::Linearizable);
/// let late = judge(vec![add(), call(Operation::Read(0), 1, 3, 4)]);
/// assert!(matches!(late, Decision::Violated(violation) if violation.calls == [0, 1]));
/// ```
///
/// `docs/models.md` makes a model of it that the command line knows.
pub trait Model: Sync {
    /// What the object remembers. Two states are the same when they are equal.
    type State: Clone + Eq + Hash + Debug + Send + Sync;

    /// An operation with the outcome that its client saw. Of an operation whose outcome nobody learned only that outcome
    /// is meant here which changes the state; that it may also have done nothing is said by [`Call::certain`](crate::linearizability::Call::certain).
    type Operation: Clone + Eq + Hash + Debug + Send + Sync;

    /// The state before the first operation.
    fn initial(&self) -> Self::State;

    /// The state after an operation; `None` if an object in this state does not do it with that outcome.
    fn step(&self, state: &Self::State, operation: &Self::Operation) -> Option<Self::State>;

    /// What an operation may do to the state. Searches are faster for knowing it, and no verdict depends on it.
    fn effect(&self, _operation: &Self::Operation) -> Effect {
        Effect::Depends
    }

    /// The number of the part of the object that an operation concerns. Parts are judged one by one: no operation may
    /// depend on what was done to another part.
    fn partition(&self, _operation: &Self::Operation) -> u64 {
        0
    }

    /// Whether the [outlook](Self::outlook) is ever another than open. Operations that may change the state have to be steps from
    /// every state then.
    const LOOKS_AHEAD: bool = false;

    /// What is to become of a state for an operation that observes to be a step, if any others are steps before, in any order; of
    /// those that [overwrite](Effect::Overwrites) these alone. A search that knows goes on from fewer states.
    fn outlook(
        &self,
        _state: &Self::State,
        _observed: &Self::Operation,
        _overwriting: &mut dyn Iterator<Item = &Self::Operation>,
    ) -> Outlook {
        Outlook::Open
    }

    /// The one of many things that an operation is about, such as a grant of a lock. What is about no thing concerns all of
    /// them alike, and an operation about one does not depend on which other one a state is about. The search for a
    /// violation's calls finds fewer where there are many things and it knows of them.
    fn about(&self, _operation: &Self::Operation) -> Option<u64> {
        None
    }

    /// The thing that a state is [about](Self::about).
    fn about_state(&self, _state: &Self::State) -> Option<u64> {
        None
    }

    /// What theory says of a history without a search, where it has an algorithm for that: it has to say what the search
    /// would. `None` if it has none for this history.
    fn decide(&self, _history: &History<Self::Operation>) -> Option<Decision> {
        None
    }

    /// An operation as people write it: `write 3`.
    fn describe(&self, operation: &Self::Operation) -> String {
        format!("{operation:?}")
    }

    /// A state as people write it: `held by c1`.
    fn describe_state(&self, state: &Self::State) -> String {
        format!("{state:?}")
    }
}

/// What is to become of a state for an operation to be a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It may be a step at once or after others; or that is not plain.
    Open,
    /// It is one only after another that [overwrites](Effect::Overwrites) the state.
    Overwritten,
    /// It never is one.
    Lost,
}

/// What an operation may do to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Where it is a step at all it leaves the state as it was: a read, a refused attempt.
    Observes,
    /// It is a step from every state, and always to the same one: the write of a register.
    Overwrites,
    /// Anything else.
    Depends,
}
