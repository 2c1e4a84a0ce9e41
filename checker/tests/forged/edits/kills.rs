//! Clients that live on for a moment while they are being killed.

use serde_json::{Value, json};

use super::healings::time_of;
use crate::file::time;
use crate::forger::{Draft, Edit, effect, is_a, is_of_client};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "who-was-killed-lived-on-and-another-had-its-lock",
        apply: |d| live_on(d, false),
    },
    Edit {
        name: "who-was-killed-gave-its-lock-back-first",
        apply: |d| live_on(d, true),
    },
];

/// Another is granted the lock while `c1` is being killed, which asks after that whether it holds it.
fn live_on(draft: &mut Draft, gives_back: bool) -> bool {
    let is_kill = draft
        .fault()
        .is_some_and(|f| ["kills", "restarts"].contains(&effect(f)) && f["on"] == "c1");
    let (true, Some(t)) = (is_kill, time_of(draft, "inject", "invoke")) else {
        return false;
    };
    let is_own = |e: &&Value| is_a(e, "acquire", "ok") && e["process"] == "c1" && time(e) < t;
    let Some(grant) = draft.file.events.iter().rfind(is_own) else {
        return false;
    };
    let grant = grant["op"].clone();
    let Some(other) = draft.pick(|e| is_of_client(e) && e["process"] == "c2") else {
        return false;
    };
    let other = draft.file.events[other]["process"].clone();
    let op = draft.new_op();
    let at = |tenths: u64| t + tenths * MS / 10;
    let event = |t: u64, process: &Value, op: u64, kind: &str, f: &str| json!({"t": t, "process": process, "op": op, "type": kind, "f": f, "lock": "lock"});
    let c1 = json!("c1");
    let mut all = vec![
        event(at(2), &other, op, "invoke", "acquire"),
        event(at(3), &other, op, "ok", "acquire"),
        event(at(4), &c1, op + 1, "invoke", "held"),
    ];
    all[1]["validity"] = (at(3) + 10 * MS).into();
    if gives_back {
        all.push(event(at(1), &c1, op + 2, "invoke", "release"));
        all.push(event(at(2), &c1, op + 2, "ok", "release"));
    }
    for own in all.iter_mut().filter(|e| e["process"] == "c1") {
        own["grant"] = grant.clone();
    }
    draft.file.events.extend(all);
    true
}
