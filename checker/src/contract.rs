//! The contract of a history: what its clauses say of a property, and what an outcome is against that.

use std::collections::BTreeSet;

use histories::{Clause, Deed, Effect, Hazard, Plan, PlannedFault, Promise, Role, SERVERS, Until};
use serde::{Deserialize, Serialize};

/// What a property's outcome means against the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It holds, and it was promised.
    Kept,
    /// It was promised and is violated.
    Broken,
    /// It was not promised, and is violated.
    LimitShown,
    /// It was not promised, and holds this time.
    LimitNotShown,
    /// Whether it holds or not, nobody said whether it would.
    Unspecified,
    /// The history does not tell.
    Unknown,
}

/// What a contract says of a property, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) promise: Promise,
    pub(crate) why: String,
}

/// The clauses of a history's header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contract {
    clauses: Vec<Clause>,
}

impl Contract {
    pub(crate) fn new(clauses: Vec<Clause>) -> Contract {
        Contract { clauses }
    }

    /// Whether any clause is about a property.
    pub(crate) fn mentions(&self, property: &str) -> bool {
        self.clauses
            .iter()
            .any(|clause| clause.property == property)
    }

    /// What is said of a property under one hazard. Clauses that contradict each other say nothing.
    pub(crate) fn said(&self, property: &str, hazard: Hazard) -> Said {
        let nothing = |why: String| Said {
            promise: Promise::Unspecified,
            why,
        };
        if hazard == Hazard::Unforeseen {
            return nothing("no contract says anything about one of the faults, or about several servers at once".to_owned());
        }
        let mut said = self
            .clauses
            .iter()
            .filter(|clause| clause.property == property && clause.under.contains(&hazard));
        let Some(first) = said.next() else {
            let hazard = word(hazard);
            return nothing(format!("the contract says nothing of it under `{hazard}`"));
        };
        if said.any(|other| other.promise != first.promise) {
            let hazard = word(hazard);
            return nothing(format!("the contract contradicts itself under `{hazard}`"));
        }
        Said {
            promise: first.promise,
            why: first.why.clone(),
        }
    }

    /// What is said of a property under several hazards and under none: a limit counts first, then what nobody said.
    pub(crate) fn said_of_all(&self, property: &str, hazards: &[Hazard]) -> Said {
        let all = || hazards.iter().copied().chain([Hazard::Nothing]);
        let find = |promise: Promise| {
            all()
                .map(|hazard| self.said(property, hazard))
                .find(|said| said.promise == promise)
        };
        find(Promise::NotPromised)
            .or_else(|| find(Promise::Unspecified))
            .unwrap_or_else(|| Said {
                promise: Promise::Promised,
                why: "none of the faults is a limit of the lock service".to_owned(),
            })
    }
}

/// What holding is against what was said.
pub(crate) fn class_of_holding(promise: Promise) -> Class {
    match promise {
        Promise::Promised => Class::Kept,
        Promise::NotPromised => Class::LimitNotShown,
        Promise::Unspecified => Class::Unspecified,
    }
}

