//! A run's plan: a scenario, resolved against the command line and a seed until nothing is left open.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Effect, Shows};

/// Everything that a run does, in one value that prints as TOML and stands in the history's header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: String,
    /// The lock service.
    pub lock: String,
    /// The topology that the lock's servers form.
    pub topology: String,
    /// The storage.
    pub storage: String,
    /// How the storage treats a write.
    pub policy: String,
    /// What the storage compares in a write before it accepts it: `token`; absent where it accepts every write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_condition: Option<String>,
    /// The seed of every random choice.
    pub seed: u64,
    /// How many clients there are: `c1` to `cN`.
    pub clients: u32,
    /// The time to live that clients ask for, in milliseconds.
    pub ttl_ms: u64,
    /// How long a wanted lock may stay ungranted after the last heal or a holder's crash, in milliseconds.
    pub progress_bound_ms: u64,
    /// The longest that the run may take, in milliseconds.
    pub limit_ms: u64,
    /// The properties whose violation the scenario is there to show where the contract does not promise them.
    #[serde(default)]
    pub controls: Vec<String>,
    /// What the clients do.
    pub workload: Workload,
    /// What goes wrong, in the order of the scenario.
    #[serde(default)]
    pub faults: Vec<PlannedFault>,
}

/// What the clients do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// The workload's name: `document`.
    pub name: String,
    /// How long the work under the lock takes, in milliseconds.
    pub work_ms: u64,
    /// The longest pause between two rounds of a client, in milliseconds; the pause is drawn from half of it up to all.
    pub rest_ms: u64,
    /// The longest wait before a busy lock is asked for again, in milliseconds; drawn likewise.
    pub retry_ms: u64,
    /// How many rounds each client has to complete before the first fault and after the last, for the run to end.
    pub rounds: u64,
}

/// One fault of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedFault {
    /// The fault's name.
    pub fault: String,
    /// The host it strikes: a client (`c1`), a server (`s1`), `storage`, or `leader`.
    pub on: String,
    /// What it does to that host, as the fault itself declares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub does: Vec<Effect>,
    /// What its evidence has to say for it to have taken hold, likewise.
    #[serde(default, skip_serializing_if = "Shows::is_empty")]
    pub shows: Shows,
    /// What it waits for.
    pub when: When,
    /// How long it lasts.
    pub until: Until,
    /// The fault's own parameters, whose names end in their units.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub with: Map<String, Value>,
}

/// A trigger: what a fault waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "trigger")]
pub enum When {
    /// This long after the clients started.
    Time {
        /// In milliseconds.
        after_ms: u64,
    },
    /// A client reaches a named point.
    Point {
        /// The client.
        client: String,
        /// The point.
        point: String,
        /// Sequence number of the grant within the client, from 1.
        nth_grant: u64,
    },
    /// A client completes an operation, after every earlier fault of the plan was injected.
    Event(Named),
}

/// An event of a client, named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The client.
    pub client: String,
    /// The function, as in the history: `acquire`, `write`, …
    pub f: String,
    /// The completion, as in the history: `ok`, `fail`, `info`.
    pub outcome: String,
}

/// How long a fault lasts: until all that is named here is true, yet no longer than `at_most_ms`.
///
/// A fault with nothing named heals only when the run ends, as a crash does that nothing restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Until {
    /// At least this long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// At least until a client completes this operation, invoked after the fault was injected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Named>,
    /// Never longer than this, in milliseconds; then the fault heals and the run is inconclusive about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ms: Option<u64>,
}
