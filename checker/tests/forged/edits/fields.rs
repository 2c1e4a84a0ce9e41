//! Fields of clients' events with another content, or with none.

use rand::RngExt;
use serde_json::{Value, json};

use crate::forger::{Draft, Edit, is, is_a, is_of, is_of_client, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "another-token-granted",
        apply: |d| renumber(d, "acquire", "token"),
    },
    Edit {
        name: "the-same-token-granted-twice",
        apply: same_token,
    },
    Edit {
        name: "a-grant-without-token",
        apply: |d| drop_field(d, "acquire", "token"),
    },
    Edit {
        name: "another-token-sent",
        apply: |d| renumber(d, "write", "token"),
    },
    Edit {
        name: "no-token-sent",
        apply: |d| drop_field(d, "write", "token"),
    },
    Edit {
        name: "a-longer-validity",
        apply: |d| validity(d, true),
    },
    Edit {
        name: "a-shorter-validity",
        apply: |d| validity(d, false),
    },
    Edit {
        name: "no-validity",
        apply: |d| drop_field(d, "acquire", "validity"),
    },
    Edit {
        name: "an-extension-without-validity",
        apply: |d| drop_field(d, "extend", "validity"),
    },
    Edit {
        name: "an-extension-without-ttl",
        apply: |d| drop_field(d, "extend", "ttl_ms"),
    },
    Edit {
        name: "another-grant",
        apply: another_grant,
    },
    Edit {
        name: "another-grant-for-a-write",
        apply: another_grant_for_a_write,
    },
    Edit {
        name: "no-grant",
        apply: no_grant,
    },
    Edit {
        name: "another-lock-acquired",
        apply: |d| rename(d, &["acquire"], "lock"),
    },
    Edit {
        name: "another-lock-released",
        apply: |d| rename(d, &["release", "extend", "held"], "lock"),
    },
    Edit {
        name: "another-document",
        apply: |d| rename(d, &["write", "read"], "document"),
    },
    Edit {
        name: "another-version-written",
        apply: |d| renumber(d, "write", "version"),
    },
    Edit {
        name: "another-version-read",
        apply: |d| renumber(d, "read", "version"),
    },
    Edit {
        name: "another-base",
        apply: |d| renumber(d, "write", "based_on"),
    },
    Edit {
        name: "no-base",
        apply: |d| drop_field(d, "write", "based_on"),
    },
    Edit {
        name: "another-value-read",
        apply: |d| rename(d, &["read"], "value"),
    },
    Edit {
        name: "another-value-written",
        apply: |d| rename(d, &["write"], "value"),
    },
    Edit {
        name: "an-event-of-another-process",
        apply: another_process,
    },
    Edit {
        name: "an-operation-of-another-process",
        apply: operation_of_another_process,
    },
    Edit {
        name: "another-id",
        apply: another_id,
    },
    Edit {
        name: "swap-two-clients-from-a-time-on",
        apply: swap_clients,
    },
    Edit {
        name: "a-shorter-stall",
        apply: |d| stall(d, 10),
    },
    Edit {
        name: "a-stall-of-nothing",
        apply: |d| stall(d, 1000),
    },
    Edit {
        name: "another-renewal",
        apply: renewal,
    },
];

fn drop_field(draft: &mut Draft, f: &str, field: &str) -> bool {
    draft.change(
        |e| is_of_client(e) && e["f"] == f && !e[field].is_null(),
        |event, _| {
            drop(
                event
                    .as_object_mut()
                    .and_then(|fields| fields.remove(field)),
            )
        },
    )
}

fn renumber(draft: &mut Draft, f: &str, field: &str) -> bool {
    draft.change(
        |e| is_of_client(e) && e["f"] == f && !e[field].is_null(),
        |event, rng| {
            let old = event[field].as_u64().unwrap_or(0);
            let new = [
                old + 1,
                old.saturating_sub(1),
                old + 2,
                old.saturating_sub(2),
                old + 90,
            ];
            event[field] = new[rng.random_range(0..new.len())].into();
        },
    )
}

fn same_token(draft: &mut Draft) -> bool {
    let granted = |e: &Value| is_a(e, "acquire", "ok") && !e["token"].is_null();
    let Some(place) = draft.pick(granted) else {
        return false;
    };
    let token = draft.file.events[place]["token"].clone();
    draft.change(granted, |event, _| event["token"] = token)
}

