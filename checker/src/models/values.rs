//! The values of a history, each kept once and meant by a number.

use std::fmt::Write;

use histories::entries::Value;

use crate::names::{Map, Names};

/// A value, as the number under which [`Values`] keeps it.
pub type Datum = u32;

/// The values that were met. Two are the same when EDN writes them alike.
#[derive(Default)]
pub struct Values {
    names: Names,
    /// The numbers of whole numbers, which most values are: they need not be written out to be found.
    integers: Map<i64, Datum>,
    written: String,
}

impl Values {
    /// The number of a value, a new one if it was not met before.
    pub fn number(&mut self, value: &Value<'_>) -> Datum {
        if let Value::Integer(integer) = value
            && let Some(&known) = self.integers.get(integer)
        {
            return known;
        }
        self.written.clear();
        let _ = write!(self.written, "{value}");
        let number = self.names.number(&self.written);
        if let Value::Integer(integer) = value {
            self.integers.insert(*integer, number);
        }
        number
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// A value as EDN writes it.
    pub fn text(&self, number: Datum) -> &str {
        self.names.text(number)
    }
}
