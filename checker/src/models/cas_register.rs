//! A register that is also written on a condition: compare and set.

use histories::entries::Value;

use super::recorded::{Misfit, Outcome, Recorded, Told, no_operation, written, wrong_value};
use super::values::{Datum, Values};
use super::{Effect, Model};
use crate::closed_forms::zones;
use crate::linearizability::{Decision, History};

/// A register whose value can be replaced by a new one if it is an expected one.
///
/// Legal, for the write can come between the two others:
///
/// ```text
///  A:  |- cas 0→1 -|
///  B:       |- write 0 -|
///  C:           |- cas 0→2 -|
/// ```
///
/// Illegal, for only one of the two can have found the 0:
///
/// ```text
///  A:  |- cas 0→1 -|
///  B:       |- cas 0→2 -|
/// ```
pub struct CasRegister {
    /// Whether a cas that failed found another value than it expected, as Porcupine has it. Otherwise it tells nothing, as
    /// in Jepsen: it did not happen, for whatever reason.
    pub failed_cas_is_a_read: bool,
    initial: Datum,
    values: Values,
}

/// What is done to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It held this value.
    Read(Datum),
    /// It held another value than this.
    ReadOther(Datum),
    /// From then on it holds this value.
    Write(Datum),
    /// It held one value, and holds another from then on.
    Cas {
        /// The value that it held.
        expected: Datum,
        /// The value that it holds from then on.
        new: Datum,
    },
}

impl CasRegister {
    /// A register that holds a value at first, with Jepsen's reading of a cas that failed.
    pub fn new(initial: &Value<'_>) -> CasRegister {
        let mut values = Values::default();
        let initial = values.number(initial);
        CasRegister {
            failed_cas_is_a_read: false,
            initial,
            values,
        }
    }

    fn cas(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let Value::List(pair) = told.input else {
            return Err(wrong_value("[expected new]", told, told.input));
        };
        let [expected, new] = pair.as_slice() else {
            return Err(wrong_value("[expected new]", told, told.input));
        };
        let (expected, new) = (self.values.number(expected), self.values.number(new));
        Ok(match told.outcome {
            Outcome::Done(_) if expected == new => Some(Operation::Read(expected)),
            // It changed nothing in either case.
            Outcome::Unknown if expected == new => None,
            Outcome::Done(_) | Outcome::Unknown => Some(Operation::Cas { expected, new }),
            Outcome::Refused(_) => self
                .failed_cas_is_a_read
                .then_some(Operation::ReadOther(expected)),
        })
    }
}

impl Model for CasRegister {
    type State = Datum;
    type Operation = Operation;

    fn initial(&self) -> Datum {
        self.initial
    }

    fn step(&self, &state: &Datum, operation: &Operation) -> Option<Datum> {
        match *operation {
            Operation::Read(value) => (value == state).then_some(state),
            Operation::ReadOther(value) => (value != state).then_some(state),
            Operation::Write(value) => Some(value),
            Operation::Cas { expected, new } => (expected == state).then_some(new),
        }
    }

    fn effect(&self, operation: &Operation) -> Effect {
        match operation {
            Operation::Read(_) | Operation::ReadOther(_) => Effect::Observes,
            Operation::Write(_) => Effect::Overwrites,
            Operation::Cas { .. } => Effect::Depends,
        }
    }

    fn decide(&self, history: &History<Operation>) -> Option<Decision> {
        zones::decide(self, history)
    }

    fn describe(&self, operation: &Operation) -> String {
        let text = |value| self.values.text(value);
        match *operation {
            Operation::Read(value) => format!("read {}", text(value)),
            Operation::ReadOther(value) => format!("failed cas of {}", text(value)),
            Operation::Write(value) => format!("write {}", text(value)),
            Operation::Cas { expected, new } => format!("cas {}→{}", text(expected), text(new)),
        }
    }

    fn describe_state(&self, &state: &Datum) -> String {
        self.values.text(state).to_owned()
    }
}

