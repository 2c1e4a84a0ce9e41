//! A map of strings, which can be appended to.

use histories::entries::Value;

use super::recorded::{Misfit, Outcome, Recorded, Told, no_operation, written, wrong_value};
use super::text::{Piece, Text};
use super::values::{Datum, Values};
use super::{Effect, Model, Outlook};
use crate::names::Names;

/// A map from keys to strings, each of them empty at first. The keys are judged one by one, so that a state is the string of
/// one key.
///
/// Legal, for the two may have taken effect in this order:
///
/// ```text
///  A:  |- append x b -|
///  B:     |- append x a -|
///  C:                       |- get x "ab" -|
/// ```
///
/// Illegal, for the string of `x` never was `b` alone, with the `a` appended before:
///
/// ```text
///  A:  |- append x a -|
///  B:                    |- append x b -|
///  C:                                      |- get x "b" -|
/// ```
#[derive(Default)]
pub struct StringMap {
    keys: Values,
    names: Names,
    /// By their number in the names.
    strings: Vec<Known>,
}

/// A string of the history.
struct Known {
    piece: Piece,
    whole: Text,
}

/// What is done to one key of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// The key.
    pub key: Datum,
    /// What is done to it.
    pub access: Access,
}

/// What is done to a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It was this.
    Get(Datum),
    /// From then on it is this.
    Put(Datum),
    /// This is put to its end.
    Append(Datum),
}

impl StringMap {
    fn string(&mut self, told: &Told<'_>, value: &Value<'_>) -> Result<Datum, Misfit> {
        let Value::Text(text) = value else {
            return Err(wrong_value("a string", told, value));
        };
        let number = self.names.number(text);
        if number as usize == self.strings.len() {
            let piece = Piece::new(text);
            let whole = Text::default().append(&piece);
            self.strings.push(Known { piece, whole });
        }
        Ok(number)
    }

    fn known(&self, string: Datum) -> &Known {
        &self.strings[string as usize]
    }
}

impl Model for StringMap {
    type State = Text;
    type Operation = Operation;

    fn initial(&self) -> Text {
        Text::default()
    }

    fn step(&self, state: &Text, operation: &Operation) -> Option<Text> {
        match operation.access {
            Access::Get(string) => {
                let whole = &self.known(string).whole;
                // The same string as one piece is compared faster from now on.
                (state == whole).then(|| whole.clone())
            }
            Access::Put(string) => Some(self.known(string).whole.clone()),
            Access::Append(string) => Some(state.append(&self.known(string).piece)),
        }
    }

    fn effect(&self, operation: &Operation) -> Effect {
        match operation.access {
            Access::Get(_) => Effect::Observes,
            Access::Put(_) => Effect::Overwrites,
            Access::Append(_) => Effect::Depends,
        }
    }

    const LOOKS_AHEAD: bool = true;

    /// A string only grows, until another is put in its place.
    fn outlook(
        &self,
        state: &Text,
        observed: &Operation,
        overwriting: &mut dyn Iterator<Item = &Operation>,
    ) -> Outlook {
        let Access::Get(found) = observed.access else {
            return Outlook::Open;
        };
        let found = self.names.text(found);
        let mut puts = overwriting.filter_map(|other| match other.access {
            Access::Put(string) => Some(self.names.text(string)),
            Access::Get(_) | Access::Append(_) => None,
        });
        if state.begins(found) {
            Outlook::Open
        } else if puts.any(|put| found.starts_with(put)) {
            Outlook::Overwritten
        } else {
            Outlook::Lost
        }
    }

    fn partition(&self, operation: &Operation) -> u64 {
        u64::from(operation.key)
    }

    fn describe(&self, operation: &Operation) -> String {
        let (f, string) = match operation.access {
            Access::Get(string) => ("get", string),
            Access::Put(string) => ("put", string),
            Access::Append(string) => ("append", string),
        };
        let (key, string) = (self.keys.text(operation.key), self.names.text(string));
        format!("{f} {key} {}", Value::Text(string.into()))
    }

    fn describe_state(&self, state: &Text) -> String {
        Value::Text(state.to_string().into()).to_string()
    }
}

