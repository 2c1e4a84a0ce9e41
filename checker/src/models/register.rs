//! A register: one value, which is read and written.

use histories::entries::Value;

use super::recorded::{Misfit, Outcome, Recorded, Told, no_operation};
use super::values::{Datum, Values};
use super::{Effect, Model};

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
                Some(Operation::Write(self.values.number(told.input)))
            }
            ("read" | "write", _) => None,
            _ => return Err(no_operation("register", &["read", "write"], told)),
        })
    }
}
