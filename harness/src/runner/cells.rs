//! What is to be run: every scenario on every lock service with every policy that go together.

use std::str::FromStr;

use anyhow::Result;
use containers::site::STORAGE;
use containers::topologies::{self, Topology};
use histories::Plan;
use nemesis::{Choice, Scenario};

use crate::exit::UsageError;
use crate::locks::{self, LockService};
use crate::storages::{self, Policy, StorageService};

/// What was asked for, by name; an empty list or `all` means everything that goes together.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Scenarios, by name or as paths of files.
    pub scenarios: Vec<String>,
    /// Lock services.
    pub locks: Vec<String>,
    /// Topologies.
    pub topologies: Vec<String>,
    /// Storages.
    pub storages: Vec<String>,
    /// Policies.
    pub policies: Vec<String>,
}

/// The host of a topology's first server.
const LOCK_SERVER: &str = "s1";

/// One cell of the matrix: a scenario on a lock service on a topology, with a storage and a policy.
#[derive(Clone)]
pub struct Cell {
    /// What each of its runs does, but for the seed.
    plan: Plan,
    /// The lock service.
    pub lock: &'static dyn LockService,
    /// The topology that its servers form.
    pub topology: &'static Topology,
    /// The storage.
    pub storage: &'static dyn StorageService,
    /// How the storage treats a write.
    pub policy: &'static Policy,
}

impl Cell {
    fn of_scenario(
        scenario: &Scenario,
        lock: &'static dyn LockService,
        topology: &'static Topology,
        storage: &'static dyn StorageService,
        policy: &'static Policy,
    ) -> Result<Cell> {
        let plan = scenario.resolve(&Choice {
            lock: lock.name(),
            topology,
            storage: storage.name(),
            policy: policy.name,
            seed: 0,
            ttl_min_ms: lock.ttl_min_ms(),
            expires: lock.has().expiry,
            // A service that tells of a loss unasked learns of it from what keeps the grant alive.
            kept_alive: lock.has().expiry && lock.has().notice,
            // A policy that works in the lock's transaction keeps the document on the lock's own server.
            storage_host: if policy.needs_transaction {
                LOCK_SERVER
            } else {
                STORAGE
            },
        })?;
        Ok(Cell {
            plan,
            lock,
            topology,
            storage,
            policy,
        })
    }

    /// The cell that a saved plan belongs to, which needs no scenario any more.
    pub fn of_plan(plan: Plan) -> Result<Cell> {
        let missing =
            |what: &str, name: &str| UsageError(format!("this build has no {what} `{name}`"));
        let lock = locks::service(&plan.lock).ok_or_else(|| missing("lock service", &plan.lock))?;
        let topology =
            topologies::find(&plan.topology).ok_or_else(|| missing("topology", &plan.topology))?;
        let storage =
            storages::storage(&plan.storage).ok_or_else(|| missing("storage", &plan.storage))?;
        let policy =
            storages::policy(&plan.policy).ok_or_else(|| missing("policy", &plan.policy))?;
        if let Some(reason) = lock.refuses(policy) {
            return Err(UsageError(refusal(lock, policy, &reason)).into());
        }
        if let Some(unknown) = plan
            .faults
            .iter()
            .find(|fault| nemesis::faults::find(&fault.fault).is_none())
        {
            return Err(missing("fault", &unknown.fault).into());
        }
        Ok(Cell {
            plan,
            lock,
            topology,
            storage,
            policy,
        })
    }

    /// `paused-client redis-token fenced`.
    pub fn title(&self) -> String {
        format!(
            "{} {} {}",
            self.scenario(),
            self.lock.name(),
            self.policy.name
        )
    }

    /// The scenario's name.
    pub fn scenario(&self) -> &str {
        &self.plan.scenario
    }

    /// How many clients a run has.
    pub fn clients(&self) -> u32 {
        self.plan.clients
    }

    /// The plan of a run with this seed.
    pub fn plan(&self, seed: u64) -> Plan {
        Plan {
            seed,
            ..self.plan.clone()
        }
    }
}

impl Wanted {
    /// The cells, grouped by scenario in the order asked for.
    ///
    /// What was named and does not go together is a [`UsageError`] with the reason; what merely comes with `all` and
    /// does not go together is left out.
    pub fn cells(&self) -> Result<Vec<Cell>> {
        let scenarios = self.load_scenarios()?;
        let locks = pick("lock service", &self.locks, locks::SERVICES, |lock| {
            lock.name()
        })?;
        let topologies = pick(
            "topology",
            &self.topologies,
            topologies::TOPOLOGIES,
            |topology| topology.name,
        )?;
        let storages = pick("storage", &self.storages, storages::STORAGES, |storage| {
            storage.name()
        })?;
        let policies: Vec<&'static Policy> = storages::POLICIES.iter().collect();
        let policies = pick("policy", &self.policies, &policies, |policy| policy.name)?;

        let mut cells = Vec::new();
        let mut reasons = Vec::new();
        for scenario in &scenarios {
            for lock in &locks {
                for topology in &topologies {
                    for (storage, policy) in storages
                        .iter()
                        .flat_map(|storage| policies.iter().map(move |policy| (storage, policy)))
                    {
                        match why_not(scenario, *lock, topology, policy) {
                            None => cells.push(Cell::of_scenario(
                                scenario, *lock, topology, *storage, policy,
                            )?),
                            Some(reason) => reasons.push(reason),
                        }
                    }
                }
            }
        }
        if cells.is_empty() {
            reasons.dedup();
            return Err(UsageError(format!("nothing to run: {}", reasons.join("; "))).into());
        }
        self.refuse_named_without_cell(&cells, &locks, &policies)?;
        Ok(cells)
    }