/// Operations without a key are all done to the same one.
impl Recorded for StringMap {
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let access = match (told.f, told.outcome) {
            ("get", Outcome::Done(value)) => Access::Get(self.string(told, value)?),
            ("put", Outcome::Done(_) | Outcome::Unknown) => {
                Access::Put(self.string(told, written(told)?)?)
            }
            ("append", Outcome::Done(_) | Outcome::Unknown) => {
                Access::Append(self.string(told, written(told)?)?)
            }
            ("get" | "put" | "append", _) => return Ok(None),
            _ => return Err(no_operation("map", &["get", "put", "append"], told)),
        };
        let key = self.keys.number(told.key.unwrap_or(&Value::Nil));
        Ok(Some(Operation { key, access }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::laws::{self, told};
    use super::*;

    fn string(text: &'static str) -> Value<'static> {
        Value::Text(text.into())
    }

    fn read(map: &mut StringMap, f: &str, key: &Value<'_>, text: &'static str) -> Operation {
        let value = string(text);
        let mut told = told(f, &value, Outcome::Done(&value));
        told.key = Some(key);
        map.read(&told).unwrap().unwrap()
    }

    /// Whether the operations are a run of one key.
    fn runs(operations: &[(&str, &'static str)]) -> bool {
        let mut map = StringMap::default();
        let key = Value::Integer(1);
        let operations: Vec<_> = operations
            .iter()
            .map(|(f, text)| read(&mut map, f, &key, text))
            .collect();
        operations
            .iter()
            .try_fold(map.initial(), |state, operation| {
                map.step(&state, operation)
            })
            .is_some()
    }

    #[test]
    fn spares_what_was_put_and_appended() {
        assert!(runs(&[
            ("get", ""),
            ("append", "a"),
            ("append", "bc"),
            ("get", "abc"),
            ("append", ""),
            ("append", "d"),
            ("get", "abcd"),
            ("put", "x"),
            ("get", "x"),
            ("put", ""),
            ("get", ""),
        ]));
    }

    #[test]
    fn identifies_a_string_in_another_order() {
        assert!(!runs(&[("append", "a"), ("append", "b"), ("get", "ba")]));
        assert!(!runs(&[("append", "a"), ("get", "")]));
        assert!(!runs(&[("append", "a"), ("put", "b"), ("get", "ab")]));
    }

    #[test]
    fn operations_do_what_is_said_of_their_effects() {
        let mut map = StringMap::default();
        let operations: Vec<_> = ["get", "put", "append"]
            .into_iter()
            .flat_map(|f| ["", "a", "ab"].map(|text| read(&mut map, f, &Value::Nil, text)))
            .collect();
        let states: Vec<_> = operations[3..6]
            .iter()
            .map(|put| map.step(&map.initial(), put).unwrap())
            .collect();
        laws::effects(&map, &states, &operations);
    }

    #[test]
    fn a_key_is_a_part() {
        let mut map = StringMap::default();
        let keys = [Value::Integer(1), string("1"), Value::Integer(1)];
        let parts = keys.map(|key| {
            let operation = read(&mut map, "get", &key, "a");
            map.partition(&operation)
        });
        assert_eq!(parts, [0, 1, 0]);
    }

    #[test]
    fn an_operation_is_described_as_it_was_recorded() {
        let mut map = StringMap::default();
        let append = read(&mut map, "append", &string("k"), "a \"b\"");
        assert_eq!(map.describe(&append), r#"append "k" "a \"b\"""#);
        let state = map.step(&map.initial(), &append).unwrap();
        assert_eq!(map.describe_state(&state), r#""a \"b\"""#);
    }

    #[test]
    fn what_is_no_string_is_a_misfit() {
        let mut map = StringMap::default();
        let misfit = map.read(&told("put", &Value::Integer(1), Outcome::Unknown));
        let message = "`put` wants a string, and has 1".to_owned();
        assert_eq!(misfit, Err(Misfit(message)));
        let unknown = told("get", &Value::Nil, Outcome::Unknown);
        assert_eq!(map.read(&unknown), Ok(None));
        let refused = told("append", &Value::Nil, Outcome::Refused(None));
        assert_eq!(map.read(&refused), Ok(None));
    }
}
