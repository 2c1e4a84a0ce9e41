//! The plan and the contract.

use rand::RngExt;
use serde_json::{Value, json};

use crate::contracts::HAZARDS;
use crate::file::time;
use crate::forger::{Draft, Edit, is_a};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "another-fault-planned",
        apply: |d| fault(d, |f| f["fault"] = "another".into()),
    },
    Edit {
        name: "another-host-planned",
        apply: |d| fault(d, |f| f["on"] = "c2".into()),
    },
    Edit {
        name: "the-leader-planned",
        apply: |d| fault(d, |f| f["on"] = "leader".into()),
    },
    Edit {
        name: "a-longer-fault-planned",
        apply: |d| until(d, json!({"after_ms": 5000})),
    },
    Edit {
        name: "a-fault-without-end-planned",
        apply: |d| until(d, json!({})),
    },
    Edit {
        name: "a-fault-until-an-event-planned",
        apply: |d| {
            until(
                d,
                json!({"event": {"client": "c2", "f": "write", "outcome": "ok"}}),
            )
        },
    },
    Edit {
        name: "a-fault-with-a-limit-planned",
        apply: |d| until(d, json!({"at_most_ms": 10})),
    },
    Edit {
        name: "other-effects-planned",
        apply: |d| {
            fault(d, |f| {
                f["does"] = json!([{"effect": "stops"}, {"effect": "loses-state"}])
            })
        },
    },
    Edit {
        name: "other-effects-planned-and-struck",
        apply: other_effects,
    },
    Edit {
        name: "no-evidence-asked-for",
        apply: |d| fault(d, |f| f["shows"] = json!({})),
    },
    Edit {
        name: "other-evidence-asked-for",
        apply: |d| fault(d, |f| f["shows"] = json!({"states": {"only": "Z"}})),
    },
    Edit {
        name: "a-second-fault-planned",
        apply: second_fault,
    },
    Edit {
        name: "no-fault-planned",
        apply: no_faults,
    },
    Edit {
        name: "tokens-asked-for",
        apply: |d| plan(d, "write_condition", json!("token")),
    },
    Edit {
        name: "another-policy",
        apply: |d| plan(d, "policy", json!("fenced")),
    },
    Edit {
        name: "more-clients",
        apply: |d| plan(d, "clients", json!(9)),
    },
    Edit {
        name: "a-short-ttl",
        apply: |d| plan(d, "ttl_ms", json!(6)),
    },
    Edit {
        name: "a-long-ttl",
        apply: |d| plan(d, "ttl_ms", json!(60_000)),
    },
    Edit {
        name: "a-short-bound",
        apply: |d| plan(d, "progress_bound_ms", json!(10)),
    },
    Edit {
        name: "other-controls",
        apply: |d| plan(d, "controls", json!(["progress"])),
    },
    Edit {
        name: "work-as-long-as-the-lease",
        apply: |d| work(d, 250),
    },
    Edit {
        name: "work-just-longer-than-it-was",
        apply: longer_work,
    },
    Edit {
        name: "no-contract",
        apply: no_contract,
    },
    Edit {
        name: "a-clause-is-missing",
        apply: drop_clause,
    },
    Edit {
        name: "a-clause-says-the-contrary",
        apply: flip_clause,
    },
    Edit {
        name: "a-hazard-is-missing",
        apply: drop_hazard,
    },
    Edit {
        name: "a-hazard-that-nobody-knows",
        apply: unknown_hazard,
    },
    Edit {
        name: "only-nothing-is-promised",
        apply: only_nothing,
    },
    Edit {
        name: "everything-is-promised",
        apply: everything,
    },
    Edit {
        name: "stalls-were-not-recorded",
        apply: no_heartbeat,
    },
    Edit {
        name: "version-1",
        apply: version_1,
    },
];

fn plan(draft: &mut Draft, field: &str, value: Value) -> bool {
    let is_new = draft.file.header["plan"][field] != value;
    draft.file.header["plan"][field] = value;
    is_new
}

fn fault(draft: &mut Draft, change: impl Fn(&mut Value)) -> bool {
    draft.file.header["plan"]["faults"]
        .as_array_mut()
        .and_then(|faults| faults.first_mut())
        .map(change)
        .is_some()
}

