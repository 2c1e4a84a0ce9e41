//! The contract: what a lock service and a storage's policy promise together, when these faults are about.
//!
//! A lock service states in its own file which [`Guarantee`] it does not keep under which [`Hazard`]. A plan's faults are
//! hazards; what is promised of the document follows from both and from the policy.

use std::collections::BTreeSet;
use std::fmt;

use histories::{Plan, PlannedFault};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::locks::LockService;
use crate::storages::Policy;

/// Whether a property is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Its violation is a broken promise.
    Promised,
    /// Its violation is a known limit.
    NotPromised,
    /// Nobody says.
    Unspecified,
}

impl fmt::Display for Promise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Promise::Promised => "promised",
            Promise::NotPromised => "not-promised",
            Promise::Unspecified => "unspecified",
        })
    }
}

/// What the contract says of one property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Whether it is promised.
    pub promise: Promise,
    /// Why, in half a sentence.
    pub why: &'static str,
}

/// What a lock service can guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guarantee {
    /// Never are there two grants that may both be relied on.
    Exclusion,
    /// A client that was not told of a loss acts as the holder only while it is.
    Belief,
    /// A later grant has a higher token.
    TokenOrder,
    /// A wanted lock is granted in the end.
    Progress,
}

/// What can go wrong, as lock services see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    /// A holder still acts when its lease is over: it was paused or held up, or its write was.
    OutlivedLease,
    /// The work takes about as long as the lease lives, or longer.
    LongWork,
    /// A client is killed.
    ClientCrash,
    /// The wall clock of one of the lock's servers is stepped.
    ServerClockStep,
    /// One of the lock's servers is killed and started again with what it had on disk.
    ServerRestart,
    /// One of the lock's servers is killed and stays down.
    ServerLoss,
    /// One of the lock's servers stands still for a time.
    ServerPause,
    /// A fault that nobody made a statement about.
    Unforeseen,
}

/// What is promised of a property, by its name, when a lock service and a policy are used in a plan.
pub fn contract(
    service: &dyn LockService,
    policy: &Policy,
    plan: &Plan,
    property: &str,
) -> Clause {
    let hazards = hazards(plan);
    if hazards.contains(&Hazard::Unforeseen) {
        return unspecified("the contract says nothing about one of the faults");
    }
    let limit = |guarantee| {
        hazards
            .iter()
            .find_map(|&hazard| service.limit(guarantee, hazard))
    };
    let exclusion = limit(Guarantee::Exclusion);
    let belief = exclusion.or_else(|| limit(Guarantee::Belief));
    match property {
        "mutual-exclusion" => promised_unless(exclusion),
        "exclusive-belief" => promised_unless(belief),
        "token-order" if !service.has().tokens => unspecified("its grants carry no token"),
        "token-order" => promised_unless(limit(Guarantee::TokenOrder)),
        "no-stale-write" if policy.needs_token => promised_unless(limit(Guarantee::TokenOrder)),
        "no-stale-write" => promised_unless(belief),
        "no-lost-update" if policy.needs_token => promised_unless(belief.map(|_| LATE_BUT_FIRST)),
        "no-lost-update" => promised_unless(belief),
        "document" => promised("the storage is one server, and keeps what it acknowledged"),
        "progress" => promised_unless(limit(Guarantee::Progress)),
        "efficiency" => promised("it only counts"),
        _ => unspecified("the contract does not know the property"),
    }
}

/// Claim B1: rejecting lower tokens is not enough for an update that reads first.
const LATE_BUT_FIRST: &str = "a late write that comes before its successor's first is accepted, and overwritten unseen";

fn promised(why: &'static str) -> Clause {
    Clause {
        promise: Promise::Promised,
        why,
    }
}

fn promised_unless(limit: Option<&'static str>) -> Clause {
    match limit {
        None => promised("none of the faults is a limit of the lock service"),
        Some(why) => Clause {
            promise: Promise::NotPromised,
            why,
        },
    }
}

fn unspecified(why: &'static str) -> Clause {
    Clause {
        promise: Promise::Unspecified,
        why,
    }
}

/// The hazards that a plan's faults are.
pub fn hazards(plan: &Plan) -> BTreeSet<Hazard> {
    let mut hazards: BTreeSet<Hazard> = plan
        .faults
        .iter()
        .flat_map(|fault| of_fault(plan, fault))
        .collect();
    if about_as_long_as(plan.workload.work_ms, plan) {
        hazards.insert(Hazard::LongWork);
    }
    hazards
}

fn of_fault(plan: &Plan, fault: &PlannedFault) -> Option<Hazard> {
    let client = fault.on.starts_with('c');
    let storage = fault.on == "storage";
    match fault.fault.as_str() {
        "pause" if client || storage => outlives(plan, fault).then_some(Hazard::OutlivedLease),
        "pause" => Some(Hazard::ServerPause),
        "delay" => delays(plan, fault).then_some(Hazard::OutlivedLease),
        "crash" | "restart" if client => Some(Hazard::ClientCrash),
        // What it acknowledged it still has, and what it did not is unknown anyway.
        "crash" | "restart" if storage => None,
        "crash" if stays(fault) => Some(Hazard::ServerLoss),
        "crash" | "restart" => Some(Hazard::ServerRestart),
        // Clients measure validity on the monotonic clock, and the storage has no use for a clock.
        "clock-step" if client || storage => None,
        "clock-step" => Some(Hazard::ServerClockStep),
        _ => Some(Hazard::Unforeseen),
    }
}

/// Whether a fault may last about as long as a lease lives, or longer; one that waits for an event may.
fn outlives(plan: &Plan, fault: &PlannedFault) -> bool {
    match (&fault.until.event, fault.until.after_ms) {
        (None, Some(after_ms)) => about_as_long_as(after_ms, plan),
        _ => true,
    }
}

/// Whether a delay of packets may make a round outlive its lease: a round has that many packets one after another.
fn delays(plan: &Plan, fault: &PlannedFault) -> bool {
    const PACKETS_A_ROUND: u64 = 8;
    match fault.with.get("delay_ms").and_then(Value::as_u64) {
        Some(delay_ms) => about_as_long_as(PACKETS_A_ROUND * delay_ms, plan),
        None => true,
    }
}

/// The grant has aged when a fault begins, so that a little less than the time to live is enough to outlive it.
fn about_as_long_as(duration_ms: u64, plan: &Plan) -> bool {
    duration_ms * 5 >= plan.ttl_ms * 4
}

/// Whether what is killed stays so until the run ends.
fn stays(fault: &PlannedFault) -> bool {
    fault.until.after_ms.is_none() && fault.until.event.is_none()
}
