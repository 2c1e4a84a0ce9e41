//! What cannot have happened beside the rest of the history.

use rand::RngExt;
use serde_json::{Value, json};

use crate::file::time;
use crate::forger::{Draft, Edit, is, is_a, is_of_client, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "a-stall-over-which-its-client-acts",
        apply: |d| stall(d, json!({"stalled_ns": u64::MAX})),
    },
    Edit {
        name: "a-stall-of-any-length",
        apply: |d| {
            let length = d.rng.random_range(1..500 * MS);
            stall(d, json!({"stalled_ns": length}))
        },
    },
    Edit {
        name: "a-wait-for-the-storage-of-who-does-not-wait",
        apply: |d| stall(d, json!({"stalled_ns": 80 * MS, "on": ["storage"]})),
    },
    Edit {
        name: "a-second-end",
        apply: |d| end_again(d, MS),
    },
    Edit {
        name: "an-end-long-after-the-kill",
        apply: end_late,
    },
    Edit {
        name: "a-log-that-a-client-tells",
        apply: |d| log_of(d, "c1"),
    },
    Edit {
        name: "a-log-that-a-server-tells",
        apply: |d| log_of(d, "s1"),
    },
    Edit {
        name: "an-answer-to-another-ttl",
        apply: |d| answer_to_another(d, "ttl_ms"),
    },
    Edit {
        name: "an-answer-to-another-wait",
        apply: |d| answer_to_another(d, "wait_ms"),
    },
    Edit {
        name: "an-answer-at-another-point",
        apply: |d| {
            d.change(
                |e| is_a(e, "point", "ok"),
                |e, _| e["point"] = "elsewhere".into(),
            )
        },
    },
    Edit {
        name: "a-remark-of-another-type",
        apply: |d| {
            let kind = d.one_of(&["invoke", "ok", "fail"]).expect("one of three");
            d.change(is_remark, |e, _| e["type"] = kind.into())
        },
    },
    Edit {
        name: "a-row-of-another-type",
        apply: |d| {
            let kind = d.one_of(&["invoke", "fail", "info"]).expect("one of three");
            d.change(|e| e["f"] == "accepted", |e, _| e["type"] = kind.into())
        },
    },
    Edit {
        name: "a-row-before-its-write",
        apply: |d| d.change(|e| e["f"] == "accepted", |e, _| e["t"] = MS.into()),
    },
    Edit {
        name: "a-fault-on-a-client-that-is-not-there",
        apply: |d| strike_elsewhere(d, "c9"),
    },
    Edit {
        name: "a-fault-on-a-server-that-is-not-there",
        apply: |d| strike_elsewhere(d, "s7"),
    },
    Edit {
        name: "a-stall-of-a-server-that-is-not-there",
        apply: |d| {
            let t = d.instant();
            let stall = json!({"t": t, "process": "s7", "op": 0, "type": "info", "f": "stall", "stalled_ns": t});
            d.file.events.push(stall);
            true
        },
    },
    Edit {
        name: "fewer-clients-planned",
        apply: |d| {
            d.file.header["plan"]["clients"] = 1.into();
            true
        },
    },
    Edit {
        name: "a-client-of-another-kind",
        apply: |d| rename_client(d, |_| "x1".to_owned()),
    },
    Edit {
        name: "a-next-life-of-who-lives",
        apply: |d| rename_client(d, |process| format!("{process}.7")),
    },
    Edit {
        name: "a-trigger-that-had-not-come",
        apply: |d| trigger(d, json!({"trigger": "time", "after_ms": 3_600_000})),
    },
    Edit {
        name: "a-trigger-that-had-come",
        apply: |d| trigger(d, json!({"trigger": "time", "after_ms": 1})),
    },
    Edit {
        name: "a-trigger-by-any-event",
        apply: |d| {
            let f = d
                .one_of(&["acquire", "held", "write"])
                .expect("one of three");
            let outcome = d.one_of(&["ok", "fail", "info"]).expect("one of three");
            trigger(
                d,
                json!({"trigger": "event", "client": "c2", "f": f, "outcome": outcome}),
            )
        },
    },
    Edit {
        name: "no-point",
        apply: |d| d.remove(|e| e["f"] == "point"),
    },
    Edit {
        name: "an-act-while-it-is-stopped",
        apply: act_in_a_pause,
    },
];

