//! Our own histories, as a checker of sequential models sees them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::BufRead;

use super::{Entry, Value};
use crate::error::{Place, ReadError};
use crate::line::Source;
use crate::reader::{Ending, Reader};
use crate::{Event, Function, Kind};

/// Streams what clients did to locks and documents.
pub(crate) struct Own<R: BufRead> {
    reader: Reader<R>,
    locks: Locks,
}

impl<R: BufRead> Own<R> {
    pub(crate) fn start(source: Source<R>) -> Result<Self, ReadError> {
        let reader = Reader::start(source)?;
        let locks = Locks::default();
        Ok(Own { reader, locks })
    }

    pub(crate) fn ending(&self) -> Option<Ending> {
        self.reader.ending()
    }

    pub(crate) fn line(&self) -> u64 {
        self.reader.line()
    }

    pub(crate) fn place(&self) -> Place {
        self.reader.place()
    }

    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        let Some(mut event) = self.reader.next_of(is_of_model)? else {
            return Ok(None);
        };
        let key = match event.f {
            Function::Read | Function::Write => event.document.take(),
            _ => self.locks.of(&mut event),
        };
        Ok(Some(entry(event, key)))
    }
}

/// Whether a function does something to a lock or to a document.
fn is_of_model(f: Function) -> bool {
    use Function::*;
    matches!(f, Acquire | Extend | Release | Read | Write)
}

fn entry<'a>(event: Event<'a>, key: Option<Cow<'a, str>>) -> Entry<'a> {
    let value = match (event.f, event.kind) {
        // An untouched document has the empty value.
        (Function::Read, Kind::Ok) => Value::Text(event.value.unwrap_or_default()),
        (Function::Write, Kind::Invoke) => event.value.map_or(Value::Nil, Value::Text),
        _ => Value::Nil,
    };
    Entry {
        line: 0,
        time: Some(event.t),
        process: event.process,
        op: Some(event.op),
        kind: event.kind,
        f: event.f.name().into(),
        key: key.map(Value::Text),
        value,
        token: event.token,
        validity: event.validity,
        grant: event.grant,
        error: event.error,
    }
}

/// The locks of the grants that are open, for events that tell the grant alone.
#[derive(Default)]
struct Locks {
    names: Vec<String>,
    /// By the number of the acquire: which of the names.
    grants: HashMap<u64, usize>,
}

