//! What brute force, the search and the closed form of a model have to agree on.

use checker::linearizability::{
    Call, Decision, History, Limits, NEVER, Violation, brute_force, linearizable,
};
use checker::models::{Effect, Model, Outlook};

use crate::models::Made;

/// A model that has no closed form, so that its histories are searched.
struct WithoutClosedForm<'m, M>(&'m M);

impl<M: Model> Model for WithoutClosedForm<'_, M> {
    type State = M::State;
    type Operation = M::Operation;

    fn initial(&self) -> M::State {
        self.0.initial()
    }

    fn step(&self, state: &M::State, operation: &M::Operation) -> Option<M::State> {
        self.0.step(state, operation)
    }

    fn effect(&self, operation: &M::Operation) -> Effect {
        self.0.effect(operation)
    }

    fn partition(&self, operation: &M::Operation) -> u64 {
        self.0.partition(operation)
    }

    const LOOKS_AHEAD: bool = M::LOOKS_AHEAD;

    fn outlook(
        &self,
        state: &M::State,
        observed: &M::Operation,
        overwriting: &mut dyn Iterator<Item = &M::Operation>,
    ) -> Outlook {
        self.0.outlook(state, observed, overwriting)
    }

    fn about(&self, operation: &M::Operation) -> Option<u64> {
        self.0.about(operation)
    }

    fn about_state(&self, state: &M::State) -> Option<u64> {
        self.0.about_state(state)
    }

    fn describe(&self, operation: &M::Operation) -> String {
        self.0.describe(operation)
    }

    fn describe_state(&self, state: &M::State) -> String {
        self.0.describe_state(state)
    }
}

/// What the calls that a closed form names are to prove. Those that a search names prove the [most](Proof::Minimal).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// They have no order even if all others need not have happened, and none can be left out.
    Minimal,
    /// They have no order even if all others need not have happened.
    WhateverElse,
    /// They have no order where there are no others.
    Alone,
}

/// Decides a small history in every way there is.
///
/// # Panics
/// When two of them disagree, or a violation is not proven by its calls.
pub fn hold<M: Made>(model: &M, history: &History<M::Operation>, proof: Proof) {
    let end = end_of_prefix(model, history, |_| {});
    let searched = linearizable(&WithoutClosedForm(model), history, &Limits::default());
    confirm("the search", model, history, end, &searched, Proof::Minimal);
    if let Some(decision) = model.decide(history) {
        let end = end_of_prefix(model, history, M::untell);
        confirm("the closed form", model, history, end, &decision, proof);
        if proof == Proof::Alone {
            let proven = linearizable(model, history, &Limits::default());
            let who = "the closed form and the search";
            confirm(who, model, history, end, &proven, Proof::Minimal);
        }
    }
}

/// The position at which a history stops to be linearizable, by trying every order of every prefix. Calls that have not
/// returned by then may have taken effect or not; `untell` is done to their operations.
fn end_of_prefix<M: Model>(
    model: &M,
    history: &History<M::Operation>,
    untell: impl Fn(&mut M::Operation),
) -> Option<u32> {
    let ends = |call: &Call<_>| [call.invoked, call.returned];
    let mut positions: Vec<u32> = history.calls().iter().flat_map(ends).collect();
    positions.sort_unstable();
    positions.into_iter().find(|&position| {
        let mut calls = history.calls().to_vec();
        calls.retain(|call| call.invoked <= position);
        for call in &mut calls {
            if call.returned > position {
                (call.returned, call.certain) = (NEVER, false);
                untell(&mut call.operation);
            }
        }
        !brute_force::linearizable(model, &calls)
    })
}

fn confirm<M: Model>(
    who: &str,
    model: &M,
    history: &History<M::Operation>,
    end: Option<u32>,
    decision: &Decision,
    proof: Proof,
) {
    match (decision, end) {
        (Decision::Linearizable, None) => {}
        (Decision::Violated(violation), Some(end)) => {
            let of = || format!("{who} of {violation:?} in {history:#?}");
            assert_eq!(violation.prefix, end, "the prefix by {}", of());
            let fault = fault(model, history, violation, proof);
            assert_eq!(fault, None, "the proof by {}", of());
        }
        _ => panic!("brute force says {end:?} and {who} {decision:?} of {history:#?}"),
    }
}

