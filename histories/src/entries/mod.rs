//! Histories of every format, as the same entries: ours, Jepsen's EDN, and Porcupine's two kinds of log.

mod value;

use std::borrow::Cow;

pub use value::Value;

use crate::Kind;

/// One event of a history of any format: what a checker of sequential models needs to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
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
