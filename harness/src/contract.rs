//! The contract: what a lock service and a storage's policy promise together, as clauses of a history's header.
//!
//! A lock service states in its own file which [`Guarantee`] it keeps under which [`Hazard`]s, and which it does not. What
//! it does not mention it does not promise: nobody said. The properties follow from its guarantees and from the policy.

use histories::{Clause, Hazard, Promise};

use crate::locks::LockService;
use crate::storages::Policy;

/// What a lock service can guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guarantee {
    /// Never are there two grants that may both be relied on.
    Exclusion,
    /// A client that was not told of a loss acts as the holder only while it is.
    Belief,
    /// A later grant has a higher token.
    TokenOrder,
    /// A wanted lock is granted before long, while the hazard lasts too.
    Progress,
}

/// What a lock service says of one guarantee under some hazards.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    guarantee: Guarantee,
    under: &'static [Hazard],
    /// Why it is not kept; `None` where it is.
    limit: Option<&'static str>,
}

/// The guarantee is kept under these hazards.
pub const fn keeps(guarantee: Guarantee, under: &'static [Hazard]) -> Statement {
    Statement {
        guarantee,
        under,
        limit: None,
    }
}

/// The guarantee is not kept under these hazards, and why.
pub const fn limit(guarantee: Guarantee, under: &'static [Hazard], why: &'static str) -> Statement {
    Statement {
        guarantee,
        under,
        limit: Some(why),
    }
}

/// All hazards that there are words for.
pub const HAZARDS: &[Hazard] = &[
    Hazard::Nothing,
    Hazard::ClientStopped,
    Hazard::ClientCrashed,
    Hazard::ClientCutOff,
    Hazard::WorkHeld,
    Hazard::WriteHeld,
    Hazard::ServerStopped,
    Hazard::ServerCutOff,
    Hazard::ServerRestarted,
    Hazard::ServerLost,
    Hazard::ServerEmptied,
    Hazard::ServerClockForward,
    Hazard::ServerClockBack,
    Hazard::StorageCrashed,
    Hazard::StorageClock,
    Hazard::StorageEmptied,
];

/// Claim B1: rejecting lower tokens is not enough for an update that reads first.
const LATE_BUT_FIRST: &str =
    "a late write that comes before its successor's first is accepted, and overwritten unseen";

/// What is said of a property under a hazard, and why; `None` where nobody says.
type Said = Option<(Promise, &'static str)>;

/// The clauses of a lock service with a policy.
pub fn contract(service: &dyn LockService, policy: &Policy) -> Vec<Clause> {
    let properties = checker::properties().iter();
    properties
        .flat_map(|property| clauses_of(service, policy, property.name))
        .collect()
}

/// The clauses of one property: hazards of which the same is said share one.
fn clauses_of(service: &dyn LockService, policy: &Policy, property: &str) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    for &hazard in HAZARDS {
        let Some((promise, why)) = said_of(service, policy, property, hazard) else {
            continue;
        };
        let same = |clause: &&mut Clause| clause.promise == promise && clause.why == why;
        match clauses.iter_mut().find(same) {
            Some(clause) => clause.under.push(hazard),
            None => clauses.push(Clause {
                property: property.to_owned(),
                promise,
                under: vec![hazard],
                why: why.to_owned(),
            }),
        }
    }
    clauses
}

fn said_of(service: &dyn LockService, policy: &Policy, property: &str, hazard: Hazard) -> Said {
    let guaranteed = |guarantee| guaranteed(service, guarantee, hazard);
    let exclusion = || guaranteed(Guarantee::Exclusion);
    // Who is not excluded cannot know that another holds.
    let belief = || both(exclusion(), guaranteed(Guarantee::Belief));
    let fenced = policy.needs_token();
    match property {
        "mutual-exclusion" => exclusion(),
        "exclusive-belief" => belief(),
        "token-order" if !service.has().tokens => None,
        "token-order" => guaranteed(Guarantee::TokenOrder),
        "no-stale-write" if fenced => guaranteed(Guarantee::TokenOrder),
        "no-stale-write" => belief(),
        "no-lost-update" if fenced => belief().map(|(promise, why)| match promise {
            Promise::NotPromised => (promise, LATE_BUT_FIRST),
            _ => (promise, why),
        }),
        "no-lost-update" => belief(),
        "document" if hazard == Hazard::StorageEmptied => None,
        "document" => Some((Promise::Promised, "")),
        "progress" => guaranteed(Guarantee::Progress),
        "efficiency" => Some((Promise::Promised, "")),
        _ => None,
    }
}

/// The condition of a write that makes the storage a fence.
pub const TOKEN: &str = "token";

/// What a service says of a guarantee under a hazard.
fn guaranteed(service: &dyn LockService, guarantee: Guarantee, hazard: Hazard) -> Said {
    let mut said = service
        .statements()
        .iter()
        .filter(|statement| statement.guarantee == guarantee && statement.under.contains(&hazard));
    said.next().map(|statement| match statement.limit {
        None => (Promise::Promised, ""),
        Some(why) => (Promise::NotPromised, why),
    })
}

