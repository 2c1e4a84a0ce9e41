//! The closed form of the fenced mutex.

use super::lock::Kind;
use super::replay::{Action, Plain};
use crate::linearizability::{Decision, History};
use crate::models::Model;
use crate::models::fenced_mutex::{FencedMutex, Operation};

/// Whether a history is linearizable against a fenced mutex: exactly when it is against an
/// [owner-aware mutex](super::owner_aware_mutex::decide) and the tokens rise in the order in which the acquires returned,
/// for disjoint certain times leave the grants no other order.
///
/// `None` also where a grant's token or its place among the others is not known.
pub fn decide(model: &FencedMutex, history: &History<Operation>) -> Option<Decision> {
    let action = |operation: &Operation| match *operation {
        Operation::Acquire { by, token } => Action::Acquire { owner: by, token },
        Operation::Release(owner) => Action::Release { owner },
        Operation::Busy(_) => Action::Busy,
    };
    Plain::decide(Kind::Fenced, history, action, |operation| {
        model.describe(operation)
    })
}
