//! Jepsen's map of one operation: first where its parts stand, and then, for a client's, what they say.

use std::borrow::Cow;
use std::num::NonZeroU32;

use super::edn::{Mistake, Parser, Stop};
use super::{Entry, Value};
use crate::Kind;

/// Where in its form a part begins, which is never the form's first byte. It is small because operations are handed around.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Part(Option<NonZeroU32>);

impl Part {
    #[inline]
    fn at(self) -> Option<usize> {
        self.0.map(|at| at.get() as usize)
    }
}

/// Where in its form the parts of an operation's map begin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operation {
    process: Part,
    kind: Part,
    f: Part,
    value: Part,
    key: Part,
    time: Part,
    error: Part,
}

impl Operation {
    /// Passes the map that begins here.
    pub(crate) fn pass(parser: &mut Parser<'_>) -> Result<Operation, Stop> {
        let start = parser.at();
        if parser.byte()? != b'{' && !parser.record()? {
            return parser.wrong(start, "expected the map of an operation, `{:process 0, …}`");
        }
        parser.pass();
        let mut operation = Operation::default();
        while parser.item(b'}')? {
            let key = parser.at();
            let part = match parser.peek() {
                Some(b':') => operation.part(parser.keyword()?),
                Some(b'"') => operation.part(&parser.string()?),
                _ => {
                    parser.skip()?;
                    None
                }
            };
            parser.value_of_key()?;
            if let Some(part) = part {
                if part.at().is_some() {
                    return parser.wrong(key, "this key stands twice in its map");
                }
                let at = u32::try_from(parser.at() - start).unwrap_or_default();
                *part = Part(NonZeroU32::new(at));
            }
            parser.skip()?;
        }
        Ok(operation)
    }

    #[inline]
    fn part(&mut self, key: &str) -> Option<&mut Part> {
        Some(match key.as_bytes() {
            b"process" => &mut self.process,
            b"type" => &mut self.kind,
            b"f" => &mut self.f,
            b"value" => &mut self.value,
            b"key" => &mut self.key,
            b"time" => &mut self.time,
            b"error" => &mut self.error,
            _ => return None,
        })
    }

    /// Whether it has a key of its own, as Porcupine's logs have it.
    pub(crate) fn has_key(&self) -> bool {
        self.key.at().is_some()
    }

    /// Whether a client does it: the others' processes are keywords.
    #[inline]
    pub(crate) fn is_of_client(&self, form: &str) -> bool {
        let first = self.process.at().map(|at| form.as_bytes()[at]);
        first != Some(b':')
    }

    /// Whether its value is a pair of a key and what is done to that key. What a pair means besides that is only known of
    /// `cas`, and keys are no collections: the two steps of a transaction are not taken for a pair.
    pub(crate) fn tells_key(&self, form: &str) -> Result<bool, Mistake> {
        let Some(at) = self.value.at().filter(|_| !self.has_key()) else {
            return Ok(false);
        };
        let value = value_at(form, at)?;
        let Some([key, inner]) = pair(&value) else {
            return Ok(false);
        };
        let is_cas = name(form, self.f.at())?.is_some_and(|f| f == "cas");
        let scalar = !matches!(key, Value::List(_) | Value::Map(_));
        Ok(scalar && (!is_cas || pair(inner).is_some()))
    }