/// The name of a hazard in a contract's clauses: `client-stopped`.
pub(crate) fn word(hazard: Hazard) -> String {
    match serde_json::to_value(hazard) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// The hazards that an effect is on a host of this role. `healed` says whether the host gets back what the fault took.
pub(crate) fn hazards_of(effect: &Effect, on: Option<Role>, healed: bool) -> Vec<Hazard> {
    let Some(on) = on else {
        return vec![Hazard::Unforeseen];
    };
    match (effect.effect, on) {
        (Deed::Stops, Role::Client) => vec![Hazard::ClientStopped],
        (Deed::Stops, Role::Server) => vec![Hazard::ServerStopped],
        (Deed::Stops | Deed::DelaysPackets, Role::Storage) => vec![Hazard::WriteHeld],
        (Deed::Kills | Deed::Restarts, Role::Client) => vec![Hazard::ClientCrashed],
        (Deed::Kills, Role::Server) if !healed => vec![Hazard::ServerLost],
        (Deed::Kills | Deed::Restarts, Role::Server) => vec![Hazard::ServerRestarted],
        (Deed::Kills | Deed::Restarts, Role::Storage) => vec![Hazard::StorageCrashed],
        (Deed::HoldsWork, Role::Client) => vec![Hazard::WorkHeld],
        (Deed::DelaysPackets, Role::Client) => delayed(effect.to.as_deref()),
        (Deed::DelaysPackets, Role::Server) => vec![Hazard::ServerCutOff],
        // Clients count on the monotonic clock.
        (Deed::ClockForward | Deed::ClockBack, Role::Client) => Vec::new(),
        (Deed::ClockForward, Role::Server) => vec![Hazard::ServerClockForward],
        (Deed::ClockBack, Role::Server) => vec![Hazard::ServerClockBack],
        (Deed::ClockForward | Deed::ClockBack, Role::Storage) => vec![Hazard::StorageClock],
        (Deed::LosesState, Role::Server) => vec![Hazard::ServerEmptied],
        (Deed::LosesState, Role::Storage) => vec![Hazard::StorageEmptied],
        (Deed::LosesState | Deed::Unforeseen, _) | (Deed::HoldsWork, _) => vec![Hazard::Unforeseen],
    }
}

/// What it is that a client's packets are late.
fn delayed(to: Option<&str>) -> Vec<Hazard> {
    match to.map(|to| (to, Role::of(to))) {
        None => vec![Hazard::WriteHeld, Hazard::ClientCutOff],
        Some((SERVERS, _) | (_, Some(Role::Server))) => vec![Hazard::ClientCutOff],
        Some((_, Some(Role::Storage))) => vec![Hazard::WriteHeld],
        Some((_, Some(Role::Client) | None)) => vec![Hazard::Unforeseen],
    }
}

/// What healing does by itself: a clock that is set right is stepped the other way.
pub(crate) fn undone_by(effect: &Effect) -> Option<Effect> {
    match effect.effect {
        Deed::ClockForward => Some(Effect::of(Deed::ClockBack)),
        Deed::ClockBack => Some(Effect::of(Deed::ClockForward)),
        _ => None,
    }
}

/// Whether a hazard harms only a holder that it makes outlive its lease.
pub(crate) fn makes_late(hazard: Hazard) -> bool {
    matches!(
        hazard,
        Hazard::ClientStopped | Hazard::WorkHeld | Hazard::WriteHeld
    )
}

/// Whether a fault lasts until the run ends: nothing is named that it would heal after.
pub(crate) fn stays(until: &Until) -> bool {
    until.after_ms.is_none() && until.event.is_none() && until.at_most_ms.is_none()
}

/// The hazards that a plan has in store.
pub(crate) fn planned(plan: &Plan) -> Vec<Hazard> {
    let mut hazards: Vec<Hazard> = plan
        .faults
        .iter()
        .flat_map(|fault| of_planned(plan, fault))
        .collect();
    if about_as_long_as(plan.workload.work_ms, plan) {
        hazards.push(Hazard::WorkHeld);
    }
    let servers = plan.faults.iter().map(|fault| fault.on.as_str());
    let servers: BTreeSet<&str> = servers
        .filter(|host| Role::of(host) == Some(Role::Server))
        .collect();
    // Clauses speak of one of the servers.
    hazards.extend((servers.len() > 1).then_some(Hazard::Unforeseen));
    hazards.sort_unstable();
    hazards.dedup();
    hazards
}

fn of_planned(plan: &Plan, fault: &PlannedFault) -> Vec<Hazard> {
    let role = Role::of(&fault.on);
    if fault.does.is_empty() {
        return vec![Hazard::Unforeseen];
    }
    let of = |effect: &Effect| {
        let mut hazards = hazards_of(effect, role, !stays(&fault.until));
        if let (Some(back), false) = (undone_by(effect), stays(&fault.until)) {
            hazards.extend(hazards_of(&back, role, true));
        }
        hazards.retain(|&hazard| !makes_late(hazard) || may_outlive(plan, fault, effect));
        hazards
    };
    fault.does.iter().flat_map(of).collect()
}

/// How many packets a round sends one after another.
const PACKETS_A_ROUND: u64 = 8;

/// Whether an effect on a client's host keeps that client from asking for locks: a round of packets to the lock's servers
/// that takes the whole bound for progress does.
pub(crate) fn keeps_from_asking(effect: &Effect, plan: &Plan) -> bool {
    match effect.effect {
        Deed::Stops | Deed::Kills | Deed::Restarts | Deed::HoldsWork => true,
        Deed::DelaysPackets => {
            let round_ms = effect.each_ms.map(round_ms);
            let is_long = round_ms.is_none_or(|round_ms| round_ms >= plan.progress_bound_ms);
            is_long && delayed(effect.to.as_deref()).contains(&Hazard::ClientCutOff)
        }
        _ => false,
    }
}

fn round_ms(each_ms: u64) -> u64 {
    each_ms.saturating_mul(PACKETS_A_ROUND)
}

/// Whether a fault may last about as long as a lease lives, or longer.
fn may_outlive(plan: &Plan, fault: &PlannedFault, effect: &Effect) -> bool {
    let until = &fault.until;
    let longest_ms = match effect.effect {
        Deed::DelaysPackets => effect.each_ms.map(round_ms),
        _ => {
            let named = until.after_ms.filter(|_| until.event.is_none());
            named.into_iter().chain(until.at_most_ms).min()
        }
    };
    longest_ms.is_none_or(|longest_ms| about_as_long_as(longest_ms, plan))
}

/// The grant has aged when a fault begins, so that a little less than the time to live is enough to outlive it.
pub(crate) fn about_as_long_as(duration_ms: u64, plan: &Plan) -> bool {
    duration_ms.saturating_mul(5) >= plan.ttl_ms.saturating_mul(4)
}
