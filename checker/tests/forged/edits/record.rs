//! The storage's log, the ends of processes, and the end of the file.

use rand::RngExt;
use serde_json::{Value, json};

use crate::file::time;
use crate::forger::{Draft, Edit, is_a, is_of_client};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "no-log",
        apply: |d| d.remove(|e| e["process"] == "storage"),
    },
    Edit {
        name: "a-log-without-its-end",
        apply: |d| d.remove(|e| is_a(e, "log", "ok")),
    },
    Edit {
        name: "a-row-is-missing",
        apply: |d| drop_row(d, false),
    },
    Edit {
        name: "a-row-is-missing-and-uncounted",
        apply: |d| drop_row(d, true),
    },
    Edit {
        name: "a-row-twice",
        apply: double_row,
    },
    Edit {
        name: "a-row-of-another-version",
        apply: |d| row_field(d, "version", json!(99)),
    },
    Edit {
        name: "a-row-with-another-value",
        apply: |d| row_field(d, "value", json!("another")),
    },
    Edit {
        name: "a-row-with-another-token",
        apply: |d| row_field(d, "token", json!(77)),
    },
    Edit {
        name: "a-row-of-another-write",
        apply: |d| row_field(d, "op", json!(123)),
    },
    Edit {
        name: "a-row-of-another-document",
        apply: |d| row_field(d, "document", json!("another")),
    },
    Edit {
        name: "two-rows-swapped",
        apply: swap_rows,
    },
    Edit {
        name: "another-count-of-rows",
        apply: |d| d.change(|e| is_a(e, "log", "ok"), |e, _| e["entries"] = 1_000.into()),
    },
    Edit {
        name: "the-log-was-read-too-early",
        apply: early_log,
    },
    Edit {
        name: "the-log-failed",
        apply: |d| d.change(|e| is_a(e, "log", "ok"), |e, _| e["type"] = "fail".into()),
    },
    Edit {
        name: "no-exit",
        apply: no_exit,
    },
    Edit {
        name: "no-exits",
        apply: |d| d.remove(|e| e["f"] == "exit"),
    },
    Edit {
        name: "an-early-exit",
        apply: |d| exit(d, "c1"),
    },
    Edit {
        name: "the-server-ended",
        apply: |d| exit(d, "s1"),
    },
    Edit {
        name: "the-storage-ended",
        apply: |d| exit(d, "storage"),
    },
    Edit {
        name: "an-event-after-the-end",
        apply: event_after_the_end,
    },
    Edit {
        name: "no-footer",
        apply: no_footer,
    },
    Edit {
        name: "another-count-of-events",
        apply: wrong_count,
    },
    Edit {
        name: "another-digest",
        apply: wrong_digest,
    },
    Edit {
        name: "no-digest",
        apply: no_digest,
    },
];

fn is_row(event: &Value) -> bool {
    event["f"] == "accepted"
}

/// Removes a row; the log's count may follow.
fn drop_row(draft: &mut Draft, counted: bool) -> bool {
    let Some(place) = draft.pick(is_row) else {
        return false;
    };
    draft.file.events.remove(place);
    for log in draft
        .file
        .events
        .iter_mut()
        .filter(|e| counted && is_a(e, "log", "ok"))
    {
        log["entries"] = log["entries"]
            .as_u64()
            .unwrap_or(1)
            .saturating_sub(1)
            .into();
    }
    true
}

fn double_row(draft: &mut Draft) -> bool {
    let place = draft.pick(is_row);
    place
        .map(|place| {
            let copy = draft.file.events[place].clone();
            draft.file.events.push(copy);
        })
        .is_some()
}

fn row_field(draft: &mut Draft, field: &str, value: Value) -> bool {
    draft.change(is_row, |event, _| event[field] = value)
}

fn swap_rows(draft: &mut Draft) -> bool {
    let (Some(a), Some(b)) = (draft.pick(is_row), draft.pick(is_row)) else {
        return false;
    };
    let versions = (
        draft.file.events[a]["version"].clone(),
        draft.file.events[b]["version"].clone(),
    );
    draft.file.events[a]["version"] = versions.1;
    draft.file.events[b]["version"] = versions.0;
    a != b
}

/// The whole log, read while the clients still write.
fn early_log(draft: &mut Draft) -> bool {
    let at = draft.instant();
    let log = draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["process"] == "storage");
    for (place, event) in log.enumerate() {
        event["t"] = (at + place as u64).into();
    }
    true
}

fn no_exit(draft: &mut Draft) -> bool {
    let place = draft.pick(|e| e["f"] == "exit");
    place.map(|place| draft.file.events.remove(place)).is_some()
}

fn exit(draft: &mut Draft, process: &str) -> bool {
    let t = draft.instant();
    draft.file.events.push(json!({"t": t, "process": process, "op": 0, "type": "info", "f": "exit", "error": "signal 11"}));
    true
}

fn event_after_the_end(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(|e| e["f"] == "exit" && is_of_client(e)) else {
        return false;
    };
    let exit = draft.file.events[place].clone();
    let t = time(&exit) + draft.rng.random_range(1..MS);
    let op = draft.new_op();
    let event = json!({"t": t, "process": exit["process"], "op": op, "type": "invoke", "f": "read", "document": "document"});
    draft.file.events.push(event);
    true
}

fn no_footer(draft: &mut Draft) -> bool {
    draft.file.has_footer = false;
    true
}

fn wrong_count(draft: &mut Draft) -> bool {
    let events = draft.file.events.len() + 1;
    draft.file.footer = Some(json!({"events": events}));
    true
}

fn wrong_digest(draft: &mut Draft) -> bool {
    let events = draft.file.events.len();
    draft.file.footer = Some(json!({"events": events, "sha256": "0".repeat(64)}));
    true
}

fn no_digest(draft: &mut Draft) -> bool {
    let events = draft.file.events.len();
    draft.file.footer = Some(json!({"events": events}));
    true
}
