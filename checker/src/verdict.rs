//! What the checker finds: three-valued, with a witness for what is violated and a reason for what is unknown.

use histories::{Event, Promise, Seal};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use crate::contract::Class;

/// Whether a property holds, without the reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Nothing speaks against it, and the history was such that something could have.
    Holds,
    /// It is proven to be violated.
    Violated,
    /// The history does not tell.
    Unknown,
}

/// Whether a property holds, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub enum Outcome {
    /// Nothing speaks against it, and the history was such that something could have.
    Holds,
    /// It is proven to be violated.
    Violated {
        /// The proof.
        witness: Witness,
    },
    /// The history does not tell.
    Unknown {
        /// Why not, as a fragment: ``fault `pause` on c1 was not healed``.
        reason: String,
    },
}

impl Outcome {
    /// The outcome without its reasons.
    pub fn answer(&self) -> Answer {
        match self {
            Outcome::Holds => Answer::Holds,
            Outcome::Violated { .. } => Answer::Violated,
            Outcome::Unknown { .. } => Answer::Unknown,
        }
    }

    /// The proof, if the property is violated.
    pub fn witness(&self) -> Option<&Witness> {
        match self {
            Outcome::Violated { witness } => Some(witness),
            _ => None,
        }
    }

    /// Why the history does not tell, if it does not.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Unknown { reason } => Some(reason),
            _ => None,
        }
    }
}

/// The proof of a violation: the first one of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Witness {
    /// What went wrong, in one sentence with its names, times and figures.
    pub sentence: String,
    /// The ids of the operations that prove it, two or three.
    pub operations: Vec<u64>,
    /// How long two holders overlapped, or how long a lock was stuck, in milliseconds; absent where nothing lasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_ms: Option<f64>,
    /// The few events that tell the story, ordered by time, as they stand in the history less what has no part in it.
    #[serde(default, deserialize_with = "owned")]
    pub events: Vec<Event<'static>>,
}

fn owned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Event<'static>>, D::Error> {
    let events = Vec::<Event<'de>>::deserialize(deserializer)?;
    Ok(events.into_iter().map(Event::into_owned).collect())
}

/// What was found of one property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PropertyVerdict {
    /// Its name: `no-stale-write`.
    pub name: String,
    /// Whether it holds, and why.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How many violations there are; what one is stands with the property.
    pub violations: u64,
    /// What the contract says of it, under the hazards that count.
    pub contract: Promise,
    /// What the outcome means against that.
    pub class: Class,
    /// Why the contract says so.
    pub why: String,
}

/// A fault as it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultReport {
    /// Its name.
    pub fault: String,
    /// The hosts that it struck.
    pub on: Vec<String>,
    /// By what it was made; empty if the history does not say.
    pub engine: String,
    /// Whether its evidence shows that it took hold.
    pub took_hold: bool,
    /// When it was in force, in nanoseconds since the run's base; absent if it was never said to be.
    pub injected_ns: Option<u64>,
    /// When it was over; absent if it was never said to be.
    pub healed_ns: Option<u64>,
    /// What shows that it took hold.
    pub evidence: Map<String, Value>,
    /// What shows that it is over.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub heal_evidence: Map<String, Value>,
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Operations that clients began.
    pub operations: u64,
    /// Acquires that came out ok.
    pub grants: u64,
    /// Grants whose clients still acted as the holder when their validity was over, by a fault or because the machine
    /// let them wait.
    pub outlived: u64,
    /// Writes that the storage is known to have accepted.
    pub writes_accepted: u64,
    /// Writes that it rejected for their token.
    pub writes_rejected: u64,
    /// Operations whose outcome their client never learned, and nothing else tells.
    pub unknown: u64,
}

/// What the lock cost, and what it spared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Attempts to get a lock.
    pub attempts: u64,
    /// Attempts for each grant; absent without a grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_per_grant: Option<f64>,
    /// Times that a grant began to write from a version from which another grant had begun to write already.
    pub jobs_run_twice: u64,
    /// Writes that the storage rejected for their token.
    pub writes_rejected: u64,
    /// The longest time for which one client wanted the lock and did not get it, while others may have been served, in
    /// milliseconds; absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_wait_ms: Option<f64>,
    /// Grants for which their client was waiting when the holder before it ceased to hold.
    pub take_overs: u64,
    /// From the end of the hold to the next grant, over the take-overs, in milliseconds; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_over_ms: Option<Spread>,
}

/// How a figure spreads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The lower median.
    pub median: f64,
    /// The greatest.
    pub max: f64,
}

/// What a history shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Violated if any property is, else unknown if any is or if none could be judged, else holds.
    pub outcome: Answer,
    /// The properties, in the order of [`crate::properties()`].
    pub properties: Vec<PropertyVerdict>,
    /// The plan's controls, as far as the contract does not promise them: the scenario is there to show them violated.
    #[serde(default)]
    pub controls: Vec<String>,
    /// The assumptions that failed, as fragments: for each of them no property is said to hold.
    pub assumptions: Vec<String>,
    /// The faults, by the time of their injection.
    pub faults: Vec<FaultReport>,
    /// How much happened.
    pub counts: Counts,
    /// What the lock cost; absent where `efficiency` was not asked for or has nothing to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<Efficiency>,
    /// How many events were judged.
    pub events: u64,
    /// Whether the history is as it was when it was closed.
    pub seal: Seal,
}

impl Verdict {
    /// What was found of the property of this name.
    pub fn property(&self, name: &str) -> Option<&PropertyVerdict> {
        self.properties
            .iter()
            .find(|property| property.name == name)
    }
}
