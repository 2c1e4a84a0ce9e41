//! Events that are dropped, doubled or taken from elsewhere.

use serde_json::Value;

use crate::file::time;
use crate::forger::{Draft, Edit, is, is_of, is_of_client, op_of};
use crate::honest;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "drop-an-event",
        apply: drop_event,
    },
    Edit {
        name: "drop-an-invocation",
        apply: |d| drop_one(d, |e| is_of_client(e) && is(e, "invoke")),
    },
    Edit {
        name: "drop-a-completion",
        apply: |d| drop_one(d, |e| is_of_client(e) && !is(e, "invoke")),
    },
    Edit {
        name: "drop-a-remark",
        apply: |d| {
            drop_one(d, |e| {
                ["renewed", "lost", "stall"].iter().any(|f| e["f"] == *f)
            })
        },
    },
    Edit {
        name: "drop-an-acquire",
        apply: |d| drop_operation(d, "acquire"),
    },
    Edit {
        name: "drop-a-release",
        apply: |d| drop_operation(d, "release"),
    },
    Edit {
        name: "drop-a-write",
        apply: |d| drop_operation(d, "write"),
    },
    Edit {
        name: "drop-a-read",
        apply: |d| drop_operation(d, "read"),
    },
    Edit {
        name: "drop-a-work",
        apply: |d| drop_operation(d, "work"),
    },
    Edit {
        name: "drop-an-extend",
        apply: |d| drop_operation(d, "extend"),
    },
    Edit {
        name: "drop-a-client",
        apply: drop_client,
    },
    Edit {
        name: "drop-a-release-s-answer",
        apply: |d| drop_one(d, |e| e["f"] == "release" && !is(e, "invoke")),
    },
    Edit {
        name: "drop-a-write-s-answer",
        apply: |d| drop_one(d, |e| e["f"] == "write" && !is(e, "invoke")),
    },
    Edit {
        name: "double-an-event",
        apply: double_event,
    },
    Edit {
        name: "double-an-operation-with-a-new-id",
        apply: double_operation,
    },
    Edit {
        name: "replay-a-segment",
        apply: |d| replay(d, 0),
    },
    Edit {
        name: "replay-a-segment-with-new-ids",
        apply: |d| replay(d, 1_000_000),
    },
    Edit {
        name: "merge-another-history",
        apply: merge,
    },
    Edit {
        name: "cut-the-tail",
        apply: cut_tail,
    },
    Edit {
        name: "cut-the-head",
        apply: cut_head,
    },
    Edit {
        name: "remove-the-competition",
        apply: |d| drop_refused_acquires(d),
    },
];

fn drop_event(draft: &mut Draft) -> bool {
    drop_one(draft, |_| true)
}

fn drop_one(draft: &mut Draft, fits: impl Fn(&Value) -> bool) -> bool {
    let place = draft.pick(fits);
    place.map(|place| draft.file.events.remove(place)).is_some()
}

fn drop_operation(draft: &mut Draft, f: &str) -> bool {
    draft
        .operation(f)
        .is_some_and(|(op, process)| draft.remove(|event| is_of(event, op, &process)))
}

fn drop_client(draft: &mut Draft) -> bool {
    let process = draft
        .pick(is_of_client)
        .map(|place| draft.file.events[place]["process"].clone());
    process.is_some_and(|process| draft.remove(|event| event["process"] == process))
}

fn drop_refused_acquires(draft: &mut Draft) -> bool {
    let refused: Vec<u64> = draft
        .file
        .events
        .iter()
        .filter(|event| event["f"] == "acquire" && is(event, "fail"))
        .map(op_of)
        .collect();
    draft.remove(|event| event["f"] == "acquire" && refused.contains(&op_of(event)))
}

fn double_event(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(|_| true) else {
        return false;
    };
    let mut copy = draft.file.events[place].clone();
    copy["t"] = (time(&copy) + 1000).into();
    draft.file.events.push(copy);
    true
}

fn double_operation(draft: &mut Draft) -> bool {
    let Some(f) = draft.one_of(&["acquire", "read", "write", "release", "work"]) else {
        return false;
    };
    let Some((op, process)) = draft.operation(f) else {
        return false;
    };
    let new = draft.new_op();
    let copies: Vec<Value> = draft
        .file
        .events
        .iter()
        .filter(|e| is_of(e, op, &process))
        .cloned()
        .collect();
    for mut copy in copies {
        copy["op"] = new.into();
        copy["t"] = (time(&copy) + 2_000_000).into();
        draft.file.events.push(copy);
    }
    true
}

/// A stretch of the clients' events happens again, later.
fn replay(draft: &mut Draft, new_ids: u64) -> bool {
    let (one, other) = (draft.instant(), draft.instant());
    let (from, to) = (
        one.min(other),
        one.max(other).min(one.min(other) + 40_000_000),
    );
    let later = to.saturating_sub(from) + 1_000;
    let renamed: Vec<u64> = draft
        .file
        .events
        .iter()
        .filter(|e| is(e, "invoke"))
        .filter(|e| (from..to).contains(&time(e)))
        .map(op_of)
        .collect();
    let stretch: Vec<Value> = draft
        .file
        .events
        .iter()
        .filter(|event| is_of_client(event) && (from..to).contains(&time(event)))
        .cloned()
        .collect();
    let is_empty = stretch.is_empty();
    for mut event in stretch {
        event["t"] = (time(&event) + later).into();
        for field in ["op", "grant"] {
            if let Some(id) = event[field].as_u64().filter(|id| renamed.contains(id)) {
                event[field] = (id + new_ids).into();
            }
        }
        draft.file.events.push(event);
    }
    !is_empty
}

/// The clients of another run, under other operations, beside those of this one.
fn merge(draft: &mut Draft) -> bool {
    let other = honest::history(draft.instant() % 64);
    for mut event in other.events.into_iter().filter(is_of_client) {
        for field in ["op", "grant"] {
            if let Some(id) = event[field].as_u64() {
                event[field] = (id + 500_000_000).into();
            }
        }
        draft.file.events.push(event);
    }
    true
}

fn cut_tail(draft: &mut Draft) -> bool {
    let at = draft.instant();
    draft.remove(|event| time(event) > at)
}

fn cut_head(draft: &mut Draft) -> bool {
    let at = draft.instant();
    draft.remove(|event| time(event) < at)
}
