//! Sequential models: what an object does when its operations come one at a time.

pub mod fenced_mutex;
pub mod lease_mutex;
mod locking;
pub mod mutex;
pub mod non_deterministic;
pub mod owner_aware_mutex;
mod recorded;
pub mod reentrant_fenced_mutex;
pub mod reentrant_mutex;
pub mod register;
pub mod semaphore;
mod values;

use std::fmt::Debug;
use std::hash::Hash;

pub use locking::Owner;
pub use recorded::{Misfit, Outcome, Recorded, Told};
pub use values::{Datum, Values};

/// An object whose operations come one at a time.
///
/// A history is linearizable when its calls can be put into one order, each at an instant between its invocation and its
/// return, in which every operation, with the outcome that its client saw, is a step of the model (Herlihy and Wing,
/// "Linearizability: a correctness condition for concurrent objects", 1990).
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

    /// Whether an operation is a step from every state, and always to the same one, as the write of a register is. Searches
    /// are faster for knowing it, and no verdict depends on it.
    fn overwrites(&self, _operation: &Self::Operation) -> bool {
        false
    }

    /// The number of the part of the object that an operation concerns. Parts are judged one by one: no operation may
    /// depend on what was done to another part.
    fn partition(&self, _operation: &Self::Operation) -> u64 {
        0
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
