//! Things that nobody did.

use rand::RngExt;
use serde_json::{Value, json};

use crate::file::time;
use crate::forger::{Draft, Edit, is_a, is_of_client, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "a-write-without-a-grant",
        apply: |d| act_at_any_time(d, "write"),
    },
    Edit {
        name: "work-without-a-grant",
        apply: |d| act_at_any_time(d, "work"),
    },
    Edit {
        name: "a-write-under-a-refused-acquire",
        apply: |d| act_after(d, "write", |e| is_a(e, "acquire", "fail"), op_of),
    },
    Edit {
        name: "work-under-a-refused-acquire",
        apply: |d| act_after(d, "work", |e| is_a(e, "acquire", "fail"), op_of),
    },
    Edit {
        name: "a-write-under-an-unknown-acquire",
        apply: |d| act_after(d, "write", |e| is_a(e, "acquire", "info"), op_of),
    },
    Edit {
        name: "a-write-after-its-release",
        apply: |d| act_after(d, "write", |e| is_a(e, "release", "ok"), grant_of),
    },
    Edit {
        name: "work-after-its-release",
        apply: |d| act_after(d, "work", |e| is_a(e, "release", "ok"), grant_of),
    },
    Edit {
        name: "a-write-after-its-loss",
        apply: |d| {
            act_after(
                d,
                "write",
                |e| e["f"] == "lost" || e["lost"] == true,
                grant_of,
            )
        },
    },
    Edit {
        name: "a-write-under-a-missing-acquire",
        apply: |d| act_after(d, "write", is_of_client, |_| 4_242),
    },
    Edit {
        name: "a-second-holder",
        apply: second_holder,
    },
    Edit {
        name: "a-grant-over-on-arrival",
        apply: over_on_arrival,
    },
    Edit {
        name: "a-notice-of-loss",
        apply: |d| remark(d, "lost"),
    },
    Edit {
        name: "a-late-renewal",
        apply: |d| remark(d, "renewed"),
    },
    Edit {
        name: "a-stall",
        apply: stall,
    },
    Edit {
        name: "a-late-extension",
        apply: |d| lock_call(d, "extend", "ok"),
    },
    Edit {
        name: "an-unknown-extension",
        apply: |d| lock_call(d, "extend", "info"),
    },
    Edit {
        name: "an-early-release",
        apply: |d| lock_call(d, "release", "ok"),
    },
    Edit {
        name: "an-early-failing-release",
        apply: |d| lock_call(d, "release", "fail"),
    },
    Edit {
        name: "an-acquire-without-an-answer",
        apply: endless_acquire,
    },
    Edit {
        name: "a-second-lock",
        apply: second_lock,
    },
    Edit {
        name: "a-read-of-the-past",
        apply: stale_read,
    },
];

fn grant_of(event: &Value) -> u64 {
    event["grant"].as_u64().unwrap_or(4_243)
}

/// A `work` or a `write` of a client, for some milliseconds; a write makes the next version, and the log has it.
fn act(draft: &mut Draft, f: &str, process: &Value, grant: Option<u64>, from: u64) {
    let to = from + draft.rng.random_range(MS / 10..8 * MS);
    let op = draft.new_op();
    let (mut invoke, mut done) = (
        json!({"t": from, "process": process, "op": op, "type": "invoke", "f": f}),
        json!({"t": to, "process": process, "op": op, "type": "ok", "f": f}),
    );
    if let Some(grant) = grant {
        invoke["grant"] = grant.into();
    }
    if f == "write" {
        let base = draft.rng.random_range(0..3);
        let version = add_row(draft, op);
        invoke["document"] = "document".into();
        invoke["value"] = format!("v{op}").into();
        invoke["based_on"] = base.into();
        done["document"] = "document".into();
        done["version"] = version.into();
    }
    draft.file.events.extend([invoke, done]);
}

/// One more row at the end of the log, which counts it. Gives its version.
fn add_row(draft: &mut Draft, op: u64) -> u64 {
    let rows = draft.file.events.iter().filter(|e| e["f"] == "accepted");
    let version = rows
        .filter_map(|row| row["version"].as_u64())
        .max()
        .unwrap_or(0)
        + 1;
    let Some(log) = draft.file.events.iter_mut().find(|e| is_a(e, "log", "ok")) else {
        return version;
    };
    log["entries"] = version.into();
    let t = time(log).saturating_sub(1);
    let row = json!({"t": t, "process": "storage", "op": op, "type": "ok", "f": "accepted", "document": "document", "version": version, "value": format!("v{op}")});
    draft.file.events.push(row);
    version
}

fn act_at_any_time(draft: &mut Draft, f: &str) -> bool {
    let (Some(place), from) = (draft.pick(is_of_client), draft.instant()) else {
        return false;
    };
    let process = draft.file.events[place]["process"].clone();
    act(draft, f, &process, None, from);
    true
}

