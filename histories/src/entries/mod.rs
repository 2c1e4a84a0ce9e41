//! Histories of every format, as the same entries: ours, Jepsen's EDN, and Porcupine's two kinds of log.
//!
//! [`Entries`] streams a file of any [`Format`], plain or as a zstd stream; [`Export`] writes entries as Jepsen's EDN. What
//! the formats agree on is in the entry; what they do not agree on, a checker has to ask the [`Format`] for:
//!
//! | | [Fencepost](Format::Fencepost) | [Jepsen](Format::Jepsen) | [Porcupine's maps](Format::PorcupineKv) | [Porcupine's log](Format::PorcupineEtcd) |
//! |---|---|---|---|---|
//! | a `fail` | did not happen | did not happen | none occurs | did not happen |
//! | an `info`, or no completion | may have happened at any time since | the same | the same | the same |
//! | an `ok` read of nil | never occurs: an untouched document reads as the empty text | tells nothing | never occurs | is a read of nil, which a register holds at first |
//! | a key | the lock, or the document | the first of a pair, if values are pairs | `:key` | none |
//! | times | nanoseconds | mostly, in nanoseconds | none | none |
//! | the order of the file | that of time once the file is sealed | that of time | that of time | that of time |
//! | its end | the footer | the last operation, or the bracket that closes them | the last operation | the last line |
//!
//! **Order.** Entries come in the order of the file. Only a history of ours whose file is not [sealed](crate::seal) may go
//! back in time: [`Entries::is_sorted`] tells whether this one did so far, and whoever needs the order has to sort by
//! [`Entry::time`], stably, or to ask for a sealed file.
//!
//! **Ends.** All whole operations are given, and then [`Entries::ending`] says whether the file was cut. A file of
//! operations one after another that is cut between two of them cannot be told from a whole one.
//!
//! ```
//! use histories::entries::{Entries, Format, Value};
//!
//! # fn main() -> Result<(), histories::ReadError> {
//! let mut entries = Entries::new(&b"{:process 0, :type :invoke, :f :write, :value [:x 1]}"[..])?;
//! assert_eq!(entries.format(), Format::Jepsen);
//! let entry = entries.next()?.unwrap();
//! assert_eq!((entry.key, entry.value), (Some(Value::Keyword("x".into())), Value::Integer(1)));
//! # Ok(())
//! # }
//! ```

mod edn;
mod export;
mod format;
mod jepsen;
mod operation;
mod own;
mod porcupine;
mod reader;
mod text;
mod value;

use std::borrow::Cow;

pub use edn::Mistake;
pub use export::Export;
pub use format::Format;
pub use reader::{Entries, Keys};
pub use value::Value;

use crate::Kind;

/// One event of a history of any format: what a checker of sequential models needs to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The line in which it begins, counted from 1; 0 in our histories, whose operations have numbers.
    pub line: u64,
    /// When, in nanoseconds, where the format tells.
    pub time: Option<u64>,
    /// Who: `c1` in our histories, `0` in others'. A process does one operation at a time.
    pub process: Cow<'a, str>,
    /// The operation's number where the format has one; without it a completion belongs to what its process invoked last.
    pub op: Option<u64>,
    /// What is said of the operation.
    pub kind: Kind,
    /// What the operation does, as the history spells it: `read`, `cas`, `acquire`.
    pub f: Cow<'a, str>,
    /// The object that it is done to, where a history has several.
    pub key: Option<Value<'a>>,
    /// What goes in, on an invocation; what came out, on a completion.
    pub value: Value<'a>,
    /// The fencing token of the grant, in our histories; others put it into `value`.
    pub token: Option<u64>,
    /// The instant until which the grant may be relied on, in our histories.
    pub validity: Option<u64>,
    /// The number of the acquire under whose grant this is done, in our histories.
    pub grant: Option<u64>,
    /// Why it failed or why its outcome is unknown, where that is told.
    pub error: Option<Cow<'a, str>>,
}

impl Entry<'_> {
    /// The same entry, no longer borrowed from what it was read from.
    pub fn into_owned(self) -> Entry<'static> {
        Entry {
            line: self.line,
            time: self.time,
            process: Cow::Owned(self.process.into_owned()),
            op: self.op,
            kind: self.kind,
            f: Cow::Owned(self.f.into_owned()),
            key: self.key.map(Value::into_owned),
            value: self.value.into_owned(),
            token: self.token,
            validity: self.validity,
            grant: self.grant,
            error: self.error.map(|error| Cow::Owned(error.into_owned())),
        }
    }
}