    fn load_scenarios(&self) -> Result<Vec<Scenario>> {
        let names: Vec<String> = if is_all(&self.scenarios) {
            nemesis::scenarios()
                .iter()
                .map(|scenario| scenario.name.to_owned())
                .collect()
        } else {
            self.scenarios.clone()
        };
        names.iter().map(|name| Ok(nemesis::load(name)?)).collect()
    }

    /// A lock and a policy that were both named have to meet in some cell.
    fn refuse_named_without_cell(
        &self,
        cells: &[Cell],
        locks: &[&'static dyn LockService],
        policies: &[&'static Policy],
    ) -> Result<()> {
        if is_all(&self.locks) || is_all(&self.policies) {
            return Ok(());
        }
        for lock in locks {
            for policy in policies {
                let met = cells
                    .iter()
                    .any(|cell| cell.lock.name() == lock.name() && cell.policy == *policy);
                if let (false, Some(reason)) = (met, lock.refuses(policy)) {
                    return Err(UsageError(refusal(*lock, policy, &reason)).into());
                }
            }
        }
        Ok(())
    }
}

fn why_not(
    scenario: &Scenario,
    lock: &dyn LockService,
    topology: &Topology,
    policy: &Policy,
) -> Option<String> {
    if !lock.topologies().contains(&topology.name) {
        return Some(format!(
            "{} runs on topology {}, not on {}",
            lock.name(),
            lock.topologies().join(", "),
            topology.name
        ));
    }
    if let Some(reason) = lock.refuses(policy) {
        return Some(refusal(lock, policy, &reason));
    }
    scenario.not_on(topology).map(|reason| {
        format!(
            "{} does not run on topology {}: {reason}",
            scenario.name, topology.name
        )
    })
}

fn refusal(lock: &dyn LockService, policy: &Policy, reason: &str) -> String {
    format!(
        "{} can't be used with policy {}: {reason}",
        lock.name(),
        policy.name
    )
}

fn is_all(names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|name| name == "all")
}

/// Those of `all` that were named, in the order of `all`.
fn pick<T: Copy>(
    what: &str,
    names: &[String],
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<Vec<T>> {
    if is_all(names) {
        return Ok(all.to_vec());
    }
    let known: Vec<&str> = all.iter().map(|one| name_of(*one)).collect();
    for name in names {
        if !known.contains(&name.as_str()) {
            let hint = nemesis::nearest(name, &known)
                .map(|near| format!(" (did you mean `{near}`?)"))
                .unwrap_or_default();
            return Err(UsageError(format!(
                "there is no {what} `{name}`{hint}; there are: {}",
                known.join(", ")
            ))
            .into());
        }
    }
    Ok(all
        .iter()
        .copied()
        .filter(|one| names.iter().any(|name| name == name_of(*one)))
        .collect())
}

/// A part of the cells, so that several machines can share them: `slice:1/3` is every third, `hash:1/3` goes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    by_hash: bool,
    part: u64,
    parts: u64,
}

impl Partition {
    /// Keeps the cells of this part.
    pub fn of(self, cells: Vec<Cell>) -> Vec<Cell> {
        let mine = |index: usize, cell: &Cell| {
            let number = if self.by_hash {
                hash(&cell.title())
            } else {
                index as u64
            };
            number % self.parts == self.part - 1
        };
        cells
            .into_iter()
            .enumerate()
            .filter(|(index, cell)| mine(*index, cell))
            .map(|(_, cell)| cell)
            .collect()
    }
}

/// FNV-1a, 64 bits: small, and the same for ever, as a partition has to be.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Partition, String> {
        let parse = || {
            let (kind, rest) = text.split_once(':')?;
            let (part, parts) = rest.split_once('/')?;
            let by_hash = match kind {
                "slice" => false,
                "hash" => true,
                _ => return None,
            };
            let (part, parts) = (part.parse().ok()?, parts.parse().ok()?);
            (1 <= part && part <= parts).then_some(Partition {
                by_hash,
                part,
                parts,
            })
        };
        parse().ok_or_else(|| {
            format!("`{text}` is no partition: write slice:M/N or hash:M/N with 1 <= M <= N")
        })
    }
}
