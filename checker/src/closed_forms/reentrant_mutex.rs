//! The closed form of the reentrant mutex.

use super::lock::Kind;
use super::reentrant::Reentrant;
use super::replay::Action;
use crate::linearizability::{Decision, History};
use crate::models::Model;
use crate::models::reentrant_mutex::{Operation, ReentrantMutex};

/// Whether a history is linearizable against a reentrant mutex: exactly when it is against an
/// [owner-aware mutex](super::owner_aware_mutex::decide) once only the outermost acquires and releases are left.
///
/// `None` also where the depth is bounded, a refusal counts, or an owner goes on after a call of unknown outcome. The
/// calls of a violation have no order alone; with others free to have done nothing, they may have one.
pub fn decide(model: &ReentrantMutex, history: &History<Operation>) -> Option<Decision> {
    if model.depth_max().is_some() {
        return None;
    }
    let action = |operation: &Operation| match *operation {
        Operation::Acquire(owner) => Action::Acquire { owner, token: None },
        Operation::Release(owner) => Action::Release { owner },
        Operation::Busy(_) => Action::Busy,
    };
    Reentrant::decide(Kind::OwnerAware, history, action, |operation| {
        model.describe(operation)
    })
}
