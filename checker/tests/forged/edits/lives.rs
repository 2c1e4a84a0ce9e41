//! Lives of clients, their ends, and faults on who was gone.

use serde_json::{Value, json};

use super::healings::{first, time_of};
use crate::file::time;
use crate::forger::{Draft, Edit, effect, is_of_client};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "a-next-life-dropped",
        apply: |d| d.remove(|e| life_of(e) > 1),
    },
    Edit {
        name: "a-first-life-dropped",
        apply: drop_first_life,
    },
    Edit {
        name: "a-first-life-renamed-away",
        apply: |d| later_lives(d, 1),
    },
    Edit {
        name: "a-second-life-renamed-away",
        apply: |d| later_lives(d, 2),
    },
    Edit {
        name: "an-extra-life",
        apply: extra_life,
    },
    Edit {
        name: "a-life-before-it-was-asked-for",
        apply: |d| start_late(d, 1),
    },
    Edit {
        name: "a-life-as-it-was-asked-for",
        apply: |d| start_late(d, 0),
    },
    Edit {
        name: "ended-by-a-signal",
        apply: |d| end_by(d, json!("signal 9")),
    },
    Edit {
        name: "ended-by-an-error",
        apply: |d| end_by(d, json!("exit 1")),
    },
    Edit {
        name: "ended-as-asked",
        apply: |d| end_by(d, json!("signal 15, as asked")),
    },
    Edit {
        name: "ended-nobody-knows-how",
        apply: |d| end_by(d, Value::Null),
    },
    Edit {
        name: "a-fault-on-who-had-ended",
        apply: end_before_fault,
    },
    Edit {
        name: "a-pause-of-who-was-killed",
        apply: |d| second_fault(d, &["kills"], "inject"),
    },
    Edit {
        name: "a-pause-of-who-is-started-again",
        apply: |d| second_fault(d, &["kills"], "heal"),
    },
    Edit {
        name: "a-pause-of-who-was-restarted",
        apply: |d| second_fault(d, &["restarts"], "inject"),
    },
    Edit {
        name: "a-pause-of-a-server-that-was-killed",
        apply: |d| restart_is_kill(d) && second_fault(d, &["kills"], "inject"),
    },
    Edit {
        name: "a-kill-in-place-of-a-restart",
        apply: restart_is_kill,
    },
];

/// Which life of a client an event is of; 0 if it is none's.
fn life_of(event: &Value) -> u64 {
    let process = event["process"].as_str().unwrap_or_default();
    match process.split_once('.') {
        _ if !is_of_client(event) => 0,
        None => 1,
        Some((_, life)) => life.parse().unwrap_or(0),
    }
}

fn drop_first_life(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(|e| life_of(e) > 1) else {
        return false;
    };
    let process = &draft.file.events[place]["process"];
    let host = process
        .as_str()
        .and_then(|p| p.split('.').next())
        .map(str::to_owned);
    draft.remove(|e| e["process"].as_str() == host.as_deref())
}

/// The lives of a client from this one on are each the next.
fn later_lives(draft: &mut Draft, from: u64) -> bool {
    let Some(place) = draft.pick(|e| life_of(e) >= from) else {
        return false;
    };
    let process = draft.file.events[place]["process"]
        .as_str()
        .unwrap_or_default();
    let host = process.split('.').next().unwrap_or_default().to_owned();
    for event in draft.file.events.iter_mut().filter(|e| life_of(e) >= from) {
        if event["process"].as_str().and_then(|p| p.split('.').next()) == Some(host.as_str()) {
            event["process"] = format!("{host}.{}", life_of(event) + 1).into();
        }
    }
    true
}

/// A client that had ended asks once more, in vain.
fn extra_life(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(|e| e["f"] == "exit" && is_of_client(e)) else {
        return false;
    };
    let exit = draft.file.events[place].clone();
    let process = exit["process"].as_str().unwrap_or_default();
    let host = process.split('.').next().unwrap_or_default();
    let process = format!("{host}.{}", life_of(&exit) + 1);
    let (t, op) = (time(&exit), draft.new_op());
    draft.file.events.extend([
        json!({"t": t + 1_000, "process": process, "op": op, "type": "invoke", "f": "acquire", "lock": "lock", "ttl_ms": 300}),
        json!({"t": t + 2_000, "process": process, "op": op, "type": "fail", "f": "acquire", "error": "busy"}),
        json!({"t": t + 3_000, "process": process, "op": op + 1, "type": "info", "f": "exit", "error": "exit 0"}),
    ]);
    true
}

/// What starts a client again is asked for so much after its next life began.
fn start_late(draft: &mut Draft, by: u64) -> bool {
    let began = draft.file.events.iter().find(|e| life_of(e) > 1).map(time);
    let Some(began) = began else {
        return false;
    };
    for (f, kind, later) in [("heal", "invoke", 0), ("heal", "ok", MS)] {
        if let Some(heal) = first(draft, f, kind) {
            heal["t"] = (began + by + later).into();
        }
    }
    true
}

fn end_by(draft: &mut Draft, error: Value) -> bool {
    draft.change(
        |e| e["f"] == "exit" && is_of_client(e),
        |e, _| e["error"] = error,
    )
}

/// The client that is struck had ended well just before, and does nothing more.
fn end_before_fault(draft: &mut Draft) -> bool {
    let Some(t) = time_of(draft, "inject", "invoke") else {
        return false;
    };
    let ended = t.saturating_sub(1_000);
    draft.remove(|e| e["process"] == "c1" && time(e) >= ended);
    draft.file.events.push(
        json!({"t": ended, "process": "c1", "op": 0, "type": "info", "f": "exit", "error": "exit 0"}),
    );
    true
}

/// A second fault strikes the host of the first, just after that was injected, or while it is healed.
fn second_fault(draft: &mut Draft, after: &[&str], when: &str) -> bool {
    let Some(inject) = first(draft, "inject", "ok").map(|e| e.clone()) else {
        return false;
    };
    let kind = if when == "heal" { "invoke" } else { "ok" };
    let from = time_of(draft, when, kind);
    let is_after = after.contains(&effect(&inject));
    let (true, Some(from)) = (is_after, from) else {
        return false;
    };
    let does = json!([{"effect": "stops"}]);
    let fault = json!({
        "fault": "pause", "on": inject["on"][0], "when": {"trigger": "time", "after_ms": 1}, "until": {"after_ms": 1},
        "does": does, "shows": {"states": {"only": "T"}},
    });
    let faults = draft.file.header["plan"]["faults"].as_array_mut();
    faults.expect("a list").push(fault);
    for (op, f, t) in [(31, "inject", from + 1_000), (32, "heal", from + 2 * MS)] {
        for (later, kind) in [(0, "invoke"), (MS / 2, "ok")] {
            draft.file.events.push(json!({
                "t": t + later, "process": "nemesis", "op": op, "type": kind, "f": f, "step": 1, "fault": "pause",
                "on": inject["on"], "engine": "none", "does": does, "evidence": {"states": "T"},
            }));
        }
    }
    true
}

/// What was restarted was killed, and started again only by the healing.
fn restart_is_kill(draft: &mut Draft) -> bool {
    let Some(fault) = draft.fault().filter(|fault| effect(fault) == "restarts") else {
        return false;
    };
    fault["does"] = json!([{"effect": "kills"}]);
    let told = draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["does"].is_array());
    told.for_each(|e| e["does"] = json!([{"effect": "kills"}]));
    true
}
