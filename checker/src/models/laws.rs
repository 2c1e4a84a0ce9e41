//! What every model must keep, for the models' tests.

use histories::entries::Value;

use super::{Model, Outcome, Told};

/// That every operation which claims to overwrite is a step from each of these states, to the same one.
pub(super) fn overwriting<M: Model>(model: &M, states: &[M::State], operations: &[M::Operation]) {
    for operation in operations {
        if !model.overwrites(operation) {
            continue;
        }
        let after = model.step(&states[0], operation);
        assert!(after.is_some(), "{operation:?} is always a step");
        for state in states {
            assert_eq!(model.step(state, operation), after, "{operation:?}");
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
    }
}
