//! The closed form of the lease mutex.

use super::lock::Kind;
use super::replay::{Action, Plain};
use crate::linearizability::{Call, Decision, History, NEVER};
use crate::models::lease_mutex::{LeaseMutex, Operation};
use crate::models::{Model, Recorded};
use crate::names::Map;

/// Whether a history is linearizable against a lease mutex: as an [owner-aware mutex](super::owner_aware_mutex::decide)
/// whose owners are the grants, the end of a lease being a release of unknown outcome that was invoked when its validity
/// was over. What that may end, an unknown release may end, and nothing else.
///
/// `None` also where a lease was extended, or it is open of which of its owner's grants a release is.
pub fn decide(model: &LeaseMutex, history: &History<Operation>) -> Option<Decision> {
    if !ends_say_nothing(model, history) {
        return None;
    }
    let action = |operation: &Operation| match *operation {
        Operation::Acquire(grant) => Action::Acquire {
            owner: grant,
            token: None,
        },
        Operation::Release(grant) => Action::Release { owner: grant },
        Operation::Expire { grant, lease: 0 } | Operation::End(grant) => {
            Action::End { owner: grant }
        }
        Operation::Busy(_) => Action::Busy,
        _ => Action::Other,
    };
    Plain::decide(Kind::OwnerAware, history, action, |operation| {
        model.describe(operation)
    })
}

/// Whether each lease that may end by itself only up to some position could not do so later anyway: what returned there made
/// it void, after its grant was made for certain.
fn ends_say_nothing(model: &LeaseMutex, history: &History<Operation>) -> bool {
    let calls = history.calls();
    let ended = |call: &&Call<Operation>| !call.certain && call.returned != NEVER;
    if !calls.iter().any(|call| ended(&call)) {
        return true;
    }
    let mut granted: Map<u32, u32> = Map::default();
    let mut by_return: Map<u32, &Call<Operation>> = Map::default();
    for call in calls.iter().filter(|call| call.certain) {
        by_return.insert(call.returned, call);
        if let Operation::Acquire(grant) = call.operation {
            granted.insert(grant, call.returned);
        }
    }
    calls.iter().filter(ended).all(|call| {
        let (Operation::Expire { grant, .. } | Operation::End(grant)) = call.operation else {
            return false;
        };
        let later = by_return.get(&call.returned);
        let granted_before = |later: &Call<Operation>| {
            granted
                .get(&grant)
                .is_some_and(|returned| *returned < later.invoked)
        };
        later.is_some_and(|later| {
            granted_before(later) && model.is_void_after(&call.operation, &later.operation)
        })
    })
}
