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
/// `None` also where a grant's token or its place among the others is not known, and where that of a grant is known which
/// need not have been made.
pub fn decide(model: &FencedMutex, history: &History<Operation>) -> Option<Decision> {
    if knows_token_of_unknown(history) {
        return None;
    }
    let action = |operation: &Operation| match *operation {
        Operation::Acquire { by, token } => Action::Acquire { owner: by, token },
        Operation::Release(owner) => Action::Release { owner },
        Operation::Busy(_) => Action::Busy,
    };
    Plain::decide(Kind::Fenced, history, action, |operation| {
        model.describe(operation)
    })
}

/// Whether the token is known of a grant that need not have been made. No client learns it; a proof that takes such a grant
/// for one with any token would be wrong.
pub(super) fn knows_token_of_unknown(history: &History<Operation>) -> bool {
    let known =
        |operation: &Operation| matches!(operation, Operation::Acquire { token: Some(_), .. });
    let mut unknown = history.calls().iter().filter(|call| !call.certain);
    unknown.any(|call| known(&call.operation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearizability::{Call, Limits, NEVER, linearizable};

    fn call(operation: Operation, invoked: u32, returned: u32) -> Call<Operation> {
        Call {
            operation,
            id: invoked.into(),
            process: invoked,
            invoked,
            returned,
            certain: returned != NEVER,
        }
    }

    fn acquire(by: u32, token: u64) -> Operation {
        Operation::Acquire {
            by,
            token: Some(token),
        }
    }

    /// Asserts that a search finds a violation where the closed form does not know.
    fn assert_left_to_the_search(calls: Vec<Call<Operation>>) {
        let history = History::new(calls);
        let model = FencedMutex::new(true);
        assert_eq!(decide(&model, &history), None);
        let decision = linearizable(&model, &history, &Limits::default());
        assert!(matches!(decision, Decision::Violated(_)), "{decision:?}");
    }

    #[test]
    fn does_not_know_of_an_unknown_grant_whose_token_is_known() {
        // The refusal needs a holder, and the only one left would have too low a token.
        assert_left_to_the_search(vec![
            call(acquire(0, 1), 0, 1),
            call(Operation::Release(0), 2, 3),
            call(acquire(3, 0), 5, NEVER),
            call(Operation::Busy(1), 7, 8),
        ]);
    }

    #[test]
    fn does_not_know_of_a_grant_for_which_no_token_is_left() {
        let untold = Operation::Acquire { by: 4, token: None };
        assert_left_to_the_search(vec![
            call(acquire(0, u64::MAX), 0, 1),
            call(Operation::Release(0), 2, 3),
            call(untold, 6, NEVER),
            call(Operation::Busy(1), 7, 8),
        ]);
    }
}
