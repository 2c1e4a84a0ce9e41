//! Completions that say something else.

use serde_json::{Value, json};

use crate::file::time;
use crate::forger::{Draft, Edit, is, is_a, is_of_client};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "ok-becomes-fail",
        apply: |d| becomes(d, "ok", "fail"),
    },
    Edit {
        name: "ok-becomes-info",
        apply: |d| becomes(d, "ok", "info"),
    },
    Edit {
        name: "fail-becomes-ok",
        apply: |d| becomes(d, "fail", "ok"),
    },
    Edit {
        name: "fail-becomes-info",
        apply: |d| becomes(d, "fail", "info"),
    },
    Edit {
        name: "info-becomes-ok",
        apply: |d| becomes(d, "info", "ok"),
    },
    Edit {
        name: "info-becomes-fail",
        apply: |d| becomes(d, "info", "fail"),
    },
    Edit {
        name: "a-refused-acquire-was-granted",
        apply: grant_refused,
    },
    Edit {
        name: "a-granted-acquire-was-refused",
        apply: refuse_granted,
    },
    Edit {
        name: "a-granted-acquire-is-unknown",
        apply: |d| of(d, "acquire", "ok", "info"),
    },
    Edit {
        name: "a-write-was-rejected",
        apply: reject_write,
    },
    Edit {
        name: "a-write-is-unknown",
        apply: |d| of(d, "write", "ok", "info"),
    },
    Edit {
        name: "a-release-failed",
        apply: |d| of(d, "release", "ok", "fail"),
    },
    Edit {
        name: "a-release-is-unknown",
        apply: |d| of(d, "release", "ok", "info"),
    },
    Edit {
        name: "an-extension-failed",
        apply: |d| of(d, "extend", "ok", "fail"),
    },
    Edit {
        name: "an-extension-is-unknown",
        apply: |d| of(d, "extend", "ok", "info"),
    },
    Edit {
        name: "a-loss-is-no-loss",
        apply: no_loss,
    },
    Edit {
        name: "a-failure-is-a-loss",
        apply: loss,
    },
    Edit {
        name: "held-is-the-other-way",
        apply: held,
    },
];

fn set(draft: &mut Draft, fits: impl Fn(&Value) -> bool, kind: &str) -> bool {
    draft.change(fits, |event, _| event["type"] = kind.into())
}

fn becomes(draft: &mut Draft, old: &str, new: &str) -> bool {
    let remark = |e: &Value| {
        ["lost", "exit", "stall", "renewed"]
            .iter()
            .any(|f| e["f"] == *f)
    };
    set(draft, |e| is_of_client(e) && is(e, old) && !remark(e), new)
}

fn of(draft: &mut Draft, f: &str, old: &str, new: &str) -> bool {
    set(draft, |e| is_a(e, f, old), new)
}

/// The acquire that was answered `busy` was granted, as the others were.
fn grant_refused(draft: &mut Draft) -> bool {
    let granted = draft.pick(|e| is_a(e, "acquire", "ok"));
    let like = granted.map_or(Value::Null, |place| draft.file.events[place].clone());
    draft.change(
        |e| is_a(e, "acquire", "fail"),
        |event, _| {
            let t = time(event);
            let mut fields = json!({"t": t, "process": event["process"], "op": event["op"], "type": "ok", "f": "acquire"});
            if !like["token"].is_null() {
                fields["token"] = (like["token"].as_u64().unwrap_or(0) + 1).into();
            }
            if !like["validity"].is_null() {
                fields["validity"] = (t + 299 * MS).into();
            }
            *event = fields;
        },
    )
}

fn refuse_granted(draft: &mut Draft) -> bool {
    draft.change(
        |e| is_a(e, "acquire", "ok"),
        |event, _| {
            *event = json!({"t": event["t"], "process": event["process"], "op": event["op"], "type": "fail", "f": "acquire", "error": "busy"});
        },
    )
}

fn reject_write(draft: &mut Draft) -> bool {
    draft.change(
        |e| is_a(e, "write", "ok"),
        |event, _| {
            event["type"] = "fail".into();
            event["error"] = "rejected".into();
        },
    )
}

fn no_loss(draft: &mut Draft) -> bool {
    draft.change(
        |e| !e["lost"].is_null(),
        |event, _| {
            drop(
                event
                    .as_object_mut()
                    .and_then(|fields| fields.remove("lost")),
            )
        },
    )
}

fn loss(draft: &mut Draft) -> bool {
    draft.change(
        |e| ["extend", "release"].iter().any(|f| e["f"] == *f) && !is(e, "invoke"),
        |event, _| {
            event["type"] = "fail".into();
            event["lost"] = true.into();
        },
    )
}

fn held(draft: &mut Draft) -> bool {
    draft.change(
        |e| !e["held"].is_null(),
        |event, _| event["held"] = (event["held"] == false).into(),
    )
}
