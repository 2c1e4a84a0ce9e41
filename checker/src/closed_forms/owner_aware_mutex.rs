//! The closed form of the owner-aware mutex.

use super::lock::Kind;
use super::replay::{Action, Plain};
use crate::linearizability::{Decision, History};
use crate::models::Model;
use crate::models::owner_aware_mutex::{Operation, OwnerAwareMutex};

/// Whether a history is linearizable against an owner-aware mutex: exactly when the certain times, from an acquire's return
/// to its release's invocation, are disjoint and every unknown call that must have taken effect has an instant for it.
///
/// `None` also where an unknown release and an unknown acquire of an owner may have interrupted a hold that it released for
/// certain, and where a refusal is explained by unknown calls or not at all. Held against brute force by the tests.
pub fn decide(model: &OwnerAwareMutex, history: &History<Operation>) -> Option<Decision> {
    let action = |operation: &Operation| match *operation {
        Operation::Acquire(owner) => Action::Acquire { owner, token: None },
        Operation::Release(owner) => Action::Release { owner },
        Operation::Busy(_) => Action::Busy,
    };
    Plain::decide(Kind::OwnerAware, history, action, |operation| {
        model.describe(operation)
    })
}
