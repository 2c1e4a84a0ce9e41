//! Makes a plan of a scenario.

use containers::topologies::Topology;
use histories::{Named, Plan, PlannedFault, Until, When, Workload};
use serde_json::{Map, Value};

use super::error::ScenarioError;
use super::length::Length;
use super::{Given, Scenario, WantedEvent, WantedFault, WantedWhen};
use crate::validation::validate;
use histories::STORAGE;

/// What a scenario leaves open, and the lock service and the command line settle.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// The lock service.
    pub lock: &'a str,
    /// The shortest TTL that it grants of those that are no shorter than the scenario's, in milliseconds.
    pub ttl_min_ms: u64,
    /// Whether its locks expire while their holders live, so that they can pass to another.
    pub expires: bool,
    /// Whether its holder keeps a lock alive in the background however long the work takes.
    pub kept_alive: bool,
    /// The topology of its servers.
    pub topology: &'a Topology,
    /// The storage.
    pub storage: &'a str,
    /// The host that keeps the document: `storage`, or a server where lock and document share a transaction.
    pub storage_host: &'a str,
    /// How the storage treats a write.
    pub policy: &'a str,
    /// What the storage compares in a write before it accepts it, if anything.
    pub write_condition: Option<&'a str>,
    /// The seed of every random choice.
    pub seed: u64,
}

impl Scenario {
    /// Why the scenario makes no sense on a topology; `None` where it does.
    pub fn not_on(&self, topology: &Topology) -> Option<String> {
        let named =
            self.topologies.is_empty() || self.topologies.iter().any(|name| name == topology.name);
        if !named {
            return Some(format!("it is for {} only", self.topologies.join(" and ")));
        }
        self.faults.iter().find_map(|fault| {
            let reason = fault.sketch().not_here(topology)?;
            Some(format!("`{}` cannot strike: {reason}", fault.fault.name()))
        })
    }

    /// Makes the plan of a run. The TTL is raised to what the lock service needs, and lengths follow.
    ///
    /// # Errors
    /// When it makes no sense on the topology, or what it comes to is no valid plan.
    pub fn resolve(&self, choice: &Choice<'_>) -> Result<Plan, ScenarioError> {
        if let Some(reason) = self.not_on(choice.topology) {
            return Err(ScenarioError::NotHere {
                scenario: self.name.clone(),
                topology: choice.topology.name.to_owned(),
                reason,
            });
        }
        let ttl_ms = self.ttl_ms.max(choice.ttl_min_ms);
        let resolving = Resolving {
            scenario: self,
            choice,
            ttl_ms,
        };
        let top = (1, 1);
        let workload = Workload {
            name: self.workload.name.clone(),
            work_ms: resolving.ms(self.workload.work, "work", top)?,
            rest_ms: resolving.ms(self.workload.rest, "rest", top)?,
            retry_ms: resolving.ms(self.workload.retry, "retry", top)?,
            rounds: self.workload.rounds,
        };
        let here = |fault: &&WantedFault| choice.kept_alive || !fault.only_kept_alive;
        let wanted: Vec<&WantedFault> = self.faults.iter().filter(here).collect();
        let faults: Result<Vec<_>, _> = wanted.iter().map(|fault| resolving.fault(fault)).collect();
        let plan = Plan {
            scenario: self.name.clone(),
            lock: choice.lock.to_owned(),
            topology: choice.topology.name.to_owned(),
            storage: choice.storage.to_owned(),
            policy: choice.policy.to_owned(),
            write_condition: choice.write_condition.map(str::to_owned),
            seed: choice.seed,
            clients: self.clients,
            ttl_ms,
            progress_bound_ms: resolving.ms(self.progress_bound, "progress_bound", top)?,
            limit_ms: resolving.ms(self.limit, "limit", top)?,
            controls: self.controls.clone(),
            workload,
            faults: faults?,
        };
        validate(&plan).map_err(|problems| {
            let problem = &problems.all()[0];
            let place = problem.step.map_or(top, |step| wanted[step].place);
            resolving.wrong(problem.to_string(), place)
        })?;
        Ok(plan)
    }
}

/// One scenario on its way to a plan.
struct Resolving<'a> {
    scenario: &'a Scenario,
    choice: &'a Choice<'a>,
    ttl_ms: u64,
}

impl Resolving<'_> {
    fn fault(&self, wanted: &WantedFault) -> Result<PlannedFault, ScenarioError> {
        let place = wanted.place;
        let mut with = Map::new();
        for (parameter, given) in &wanted.with {
            let value = match given {
                Given::Length(length) => Value::from(length.ms(self.ttl_ms)),
                Given::Host(host) => Value::from(self.host(host)),
                Given::Port(port) => Value::from(*port),
            };
            with.insert(parameter.planned_name(), value);
        }
        let length = |length: Option<Length>, key: &str| {
            length.map(|length| self.ms(length, key, place)).transpose()
        };
        let until = &wanted.until;
        let takeover = until.takeover.as_ref().filter(|_| self.choice.expires);
        let event = until.event.as_ref().or(takeover).map(named);
        let at_most_ms = match event {
            Some(_) => length(until.at_most, "at_most")?,
            None => None,
        };
        Ok(PlannedFault {
            fault: wanted.fault.name().to_owned(),
            on: self.host(&wanted.on),
            does: wanted.fault.does(&with),
            shows: wanted.fault.shows(&with),
            when: self.when(wanted)?,
            until: Until {
                after_ms: length(until.lasts, "lasts")?,
                event,
                at_most_ms,
            },
            with,
        })
    }

    fn when(&self, wanted: &WantedFault) -> Result<When, ScenarioError> {
        Ok(match &wanted.when {
            WantedWhen::After(after) => When::Time {
                after_ms: self.ms(*after, "after", wanted.place)?,
            },
            WantedWhen::Point {
                client,
                point,
                grant,
            } => When::Point {
                client: client.clone(),
                point: point.clone(),
                nth_grant: *grant,
            },
            WantedWhen::Event(event) => When::Event(named(event)),
        })
    }

    fn host(&self, host: &str) -> String {
        match host {
            STORAGE => self.choice.storage_host.to_owned(),
            _ => host.to_owned(),
        }
    }

    fn ms(&self, length: Length, key: &str, place: (usize, usize)) -> Result<u64, ScenarioError> {
        let ms = length.ms(self.ttl_ms);
        u64::try_from(ms).map_err(|_| self.wrong(format!("`{key}` is negative ({ms} ms)"), place))
    }

    fn wrong(&self, reason: String, (line, column): (usize, usize)) -> ScenarioError {
        ScenarioError::Lengths {
            place: format!("{}:{line}:{column}", self.scenario.file),
            reason,
            ttl_ms: self.ttl_ms,
            lock: self.choice.lock.to_owned(),
        }
    }
}

fn named(event: &WantedEvent) -> Named {
    Named {
        client: event.client.clone(),
        f: event.f.clone(),
        outcome: event.outcome.clone(),
    }
}
