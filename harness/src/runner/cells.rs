//! What is to be run: every scenario on every lock service with every policy that go together.

use std::str::FromStr;

use anyhow::Result;
use containers::site::STORAGE;
use containers::topologies::{self, Topology};
use histories::Plan;
use nemesis::{Choice, PlanProblems, Scenario};

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
            write_condition: policy.write_condition,
            seed: 0,
            ttl_min_ms: lock.ttl_ms(scenario.ttl_ms),
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
    ///
    /// # Errors
    /// When the plan is wrong, whoever wrote it, or names what this build does not have.
    pub fn of_plan(plan: Plan) -> Result<Cell, PlanProblems> {
        nemesis::validate(&plan)?;
        let lock = named("lock", &plan.lock, locks::SERVICES, |lock| lock.name())?;
        let topology = named("topology", &plan.topology, topologies::TOPOLOGIES, |one| {
            one.name
        })?;
        let storage = named("storage", &plan.storage, storages::STORAGES, |one| {
            one.name()
        })?;
        let policies: Vec<&'static Policy> = storages::POLICIES.iter().collect();
        let policy = named("policy", &plan.policy, &policies, |policy| policy.name)?;
        if let Some(reason) = runs_elsewhere(lock, topology) {
            return Err(PlanProblems::of("topology", reason));
        }
        if let Some(reason) = lock.refuses(policy) {
            return Err(PlanProblems::of("policy", refusal(lock, policy, &reason)));
        }
        let (granted_ms, ttl_ms) = (lock.ttl_ms(plan.ttl_ms), plan.ttl_ms);
        if granted_ms != ttl_ms {
            let reason = format!(
                "{} grants {granted_ms} ms to whoever wants {ttl_ms}",
                lock.name()
            );
            return Err(PlanProblems::of("ttl_ms", reason));
        }
        Ok(Cell {
            // What faults do and what a policy asks is for them to say, and not for whoever saved the plan.
            plan: Plan {
                write_condition: policy.write_condition.map(str::to_owned),
                faults: plan.faults.into_iter().map(nemesis::declared).collect(),
                ..plan
            },
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

/// What of all that was asked for goes together, and what does not.
pub struct Selection {
    /// The cells, grouped by scenario in the order asked for.
    pub cells: Vec<Cell>,
    /// Why what was asked for by name is left out: each reason once.
    pub skipped: Vec<String>,
}

impl Wanted {
    /// All cells that go together.
    ///
    /// # Errors
    /// A [`UsageError`] for a name that does not exist, and with all the reasons where nothing goes together.
    pub fn cells(&self) -> Result<Selection> {
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
        let mut misfits: Vec<Misfit> = Vec::new();
        for scenario in &scenarios {
            for lock in &locks {
                for topology in &topologies {
                    for (storage, policy) in storages
                        .iter()
                        .flat_map(|storage| policies.iter().map(move |policy| (storage, policy)))
                    {
                        match misfit(scenario, *lock, topology, policy) {
                            None => cells.push(Cell::of_scenario(
                                scenario, *lock, topology, *storage, policy,
                            )?),
                            Some(misfit) if misfits.contains(&misfit) => {}
                            Some(misfit) => misfits.push(misfit),
                        }
                    }
                }
            }
        }
        if cells.is_empty() {
            let reasons: Vec<String> = misfits.into_iter().map(|misfit| misfit.reason).collect();
            return Err(UsageError(format!("nothing to run: {}", reasons.join("; "))).into());
        }
        let named = misfits
            .into_iter()
            .filter(|misfit| self.named(misfit.between));
        let skipped = named.map(|misfit| misfit.reason).collect();
        Ok(Selection { cells, skipped })
    }

    /// Whether both were asked for by name; what merely comes with `all` is left out without a word.
    fn named(&self, between: Between) -> bool {
        let named = |names: &[String]| !is_all(names);
        match between {
            Between::LockAndTopology => named(&self.locks) && named(&self.topologies),
            Between::LockAndPolicy => named(&self.locks) && named(&self.policies),
            // A lock brings its topologies along.
            Between::ScenarioAndTopology => {
                named(&self.scenarios) && (named(&self.locks) || named(&self.topologies))
            }
        }
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
}

/// Two things that do not go together.
#[derive(PartialEq, Eq)]
struct Misfit {
    between: Between,
    reason: String,
}

/// Of what kind they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    LockAndTopology,
    LockAndPolicy,
    ScenarioAndTopology,
}

fn misfit(
    scenario: &Scenario,
    lock: &dyn LockService,
    topology: &Topology,
    policy: &Policy,
) -> Option<Misfit> {
    let misfit = |between, reason| Some(Misfit { between, reason });
    if let Some(reason) = runs_elsewhere(lock, topology) {
        return misfit(Between::LockAndTopology, reason);
    }
    if let Some(reason) = lock.refuses(policy) {
        return misfit(Between::LockAndPolicy, refusal(lock, policy, &reason));
    }
    let reason = format!(
        "{} does not run on topology {}: {}",
        scenario.name,
        topology.name,
        scenario.not_on(topology)?
    );
    misfit(Between::ScenarioAndTopology, reason)
}

/// Why a lock service's servers never form a topology.
fn runs_elsewhere(lock: &dyn LockService, topology: &Topology) -> Option<String> {
    (!lock.topologies().contains(&topology.name)).then(|| {
        format!(
            "{} runs on topology {}, not on {}",
            lock.name(),
            lock.topologies().join(", "),
            topology.name
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
            return Err(UsageError(no_such(what, name, &known)).into());
        }
    }
    Ok(all
        .iter()
        .copied()
        .filter(|one| names.iter().any(|name| name == name_of(*one)))
        .collect())
}

/// What a field of a saved plan names.
fn named<T: Copy>(
    field: &str,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T, PlanProblems> {
    let known: Vec<&str> = all.iter().map(|one| name_of(*one)).collect();
    let index = known.iter().position(|known| *known == name);
    let index = index.ok_or_else(|| PlanProblems::of(field, no_such(field, name, &known)))?;
    Ok(all[index])
}

fn no_such(what: &str, name: &str, known: &[&str]) -> String {
    let hint = nemesis::nearest(name, known)
        .map(|near| format!(" (did you mean `{near}`?)"))
        .unwrap_or_default();
    format!(
        "there is no {what} `{name}`{hint}; there are: {}",
        known.join(", ")
    )
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
