//! Linearizability by trying every order: for tests, which hold all else against it.

use crate::linearizability::{Call, NEVER};
use crate::models::Model;

/// Whether the calls have an order that the model allows. Takes time exponential in their number: a dozen at most.
pub fn linearizable<M: Model>(model: &M, calls: &[Call<M::Operation>]) -> bool {
    let calls: Vec<&Call<M::Operation>> = calls.iter().collect();
    extend(model, &model.initial(), &calls)
}

/// Whether the calls that are left can follow a state.
fn extend<M: Model>(model: &M, state: &M::State, left: &[&Call<M::Operation>]) -> bool {
    if left.iter().all(|call| !call.certain) {
        return true;
    }
    let without = |at: usize| {
        let mut rest = left.to_vec();
        rest.remove(at);
        rest
    };
    let first_return = left
        .iter()
        .filter(|call| call.certain)
        .map(|call| call.returned)
        .min()
        .unwrap_or(NEVER);
    (0..left.len()).any(|at| {
        let call = left[at];
        let next = || {
            let rest = without(at);
            // What need not have happened and is over by now did not happen.
            let open: Vec<_> = rest
                .into_iter()
                .filter(|other| other.certain || other.returned > call.invoked)
                .collect();
            model
                .step(state, &call.operation)
                .is_some_and(|state| extend(model, &state, &open))
        };
        call.invoked < first_return && next()
    })
}
