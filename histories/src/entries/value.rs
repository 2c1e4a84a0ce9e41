//! What goes into an operation and comes out of it.

use std::borrow::Cow;
use std::fmt;

/// A value of an [`Entry`](super::Entry), as EDN has them; JSON's are a part of those.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number of 64 bits.
    Integer(i64),
    /// A string, its escapes resolved.
    Text(Cow<'a, str>),
    /// A keyword, without its colon.
    Keyword(Cow<'a, str>),
    /// A vector or a list.
    List(Vec<Value<'a>>),
    /// A map, in the order in which it stands.
    Map(Vec<(Value<'a>, Value<'a>)>),
    /// Anything else (a fraction, a set, a symbol, …), as it is written. Two of them are equal when they are written alike.
    Other(Cow<'a, str>),
}

impl<'a> Value<'a> {
    /// The value that a map has under a keyword or a string of this name; `None` for a value that is no map.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        let Value::Map(pairs) = self else { return None };
        let named = |key: &Value<'_>| match key {
            Value::Keyword(key) | Value::Text(key) => key == name,
            _ => false,
        };
        pairs
            .iter()
            .find(|(key, _)| named(key))
            .map(|(_, value)| value)
    }

    /// The same value, no longer borrowed.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Nil => Value::Nil,
            Value::Bool(flag) => Value::Bool(flag),
            Value::Integer(number) => Value::Integer(number),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Keyword(name) => Value::Keyword(Cow::Owned(name.into_owned())),
            Value::List(items) => Value::List(items.into_iter().map(Value::into_owned).collect()),
            Value::Map(pairs) => Value::Map(
                pairs
                    .into_iter()
                    .map(|(key, value)| (key.into_owned(), value.into_owned()))
                    .collect(),
            ),
            Value::Other(text) => Value::Other(Cow::Owned(text.into_owned())),
        }
    }
}

/// As EDN writes it.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nil => f.write_str("nil"),
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Text(text) => write_string(f, text),
            Value::Keyword(name) => write!(f, ":{name}"),
            Value::List(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    let space = if at == 0 { "" } else { " " };
                    write!(f, "{space}{item}")?;
                }
                f.write_str("]")
            }
            Value::Map(pairs) => {
                f.write_str("{")?;
                for (at, (key, value)) in pairs.iter().enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}{key} {value}")?;
                }
                f.write_str("}")
            }
            Value::Other(text) => f.write_str(text),
        }
    }
}

fn write_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    use fmt::Write;
    f.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            other => f.write_char(other)?,
        }
    }
    f.write_char('"')
}