/// An act some time after an event, under a grant that follows from it.
fn act_after(
    draft: &mut Draft,
    f: &str,
    fits: impl Fn(&Value) -> bool,
    grant: impl Fn(&Value) -> u64,
) -> bool {
    let Some(place) = draft.pick(fits) else {
        return false;
    };
    let event = draft.file.events[place].clone();
    let from = time(&event) + draft.rng.random_range(MS / 10..40 * MS);
    act(draft, f, &event["process"], Some(grant(&event)), from);
    true
}

/// A grant that was there at this time, and a client that has another.
fn grant_and_other(draft: &mut Draft) -> Option<(Value, Value)> {
    let place = draft.pick(|e| is_a(e, "acquire", "ok"))?;
    let grant = draft.file.events[place].clone();
    let other = draft.pick(|e| is_of_client(e) && e["process"] != grant["process"])?;
    Some((grant, draft.file.events[other]["process"].clone()))
}

fn acquire(draft: &mut Draft, process: &Value, lock: &str, times: (u64, u64), like: &Value) {
    let op = draft.new_op();
    let mut done =
        json!({"t": times.1, "process": process, "op": op, "type": "ok", "f": "acquire"});
    if let Some(token) = like["token"].as_u64() {
        done["token"] = (token + 1_000).into();
    }
    if !like["validity"].is_null() {
        done["validity"] = (times.0 + 20 * MS).into();
    }
    draft.file.events.extend([
        json!({"t": times.0, "process": process, "op": op, "type": "invoke", "f": "acquire", "lock": lock, "ttl_ms": 300}),
        done,
    ]);
}

fn second_holder(draft: &mut Draft) -> bool {
    let Some((grant, other)) = grant_and_other(draft) else {
        return false;
    };
    let from = time(&grant) + draft.rng.random_range(1..10 * MS);
    acquire(draft, &other, "lock", (from, from + MS), &grant);
    true
}

fn over_on_arrival(draft: &mut Draft) -> bool {
    let Some((grant, other)) = grant_and_other(draft) else {
        return false;
    };
    let from = time(&grant).saturating_sub(draft.rng.random_range(0..30 * MS));
    acquire(draft, &other, "lock", (from, from + 21 * MS), &grant);
    true
}

fn remark(draft: &mut Draft, f: &str) -> bool {
    let Some(place) = draft.pick(|e| is_a(e, "acquire", "ok")) else {
        return false;
    };
    let grant = draft.file.events[place].clone();
    let t = time(&grant) + draft.rng.random_range(1..500 * MS);
    let mut event = json!({"t": t, "process": grant["process"], "op": 0, "type": "info", "f": f, "grant": grant["op"]});
    if f == "renewed" {
        event["validity"] = (t + 300 * MS).into();
    }
    draft.file.events.push(event);
    true
}

fn stall(draft: &mut Draft) -> bool {
    let (Some(place), t) = (draft.pick(is_of_client), draft.instant()) else {
        return false;
    };
    let process = draft.file.events[place]["process"].clone();
    let length = draft.rng.random_range(MS..800 * MS);
    draft.file.events.push(json!({"t": t, "process": process, "op": 0, "type": "info", "f": "stall", "stalled_ns": length}));
    true
}

fn lock_call(draft: &mut Draft, f: &str, kind: &str) -> bool {
    let Some(place) = draft.pick(|e| is_a(e, "acquire", "ok")) else {
        return false;
    };
    let grant = draft.file.events[place].clone();
    let from = time(&grant) + draft.rng.random_range(1..400 * MS);
    let op = draft.new_op();
    let mut done =
        json!({"t": from + MS / 4, "process": grant["process"], "op": op, "type": kind, "f": f});
    if f == "extend" && kind == "ok" {
        done["validity"] = (from + 300 * MS).into();
    }
    draft.file.events.extend([
        json!({"t": from, "process": grant["process"], "op": op, "type": "invoke", "f": f, "lock": "lock", "grant": grant["op"], "ttl_ms": 300}),
        done,
    ]);
    true
}

fn endless_acquire(draft: &mut Draft) -> bool {
    let (Some(place), t) = (draft.pick(is_of_client), draft.instant()) else {
        return false;
    };
    let process = draft.file.events[place]["process"].clone();
    let op = draft.new_op();
    draft.file.events.push(json!({"t": t, "process": process, "op": op, "type": "invoke", "f": "acquire", "lock": "lock", "ttl_ms": 300}));
    true
}

/// A lock of its own, so that acts without a grant belong to nobody knows which.
fn second_lock(draft: &mut Draft) -> bool {
    let Some((grant, other)) = grant_and_other(draft) else {
        return false;
    };
    let from = time(&grant) + draft.rng.random_range(1..10 * MS);
    acquire(draft, &other, "lock-2", (from, from + MS), &grant);
    act_at_any_time(draft, "work")
}

fn stale_read(draft: &mut Draft) -> bool {
    let read = draft.pick(|e| is_a(e, "read", "ok") && e["version"].as_u64() > Some(1));
    let Some(place) = read else {
        return false;
    };
    let early = draft.pick(|e| is_a(e, "read", "ok"));
    let early = early.map_or(Value::Null, |place| draft.file.events[place].clone());
    let event = &mut draft.file.events[place];
    event["version"] = early["version"].clone();
    event["value"] = early["value"].clone();
    true
}
