//! Several servers at once.

use rand::RngExt;
use serde_json::{Value, json};

use super::struck::{Another, at_once, strike};
use crate::forger::{Draft, Edit};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "two-servers-struck-at-once",
        apply: |d| two_struck(d, 0),
    },
    Edit {
        name: "two-servers-struck-one-after-the-other",
        apply: |d| two_struck(d, 80 * MS),
    },
    Edit {
        name: "a-server-stands-still-while-another-is-struck",
        apply: one_stands_still,
    },
    Edit {
        name: "a-second-server-planned",
        apply: |d| planned(d, "s2"),
    },
    Edit {
        name: "a-leader-planned-beside-a-server",
        apply: |d| planned(d, "s1") && planned(d, "leader"),
    },
];

const EFFECTS: [&str; 7] = [
    "stops",
    "kills",
    "restarts",
    "clock-back",
    "delays-packets",
    "loses-state",
    "burns",
];

fn struck(draft: &mut Draft, on: &'static str, from: u64) -> bool {
    let effect = draft.one_of(&EFFECTS).unwrap_or("stops");
    let does = json!([{"effect": effect}]);
    let times = (from, from + draft.rng.random_range(10 * MS..60 * MS));
    strike(
        draft,
        Another {
            on,
            does,
            when: at_once(),
            times,
        },
    )
}

/// The second server is struck so much later, or a little more.
fn two_struck(draft: &mut Draft, later: u64) -> bool {
    let from = draft.instant();
    let later = later + draft.rng.random_range(0..20 * MS);
    struck(draft, "s1", from) && struck(draft, "s2", from + later) && double_grants(draft)
}

fn one_stands_still(draft: &mut Draft) -> bool {
    let from = draft.instant();
    let until = from + draft.rng.random_range(5 * MS..90 * MS);
    draft.file.events.push(json!({
        "t": until, "process": "s2", "op": 0, "type": "info", "f": "stall", "stalled_ns": until.saturating_sub(from),
    }));
    struck(draft, "s1", from) && {
        draft.file.header["servers"]["s2"] = "1.0".into();
        double_grants(draft)
    }
}

/// Whoever was refused was granted the lock, so that there is something to excuse.
fn double_grants(draft: &mut Draft) -> bool {
    let is_refused = |e: &&mut Value| e["f"] == "acquire" && e["type"] == "fail";
    for event in draft.file.events.iter_mut().filter(is_refused) {
        let t = event["t"].as_u64().unwrap_or(0);
        event["type"] = "ok".into();
        event["validity"] = (t + 15 * MS).into();
    }
    true
}

/// Nobody injects it.
fn planned(draft: &mut Draft, on: &str) -> bool {
    let faults = draft.file.header["plan"]["faults"].as_array_mut();
    faults.is_some_and(|faults| {
        faults.push(json!({
            "fault": "another", "on": on, "when": at_once(), "until": {}, "with": {}, "does": [{"effect": "stops"}],
            "shows": {"states": {"only": "T"}},
        }));
        true
    })
}
