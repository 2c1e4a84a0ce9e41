//! The contracts that the honest and the hand-made histories state.

use serde_json::{Value, json};

/// All hazards, as `docs/verdicts.md` names them.
pub const HAZARDS: [&str; 16] = [
    "nothing",
    "client-stopped",
    "client-crashed",
    "client-cut-off",
    "work-held",
    "write-held",
    "server-stopped",
    "server-restarted",
    "server-lost",
    "server-cut-off",
    "server-clock-forward",
    "server-clock-back",
    "server-emptied",
    "storage-crashed",
    "storage-clock",
    "storage-emptied",
];

const PROPERTIES: [&str; 7] = [
    "mutual-exclusion",
    "exclusive-belief",
    "token-order",
    "no-stale-write",
    "no-lost-update",
    "document",
    "progress",
];

/// The contract of a lock with expiry on one server that forgets at a restart.
pub fn of_a_lease(is_fenced: bool) -> Value {
    contract(|property| match property {
        "mutual-exclusion" => &["server-clock-forward", "server-restarted", "server-emptied"],
        "no-stale-write" if is_fenced => &[],
        "exclusive-belief" | "no-stale-write" | "no-lost-update" => &[
            "client-stopped",
            "work-held",
            "write-held",
            "server-clock-forward",
            "server-restarted",
            "server-emptied",
        ],
        "token-order" => &["server-emptied"],
        "progress" => &[
            "server-clock-back",
            "server-stopped",
            "server-restarted",
            "server-lost",
        ],
        _ => &[],
    })
}

/// The contract of a lock without expiry, which ends with its session.
pub fn of_a_session() -> Value {
    contract(|property| match property {
        "exclusive-belief" | "no-stale-write" | "no-lost-update" => &[
            "server-restarted",
            "server-lost",
            "client-stopped",
            "write-held",
        ],
        "progress" => &[
            "client-stopped",
            "server-stopped",
            "server-restarted",
            "server-lost",
        ],
        _ => &[],
    })
}

/// Every property is promised under all hazards but these; of the last of the list nothing is said.
fn contract(limits: impl Fn(&str) -> &'static [&'static str]) -> Value {
    let mut clauses = Vec::new();
    for property in PROPERTIES {
        let limits = limits(property);
        let promised: Vec<&str> = HAZARDS[..15]
            .iter()
            .filter(|hazard| !limits.contains(hazard))
            .copied()
            .collect();
        clauses.push(json!({"property": property, "promise": "promised", "under": promised}));
        if !limits.is_empty() {
            clauses.push(json!({"property": property, "promise": "not-promised", "under": limits, "why": "a lease ends by itself"}));
        }
    }
    Value::Array(clauses)
}
