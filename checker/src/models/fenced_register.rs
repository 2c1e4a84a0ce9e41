//! A register that is guarded by fencing tokens.

use histories::entries::Value;

use super::recorded::{Misfit, Outcome, Recorded, Told, no_operation, wrong_value};
use super::values::{Datum, Values};
use super::{Effect, Model};

/// A register that takes a write only if its token is at least as high as every token that wrote before (Kleppmann, "How to
/// do distributed locking", 2016).
///
/// Legal, for the write under the lower token may have taken effect first:
///
/// ```text
///  A:  |--- write a under 1 ---|
///  B:     |- write b under 2 -|
///  C:                            |- read b -|
/// ```
///
/// Illegal, for a lower token was let in after a higher one:
///
/// ```text
///  A:                        |- write a under 1 -|
///  B:  |- write b under 2 -|
/// ```
///
/// Illegal, for nothing under a higher token was written that could have had the write rejected:
///
/// ```text
///  A:                        |- write a under 2, rejected -|
///  B:  |- write b under 1 -|
/// ```
pub struct FencedRegister {
    initial: Datum,
    values: Values,
}

/// What a register holds, and who may write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The value.
    pub value: Datum,
    /// The highest token that wrote, if one did.
    pub fence: Option<u64>,
}

/// What is done to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It held this value.
    Read(Datum),
    /// It took this value, since no higher token had written.
    Write {
        /// The value that it holds from then on.
        value: Datum,
        /// The token under which it was written.
        token: u64,
    },
    /// It rejected a write under this token, since a higher one had written.
    Reject(u64),
}

impl FencedRegister {
    /// A register that holds a value at first, and that no token wrote yet.
    pub fn new(initial: &Value<'_>) -> FencedRegister {
        let mut values = Values::default();
        let initial = values.number(initial);
        FencedRegister { initial, values }
    }

    fn write(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let written = told.input.get("value").unwrap_or(told.input);
        let inside = || told.input.get("token").or(told.input.get("fence"));
        let token = match (told.token, inside()) {
            (Some(token), _) => Some(token),
            (None, Some(&Value::Integer(token))) => u64::try_from(token).ok(),
            (None, _) => None,
        };
        let Some(token) = token else {
            return Err(wrong_value("a token", told, told.input));
        };
        Ok(match told.outcome {
            Outcome::Done(_) | Outcome::Unknown => Some(Operation::Write {
                value: self.values.number(written),
                token,
            }),
            Outcome::Refused(Some("rejected")) => Some(Operation::Reject(token)),
            // It failed for another reason, before it came to the fence.
            Outcome::Refused(_) => None,
        })
    }
}

impl Model for FencedRegister {
    type State = State;
    type Operation = Operation;

    fn initial(&self) -> State {
        State {
            value: self.initial,
            fence: None,
        }
    }

    fn step(&self, &state: &State, operation: &Operation) -> Option<State> {
        match *operation {
            Operation::Read(value) => (value == state.value).then_some(state),
            Operation::Write { value, token } => {
                let fence = Some(token);
                (state.fence <= fence).then_some(State { value, fence })
            }
            Operation::Reject(token) => (state.fence > Some(token)).then_some(state),
        }
    }

    fn effect(&self, operation: &Operation) -> Effect {
        match operation {
            Operation::Read(_) | Operation::Reject(_) => Effect::Observes,
            Operation::Write { .. } => Effect::Depends,
        }
    }

    fn describe(&self, operation: &Operation) -> String {
        match *operation {
            Operation::Read(value) => format!("read {}", self.values.text(value)),
            Operation::Write { value, token } => {
                format!("write {} under token {token}", self.values.text(value))
            }
            Operation::Reject(token) => format!("rejected write under token {token}"),
        }
    }

    fn describe_state(&self, state: &State) -> String {
        let value = self.values.text(state.value);
        match state.fence {
            Some(token) => format!("{value} under token {token}"),
            None => value.to_owned(),
        }
    }
}

impl Recorded for FencedRegister {
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        Ok(match (told.f, told.outcome) {
            ("read", Outcome::Done(value)) => {
                let value = value.get("value").unwrap_or(value);
                Some(Operation::Read(self.values.number(value)))
            }
            ("read", _) => None,
            ("write", _) => self.write(told)?,
            _ => return Err(no_operation("fenced register", &["read", "write"], told)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::laws::{self, told};
    use super::*;

    const NIL: Value<'static> = Value::Nil;
    const ONE: Value<'static> = Value::Integer(1);

    fn write(value: Datum, token: u64) -> Operation {
        Operation::Write { value, token }
    }

    fn run(operations: &[Operation]) -> Option<State> {
        let register = FencedRegister::new(&NIL);
        operations
            .iter()
            .try_fold(register.initial(), |state, operation| {
                register.step(&state, operation)
            })
    }

    #[test]
    fn operations_do_what_is_said_of_their_effects() {
        let state = |value, fence| State { value, fence };
        let states = [state(0, None), state(1, Some(3)), state(0, Some(4))];
        let operations = [Operation::Read(0), Operation::Reject(2), write(1, 3)];
        laws::effects(&FencedRegister::new(&NIL), &states, &operations);
    }

    #[test]
    fn spares_rising_and_equal_tokens() {
        let state = run(&[write(1, 3), write(2, 3), write(3, 5), Operation::Read(3)]);
        let fence = Some(5);
        assert_eq!(state, Some(State { value: 3, fence }));
    }

    #[test]
    fn identifies_a_lower_token_let_in() {
        assert_eq!(run(&[write(1, 3), write(2, 2)]), None);
    }

    #[test]
    fn identifies_a_rejection_without_a_higher_token() {
        assert!(run(&[write(1, 3), Operation::Reject(2)]).is_some());
        assert_eq!(run(&[write(1, 3), Operation::Reject(3)]), None);
        assert_eq!(run(&[Operation::Reject(0)]), None);
    }

    #[test]
    fn the_token_stands_beside_the_value_or_in_it() {
        let mut register = FencedRegister::new(&NIL);
        let mut beside = told("write", &ONE, Outcome::Done(&NIL));
        beside.token = Some(7);
        assert_eq!(register.read(&beside), Ok(Some(write(1, 7))));
        for name in ["token", "fence"] {
            let keyword = |name: &'static str| Value::Keyword(name.into());
            let input = Value::Map(vec![
                (keyword("value"), ONE),
                (keyword(name), Value::Integer(8)),
            ]);
            let inside = told("write", &input, Outcome::Unknown);
            assert_eq!(register.read(&inside), Ok(Some(write(1, 8))));
            let read = told("read", &NIL, Outcome::Done(&input));
            assert_eq!(register.read(&read), Ok(Some(Operation::Read(1))));
        }
        let without = told("write", &ONE, Outcome::Unknown);
        let message = "`write` wants a token, and has 1".to_owned();
        assert_eq!(register.read(&without), Err(Misfit(message)));
    }

    #[test]
    fn a_rejected_write_tells_of_the_fence_and_another_failure_of_nothing() {
        let mut register = FencedRegister::new(&NIL);
        let mut refused = told("write", &ONE, Outcome::Refused(Some("rejected")));
        refused.token = Some(7);
        assert_eq!(register.read(&refused), Ok(Some(Operation::Reject(7))));
        refused.outcome = Outcome::Refused(Some("timeout"));
        assert_eq!(register.read(&refused), Ok(None));
    }
}