fn until(draft: &mut Draft, until: Value) -> bool {
    fault(draft, |fault| fault["until"] = until.clone())
}

const EFFECTS: [&str; 8] = [
    "stops",
    "kills",
    "holds-work",
    "delays-packets",
    "clock-forward",
    "clock-back",
    "loses-state",
    "burns",
];

fn other_effects(draft: &mut Draft) -> bool {
    let effect = draft.one_of(&EFFECTS).unwrap_or("stops");
    let does = json!([{"effect": effect}]);
    for event in draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["process"] == "nemesis")
    {
        event["does"] = does.clone();
    }
    fault(draft, |fault| fault["does"] = does.clone())
}

fn second_fault(draft: &mut Draft) -> bool {
    let faults = draft.file.header["plan"]["faults"].as_array_mut();
    faults.is_some_and(|faults| {
        let copy = faults.first().cloned();
        faults.extend(copy);
        !faults.is_empty()
    })
}

fn no_faults(draft: &mut Draft) -> bool {
    plan(draft, "faults", json!([]))
}

fn work(draft: &mut Draft, ms: u64) -> bool {
    draft.file.header["plan"]["workload"]["work_ms"] = ms.into();
    true
}

/// The plan's work is as long as that of a write was, or a little longer; and its leases are of that length, or not.
fn longer_work(draft: &mut Draft) -> bool {
    let Some(write) = draft.pick(|e| is_a(e, "write", "invoke")) else {
        return false;
    };
    let (before, write) = draft.file.events.split_at(write);
    let works = before.iter().rev();
    let mut works = works.filter(|e| is_a(e, "work", "invoke"));
    let Some(work_of_it) = works.find(|e| e["process"] == write[0]["process"]) else {
        return false;
    };
    let ms = time(&write[0]).saturating_sub(time(work_of_it)) / MS + draft.rng.random_range(0..2);
    if draft.rng.random() {
        draft.file.header["plan"]["ttl_ms"] = (ms + 1).into();
    }
    work(draft, ms)
}

fn clauses(draft: &mut Draft) -> &mut Vec<Value> {
    draft.file.header["contract"]
        .as_array_mut()
        .expect("an honest header has a contract")
}

fn no_contract(draft: &mut Draft) -> bool {
    clauses(draft).clear();
    true
}

fn drop_clause(draft: &mut Draft) -> bool {
    let count = clauses(draft).len();
    let Some(place) = draft.choose(count) else {
        return false;
    };
    clauses(draft).remove(place);
    true
}

fn flip_clause(draft: &mut Draft) -> bool {
    let count = clauses(draft).len();
    let Some(place) = draft.choose(count) else {
        return false;
    };
    let clause = &mut clauses(draft)[place];
    let was_promised = clause["promise"] == "promised";
    clause["promise"] = if was_promised {
        "not-promised"
    } else {
        "promised"
    }
    .into();
    clause["why"] = "so it is".into();
    true
}

fn drop_hazard(draft: &mut Draft) -> bool {
    let hazard = draft.one_of(&HAZARDS).unwrap_or("nothing");
    let mut is_edited = false;
    for clause in clauses(draft) {
        let under = clause["under"].as_array_mut().expect("a list");
        let before = under.len();
        under.retain(|name| *name != hazard);
        is_edited |= under.len() < before;
    }
    is_edited
}

fn unknown_hazard(draft: &mut Draft) -> bool {
    for clause in clauses(draft) {
        clause["under"]
            .as_array_mut()
            .expect("a list")
            .push("abducted".into());
    }
    true
}

fn only_nothing(draft: &mut Draft) -> bool {
    clauses(draft).retain(|clause| clause["promise"] == "promised");
    for clause in clauses(draft) {
        clause["under"] = json!(["nothing"]);
    }
    true
}

fn everything(draft: &mut Draft) -> bool {
    clauses(draft).retain(|clause| clause["promise"] == "promised");
    for clause in clauses(draft) {
        clause["under"] = json!(HAZARDS);
    }
    true
}

fn no_heartbeat(draft: &mut Draft) -> bool {
    draft
        .file
        .header
        .as_object_mut()
        .and_then(|header| header.remove("heartbeat_ms"))
        .is_some()
}

fn version_1(draft: &mut Draft) -> bool {
    draft.file.header["fencepost"] = 1.into();
    true
}
