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
