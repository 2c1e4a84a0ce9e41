//! Injections, healings and their evidence.

use serde_json::{Value, json};

use crate::file::time;
use crate::forger::{Draft, Edit, is, is_a, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "no-inject",
        apply: |d| d.remove(|e| e["f"] == "inject"),
    },
    Edit {
        name: "no-heal",
        apply: |d| d.remove(|e| e["f"] == "heal"),
    },
    Edit {
        name: "no-faults",
        apply: |d| d.remove(|e| e["process"] == "nemesis"),
    },
    Edit {
        name: "an-inject-without-its-answer",
        apply: |d| d.remove(|e| is_a(e, "inject", "ok")),
    },
    Edit {
        name: "an-inject-failed",
        apply: |d| outcome(d, "inject", "fail"),
    },
    Edit {
        name: "an-inject-is-unknown",
        apply: |d| outcome(d, "inject", "info"),
    },
    Edit {
        name: "a-heal-failed",
        apply: |d| outcome(d, "heal", "fail"),
    },
    Edit {
        name: "evidence-of-nothing",
        apply: |d| evidence(d, json!({"x": 1})),
    },
    Edit {
        name: "no-evidence",
        apply: |d| evidence(d, json!({})),
    },
    Edit {
        name: "evidence-of-a-running-process",
        apply: |d| {
            evidence(
                d,
                json!({"states": "TS", "ended": null, "pid": 1, "pid_before": 1, "packets": 0, "measured_step_ms": 3}),
            )
        },
    },
    Edit {
        name: "other-sufficient-evidence",
        apply: |d| {
            evidence(
                d,
                json!({"states": "T", "ended": "signal_9", "pid": 5, "pid_before": 4, "packets": 1, "measured_step_ms": 3100}),
            )
        },
    },
    Edit {
        name: "another-step",
        apply: |d| field(d, "step", json!(1)),
    },
    Edit {
        name: "another-fault",
        apply: |d| field(d, "fault", json!("another")),
    },
    Edit {
        name: "another-client-struck",
        apply: |d| field(d, "on", json!(["c2"])),
    },
    Edit {
        name: "another-server-struck",
        apply: |d| field(d, "on", json!(["s2"])),
    },
    Edit {
        name: "two-hosts-struck",
        apply: |d| field(d, "on", json!(["c1", "s1"])),
    },
    Edit {
        name: "the-storage-struck",
        apply: |d| field(d, "on", json!(["storage"])),
    },
    Edit {
        name: "it-kills",
        apply: |d| field(d, "does", json!([{"effect": "kills"}])),
    },
    Edit {
        name: "it-stops",
        apply: |d| field(d, "does", json!([{"effect": "stops"}])),
    },
    Edit {
        name: "it-does-something-new",
        apply: |d| field(d, "does", json!([{"effect": "burns"}])),
    },
    Edit {
        name: "it-does-nothing",
        apply: |d| field(d, "does", json!([])),
    },
    Edit {
        name: "injected-twice",
        apply: inject_twice,
    },
    Edit {
        name: "a-fault-that-nobody-planned",
        apply: unplanned,
    },
    Edit {
        name: "another-host-in-the-answer",
        apply: |d| d.change(|e| is_a(e, "inject", "ok"), |e, _| e["on"] = json!(["c2"])),
    },
];

fn outcome(draft: &mut Draft, f: &str, kind: &str) -> bool {
    draft.change(|e| is_a(e, f, "ok"), |event, _| event["type"] = kind.into())
}

fn evidence(draft: &mut Draft, evidence: Value) -> bool {
    draft.change(
        |e| is_a(e, "inject", "ok"),
        |event, _| event["evidence"] = evidence,
    )
}

/// The same in all four events.
fn field(draft: &mut Draft, field: &str, value: Value) -> bool {
    let mut is_edited = false;
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["process"] == "nemesis")
    {
        event[field] = value.clone();
        is_edited = true;
    }
    is_edited
}

fn inject_twice(draft: &mut Draft) -> bool {
    let injections: Vec<Value> = draft
        .file
        .events
        .iter()
        .filter(|e| e["f"] == "inject")
        .cloned()
        .collect();
    let is_edited = !injections.is_empty();
    for mut event in injections {
        event["t"] = (time(&event) + MS).into();
        event["op"] = (op_of(&event) + 10).into();
        draft.file.events.push(event);
    }
    is_edited
}

fn unplanned(draft: &mut Draft) -> bool {
    let t = draft.instant();
    let does = draft
        .one_of(&["stops", "kills", "clock-forward", "loses-state"])
        .unwrap_or("stops");
    let on = draft.one_of(&["c1", "c2", "s1", "storage"]).unwrap_or("c1");
    for (later, kind) in [(0, "invoke"), (MS, "ok")] {
        draft.file.events.push(json!({
            "t": t + later, "process": "nemesis", "op": 21, "type": kind, "f": "inject", "step": 1, "fault": "new",
            "on": [on], "engine": "none", "does": [{"effect": does}], "evidence": {"states": "T"},
        }));
    }
    draft.file.events.iter().any(|event| is(event, "ok"))
}
