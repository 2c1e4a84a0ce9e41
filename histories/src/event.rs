//! One event of a history: a line of `history.jsonl`.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::Effect;

/// What an event says of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The operation was begun.
    Invoke,
    /// It happened, between its invocation and this event.
    Ok,
    /// It certainly did not happen.
    Fail,
    /// It may have happened at any time since its invocation; or a remark that completes nothing (`lost`, `exit`).
    Info,
}

/// What an operation does (the field `f`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Function {
    /// Ask for the lock. `lock`, `ttl_ms`; ok: `token` and `validity` where the service has them; fail: `error` is `busy`.
    Acquire,
    /// Ask for more time on a grant. `lock`, `grant`; ok: `validity`; fail: it was not done, and `lost` says whether the lock
    /// is gone.
    Extend,
    /// Give the lock back. `lock`, `grant`; fail: it was not done, and `lost` says whether the lock was gone already.
    Release,
    /// Ask the service whether it still holds the grant to be valid. `lock`, `grant`; ok: `held`.
    Held,
    /// Always `info`: the client was told that it no longer holds `grant`; `error` says by what.
    Lost,
    /// Always `info`: `grant` was extended in the background, and may be relied on until `validity`.
    Renewed,
    /// The work that the lock protects: it began (`invoke`) and ended (`ok`). `grant`.
    Work,
    /// Read the document. `document`, `grant`; ok: `version`, `value`.
    Read,
    /// Write the document. `document`, `grant`, `value`, `based_on`, and `token` where it is sent along;
    /// ok: `version`; fail: `error` is `rejected` (the fence) or what else forbade it.
    Write,
    /// A named point that a trigger waited for: reached (`invoke`), and left (`ok`). `point`, `grant`, `nth`.
    Point,
    /// A fault begins. `step` (index in the plan), `fault`, `on`, `does`, `engine`; ok: `evidence` that it took hold;
    /// info: injected, but nothing shows that it took hold; fail: not injected.
    Inject,
    /// A fault ends. The same fields; ok: `evidence` that it is over.
    Heal,
    /// The storage's log of accepted writes is read, by [`STORAGE`](crate::STORAGE): invoke, one [`Function::Accepted`] a row, ok with `entries`.
    Log,
    /// Always `ok`, by [`STORAGE`](crate::STORAGE): one row of that log. `op` is the write's; `document`, `version`, `value`, `token`.
    Accepted,
    /// Always `info`: a process ended, a client or, under its host's name, a server; `error` says how
    /// (`exit 0`, `signal 9`), with `, as asked` where the run killed a client at its end, and `, unasked` where it ended well for another.
    Exit,
    /// Always `info`: a client or, under its host's name, a server stood still for the `stalled_ns` before this event, and a
    /// heartbeat came late; or, `on` the storage, that kept a client waiting for an answer. A planned fault may be why.
    Stall,
}

impl Kind {
    /// As the history spells it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Invoke => "invoke",
            Kind::Ok => "ok",
            Kind::Fail => "fail",
            Kind::Info => "info",
        }
    }
}

impl Function {
    /// As the history spells it.
    pub fn name(self) -> &'static str {
        match self {
            Function::Acquire => "acquire",
            Function::Extend => "extend",
            Function::Release => "release",
            Function::Held => "held",
            Function::Lost => "lost",
            Function::Renewed => "renewed",
            Function::Work => "work",
            Function::Read => "read",
            Function::Write => "write",
            Function::Point => "point",
            Function::Inject => "inject",
            Function::Heal => "heal",
            Function::Log => "log",
            Function::Accepted => "accepted",
            Function::Exit => "exit",
            Function::Stall => "stall",
        }
    }
}

