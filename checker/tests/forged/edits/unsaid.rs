//! What a record leaves unsaid, who was held and worked, and what is taken for an excuse.

use serde_json::{Value, json};

use super::healings::time_of;
use crate::file::time;
use crate::forger::{Draft, Edit, effect, is, is_a, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "a-read-without-its-value",
        apply: |d| unsaid(d, |e| is_a(e, "read", "ok"), "value"),
    },
    Edit {
        name: "a-write-without-its-value",
        apply: |d| unsaid(d, |e| is_a(e, "write", "invoke"), "value"),
    },
    Edit {
        name: "no-write-has-a-value",
        apply: |d| all_unsaid(d, "write", "value"),
    },
    Edit {
        name: "no-bases",
        apply: |d| all_unsaid(d, "write", "based_on"),
    },
    Edit {
        name: "one-base",
        apply: one_base,
    },
    Edit {
        name: "a-log-answers-of-another-document",
        apply: |d| {
            d.change(
                |e| is_a(e, "log", "ok"),
                |e, _| e["document"] = "another".into(),
            )
        },
    },
    Edit {
        name: "a-log-answers-of-no-document",
        apply: |d| unsaid(d, |e| is_a(e, "log", "ok"), "document"),
    },
    Edit {
        name: "refusals-are-unknown",
        apply: |d| refusals(d, "info", 0),
    },
    Edit {
        name: "nobody-answered-for-long",
        apply: |d| refusals(d, "info", 3_000 * MS),
    },
    Edit {
        name: "nobody-was-granted-for-long",
        apply: |d| refusals(d, "fail", 3_000 * MS),
    },
    Edit {
        name: "work-while-it-is-held",
        apply: |d| act_while_held(d, &["acquire", "read", "write", "work", "release"]),
    },
    Edit {
        name: "a-question-while-work-is-held",
        apply: |d| act_while_held(d, &["held", "extend"]),
    },
    Edit {
        name: "work-ends-while-it-is-held",
        apply: end_while_held,
    },
    Edit {
        name: "a-storage-s-stall-in-place-of-its-client-s",
        apply: |d| {
            d.change(
                |e| e["f"] == "stall",
                |e, _| e["process"] = "storage".into(),
            )
        },
    },
    Edit {
        name: "the-storage-stopped-in-place-of-its-client",
        apply: |d| excuse(d, "storage", json!([{"effect": "stops"}])),
    },
    Edit {
        name: "a-way-to-the-storage-in-place-of-a-stop",
        apply: |d| {
            let delay = json!([{"effect": "delays-packets", "to": "storage", "each_ms": 30_000}]);
            excuse(d, "c1", delay)
        },
    },
    Edit {
        name: "a-way-to-all-in-place-of-a-stop",
        apply: |d| {
            excuse(
                d,
                "c1",
                json!([{"effect": "delays-packets", "each_ms": 30_000}]),
            )
        },
    },
];

fn unsay(event: &mut Value, field: &str) -> bool {
    let fields = event.as_object_mut();
    fields.and_then(|fields| fields.remove(field)).is_some()
}

fn unsaid(draft: &mut Draft, fits: impl Fn(&Value) -> bool, field: &str) -> bool {
    draft.change(
        |e| fits(e) && !e[field].is_null(),
        |e, _| e[field] = Value::Null,
    )
}

fn all_unsaid(draft: &mut Draft, f: &str, field: &str) -> bool {
    let events = draft.file.events.iter_mut().filter(|e| e["f"] == f);
    events.filter_map(|e| unsay(e, field).then_some(())).count() > 0
}

/// Only one write says what it is based on.
fn one_base(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(|e| !e["based_on"].is_null()) else {
        return false;
    };
    let op = op_of(&draft.file.events[place]);
    let others = draft.file.events.iter_mut().filter(|e| op_of(e) != op);
    others
        .filter_map(|e| unsay(e, "based_on").then_some(()))
        .count()
        > 0
}

/// Every acquire that was refused ends so, and from some time on everything is later.
fn refusals(draft: &mut Draft, kind: &str, later: u64) -> bool {
    let Some(place) = draft.pick(|e| is_a(e, "acquire", "fail")) else {
        return false;
    };
    let after = time(&draft.file.events[place]);
    for event in &mut draft.file.events {
        if is_a(event, "acquire", "fail") {
            event["type"] = kind.into();
        }
        if time(event) > after {
            event["t"] = (time(event) + later).into();
        }
    }
    true
}

/// When the work of `c1` is held, as long as it certainly is.
fn held(draft: &mut Draft) -> Option<(u64, u64)> {
    draft
        .fault()
        .filter(|fault| effect(fault) == "holds-work")?;
    Some((
        time_of(draft, "inject", "ok")?,
        time_of(draft, "heal", "invoke")?,
    ))
}

/// The client does something under its grant while its work is held.
fn act_while_held(draft: &mut Draft, functions: &[&str]) -> bool {
    let (Some((from, to)), Some(f)) = (held(draft), draft.one_of(functions)) else {
        return false;
    };
    let is_grant = |e: &&Value| is_a(e, "acquire", "ok") && e["process"] == "c1" && time(e) < from;
    let grant = draft.file.events.iter().filter(is_grant).map(op_of).max();
    let (t, op) = (from + to.saturating_sub(from) / 3, draft.new_op());
    for (t, kind) in [(t, "invoke"), (t + MS, "info")] {
        draft.file.events.push(json!({
            "t": t, "process": "c1", "op": op, "type": kind, "f": f, "grant": grant, "lock": "lock", "document": "document",
        }));
    }
    true
}

/// The client's work ends before it is let go.
fn end_while_held(draft: &mut Draft) -> bool {
    let Some((from, to)) = held(draft) else {
        return false;
    };
    draft.change(
        |e| e["process"] == "c1" && e["f"] == "work" && is(e, "ok") && time(e) >= to,
        |e, _| e["t"] = (from + to.saturating_sub(from) / 2).into(),
    )
}

/// What stopped a client is said to have been something else.
fn excuse(draft: &mut Draft, host: &str, does: Value) -> bool {
    let Some(fault) = draft.fault() else {
        return false;
    };
    if !["stops", "holds-work"].contains(&effect(fault)) || fault["on"] != "c1" {
        return false;
    }
    fault["on"] = host.into();
    fault["does"] = does.clone();
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["does"].is_array())
    {
        event["on"] = json!([host]);
        event["does"] = does.clone();
    }
    true
}
