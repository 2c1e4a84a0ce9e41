//! The closed form of the lease mutex.

use super::lock::Kind;
use super::replay::{Action, Plain};
use crate::linearizability::{Decision, History};
use crate::models::Model;
use crate::models::lease_mutex::{LeaseMutex, Operation};

/// Whether a history is linearizable against a lease mutex: as an [owner-aware mutex](super::owner_aware_mutex::decide)
/// whose owners are the grants, the end of a lease being a release of unknown outcome that was invoked when its validity
/// was over. What that may end, an unknown release may end, and nothing else.
///
/// `None` also where a lease was extended.
pub fn decide(model: &LeaseMutex, history: &History<Operation>) -> Option<Decision> {
    let action = |operation: &Operation| match *operation {
        Operation::Acquire(grant) => Action::Acquire {
            owner: grant,
            token: None,
        },
        Operation::Release(grant) | Operation::Expire { grant, lease: 0 } => {
            Action::Release { owner: grant }
        }
        Operation::Busy(_) => Action::Busy,
        Operation::Extend { .. } | Operation::Expire { .. } => Action::Other,
    };
    Plain::decide(Kind::OwnerAware, history, action, |operation| {
        model.describe(operation)
    })
}