/// One line of a history. Which of the optional fields are there depends on `f` (see [`Function`]) and `type`.
///
/// All times are nanoseconds since the run's monotonic base, all durations carry their unit in the name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event<'a> {
    /// When it was recorded.
    pub t: u64,
    /// Who did it: `c1`, after a restart `c1.2`, [`NEMESIS`](crate::NEMESIS) or [`STORAGE`](crate::STORAGE).
    #[serde(borrow)]
    pub process: Cow<'a, str>,
    /// The operation, unique in a run; a completion carries the op of its invocation.
    pub op: u64,
    /// What the event says of the operation.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// What the operation does.
    pub f: Function,
    /// The name of the lock.
    #[serde(
        borrow,
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub lock: Option<Cow<'a, str>>,
    /// The `op` of the acquire under whose grant this is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u64>,
    /// The fencing token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// The instant until which the grant may be relied on; absent for a lock without expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<u64>,
    /// The time to live that was asked for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// How long the service was to wait for a busy lock, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Whether the lock was gone, on the `fail` of an `extend` or a `release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<bool>,
    /// What the service answered to `held`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// The name of the document.
    #[serde(
        borrow,
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub document: Option<Cow<'a, str>>,
    /// The version of the document that was read or that the write made. An untouched document has version 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The version that the written value was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub based_on: Option<u64>,
    /// The value read or written; written values are unique in a run. An untouched document has the empty value.
    #[serde(
        borrow,
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub value: Option<Cow<'a, str>>,
    /// The rows of the storage's log, on the completion of `log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// The named point of a client.
    #[serde(
        borrow,
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub point: Option<Cow<'a, str>>,
    /// The how-manieth grant of the process this is, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// The fault's index in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The fault's name.
    #[serde(
        borrow,
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub fault: Option<Cow<'a, str>>,
    /// The hosts that the fault struck, resolved (`leader` stands here as the host that led).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<String>>,
    /// What the fault does to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub does: Option<Vec<Effect>>,
    /// By what the fault was made: `sigstop`, `libfaketime`, `netem`, `nfqueue`, …
    #[serde(
        borrow,
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub engine: Option<Cow<'a, str>>,
    /// Of a `stall`: for how long the process had stood still, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_ns: Option<u64>,
    /// What shows that the fault took hold, or that it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Map<String, Value>>,
    /// Why it failed, or why the outcome is unknown.
    #[serde(
        borrow,
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub error: Option<Cow<'a, str>>,
}

impl<'a> Event<'a> {
    /// An event with none of the optional fields.
    pub fn new(t: u64, process: impl Into<Cow<'a, str>>, op: u64, kind: Kind, f: Function) -> Self {
        Event {
            t,
            process: process.into(),
            op,
            kind,
            f,
            lock: None,
            grant: None,
            token: None,
            validity: None,
            ttl_ms: None,
            wait_ms: None,
            lost: None,
            held: None,
            document: None,
            version: None,
            based_on: None,
            value: None,
            entries: None,
            point: None,
            nth: None,
            step: None,
            fault: None,
            on: None,
            does: None,
            engine: None,
            stalled_ns: None,
            evidence: None,
            error: None,
        }
    }

    /// The same event, no longer borrowed from the line that it was read from.
    pub fn into_owned(self) -> Event<'static> {
        fn owned(text: Option<Cow<'_, str>>) -> Option<Cow<'static, str>> {
            text.map(|text| Cow::Owned(text.into_owned()))
        }
        Event {
            t: self.t,
            process: Cow::Owned(self.process.into_owned()),
            op: self.op,
            kind: self.kind,
            f: self.f,
            lock: owned(self.lock),
            grant: self.grant,
            token: self.token,
            validity: self.validity,
            ttl_ms: self.ttl_ms,
            wait_ms: self.wait_ms,
            lost: self.lost,
            held: self.held,
            document: owned(self.document),
            version: self.version,
            based_on: self.based_on,
            value: owned(self.value),
            entries: self.entries,
            point: owned(self.point),
            nth: self.nth,
            step: self.step,
            fault: owned(self.fault),
            on: self.on,
            does: self.does,
            engine: owned(self.engine),
            stalled_ns: self.stalled_ns,
            evidence: self.evidence,
            error: owned(self.error),
        }
    }
}

/// Reads an optional text that borrows from its line wherever the line has no escapes in it.
///
/// `#[serde(borrow)]` sees to that for a `Cow<str>`, yet an `Option` around it comes out owned, always.
fn text<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'t>(#[serde(borrow)] Cow<'t, str>);
    Ok(Option::<Text<'a>>::deserialize(deserializer)?.map(|Text(text)| text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_history() {
        use Function::*;
        for f in [
            Acquire, Extend, Release, Held, Lost, Renewed, Work, Read, Write, Point, Inject, Heal,
            Log, Accepted, Exit, Stall,
        ] {
            assert_eq!(serde_json::to_value(f).unwrap(), f.name());
        }
        for kind in [Kind::Invoke, Kind::Ok, Kind::Fail, Kind::Info] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
