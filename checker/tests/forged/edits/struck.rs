//! A fault more, planned and injected.

use serde_json::{Value, json};

use crate::forger::Draft;
use crate::honest::MS;

/// A fault that is planned and strikes.
pub struct Another {
    /// Whom it strikes.
    pub on: &'static str,
    /// What it does.
    pub does: Value,
    /// What it waits for.
    pub when: Value,
    /// When it is injected, and when its healing is done.
    pub times: (u64, u64),
}

/// A trigger that has come.
pub fn at_once() -> Value {
    json!({"trigger": "time", "after_ms": 0})
}

/// Plans a fault more, and injects and heals it. Each takes a millisecond, or a third of the time that there is.
pub fn strike(draft: &mut Draft, fault: Another) -> bool {
    let Some(faults) = draft.file.header["plan"]["faults"].as_array_mut() else {
        return false;
    };
    let step = faults.len() as u64;
    faults.push(json!({
        "fault": "another", "on": fault.on, "when": fault.when, "until": {"after_ms": 0}, "with": {},
        "does": fault.does, "shows": {"states": {"only": "T"}},
    }));
    if fault.on.starts_with('s') {
        draft.file.header["servers"][fault.on] = "1.0".into();
    }
    let (from, to) = fault.times;
    let long = MS.min(to.saturating_sub(from) / 3);
    for (place, (f, t)) in [("inject", from), ("heal", to.saturating_sub(long))]
        .into_iter()
        .enumerate()
    {
        for (later, kind) in [(0, "invoke"), (long, "ok")] {
            let mut event = json!({
                "t": t + later, "process": "nemesis", "op": 60 + 2 * step + place as u64, "type": kind, "f": f,
                "step": step, "fault": "another", "on": [fault.on], "engine": "none", "does": fault.does,
            });
            if kind == "ok" {
                event["evidence"] = json!({"states": "T"});
            }
            draft.file.events.push(event);
        }
    }
    true
}