/// What is said of two guarantees together: a limit of either is one of both, and both have to be stated.
fn both(one: Said, other: Said) -> Said {
    match (one, other) {
        (Some((Promise::NotPromised, _)), _) => one,
        (_, Some((Promise::NotPromised, _))) => other,
        (Some(_), Some(_)) => one,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::{SERVICES, service};
    use crate::storages::{FENCED, POLICIES, SAME_TRANSACTION, UNFENCED};

    fn promise(lock: &str, policy: &Policy, property: &str, hazard: Hazard) -> Promise {
        let clauses = contract(service(lock).unwrap(), policy);
        let said = clauses
            .iter()
            .find(|clause| clause.property == property && clause.under.contains(&hazard));
        said.map_or(Promise::Unspecified, |clause| clause.promise)
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
        for (lock, policy) in pairs() {
            for property in checker::properties() {
                let has_tokens = service(lock).unwrap().has().tokens;
                let expected = if property.name == "token-order" && !has_tokens {
                    Promise::Unspecified
                } else {
                    Promise::Promised
                };
                let found = promise(lock, policy, property.name, Hazard::Nothing);
                assert_eq!(found, expected, "{lock} {} {}", policy.name, property.name);
            }
        }
    }

    #[test]
    fn a_statement_is_made_once() {
        for service in SERVICES {
            for guarantee in [
                Guarantee::Exclusion,
                Guarantee::Belief,
                Guarantee::TokenOrder,
                Guarantee::Progress,
            ] {
                for hazard in HAZARDS {
                    let said = service.statements().iter().filter(|statement| {
                        statement.guarantee == guarantee && statement.under.contains(hazard)
                    });
                    let said = said.count();
                    assert!(said <= 1, "{} {guarantee:?} {hazard:?}", service.name());
                }
            }
        }
    }

    #[test]
    fn what_nobody_stated_is_unspecified() {
        for (lock, policy) in pairs() {
            for property in ["document", "mutual-exclusion", "progress"] {
                let found = promise(lock, policy, property, Hazard::Unforeseen);
                assert_eq!(found, Promise::Unspecified);
            }
            let emptied = promise(lock, policy, "document", Hazard::StorageEmptied);
            assert_eq!(emptied, Promise::Unspecified);
        }
    }

    #[test]
    fn no_lease_promises_what_a_long_pause_breaks() {
        let hazard = Hazard::ClientStopped;
        for (lock, policy) in pairs().filter(|(_, policy)| !policy.needs_transaction) {
            let promise = |property| promise(lock, policy, property, hazard);
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
            let found = promise(
                "postgres-advisory-xact",
                &SAME_TRANSACTION,
                property,
                hazard,
            );
            assert_eq!(found, Promise::Promised, "{property}");
        }
    }

    #[test]
    fn clock_steps_strike_those_that_go_by_the_servers_clock() {
        for (lock, expected) in [
            ("redis-set", Promise::NotPromised),
            ("redis-token", Promise::NotPromised),
            ("redlock", Promise::NotPromised),
            ("postgres-lease", Promise::NotPromised),
            ("etcd-lease", Promise::Promised),
        ] {
            for property in ["mutual-exclusion", "exclusive-belief", "no-stale-write"] {
                let forward = promise(lock, &UNFENCED, property, Hazard::ServerClockForward);
                assert_eq!(forward, expected, "{lock} {property}");
                let back = promise(lock, &UNFENCED, property, Hazard::ServerClockBack);
                assert_eq!(back, Promise::Promised, "{lock} {property}");
            }
            let back = promise(lock, &UNFENCED, "progress", Hazard::ServerClockBack);
            assert_eq!(back, expected, "a lease that ends late: {lock}");
        }
        let fenced = promise(
            "postgres-lease",
            &FENCED,
            "no-stale-write",
            Hazard::ServerClockForward,
        );
        assert_eq!(fenced, Promise::Promised);
    }

    #[test]
    fn a_redis_without_a_disk_promises_nothing_across_a_restart() {
        let promise =
            |lock, policy, property| promise(lock, policy, property, Hazard::ServerRestarted);
        let [limit, kept] = [Promise::NotPromised, Promise::Promised];
        assert_eq!(promise("redis-token", &FENCED, "token-order"), limit);
        assert_eq!(promise("redis-token", &FENCED, "no-stale-write"), limit);
        assert_eq!(promise("redlock", &UNFENCED, "mutual-exclusion"), limit);
        assert_eq!(promise("postgres-lease", &FENCED, "token-order"), kept);
        assert_eq!(promise("etcd-lease", &FENCED, "mutual-exclusion"), kept);
    }

    #[test]
    fn a_lost_only_server_ends_progress() {
        let progress = |lock| promise(lock, &UNFENCED, "progress", Hazard::ServerLost);
        assert_eq!(progress("redis-set"), Promise::NotPromised);
        assert_eq!(progress("redlock"), Promise::Promised);
        assert_eq!(progress("etcd-lease"), Promise::Promised);
    }

    #[test]
    fn a_session_that_nobody_hears_of_blocks_others_and_a_lease_does_not() {
        let progress = |lock, policy| promise(lock, policy, "progress", Hazard::ClientCutOff);
        let session = progress("postgres-advisory-xact", &SAME_TRANSACTION);
        assert_eq!(session, Promise::NotPromised);
        assert_eq!(progress("redis-set", &UNFENCED), Promise::Promised);
    }
}
