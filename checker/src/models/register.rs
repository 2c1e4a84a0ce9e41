//! A register: one value, which is read and written.

use histories::entries::Value;

use super::recorded::{Misfit, Outcome, Recorded, Told, no_operation, written};
use super::values::{Datum, Values};
use super::{Effect, Model};
use crate::closed_forms::zones;
use crate::linearizability::{Decision, History};

/// A register that holds one value.
///
/// Legal, for the read may have taken effect before the write did:
///
/// ```text
///  A:  |--- write 1 ---|
///  B:     |- read 0 -|
/// ```
///
/// Illegal, for the write had returned when the read began:
///
/// ```text
///  A:  |- write 1 -|
///  B:                 |- read 0 -|
/// ```
pub struct Register {
    initial: Datum,
    values: Values,
}

/// What is done to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It held this value.
    Read(Datum),
    /// From then on it holds this value.
    Write(Datum),
}

impl Register {
    /// A register that holds a value at first.
    pub fn new(initial: &Value<'_>) -> Register {
        let mut values = Values::default();
        let initial = values.number(initial);
        Register { initial, values }
    }
}

impl Model for Register {
    type State = Datum;
    type Operation = Operation;

    fn initial(&self) -> Datum {
        self.initial
    }

    fn step(&self, &state: &Datum, operation: &Operation) -> Option<Datum> {
        match *operation {
            Operation::Read(value) => (value == state).then_some(state),
            Operation::Write(value) => Some(value),
        }
    }

    fn effect(&self, operation: &Operation) -> Effect {
        match operation {
            Operation::Read(_) => Effect::Observes,
            Operation::Write(_) => Effect::Overwrites,
        }
    }

    fn decide(&self, history: &History<Operation>) -> Option<Decision> {
        zones::decide(self, history)
    }

    fn describe(&self, operation: &Operation) -> String {
        match *operation {
            Operation::Read(value) => format!("read {}", self.values.text(value)),
            Operation::Write(value) => format!("write {}", self.values.text(value)),
        }
    }

    fn describe_state(&self, &state: &Datum) -> String {
        self.values.text(state).to_owned()
    }
}

impl Recorded for Register {
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        Ok(match (told.f, told.outcome) {
            ("read", Outcome::Done(value)) => Some(Operation::Read(self.values.number(value))),
            ("write", Outcome::Done(_) | Outcome::Unknown) => {
                Some(Operation::Write(self.values.number(written(told)?)))
            }
            ("read" | "write", _) => None,
            _ => return Err(no_operation("register", &["read", "write"], told)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::laws::{self, told};
    use super::*;

    const ZERO: Value<'static> = Value::Integer(0);
    const ONE: Value<'static> = Value::Integer(1);

    #[test]
    fn operations_do_what_is_said_of_their_effects() {
        let mut register = Register::new(&ZERO);
        let one = register.values.number(&ONE);
        let operations = [
            Operation::Read(0),
            Operation::Write(0),
            Operation::Write(one),
        ];
        laws::effects(&register, &[0, one], &operations);
    }

    #[test]
    fn identifies_a_value_that_was_not_there() {
        let register = Register::new(&ZERO);
        assert_eq!(register.step(&0, &Operation::Read(0)), Some(0));
        assert_eq!(register.step(&0, &Operation::Read(1)), None);
    }

    #[test]
    fn what_a_history_tells_is_read() {
        let mut register = Register::new(&ZERO);
        let mut read = |f, input, outcome| register.read(&told(f, input, outcome));
        assert_eq!(
            read("read", &Value::Nil, Outcome::Done(&ONE)),
            Ok(Some(Operation::Read(1)))
        );
        assert_eq!(
            read("read", &Value::Nil, Outcome::Done(&Value::Nil)),
            Ok(Some(Operation::Read(2)))
        );
        assert_eq!(read("read", &Value::Nil, Outcome::Unknown), Ok(None));
        assert_eq!(
            read("write", &ONE, Outcome::Unknown),
            Ok(Some(Operation::Write(1)))
        );
        assert_eq!(read("write", &ONE, Outcome::Refused(None)), Ok(None));
        assert_eq!(
            read("pop", &ONE, Outcome::Unknown),
            Err(Misfit(
                "a register has no operation `pop`: it has `read`, `write`".to_owned()
            ))
        );
    }
}
