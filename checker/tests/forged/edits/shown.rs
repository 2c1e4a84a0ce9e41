//! Faults that the rest of the history contradicts, or whose evidence is not where it counts.

use rand::RngExt;
use serde_json::{Value, json};

use super::healings::{first, time_of};
use super::struck::{Another, strike};
use crate::file::time;
use crate::forger::{Draft, Edit, effect, is_a, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "a-point-left-before-the-fault",
        apply: leave_point,
    },
    Edit {
        name: "a-second-fault-by-an-event",
        apply: by_an_event,
    },
    Edit {
        name: "a-delay-to-another-host",
        apply: |d| delay_to(d, &[json!("s9"), json!("c9"), json!("x"), json!("s1.2")]),
    },
    Edit {
        name: "a-delay-to-somebody-else",
        apply: |d| {
            delay_to(
                d,
                &[
                    json!("s1"),
                    json!("c2"),
                    json!("servers"),
                    json!("leader"),
                    Value::Null,
                ],
            )
        },
    },
    Edit {
        name: "evidence-before-it-was-done",
        apply: early_evidence,
    },
    Edit {
        name: "it-took-hold-before-its-injection",
        apply: hold_early,
    },
    Edit {
        name: "a-stall-beside-a-fault-that-is-not-shown",
        apply: stall_beside,
    },
    Edit {
        name: "version-1-that-tells-other-effects",
        apply: version_1,
    },
];

/// The client goes on before the fault is asked for.
fn leave_point(draft: &mut Draft) -> bool {
    let injected = time_of(draft, "inject", "invoke");
    let Some(place) = draft.pick(|e| is_a(e, "point", "ok")) else {
        return false;
    };
    let earlier = draft.rng.random_range(0..2_000);
    injected
        .map(|t| draft.file.events[place]["t"] = t.saturating_sub(earlier).into())
        .is_some()
}

/// A second fault is to wait for a grant, and strikes just after one that may have come before the first fault.
fn by_an_event(draft: &mut Draft) -> bool {
    let Some(place) = draft.pick(|e| is_a(e, "acquire", "ok")) else {
        return false;
    };
    let event = draft.file.events[place].clone();
    let client = event["process"].as_str().and_then(|p| p.split('.').next());
    let when = json!({"trigger": "event", "client": client, "f": "acquire", "outcome": "ok"});
    let from = time(&event) + draft.rng.random_range(0..20 * MS);
    let does = json!([{"effect": "clock-forward"}]);
    let times = (from, from + 100 * MS);
    strike(
        draft,
        Another {
            on: "s1",
            does,
            when,
            times,
        },
    )
}

fn delay_to(draft: &mut Draft, hosts: &[Value]) -> bool {
    let to = draft.one_of(hosts).unwrap_or(Value::Null);
    let Some(fault) = draft
        .fault()
        .filter(|fault| effect(fault) == "delays-packets")
    else {
        return false;
    };
    fault["does"][0]["to"] = to.clone();
    let told = draft
        .file
        .events
        .iter_mut()
        .filter_map(|e| e["does"].as_array_mut()?.first_mut());
    told.for_each(|effect| effect["to"] = to.clone());
    true
}

/// The evidence stands in the invocation, and not in the completion.
fn early_evidence(draft: &mut Draft) -> bool {
    let evidence = first(draft, "inject", "ok").map(|e| e["evidence"].take());
    let invoke = first(draft, "inject", "invoke");
    let both = invoke.zip(evidence);
    both.map(|(invoke, evidence)| invoke["evidence"] = evidence)
        .is_some()
}

/// It is said to have taken hold before it was asked for, and something happens before it was done.
fn hold_early(draft: &mut Draft) -> bool {
    let asked = time_of(draft, "inject", "invoke");
    let inject = first(draft, "inject", "ok");
    let Some((inject, asked)) = inject.zip(asked) else {
        return false;
    };
    inject["evidence"]["took_hold_ns"] = asked.saturating_sub(5 * MS).into();
    let client = inject["on"][0].clone();
    let op = draft.new_op();
    draft.file.events.push(json!({
        "t": asked + 1_000, "process": client, "op": op, "type": "invoke", "f": "work",
    }));
    true
}

/// Nothing shows the fault, and its client stood still for a moment.
fn stall_beside(draft: &mut Draft) -> bool {
    let Some(inject) = first(draft, "inject", "ok") else {
        return false;
    };
    inject["evidence"] = json!({"x": 1});
    let (t, process) = (time(inject), inject["on"][0].clone());
    let op = op_of(inject);
    draft.file.events.push(json!({
        "t": t + 2 * MS, "process": process, "op": op, "type": "info", "f": "stall", "stalled_ns": MS,
    }));
    process != "s1"
}

fn version_1(draft: &mut Draft) -> bool {
    let effect = draft
        .one_of(&["stops", "kills", "burns"])
        .unwrap_or("stops");
    draft.file.header["fencepost"] = 1.into();
    let mut told = draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["does"].is_array());
    let first = told.next();
    first
        .map(|e| e["does"] = json!([{"effect": effect}]))
        .is_some()
}
