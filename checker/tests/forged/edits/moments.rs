//! Grants that end at the instant at which something else begins.

use rand::RngExt;
use serde_json::{Value, json};

use super::struck::{Another, at_once, strike};
use crate::file::time;
use crate::forger::{Draft, Edit, is_a, is_of_client, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "a-second-grant-given-back-as-it-came",
        apply: |d| second_grant(d, 50 * MS as i64, "release"),
    },
    Edit {
        name: "a-second-grant-lost-as-it-came",
        apply: |d| second_grant(d, 50 * MS as i64, "lost"),
    },
    Edit {
        name: "a-second-grant-that-was-over-before-it-was-asked-for",
        apply: |d| second_grant(d, -(MS as i64) * 5, ""),
    },
    Edit {
        name: "a-renewal-at-the-end-of-the-validity",
        apply: |d| renewal(d, 0),
    },
    Edit {
        name: "a-renewal-just-before-the-end-of-the-validity",
        apply: |d| renewal(d, 1),
    },
    Edit {
        name: "a-server-killed-while-it-was-asked-for-a-lock",
        apply: kill_while_asked,
    },
];

/// Somebody else is granted the lock within the first milliseconds of a grant, for so long; and that ends at once.
fn second_grant(draft: &mut Draft, lasts: i64, end: &str) -> bool {
    let Some(place) = draft.pick(|e| is_a(e, "acquire", "ok")) else {
        return false;
    };
    let grant = draft.file.events[place].clone();
    let Some(other) = draft.pick(|e| is_of_client(e) && e["process"] != grant["process"]) else {
        return false;
    };
    let process = draft.file.events[other]["process"].clone();
    let from = (time(&grant) + draft.rng.random_range(0..4 * MS)).saturating_sub(MS / 2);
    let (to, op) = (from + draft.rng.random_range(1..2 * MS), draft.new_op());
    let mut done = json!({"t": to, "process": process, "op": op, "type": "ok", "f": "acquire"});
    if let Some(token) = grant["token"].as_u64() {
        done["token"] = (token + 1_000).into();
    }
    if !grant["validity"].is_null() {
        done["validity"] = from.saturating_add_signed(lasts).into();
    }
    draft.file.events.extend([
        json!({"t": from, "process": process, "op": op, "type": "invoke", "f": "acquire", "lock": "lock", "ttl_ms": 300}),
        done,
    ]);
    draft.file.events.extend(ending(&process, op, to, end));
    true
}

fn ending(process: &Value, grant: u64, t: u64, end: &str) -> Vec<Value> {
    let event = |t: u64, op: u64, kind: &str| json!({"t": t, "process": process, "op": op, "type": kind, "f": end, "lock": "lock", "grant": grant});
    match end {
        "release" => vec![
            event(t, grant + 1, "invoke"),
            event(t + 1_000, grant + 1, "ok"),
        ],
        "lost" => vec![event(t, 0, "info")],
        _ => Vec::new(),
    }
}

fn renewal(draft: &mut Draft, earlier: u64) -> bool {
    let Some(place) = draft.pick(|e| is_a(e, "acquire", "ok") && !e["validity"].is_null()) else {
        return false;
    };
    let grant = draft.file.events[place].clone();
    let validity = grant["validity"].as_u64().unwrap_or(0);
    draft.file.events.push(json!({
        "t": validity.saturating_sub(earlier), "process": grant["process"], "op": 0, "type": "info", "f": "renewed", "grant": op_of(&grant),
        "validity": validity + 300 * MS,
    }));
    true
}

/// A server dies while somebody asks for a lock, or just before or after that.
fn kill_while_asked(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(|e| is_a(e, "acquire", "ok")) else {
        return false;
    };
    let t = time(&draft.file.events[place]);
    let from = t.saturating_sub(draft.rng.random_range(0..3 * MS));
    let does = json!([{"effect": "kills"}]);
    let times = (from, from + draft.rng.random_range(3_000..9 * MS));
    strike(
        draft,
        Another {
            on: "s1",
            does,
            when: at_once(),
            times,
        },
    )
}
