//! Linearizability of a history against a sequential model: whether, and if not, which few calls prove it.

pub mod brute_force;
mod check;
mod gathering;
mod history;
mod judge;
mod search;
mod stream;

pub use check::{Checked, Request, check};
pub use gathering::{Gathered, Gathering, GatheringError, Object};
pub use history::{Call, History, NEVER};
pub use judge::{Finding, Judge, Judgement, Outcome, Proof, ProvingCall, judge};
pub use search::Limits;
pub(crate) use stream::Stream;

use crate::models::Model;

/// Whether a history is linearizable against a model.
pub fn linearizable<M: Model>(
    model: &M,
    history: &History<M::Operation>,
    limits: &Limits<'_>,
) -> Decision {
    match model.decide(history) {
        None => search::search(model, history, limits),
        Some(Decision::Violated(known)) if known.alone => {
            Decision::Violated(search::prove(model, history, known, limits))
        }
        Some(decision) => decision,
    }
}

/// What is found of one object's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// There is an order of the calls that the model allows.
    Linearizable,
    /// There is none.
    Violated(Violation),
    /// It was not found out within the limits.
    Unknown {
        /// Which limit, as a fragment: `the search passed 2,000,000 states`.
        reason: String,
        /// The events before this position are linearizable.
        reached: u32,
    },
}

/// The proof that a history is not linearizable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The calls, by their index in [`History::calls`], in rising order: whether each other call did what it was told to have done or
    /// nothing, these have no order. None of them can be left out, where that could be found out.
    pub calls: Vec<usize>,
    /// Whether the calls say less: that they have no order where there are no others. Of reentrant locks and of semaphores a
    /// closed form says so, and a limit may keep the search from finding calls that say more.
    pub alone: bool,
    /// The longest prefix that is linearizable: all events before this position. The event there is the return that
    /// the model does not allow. Calls in flight there may have taken effect: for a search as they were told to later, for a
    /// closed form as if nothing were told of them yet, which differs for grants with tokens alone, and is later if at all.
    /// Where a search passed a limit after it had found the proof, it may not be the longest one, and nobody knows.
    pub prefix: u32,
    /// What went wrong, in one sentence, where an algorithm knows better than the list of calls.
    pub sentence: Option<String>,
}