impl Recorded for CasRegister {
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        Ok(match (told.f, told.outcome) {
            ("read", Outcome::Done(value)) => Some(Operation::Read(self.values.number(value))),
            ("write", Outcome::Done(_) | Outcome::Unknown) => {
                Some(Operation::Write(self.values.number(written(told)?)))
            }
            ("read" | "write", _) => None,
            ("cas", _) => self.cas(told)?,
            _ => {
                return Err(no_operation(
                    "CAS register",
                    &["read", "write", "cas"],
                    told,
                ));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::laws::{self, told};
    use super::*;
    use crate::linearizability::{Call, brute_force};

    const NIL: Value<'static> = Value::Nil;

    fn pair(expected: i64, new: i64) -> Value<'static> {
        Value::List(vec![Value::Integer(expected), Value::Integer(new)])
    }

    fn call(operation: Operation, invoked: u32, returned: u32) -> Call<Operation> {
        Call {
            operation,
            id: u64::from(invoked),
            process: 0,
            invoked,
            returned,
            certain: true,
        }
    }

    #[test]
    fn operations_do_what_is_said_of_their_effects() {
        let register = CasRegister::new(&NIL);
        let operations = [
            Operation::Read(1),
            Operation::ReadOther(1),
            Operation::Write(1),
            Operation::Cas {
                expected: 1,
                new: 2,
            },
        ];
        laws::effects(&register, &[0, 1, 2], &operations);
    }

    #[test]
    fn spares_two_cas_with_a_write_between() {
        let register = CasRegister::new(&Value::Integer(0));
        let calls = [
            call(
                Operation::Cas {
                    expected: 0,
                    new: 1,
                },
                0,
                4,
            ),
            call(Operation::Write(0), 1, 6),
            call(
                Operation::Cas {
                    expected: 0,
                    new: 2,
                },
                2,
                8,
            ),
        ];
        assert!(brute_force::linearizable(&register, &calls));
    }

    #[test]
    fn identifies_two_cas_of_one_value() {
        let register = CasRegister::new(&Value::Integer(0));
        let calls = [
            call(
                Operation::Cas {
                    expected: 0,
                    new: 1,
                },
                0,
                4,
            ),
            call(
                Operation::Cas {
                    expected: 0,
                    new: 2,
                },
                2,
                8,
            ),
        ];
        assert!(!brute_force::linearizable(&register, &calls));
    }

    #[test]
    fn a_cas_is_read_with_its_outcome() {
        let mut register = CasRegister::new(&NIL);
        let input = pair(1, 2);
        let cas = Operation::Cas {
            expected: 1,
            new: 2,
        };
        let done = told("cas", &input, Outcome::Done(&input));
        assert_eq!(register.read(&done), Ok(Some(cas)));
        let unknown = told("cas", &input, Outcome::Unknown);
        assert_eq!(register.read(&unknown), Ok(Some(cas)));
        let refused = told("cas", &input, Outcome::Refused(None));
        assert_eq!(register.read(&refused), Ok(None));
        register.failed_cas_is_a_read = true;
        assert_eq!(register.read(&refused), Ok(Some(Operation::ReadOther(1))));
    }

    #[test]
    fn a_cas_that_changes_nothing_is_a_read() {
        let mut register = CasRegister::new(&NIL);
        let input = pair(1, 1);
        let done = told("cas", &input, Outcome::Done(&input));
        assert_eq!(register.read(&done), Ok(Some(Operation::Read(1))));
        let unknown = told("cas", &input, Outcome::Unknown);
        assert_eq!(register.read(&unknown), Ok(None));
    }

    #[test]
    fn a_cas_without_a_pair_is_a_misfit() {
        let mut register = CasRegister::new(&NIL);
        for input in [Value::Integer(1), Value::List(vec![Value::Nil])] {
            let misfit = register.read(&told("cas", &input, Outcome::Unknown));
            let message = format!("`cas` wants [expected new], and has {input}");
            assert_eq!(misfit, Err(Misfit(message)));
        }
    }
}
