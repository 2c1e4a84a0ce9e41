//! The contract: what a lock service and a storage's policy promise together, when these faults are about.
//!
//! A lock service states in its own file which [`Guarantee`] it does not keep under which [`Hazard`]. A plan's faults are
//! hazards; what is promised of the document follows from both and from the policy.

use std::collections::BTreeSet;
use std::fmt;

use histories::{Plan, PlannedFault};
use nemesis::Role;
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

/// What is promised of a property, by its name, when a lock service and a policy are used while these hazards are about.
pub fn contract(
    service: &dyn LockService,
    policy: &Policy,
    hazards: &BTreeSet<Hazard>,
    property: &str,
) -> Clause {
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
const LATE_BUT_FIRST: &str =
    "a late write that comes before its successor's first is accepted, and overwritten unseen";

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

/// A property that nobody makes a statement about, and why not.
pub fn unspecified(why: &'static str) -> Clause {
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
    let role = Role::of(&fault.on);
    let lock_server = role == Some(Role::Server);
    match fault.fault.as_str() {
        "pause" if lock_server => Some(Hazard::ServerPause),
        "pause" => outlives(plan, fault).then_some(Hazard::OutlivedLease),
        "long-work" => outlives(plan, fault).then_some(Hazard::LongWork),
        "delay" => delays(plan, fault).then_some(Hazard::OutlivedLease),
        "crash" | "restart" if role == Some(Role::Client) => Some(Hazard::ClientCrash),
        "crash" if lock_server && stays(fault) => Some(Hazard::ServerLoss),
        "crash" | "restart" if lock_server => Some(Hazard::ServerRestart),
        // What the storage acknowledged it still has, and what it did not is unknown anyway.
        "crash" | "restart" => None,
        "clock-step" if lock_server => Some(Hazard::ServerClockStep),
        // Clients measure validity on the monotonic clock, and the storage has no use for a clock.
        "clock-step" => None,
        _ => Some(Hazard::Unforeseen),
    }
}

/// Whether a fault may last about as long as a lease lives, or longer.
fn outlives(plan: &Plan, fault: &PlannedFault) -> bool {
    let until = &fault.until;
    let longest_ms = match until.event {
        Some(_) => until.at_most_ms,
        None => until.after_ms,
    };
    longest_ms.is_none_or(|longest_ms| about_as_long_as(longest_ms, plan))
}

/// Whether a delay of packets may make a round outlive its lease: a round has that many packets one after another.
///
/// What a client sends a lock's server late is harmless: it counts on a grant only from when it asked, and what it asks
/// for a grant that is over is refused.
fn delays(plan: &Plan, fault: &PlannedFault) -> bool {
    const PACKETS_A_ROUND: u64 = 8;
    let to = fault.with.get("to").and_then(Value::as_str);
    let asks_locks_alone = to.is_some_and(|to| Role::of(to) == Some(Role::Server));
    if Role::of(&fault.on) == Some(Role::Client) && asks_locks_alone {
        return false;
    }
    match fault.with.get("delay_ms").and_then(Value::as_u64) {
        Some(delay_ms) => about_as_long_as(delay_ms.saturating_mul(PACKETS_A_ROUND), plan),
        None => true,
    }
}

/// The grant has aged when a fault begins, so that a little less than the time to live is enough to outlive it.
fn about_as_long_as(duration_ms: u64, plan: &Plan) -> bool {
    duration_ms.saturating_mul(5) >= plan.ttl_ms.saturating_mul(4)
}

/// Whether what is killed stays so until the run ends.
fn stays(fault: &PlannedFault) -> bool {
    fault.until.after_ms.is_none() && fault.until.event.is_none()
}

#[cfg(test)]
mod tests {
    use histories::{Named, Until, When, Workload};
    use serde_json::json;

    use super::*;
    use crate::locks::{SERVICES, service};
    use crate::storages::{FENCED, POLICIES, SAME_TRANSACTION, UNFENCED};

    const PROPERTIES: &[&str] = nemesis::PROPERTIES;

    fn plan(faults: Vec<PlannedFault>) -> Plan {
        Plan {
            scenario: "a-test".into(),
            lock: String::new(),
            topology: String::new(),
            storage: "postgres".into(),
            policy: String::new(),
            seed: 1,
            clients: 2,
            ttl_ms: 1000,
            progress_bound_ms: 4000,
            limit_ms: 60_000,
            controls: Vec::new(),
            workload: Workload {
                name: "document".into(),
                work_ms: 5,
                rest_ms: 10,
                retry_ms: 20,
                rounds: 3,
            },
            faults,
        }
    }

    fn fault(fault: &str, on: &str, after_ms: u64) -> PlannedFault {
        PlannedFault {
            fault: fault.into(),
            on: on.into(),
            when: When::Time { after_ms: 100 },
            until: Until {
                after_ms: Some(after_ms),
                ..Until::default()
            },
            with: serde_json::Map::new(),
        }
    }

    fn promise(lock: &str, policy: &Policy, plan: &Plan, property: &str) -> Promise {
        contract(service(lock).unwrap(), policy, &hazards(plan), property).promise
    }

    /// All that may be used together.
    fn pairs() -> impl Iterator<Item = (&'static str, &'static Policy)> {
        SERVICES.iter().flat_map(|service| {
            let usable = POLICIES
                .iter()
                .filter(|policy| service.refuses(policy).is_none());
            usable.map(|policy| (service.name(), policy))
        })
    }

    #[test]
    fn without_a_hazard_everything_is_promised() {
        let harmless = [
            plan(Vec::new()),
            plan(vec![fault("pause", "c1", 500)]),
            plan(vec![fault("long-work", "c1", 500)]),
            plan(vec![fault("crash", "c1", 2000)]),
            plan(vec![fault("clock-step", "c2", 2000)]),
        ];
        for plan in &harmless {
            for (lock, policy) in pairs() {
                for property in PROPERTIES {
                    let has_tokens = service(lock).unwrap().has().tokens;
                    let expected = if *property == "token-order" && !has_tokens {
                        Promise::Unspecified
                    } else {
                        Promise::Promised
                    };
                    let found = promise(lock, policy, plan, property);
                    assert_eq!(found, expected, "{lock} {} {property}", policy.name);
                }
            }
        }
    }

    #[test]
    fn no_lease_promises_what_a_long_pause_breaks() {
        let plan = plan(vec![fault("pause", "c1", 1200)]);
        for (lock, policy) in pairs().filter(|(_, policy)| !policy.needs_transaction) {
            let promise = |property| promise(lock, policy, &plan, property);
            assert_eq!(promise("mutual-exclusion"), Promise::Promised, "{lock}");
            assert_eq!(promise("exclusive-belief"), Promise::NotPromised, "{lock}");
            assert_eq!(promise("no-lost-update"), Promise::NotPromised, "{lock}");
            let fenced = if *policy == FENCED {
                Promise::Promised
            } else {
                Promise::NotPromised
            };
            assert_eq!(promise("no-stale-write"), fenced, "{lock} {}", policy.name);
        }
        for property in ["exclusive-belief", "no-stale-write", "no-lost-update"] {
            let found = promise("postgres-advisory-xact", &SAME_TRANSACTION, &plan, property);
            assert_eq!(found, Promise::Promised, "{property}");
        }
    }

    #[test]
    fn what_waits_for_an_event_lasts_as_long_as_it_may_at_most() {
        let mut pause = fault("pause", "c1", 100);
        pause.until.event = Some(Named {
            client: "c2".into(),
            f: "write".into(),
            outcome: "ok".into(),
        });
        let belief = |pause: &PlannedFault| {
            let plan = plan(vec![pause.clone()]);
            promise("redis-set", &UNFENCED, &plan, "exclusive-belief")
        };
        assert_eq!(belief(&pause), Promise::NotPromised);
        pause.until.at_most_ms = Some(700);
        assert_eq!(belief(&pause), Promise::Promised);
        pause.until.at_most_ms = Some(800);
        assert_eq!(belief(&pause), Promise::NotPromised);
    }

    #[test]
    fn clock_steps_strike_those_that_go_by_the_servers_clock() {
        let plan = plan(vec![fault("clock-step", "s1", 2000)]);
        for (lock, expected) in [
            ("redis-set", Promise::NotPromised),
            ("redis-token", Promise::NotPromised),
            ("redlock", Promise::NotPromised),
            ("postgres-lease", Promise::NotPromised),
            ("etcd-lease", Promise::Promised),
        ] {
            for property in ["mutual-exclusion", "exclusive-belief", "no-stale-write"] {
                assert_eq!(
                    promise(lock, &UNFENCED, &plan, property),
                    expected,
                    "{lock} {property}"
                );
            }
        }
        let fenced = promise("postgres-lease", &FENCED, &plan, "no-stale-write");
        assert_eq!(fenced, Promise::Promised);
    }

    #[test]
    fn a_redis_without_a_disk_promises_nothing_across_a_restart() {
        let plan = plan(vec![fault("crash", "s1", 500)]);
        assert_eq!(
            promise("redis-token", &FENCED, &plan, "token-order"),
            Promise::NotPromised
        );
        assert_eq!(
            promise("redis-token", &FENCED, &plan, "no-stale-write"),
            Promise::NotPromised
        );
        assert_eq!(
            promise("redlock", &UNFENCED, &plan, "mutual-exclusion"),
            Promise::NotPromised
        );
        assert_eq!(
            promise("postgres-lease", &FENCED, &plan, "token-order"),
            Promise::Promised
        );
        assert_eq!(
            promise("etcd-lease", &FENCED, &plan, "mutual-exclusion"),
            Promise::Promised
        );
    }

    #[test]
    fn packets_held_on_their_way_to_the_storage_outlive_a_lease_but_not_those_to_the_lock() {
        let mut delay = fault("delay", "c1", 100);
        delay.with.insert("delay_ms".into(), json!(1000));
        let belief = |delay: &PlannedFault| {
            let plan = plan(vec![delay.clone()]);
            promise("redlock", &UNFENCED, &plan, "exclusive-belief")
        };
        assert_eq!(belief(&delay), Promise::NotPromised);
        delay.with.insert("to".into(), json!("storage"));
        assert_eq!(belief(&delay), Promise::NotPromised);
        delay.with.insert("to".into(), json!("s4"));
        assert_eq!(belief(&delay), Promise::Promised);
        delay.with.remove("to");
        delay.with.insert("delay_ms".into(), json!(20));
        assert_eq!(belief(&delay), Promise::Promised);
    }

    #[test]
    fn every_fault_that_there_is_was_foreseen() {
        for known in nemesis::faults::FAULTS {
            for on in ["c1", "s1", "storage", "leader"] {
                let plan = plan(vec![fault(known.name(), on, 2000)]);
                let hazards = hazards(&plan);
                let foreseen = !hazards.contains(&Hazard::Unforeseen);
                assert!(
                    foreseen,
                    "the contract says nothing about {} on {on}",
                    known.name()
                );
            }
        }
    }

    #[test]
    fn nothing_is_said_of_a_fault_that_nobody_foresaw() {
        let plan = plan(vec![fault("earthquake", "s1", 500)]);
        for property in PROPERTIES {
            assert_eq!(
                promise("redis-set", &UNFENCED, &plan, property),
                Promise::Unspecified
            );
        }
    }

    #[test]
    fn a_lost_only_server_ends_progress() {
        let mut crash = fault("crash", "s1", 0);
        crash.until = Until::default();
        let plan = plan(vec![crash]);
        assert_eq!(
            promise("redis-set", &UNFENCED, &plan, "progress"),
            Promise::NotPromised
        );
        assert_eq!(
            promise("redlock", &UNFENCED, &plan, "progress"),
            Promise::Promised
        );
        assert_eq!(
            promise("etcd-lease", &UNFENCED, &plan, "progress"),
            Promise::Promised
        );
    }
}
