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
        let _ = match ordered(value) {
            None => write!(self.written, "{value}"),
            Some(ordered) => write!(self.written, "{ordered}"),
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

/// A value with the keys of its maps in the order of what they are written as; `None` if there is no map in it.
fn ordered<'a>(value: &Value<'a>) -> Option<Value<'a>> {
    let in_order = |value: &Value<'a>| ordered(value).unwrap_or_else(|| value.clone());
    match value {
        Value::Map(pairs) => {
            let pairs = pairs.iter();
            let mut pairs: Vec<_> = pairs
                .map(|(key, value)| (in_order(key), in_order(value)))
                .collect();
            pairs.sort_by_cached_key(|(key, _)| key.to_string());
            Some(Value::Map(pairs))
        }
        Value::List(items) if items.iter().any(|item| ordered(item).is_some()) => {
            Some(Value::List(items.iter().map(in_order).collect()))
        }
        _ => None,
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
}