fn is_remark(event: &Value) -> bool {
    ["lost", "renewed", "stall", "exit"]
        .iter()
        .any(|f| event["f"] == *f)
}

fn stall(draft: &mut Draft, fields: Value) -> bool {
    let Some(place) = draft.pick(|e| is_of_client(e) && e["f"] != "exit") else {
        return false;
    };
    let beside = draft.file.events[place].clone();
    let op = draft.new_op();
    let mut stall = json!({"t": time(&beside) + 1, "process": beside["process"], "op": op, "type": "info", "f": "stall"});
    for (field, value) in fields.as_object().into_iter().flatten() {
        stall[field] = value.clone();
    }
    draft.file.events.push(stall);
    true
}

fn end_again(draft: &mut Draft, later: u64) -> bool {
    let Some(place) = draft.pick(|e| e["f"] == "exit") else {
        return false;
    };
    let mut again = draft.file.events[place].clone();
    again["t"] = (time(&again) + later).into();
    draft.file.events.push(again);
    true
}

/// A client that was killed ends in peace, much later.
fn end_late(draft: &mut Draft) -> bool {
    let kills = |e: &Value| is_a(e, "inject", "ok") && e["does"] == json!([{"effect": "kills"}]);
    let Some(place) = draft.pick(kills) else {
        return false;
    };
    let host = draft.file.events[place]["on"][0].clone();
    draft.remove(|e| e["f"] == "exit" && e["process"] == host);
    let t = draft.file.end();
    draft.file.events.push(
        json!({"t": t, "process": host, "op": 0, "type": "info", "f": "exit", "error": "exit 0"}),
    );
    true
}

fn log_of(draft: &mut Draft, process: &str) -> bool {
    let mut told = false;
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["process"] == "storage")
    {
        event["process"] = process.into();
        told = true;
    }
    told
}

fn answer_to_another(draft: &mut Draft, field: &str) -> bool {
    draft.change(
        |e| e["f"] == "acquire" && !is(e, "invoke"),
        |e, _| e[field] = 12_345.into(),
    )
}

fn strike_elsewhere(draft: &mut Draft, host: &str) -> bool {
    let Some(fault) = draft.file.header["plan"]["faults"].get_mut(0) else {
        return false;
    };
    fault["on"] = host.into();
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["process"] == "nemesis")
    {
        event["on"] = json!([host]);
    }
    true
}

/// From some time on a client goes by another name.
fn rename_client(draft: &mut Draft, name: impl Fn(&str) -> String) -> bool {
    let Some(place) = draft.pick(|e| is_a(e, "acquire", "invoke")) else {
        return false;
    };
    let since = time(&draft.file.events[place]);
    let process = draft.file.events[place]["process"].clone();
    let renamed = name(process.as_str().unwrap_or_default());
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["process"] == process && time(e) >= since)
    {
        event["process"] = renamed.clone().into();
    }
    true
}

fn trigger(draft: &mut Draft, when: Value) -> bool {
    let fault = draft.file.header["plan"]["faults"].get_mut(0);
    fault.map(|fault| fault["when"] = when).is_some()
}

fn act_in_a_pause(draft: &mut Draft) -> bool {
    let at = |draft: &Draft, f: &str| {
        draft
            .file
            .events
            .iter()
            .find(|e| is_a(e, f, "invoke"))
            .map(time)
    };
    let (Some(from), Some(to)) = (at(draft, "inject"), at(draft, "heal")) else {
        return false;
    };
    let op = draft.new_op();
    let grant = draft
        .file
        .events
        .iter()
        .find(|e| is_a(e, "acquire", "ok") && e["process"] == "c1")
        .map(op_of);
    let t = draft.rng.random_range(from..to.max(from + 1));
    draft.file.events.push(
        json!({"t": t, "process": "c1", "op": op, "type": "invoke", "f": "work", "grant": grant}),
    );
    true
}