fn validity(draft: &mut Draft, longer: bool) -> bool {
    draft.change(
        |e| !e["validity"].is_null(),
        |event, rng| {
            let old = event["validity"].as_u64().unwrap_or(0);
            let by = rng.random_range(1..400 * MS);
            event["validity"] = match longer {
                true => json!(old + by),
                false => json!(old.saturating_sub(by)),
            };
        },
    )
}

fn set_grant(draft: &mut Draft, fits: impl Fn(&Value) -> bool) -> bool {
    let acquires: Vec<u64> = draft
        .file
        .events
        .iter()
        .filter(|e| is_a(e, "acquire", "invoke"))
        .map(op_of)
        .collect();
    let (Some(place), Some(grant)) = (draft.pick(fits), draft.one_of(&acquires)) else {
        return false;
    };
    let (op, process) = (
        op_of(&draft.file.events[place]),
        draft.file.events[place]["process"].clone(),
    );
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| is_of(e, op, process.as_str().unwrap_or_default()))
    {
        if !event["grant"].is_null() {
            event["grant"] = grant.into();
        }
    }
    true
}

fn another_grant(draft: &mut Draft) -> bool {
    set_grant(draft, |e| !e["grant"].is_null() && is(e, "invoke"))
}

fn another_grant_for_a_write(draft: &mut Draft) -> bool {
    set_grant(draft, |e| is_a(e, "write", "invoke"))
}

fn no_grant(draft: &mut Draft) -> bool {
    draft.change(
        |e| is(e, "invoke") && is_of_client(e) && !e["grant"].is_null(),
        |event, _| {
            drop(
                event
                    .as_object_mut()
                    .and_then(|fields| fields.remove("grant")),
            )
        },
    )
}

fn rename(draft: &mut Draft, functions: &[&str], field: &str) -> bool {
    draft.change(
        |e| functions.iter().any(|f| e["f"] == *f) && !e[field].is_null(),
        |event, rng| event[field] = format!("another-{}", rng.random_range(0..3)).into(),
    )
}

/// A client that is not this one.
fn other_client(draft: &mut Draft, process: &Value) -> Option<Value> {
    let place = draft.pick(|e| is_of_client(e) && e["process"] != *process)?;
    Some(draft.file.events[place]["process"].clone())
}

fn another_process(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(is_of_client) else {
        return false;
    };
    let process = draft.file.events[place]["process"].clone();
    let Some(other) = other_client(draft, &process) else {
        return false;
    };
    draft.file.events[place]["process"] = other;
    true
}

fn operation_of_another_process(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(|e| is_of_client(e) && is(e, "invoke")) else {
        return false;
    };
    let event = draft.file.events[place].clone();
    let Some(other) = other_client(draft, &event["process"]) else {
        return false;
    };
    for one in draft
        .file
        .events
        .iter_mut()
        .filter(|e| op_of(e) == op_of(&event) && e["process"] == event["process"])
    {
        one["process"] = other.clone();
    }
    true
}

fn another_id(draft: &mut Draft) -> bool {
    let ops: Vec<u64> = draft.file.events.iter().map(op_of).collect();
    let op = draft.one_of(&ops);
    draft.change(is_of_client, |event, _| event["op"] = op.into())
}

fn swap_clients(draft: &mut Draft) -> bool {
    let at = draft.instant();
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| crate::file::time(e) >= at)
    {
        event["process"] = match event["process"].as_str() {
            Some("c1") => json!("c2"),
            Some("c2") => json!("c1"),
            _ => event["process"].clone(),
        };
    }
    true
}

fn stall(draft: &mut Draft, divisor: u64) -> bool {
    draft.change(
        |e| e["f"] == "stall",
        |event, _| {
            event["stalled_ns"] = (event["stalled_ns"].as_u64().unwrap_or(0) / divisor).into()
        },
    )
}

fn renewal(draft: &mut Draft) -> bool {
    draft.change(
        |e| e["f"] == "renewed",
        |event, rng| {
            let old = event["validity"].as_u64().unwrap_or(0);
            event["validity"] = old.saturating_sub(rng.random_range(1..400 * MS)).into();
        },
    )
}
