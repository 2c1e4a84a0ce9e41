//! More than one document.

use rand::RngExt;
use serde_json::{Value, json};

use crate::file::time;
use crate::forger::{Draft, Edit, is_a, is_of_client, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "a-write-of-another-document",
        apply: |d| write(d, "another", Some(0)),
    },
    Edit {
        name: "a-write-of-another-document-that-is-based-on-a-later-version",
        apply: |d| write(d, "another", Some(1)),
    },
    Edit {
        name: "a-write-of-another-document-that-says-no-base",
        apply: |d| write(d, "another", None),
    },
];

/// A client writes once more while it works, a document whose log is read at the end too.
fn write(draft: &mut Draft, document: &str, base: Option<u64>) -> bool {
    let Some(place) = draft.pick(|e| is_a(e, "write", "ok") && is_of_client(e)) else {
        return false;
    };
    let before = draft.file.events[place].clone();
    let is_begun = |e: &&Value| is_a(e, "write", "invoke") && e["op"] == before["op"];
    let Some(mut invoke) = draft.file.events.iter().find(is_begun).cloned() else {
        return false;
    };
    let (t, op) = (time(&before) + 1_000, draft.new_op());
    let mut done = before.clone();
    (invoke["t"], done["t"]) = (t.into(), (t + 8_000).into());
    invoke["value"] = "more".into();
    invoke["based_on"] = base.into();
    done["version"] = (base.unwrap_or(0) + draft.rng.random_range(0..3)).into();
    for event in [&mut invoke, &mut done] {
        event["op"] = op.into();
        event["document"] = document.into();
    }
    read_log(draft, &invoke, &done);
    draft.file.events.extend([invoke, done]);
    true
}

/// A reading of the document's log, with this write as its one row.
fn read_log(draft: &mut Draft, invoke: &Value, done: &Value) {
    let (t, op) = (draft.file.end() + MS, op_of(invoke) + 1);
    let event = |later: u64, op: u64, kind: &str, f: &str| json!({"t": t + later, "process": "storage", "op": op, "type": kind, "f": f, "document": invoke["document"]});
    let mut row = event(1, op_of(invoke), "ok", "accepted");
    row["version"] = done["version"].clone();
    row["value"] = invoke["value"].clone();
    row["token"] = invoke["token"].clone();
    let mut read = event(2, op, "ok", "log");
    read["entries"] = 1.into();
    draft
        .file
        .events
        .extend([event(0, op, "invoke", "log"), row, read]);
}
