//! What every model must keep, for the models' tests.

use histories::entries::Value;

use super::{Effect, Model, Outcome, Told};

/// That every operation does to each of these states what the model says of its effect.
pub(super) fn effects<M: Model>(model: &M, states: &[M::State], operations: &[M::Operation]) {
    for operation in operations {
        let after = |state| model.step(state, operation);
        match model.effect(operation) {
            Effect::Observes => {
                for state in states {
                    assert!(
                        after(state).is_none_or(|after| after == *state),
                        "{operation:?} changes {state:?}"
                    );
                }
            }
            Effect::Overwrites => {
                let first = after(&states[0]);
                assert!(first.is_some(), "{operation:?} is always a step");
                assert!(
                    states.iter().all(|state| after(state) == first),
                    "{operation:?} depends on the state"
                );
            }
            Effect::Depends => {}
        }
    }
}

/// What a history tells of an operation, without key, token and validity.
pub(super) fn told<'a>(f: &'a str, input: &'a Value<'a>, outcome: Outcome<'a>) -> Told<'a> {
    Told {
        f,
        key: None,
        process: (0, "0"),
        input,
        outcome,
        token: None,
        validity: None,
        op: None,
        grant: None,
        begun: 0,
    }
}
