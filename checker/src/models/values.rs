//! The values of a history, each kept once and meant by a number.

use std::fmt::Write;

use histories::entries::Value;

use crate::names::{Map, Names};

/// A value, as the number under which [`Values`] keeps it.
pub type Datum = u32;

/// The values that were met. Two are the same when EDN writes them alike, whatever the order of their maps.
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
        let _ = match value {
            Value::Map(_) | Value::List(_) => write!(self.written, "{}", ordered(value)),
            _ => write!(self.written, "{value}"),
        };
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

/// A value with the keys of its maps in the order of what they are written as.
fn ordered<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Map(pairs) => {
            let pairs = pairs.iter();
            let mut pairs: Vec<_> = pairs
                .map(|(key, value)| (ordered(key), ordered(value)))
                .collect();
            pairs.sort_by_cached_key(|(key, _)| key.to_string());
            Value::Map(pairs)
        }
        Value::List(items) => Value::List(items.iter().map(ordered).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_the_same_in_any_order() {
        let mut values = Values::default();
        let mut number = |text: &'static str| values.number(&Value::parse(text).unwrap());
        let first = number("[{:a 1, :b {:c 2, :d 3}} 4]");
        assert_eq!(number("[{:b {:d 3, :c 2}, :a 1} 4]"), first);
        assert_ne!(number("[{:b {:d 3, :c 2}, :a 2} 4]"), first);
        assert_ne!(number("[4 {:b {:d 3, :c 2}, :a 1}]"), first);
    }

    #[test]
    fn a_map_deep_within_lists_is_found_at_once() {
        let nested = |map: &str| format!("{}{map}{}", "[".repeat(60), "]".repeat(60));
        let (one, other) = (nested("{:a 1, :b 2}"), nested("{:b 2, :a 1}"));
        let mut values = Values::default();
        let mut number = |text: &str| values.number(&Value::parse(text).unwrap());
        assert_eq!(number(&one), number(&other));
    }
}
