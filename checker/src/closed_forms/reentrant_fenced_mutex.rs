//! The closed form of the reentrant fenced mutex.

use super::fenced_mutex::knows_token_of_unknown;
use super::lock::Kind;
use super::reentrant::Reentrant;
use super::replay::Action;
use crate::linearizability::{Decision, History};
use crate::models::Model;
use crate::models::fenced_mutex::Operation;
use crate::models::reentrant_fenced_mutex::ReentrantFencedMutex;

/// Whether a history is linearizable against a reentrant fenced mutex: exactly when the outermost acquires and releases are
/// against a [fenced mutex](super::fenced_mutex::decide), and each reentry repeats the token of its hold.
///
/// `None` also where the depth is bounded, a refusal counts, or an owner goes on after a call of unknown outcome. The
/// calls of a violation have no order alone; with others free to have done nothing, they may have one.
pub fn decide(model: &ReentrantFencedMutex, history: &History<Operation>) -> Option<Decision> {
    if model.depth_max().is_some() || knows_token_of_unknown(history) {
        return None;
    }
    let action = |operation: &Operation| match *operation {
        Operation::Acquire { by, token } => Action::Acquire { owner: by, token },
        Operation::Release(owner) => Action::Release { owner },
        Operation::Busy(_) => Action::Busy,
    };
    Reentrant::decide(Kind::Fenced, history, action, |operation| {
        model.describe(operation)
    })
}
