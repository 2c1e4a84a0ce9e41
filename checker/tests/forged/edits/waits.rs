//! Waiting: for locks that nobody gets, for packets, and for what makes work as long as the lease; and what tells of it.

use rand::RngExt;
use serde_json::{Value, json};

use super::struck::{Another, at_once, strike};
use crate::file::time;
use crate::forger::{Draft, Edit, is_a, is_of_client, op_of};
use crate::honest::MS;

pub const EDITS: &[Edit] = &[
    Edit {
        name: "asked-twice-in-vain",
        apply: |d| in_vain(d).is_some(),
    },
    Edit {
        name: "asked-twice-in-vain-beside-a-grant",
        apply: in_vain_beside_a_grant,
    },
    Edit {
        name: "asked-twice-in-vain-and-was-cut-off",
        apply: in_vain_and_cut_off,
    },
    Edit {
        name: "asked-twice-in-vain-while-a-fault-that-is-not-shown",
        apply: in_vain_and_not_shown,
    },
    Edit {
        name: "waits-just-under-the-lease",
        apply: waits,
    },
    Edit {
        name: "a-heartbeat-of-any-length",
        apply: heartbeat,
    },
    Edit {
        name: "a-write-condition-of-another-word",
        apply: |d| {
            d.file.header["plan"]["write_condition"] = "version".into();
            true
        },
    },
    Edit {
        name: "a-row-before-its-reading",
        apply: |d| row(d, "invoke", -1),
    },
    Edit {
        name: "a-row-after-its-reading",
        apply: |d| row(d, "ok", 1),
    },
    Edit {
        name: "rows-of-another-documents-reading",
        apply: other_reading,
    },
];

/// A client asks for the lock at its end and long after that, in vain. From when to when.
fn in_vain(draft: &mut Draft) -> Option<(u64, u64, Value)> {
    let place = draft.pick(|e| e["f"] == "exit" && is_of_client(e))?;
    let exit = draft.file.events[place].clone();
    let from = draft
        .file
        .events
        .iter()
        .filter(|e| is_of_client(e))
        .map(time)
        .max()?;
    let to = from + draft.rng.random_range(1_100 * MS..2_500 * MS);
    ask_twice(draft, &exit["process"], (from + MS, to));
    draft.file.events[place]["t"] = (to + 10 * MS).into();
    log_later(draft, 3_000 * MS);
    Some((from, to, exit["process"].clone()))
}

fn ask_twice(draft: &mut Draft, process: &Value, (first, second): (u64, u64)) {
    for t in [first, second] {
        let op = draft.new_op();
        for (later, kind) in [(0, "invoke"), (MS, "fail")] {
            let event = json!({"t": t + later, "process": process, "op": op, "type": kind, "f": "acquire", "lock": "lock"});
            draft.file.events.push(event);
        }
    }
}

fn log_later(draft: &mut Draft, by: u64) {
    let told = draft
        .file
        .events
        .iter_mut()
        .filter(|e| e["process"] == "storage" && e["f"] != "stall");
    told.for_each(|e| e["t"] = (time(e) + by).into());
}

/// In the middle somebody else has the lock, for a moment.
fn in_vain_beside_a_grant(draft: &mut Draft) -> bool {
    let Some((from, to, process)) = in_vain(draft) else {
        return false;
    };
    let Some(other) =
        draft.pick(|e| e["f"] == "exit" && is_of_client(e) && e["process"] != process)
    else {
        return false;
    };
    let t = draft.rng.random_range(from..to + 4 * MS);
    let op = draft.new_op();
    let process = draft.file.events[other]["process"].clone();
    draft.file.events[other]["t"] = (to + 20 * MS).into();
    let event = |t: u64, op: u64, kind: &str, f: &str| json!({"t": t, "process": process, "op": op, "type": kind, "f": f, "lock": "lock"});
    let mut all = [
        event(t, op, "invoke", "acquire"),
        event(t + MS, op, "ok", "acquire"),
        event(t + 2 * MS, op + 1, "invoke", "release"),
        event(t + 3 * MS, op + 1, "ok", "release"),
    ];
    all[1]["validity"] = (t + 300 * MS).into();
    all[2]["grant"] = op.into();
    draft.file.events.extend(all);
    true
}

fn in_vain_and_cut_off(draft: &mut Draft) -> bool {
    let Some((from, to, process)) = in_vain(draft) else {
        return false;
    };
    let host = process.as_str().and_then(|p| p.split('.').next());
    let on = ["c1", "c2"]
        .into_iter()
        .find(|on| Some(*on) == host)
        .unwrap_or("c1");
    let to_whom = draft.one_of(&[Value::Null, json!("servers"), json!("s1"), json!("storage")]);
    let mut does = json!([{"effect": "delays-packets", "to": to_whom}]);
    if let Some(each @ 1..) = draft.one_of(&[0, 149, 150, 151]) {
        does[0]["each_ms"] = each.into();
    }
    let times = (from + 20 * MS, to.saturating_sub(20 * MS));
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

fn in_vain_and_not_shown(draft: &mut Draft) -> bool {
    let Some((from, to, _)) = in_vain(draft) else {
        return false;
    };
    let does = json!([{"effect": draft.one_of(&["stops", "kills", "clock-back", "burns"])}]);
    let times = (from + 20 * MS, to.saturating_sub(20 * MS));
    let op = 60
        + 2 * draft.file.header["plan"]["faults"]
            .as_array()
            .map_or(0, Vec::len) as u64;
    let is_struck = strike(
        draft,
        Another {
            on: "s1",
            does,
            when: at_once(),
            times,
        },
    );
    let answers = draft
        .file
        .events
        .iter_mut()
        .filter(|e| is_a(e, "inject", "ok") && op_of(e) == op);
    answers.for_each(|e| e["evidence"] = json!({}));
    is_struck
}

/// Nobody planned what held up its clients, so that only their waiting explains it.
fn without_faults(draft: &mut Draft) -> bool {
    draft.file.header["plan"]["faults"] = json!([]);
    draft.remove(|e| e["process"] == "nemesis" || e["f"] == "stall")
}

/// What waited waited for some 600 ms, which with the plan's work is just under four fifths of the TTL, or just that.
fn waits(draft: &mut Draft) -> bool {
    let (ttl, work) = (
        draft.rng.random_range(740..790),
        draft.rng.random_range(0..20),
    );
    draft.file.header["plan"]["ttl_ms"] = ttl.into();
    draft.file.header["plan"]["workload"]["work_ms"] = work.into();
    without_faults(draft)
}

fn heartbeat(draft: &mut Draft) -> bool {
    let heartbeat = draft.one_of(&[0, 1, 59, 60, 61, 300]).unwrap_or(0);
    draft.file.header["heartbeat_ms"] = heartbeat.into();
    without_faults(draft)
}

fn row(draft: &mut Draft, kind: &str, by: i64) -> bool {
    let log = draft
        .file
        .events
        .iter()
        .find(|e| is_a(e, "log", kind))
        .map(time);
    let Some(t) = log else {
        return false;
    };
    draft.change(
        |e| e["f"] == "accepted",
        |e, _| e["t"] = t.saturating_add_signed(by).into(),
    )
}

fn other_reading(draft: &mut Draft) -> bool {
    let mut is_edited = false;
    for event in draft.file.events.iter_mut().filter(|e| e["f"] == "log") {
        event["document"] = "another".into();
        is_edited = true;
    }
    is_edited
}