    /// What a client's operation says.
    pub(crate) fn entry<'a>(&self, form: &'a str, keyed: bool) -> Result<Entry<'a>, Mistake> {
        let kind = self.kind(form)?;
        let Some(f) = name(form, self.f.at())? else {
            return Err(missing(":f"));
        };
        let (key, value) = self.key_and_value(form, kind, keyed)?;
        let time = self.time.at().map(|at| value_at(form, at)).transpose()?;
        Ok(Entry {
            line: 0,
            time: match time {
                Some(Value::Integer(time)) => u64::try_from(time).ok(),
                _ => None,
            },
            process: self.process(form)?,
            op: None,
            kind,
            f,
            key,
            value,
            token: None,
            validity: None,
            grant: None,
            error: self.error(form)?,
        })
    }

    fn kind(&self, form: &str) -> Result<Kind, Mistake> {
        let Some((kind, at)) = name(form, self.kind.at())?.zip(self.kind.at()) else {
            return Err(missing(":type"));
        };
        kind_of(&kind).ok_or_else(|| Mistake {
            at,
            message: format!(
                "unknown `:type` `{kind}`, expected `:invoke`, `:ok`, `:fail` or `:info`"
            )
            .into(),
        })
    }

    /// A process as it is written: a number, or a text.
    fn process<'a>(&self, form: &'a str) -> Result<Cow<'a, str>, Mistake> {
        let Some(at) = self.process.at() else {
            return Err(missing(":process"));
        };
        let mut parser = Parser::new(form, at, true);
        match parser.value().map_err(mistake)? {
            Value::Integer(_) => Ok(Cow::Borrowed(parser.since(at))),
            Value::Text(name) => Ok(name),
            other => Err(Mistake {
                at,
                message: format!(
                    "expected a process, which is a number or a keyword, found {other}"
                )
                .into(),
            }),
        }
    }

    fn key_and_value<'a>(
        &self,
        form: &'a str,
        kind: Kind,
        keyed: bool,
    ) -> Result<(Option<Value<'a>>, Value<'a>), Mistake> {
        if let Some(at) = self.key.at() {
            let value = self.value.at().map(|at| value_at(form, at)).transpose()?;
            return Ok((Some(value_at(form, at)?), value.unwrap_or(Value::Nil)));
        }
        let at = self.value.at().unwrap_or_default();
        let pair = match self.value.at() {
            Some(at) if keyed => pair_at(form, at)?,
            _ => None,
        };
        match pair {
            Some((key, value)) => Ok((Some(key), value)),
            None if keyed && matches!(kind, Kind::Invoke | Kind::Ok) => Err(Mistake {
                at,
                message: "expected `[key value]`, for the operations of this history have keys"
                    .into(),
            }),
            None if self.value.at().is_none() => Ok((None, Value::Nil)),
            None => Ok((None, value_at(form, at)?)),
        }
    }

    /// A name as it is, anything else as it is written.
    fn error<'a>(&self, form: &'a str) -> Result<Option<Cow<'a, str>>, Mistake> {
        let Some(at) = self.error.at() else {
            return Ok(None);
        };
        let mut parser = Parser::new(form, at, true);
        Ok(match parser.value().map_err(mistake)? {
            Value::Nil => None,
            Value::Text(text) | Value::Keyword(text) => Some(text),
            _ => Some(Cow::Borrowed(parser.since(at))),
        })
    }
}

/// The kind that a format spells so.
pub(crate) fn kind_of(name: &str) -> Option<Kind> {
    Some(match name {
        "invoke" => Kind::Invoke,
        "ok" => Kind::Ok,
        "fail" => Kind::Fail,
        "info" => Kind::Info,
        _ => return None,
    })
}

/// The name that a keyword, a string or a symbol is; `None` where there is none.
fn name<'a>(form: &'a str, at: Option<usize>) -> Result<Option<Cow<'a, str>>, Mistake> {
    let Some(at) = at else { return Ok(None) };
    let mut parser = Parser::new(form, at, true);
    if parser.peek() == Some(b':') {
        let name = parser.keyword().map_err(mistake)?;
        return Ok(Some(Cow::Borrowed(name)));
    }
    match parser.value().map_err(mistake)? {
        Value::Keyword(name) | Value::Text(name) => Ok(Some(name)),
        Value::Other(name) if !name.starts_with(['#', '\\']) => Ok(Some(name)),
        Value::Nil => Ok(None),
        other => Err(Mistake {
            at,
            message: format!("expected a name, found {other}").into(),
        }),
    }
}

fn value_at(form: &str, at: usize) -> Result<Value<'_>, Mistake> {
    Parser::new(form, at, true).value().map_err(mistake)
}

fn pair<'v, 'a>(value: &'v Value<'a>) -> Option<&'v [Value<'a>; 2]> {
    match value {
        Value::List(items) => items.as_slice().try_into().ok(),
        _ => None,
    }
}

/// The two values of a list of two.
fn pair_at(form: &str, at: usize) -> Result<Option<(Value<'_>, Value<'_>)>, Mistake> {
    let mut parser = Parser::new(form, at, true);
    let closing = match parser.peek() {
        Some(b'[') => b']',
        Some(b'(') => b')',
        _ => return Ok(None),
    };
    parser.pass();
    let mut items = || {
        let mut item = || match parser.item(closing)? {
            true => parser.value().map(Some),
            false => Ok(None),
        };
        let Some(key) = item()? else { return Ok(None) };
        let Some(value) = item()? else {
            return Ok(None);
        };
        Ok(item()?.is_none().then_some((key, value)))
    };
    items().map_err(mistake)
}

/// What is wrong with a form whose brackets were seen to close.
#[cold]
fn mistake(stop: Stop) -> Mistake {
    match stop {
        Stop::Wrong(mistake) => mistake,
        Stop::Ends => Mistake {
            at: 0,
            message: "the operation ends too early".into(),
        },
    }
}

#[cold]
fn missing(part: &str) -> Mistake {
    Mistake {
        at: 0,
        message: format!("the operation has no `{part}`").into(),
    }
}
