//! Events at another time.

use rand::RngExt;
use serde_json::{Value, json};

use crate::file::time;
use crate::forger::{Draft, Edit, is, is_of, is_of_client, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "move-an-event-later",
        apply: |d| move_event(d, true),
    },
    Edit {
        name: "move-an-event-earlier",
        apply: |d| move_event(d, false),
    },
    Edit {
        name: "swap-the-times-of-two-events",
        apply: swap,
    },
    Edit {
        name: "move-an-operation",
        apply: move_operation,
    },
    Edit {
        name: "move-a-release-later",
        apply: |d| delay_operation(d, "release"),
    },
    Edit {
        name: "move-a-write-later",
        apply: |d| delay_operation(d, "write"),
    },
    Edit {
        name: "move-an-acquire-earlier",
        apply: hurry_acquire,
    },
    Edit {
        name: "answer-later",
        apply: answer_later,
    },
    Edit {
        name: "move-a-client",
        apply: move_client,
    },
    Edit {
        name: "move-the-tail-later",
        apply: move_tail,
    },
    Edit {
        name: "move-a-heal-earlier",
        apply: |d| move_fault(d, "heal", false),
    },
    Edit {
        name: "move-an-inject-later",
        apply: |d| move_fault(d, "inject", true),
    },
    Edit {
        name: "move-an-inject-earlier",
        apply: |d| move_fault(d, "inject", false),
    },
    Edit {
        name: "move-a-remark",
        apply: move_remark,
    },
    Edit {
        name: "touch-edges",
        apply: touch_edges,
    },
];

fn shifted(t: u64, by: u64, later: bool) -> Value {
    match later {
        true => json!(t + by),
        false => json!(t.saturating_sub(by)),
    }
}

fn move_event(draft: &mut Draft, later: bool) -> bool {
    draft.change(
        |_| true,
        |event, rng| event["t"] = shifted(time(event), rng.random_range(1..50 * MS), later),
    )
}

fn swap(draft: &mut Draft) -> bool {
    let (Some(a), Some(b)) = (draft.pick(|_| true), draft.pick(|_| true)) else {
        return false;
    };
    let times = (time(&draft.file.events[a]), time(&draft.file.events[b]));
    draft.file.events[a]["t"] = times.1.into();
    draft.file.events[b]["t"] = times.0.into();
    true
}

fn shift_operation(draft: &mut Draft, op: u64, process: &str, by: u64, later: bool) -> bool {
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| is_of(e, op, process))
    {
        event["t"] = shifted(time(event), by, later);
    }
    true
}

fn move_operation(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(|e| is_of_client(e) && is(e, "invoke")) else {
        return false;
    };
    let event = draft.file.events[place].clone();
    let (by, later) = (
        draft.rng.random_range(1..60 * MS),
        draft.rng.random_bool(0.5),
    );
    shift_operation(
        draft,
        op_of(&event),
        event["process"].as_str().unwrap_or_default(),
        by,
        later,
    )
}

fn delay_operation(draft: &mut Draft, f: &str) -> bool {
    let by = draft.rng.random_range(1..400 * MS);
    draft
        .operation(f)
        .is_some_and(|(op, process)| shift_operation(draft, op, &process, by, true))
}

fn hurry_acquire(draft: &mut Draft) -> bool {
    let by = draft.rng.random_range(1..30 * MS);
    draft
        .operation("acquire")
        .is_some_and(|(op, process)| shift_operation(draft, op, &process, by, false))
}

fn answer_later(draft: &mut Draft) -> bool {
    draft.change(
        |e| is_of_client(e) && !is(e, "invoke"),
        |event, rng| event["t"] = (time(event) + rng.random_range(1..400 * MS)).into(),
    )
}

fn move_client(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(is_of_client) else {
        return false;
    };
    let process = draft.file.events[place]["process"].clone();
    let by = draft.rng.random_range(1..30 * MS);
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["process"] == process)
    {
        event["t"] = (time(event) + by).into();
    }
    true
}

/// Everything from some time on is later: what was in force lasts, and whoever waited waits longer.
fn move_tail(draft: &mut Draft) -> bool {
    let at = draft.instant();
    let by = draft.rng.random_range(100 * MS..3000 * MS);
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|event| time(event) >= at)
    {
        event["t"] = (time(event) + by).into();
    }
    true
}

fn move_fault(draft: &mut Draft, f: &str, later: bool) -> bool {
    let by = draft.rng.random_range(MS..100 * MS);
    draft
        .operation(f)
        .is_some_and(|(op, process)| shift_operation(draft, op, &process, by, later))
}

fn move_remark(draft: &mut Draft) -> bool {
    let later = draft.rng.random_bool(0.5);
    draft.change(
        |e| {
            ["renewed", "lost", "stall", "exit"]
                .iter()
                .any(|f| e["f"] == *f)
        },
        |event, rng| event["t"] = shifted(time(event), rng.random_range(1..400 * MS), later),
    )
}

/// One event is at the very instant of another.
fn touch_edges(draft: &mut Draft) -> bool {
    let (Some(a), Some(b)) = (draft.pick(is_of_client), draft.pick(is_of_client)) else {
        return false;
    };
    draft.file.events[a]["t"] = draft.file.events[b]["t"].clone();
    true
}