/// What is wrong with a violation's calls as its proof.
fn fault<M: Model>(
    model: &M,
    history: &History<M::Operation>,
    violation: &Violation,
    proof: Proof,
) -> Option<String> {
    let core = &violation.calls;
    let known = core.iter().all(|&at| at < history.len());
    if !known || !core.is_sorted_by(|one, next| one < next) {
        return Some("its calls are no rising list of the history's".to_owned());
    }
    let has_order = |core: &[usize]| {
        let mut calls = history.calls().to_vec();
        for (at, call) in calls.iter_mut().enumerate() {
            call.certain &= core.contains(&at);
        }
        if proof == Proof::Alone {
            calls.retain(|call| call.certain);
        }
        brute_force::linearizable(model, &calls)
    };
    if has_order(core) {
        return Some("the calls have an order, if others need not have happened".to_owned());
    }
    if proof != Proof::Minimal {
        return None;
    }
    let needless = core.iter().find(|&&left_out| {
        let less: Vec<usize> = core.iter().copied().filter(|&at| at != left_out).collect();
        !has_order(&less)
    });
    needless.map(|call| format!("call {call} can be left out"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Asked;

    /// A counter whose closed form says what it is told to.
    struct Told(Option<Decision>);

    impl Made for Told {
        fn operation(&mut self, asked: &Asked) -> u8 {
            asked.value
        }
    }

    impl Model for Told {
        type State = u8;
        type Operation = u8;

        fn initial(&self) -> u8 {
            0
        }

        fn step(&self, &state: &u8, &next: &u8) -> Option<u8> {
            (next == state + 1).then_some(next)
        }

        fn decide(&self, _: &History<u8>) -> Option<Decision> {
            self.0.clone()
        }
    }

    /// Calls one after another.
    fn calls(operations: &[u8]) -> History<u8> {
        let calls = operations.iter().enumerate().map(|(at, &operation)| Call {
            operation,
            id: at as u64,
            process: 0,
            invoked: 2 * at as u32,
            returned: 2 * at as u32 + 1,
            certain: true,
        });
        History::new(calls.collect())
    }

    fn violated(calls: &[usize], prefix: u32) -> Option<Decision> {
        Some(Decision::Violated(Violation {
            alone: false,
            calls: calls.to_vec(),
            prefix,
            sentence: None,
        }))
    }

    #[test]
    fn spares_what_is_right() {
        hold(
            &Told(Some(Decision::Linearizable)),
            &calls(&[1, 2]),
            Proof::Minimal,
        );
        hold(&Told(violated(&[1], 3)), &calls(&[1, 3]), Proof::Minimal);
        hold(&Told(None), &calls(&[1, 1]), Proof::Minimal);
    }

    #[test]
    #[should_panic(expected = "brute force says Some(3) and the closed form Linearizable")]
    fn identifies_a_violation_that_is_missed() {
        hold(
            &Told(Some(Decision::Linearizable)),
            &calls(&[1, 3]),
            Proof::Minimal,
        );
    }

    #[test]
    #[should_panic(expected = "brute force says None and the closed form Violated")]
    fn identifies_a_violation_that_is_none() {
        hold(&Told(violated(&[1], 3)), &calls(&[1, 2]), Proof::Minimal);
    }

    #[test]
    #[should_panic(expected = "the prefix by the closed form")]
    fn identifies_a_wrong_prefix() {
        hold(&Told(violated(&[1], 2)), &calls(&[1, 3]), Proof::Minimal);
    }

    #[test]
    #[should_panic(expected = "the calls have an order")]
    fn identifies_calls_that_prove_nothing() {
        hold(&Told(violated(&[0], 3)), &calls(&[1, 3]), Proof::Minimal);
    }

    #[test]
    #[should_panic(expected = "call 0 can be left out")]
    fn identifies_a_call_too_many() {
        hold(&Told(violated(&[0, 1], 3)), &calls(&[1, 3]), Proof::Minimal);
    }
}