impl Locks {
    /// The lock of an event on a lock.
    fn of<'a>(&mut self, event: &mut Event<'a>) -> Option<Cow<'a, str>> {
        let acquire = match event.f {
            Function::Acquire => Some(event.op),
            _ => event.grant,
        };
        let lock = event.lock.take().or_else(|| {
            let name = self.grants.get(&acquire?)?;
            Some(Cow::Owned(self.names[*name].clone()))
        });
        match (event.f, event.kind, acquire) {
            (Function::Acquire, Kind::Invoke, Some(acquire)) => {
                if let Some(lock) = &lock {
                    let name = self.name(lock);
                    self.grants.insert(acquire, name);
                }
            }
            // Nothing is done under such a grant any more.
            (Function::Acquire, Kind::Fail, Some(acquire))
            | (Function::Release, Kind::Ok | Kind::Fail, Some(acquire)) => {
                self.grants.remove(&acquire);
            }
            _ => {}
        }
        lock
    }

    fn name(&mut self, lock: &str) -> usize {
        let known = self.names.iter().position(|name| name == lock);
        known.unwrap_or_else(|| {
            self.names.push(lock.to_owned());
            self.names.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Entries;

    fn history(lines: &[&str]) -> String {
        let saved = include_str!("../../corpus/v1/paused-client.jsonl");
        let header = saved.lines().next().unwrap();
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        format!("{header}\n{lines}")
    }

    /// `(op, f, key, value)` of each entry, the latter as EDN, and where each stands.
    fn read(text: &str) -> Vec<(u64, String, String, String, u64)> {
        let mut entries = Entries::new(text.as_bytes()).unwrap();
        let mut read = Vec::new();
        while let Some(entry) = entries.next().unwrap() {
            let key = entry.key.as_ref().map_or(String::new(), Value::to_string);
            let (op, f, value) = (
                entry.op.unwrap(),
                entry.f.to_string(),
                entry.value.to_string(),
            );
            read.push((op, f, key, value, entries.line()));
        }
        read
    }

    #[test]
    fn a_lock_is_that_of_the_grant_where_an_event_tells_the_grant_alone() {
        let text = history(&[
            r#"{"t":1,"process":"c1","op":1,"type":"invoke","f":"acquire","lock":"a"}"#,
            r#"{"t":1,"process":"c2","op":2,"type":"invoke","f":"acquire","lock":"b"}"#,
            r#"{"t":2,"process":"c1","op":1,"type":"ok","f":"acquire","token":7,"validity":9}"#,
            r#"{"t":2,"process":"c2","op":2,"type":"fail","f":"acquire","error":"busy"}"#,
            r#"{"t":3,"process":"c1","op":3,"type":"invoke","f":"extend","grant":1}"#,
            r#"{"t":3,"process":"c1","op":4,"type":"invoke","f":"held","lock":"a","grant":1}"#,
            r#"{"t":4,"process":"c1","op":5,"type":"ok","f":"release","grant":1}"#,
            r#"{"t":4,"process":"c1","op":6,"type":"ok","f":"release","grant":1}"#,
            r#"{"t":5,"process":"c2","op":7,"type":"ok","f":"extend","grant":2}"#,
        ]);
        let keys: Vec<_> = read(&text)
            .into_iter()
            .map(|(op, _, key, _, line)| (op, key, line))
            .collect();
        let expected = [
            (1, "a", 2),
            (2, "b", 3),
            (1, "a", 4),
            (2, "b", 5),
            (3, "a", 6),
            (5, "a", 8),
            (6, "", 9),
            (7, "", 10),
        ];
        let quoted = |key: &str| match key {
            "" => String::new(),
            key => format!("\"{key}\""),
        };
        let expected = expected.map(|(op, key, line)| (op, quoted(key), line));
        assert_eq!(keys, expected);
    }

    #[test]
    fn reads_and_writes_have_the_value_that_is_known() {
        let text = history(&[
            r#"{"t":1,"process":"c1","op":1,"type":"invoke","f":"read","document":"d"}"#,
            r#"{"t":2,"process":"c1","op":1,"type":"ok","f":"read","document":"d","version":0,"value":""}"#,
            r#"{"t":3,"process":"c1","op":2,"type":"ok", "f":"read","document":"d"}"#,
            r#"{"t":4,"process":"c1","op":3,"type":"invoke","f":"write","document":"d","value":"c1-\u0031"}"#,
            r#"{"t":5,"process":"c1","op":3,"type":"ok","f":"write","document":"d","value":"c1-1"}"#,
            r#"{"t":5,"process":"c1","op":4,"type":"fail","f":"read","document":"d","error":"lost"}"#,
            r#"{"t":6,"process":"storage","op":3,"type":"ok","f":"accepted","document":"d","value":"c1-1"}"#,
        ]);
        let values: Vec<_> = read(&text).into_iter().map(|read| read.3).collect();
        assert_eq!(values, ["nil", "\"\"", "\"\"", "\"c1-1\"", "nil", "nil"]);
    }

    #[test]
    fn events_that_are_left_out_are_read_all_the_same() {
        let work = r#"{"t":1,"process":"c1","op":1,"type":"invoke","f":"work","grant":1}"#;
        let read = r#"{"t":1,"process":"c1","op":2,"type":"invoke","f":"read","document":"d"}"#;
        let text = history(&[work, read, work, r#"{"events":3}"#]);
        let mut entries = Entries::new(text.as_bytes()).unwrap();
        assert_eq!(entries.next().unwrap().unwrap().op, Some(2));
        assert!(entries.next().unwrap().is_none());
        assert_eq!(entries.ending(), Some(Ending::Complete { events: 3 }));
        let broken = history(&[&work.replace("grant\":1", "grant\":x"), read]);
        let error = Entries::new(broken.as_bytes()).unwrap().next().unwrap_err();
        assert!(
            error.to_string().starts_with("line 2, column 65"),
            "{error}"
        );
    }

    #[test]
    fn an_unsealed_history_may_go_back_in_time() {
        let at =
            |t: u64| format!(r#"{{"t":{t},"process":"c1","op":{t},"type":"invoke","f":"read"}}"#);
        let text = history(&[&at(1), &at(3), &at(3), &at(2), &at(4)]);
        let mut entries = Entries::new(text.as_bytes()).unwrap();
        let mut sorted = Vec::new();
        while entries.next().unwrap().is_some() {
            sorted.push(entries.is_sorted());
        }
        assert_eq!(sorted, [true, true, true, false, false]);
    }
}
