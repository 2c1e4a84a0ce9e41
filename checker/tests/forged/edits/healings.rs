//! Healings: when they were asked for, what they say, and who tells of them.

use serde_json::{Value, json};

use crate::file::time;
use crate::forger::{Draft, Edit, is_a, is_of_client, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "a-heal-asked-for-at-once",
        apply: heal_at_once,
    },
    Edit {
        name: "it-took-hold-at-the-end",
        apply: |d| hold_late(d, true),
    },
    Edit {
        name: "it-took-hold-after-it-was-told",
        apply: |d| hold_late(d, false),
    },
    Edit {
        name: "a-heal-asked-for-before-its-event",
        apply: |d| heal_at_event(d, false),
    },
    Edit {
        name: "a-heal-asked-for-at-its-event",
        apply: |d| heal_at_event(d, true),
    },
    Edit {
        name: "a-heal-of-another-step",
        apply: |d| all_heals(d, "step", json!(7)),
    },
    Edit {
        name: "a-heal-of-another-fault",
        apply: |d| heal(d, "fault", json!("another")),
    },
    Edit {
        name: "a-heal-of-another-host",
        apply: |d| heal(d, "on", json!(["c2"])),
    },
    Edit {
        name: "a-heal-of-a-host-too-many",
        apply: |d| heal(d, "on", json!(["c1", "c2"])),
    },
    Edit {
        name: "a-heal-of-another-effect",
        apply: |d| heal(d, "does", json!([{"effect": "burns"}])),
    },
    Edit {
        name: "a-heal-of-no-effect",
        apply: |d| heal(d, "does", json!([])),
    },
    Edit {
        name: "a-heal-that-says-nothing",
        apply: silent_heal,
    },
    Edit {
        name: "a-heal-of-nothing",
        apply: heal_of_nothing,
    },
    Edit {
        name: "an-inject-that-a-client-tells",
        apply: |d| told_by(d, "inject", "c1"),
    },
    Edit {
        name: "an-inject-that-the-storage-tells",
        apply: |d| told_by(d, "inject", "storage"),
    },
    Edit {
        name: "a-heal-that-a-client-tells",
        apply: |d| told_by(d, "heal", "c2"),
    },
    Edit {
        name: "faults-that-a-server-tells",
        apply: |d| {
            let both = [told_by(d, "inject", "s1"), told_by(d, "heal", "s1")];
            both.contains(&true)
        },
    },
];

/// The first event of this function and type.
pub fn first<'d>(draft: &'d mut Draft, f: &str, kind: &str) -> Option<&'d mut Value> {
    draft.file.events.iter_mut().find(|e| is_a(e, f, kind))
}

/// The time of the first event of this function and type.
pub fn time_of(draft: &mut Draft, f: &str, kind: &str) -> Option<u64> {
    first(draft, f, kind).map(|event| time(event))
}

/// Its completion stays where it is.
fn heal_at_once(draft: &mut Draft) -> bool {
    let injected = time_of(draft, "inject", "ok");
    let heal = first(draft, "heal", "invoke");
    let both = heal.zip(injected);
    both.map(|(heal, t)| heal["t"] = (t + 1_000).into())
        .is_some()
}

/// It took hold only just before it was healed, and its completion may be as late.
fn hold_late(draft: &mut Draft, told_late: bool) -> bool {
    let healed = time_of(draft, "heal", "invoke");
    let inject = first(draft, "inject", "ok");
    let Some((inject, healed)) = inject.zip(healed) else {
        return false;
    };
    inject["evidence"]["took_hold_ns"] = healed.saturating_sub(1_000).into();
    if told_late {
        inject["t"] = healed.saturating_sub(1_000).into();
    }
    true
}

/// The fault is to last until something that a client does after it, and its healing is asked for then or just before.
fn heal_at_event(draft: &mut Draft, in_time: bool) -> bool {
    let Some(struck) = time_of(draft, "inject", "ok") else {
        return false;
    };
    let is_late = |e: &Value| is_a(e, "acquire", "ok") && time(e) > struck + 20 * MS;
    let Some(awaited) = draft.file.events.iter().find(|e| is_late(e)).cloned() else {
        return false;
    };
    let client = awaited["process"]
        .as_str()
        .and_then(|p| p.split('.').next());
    let event = json!({"client": client, "f": "acquire", "outcome": "ok"});
    let Some(fault) = draft.fault() else {
        return false;
    };
    fault["until"] = json!({"event": event});
    let asked = time(&awaited).saturating_sub(u64::from(!in_time));
    for (kind, t) in [("invoke", asked), ("ok", time(&awaited) + MS)] {
        if let Some(heal) = first(draft, "heal", kind) {
            heal["t"] = t.into();
        }
    }
    true
}

/// In one of the events of healings.
fn heal(draft: &mut Draft, field: &str, value: Value) -> bool {
    draft.change(|e| e["f"] == "heal", |e, _| e[field] = value)
}

fn all_heals(draft: &mut Draft, field: &str, value: Value) -> bool {
    let heals = draft.file.events.iter_mut().filter(|e| e["f"] == "heal");
    heals.map(|e| e[field] = value.clone()).count() > 0
}

fn silent_heal(draft: &mut Draft) -> bool {
    let mut is_edited = false;
    for event in draft.file.events.iter_mut().filter(|e| e["f"] == "heal") {
        let fields = event.as_object_mut().expect("an event");
        for field in ["fault", "on", "does"] {
            is_edited |= fields.remove(field).is_some();
        }
    }
    is_edited
}

fn heal_of_nothing(draft: &mut Draft) -> bool {
    let t = draft.instant();
    for (later, kind) in [(0, "invoke"), (MS, "ok")] {
        draft.file.events.push(json!({
            "t": t + later, "process": "nemesis", "op": 31, "type": kind, "f": "heal", "step": 3, "engine": "none",
        }));
    }
    true
}

/// Somebody else tells of it, by ids that nobody has.
fn told_by(draft: &mut Draft, f: &str, process: &str) -> bool {
    let op = draft.new_op();
    let told = draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["f"] == f && !is_of_client(e));
    told.map(|e| {
        e["op"] = (op + op_of(e)).into();
        e["process"] = process.into();
    })
    .count()
        > 0
}
