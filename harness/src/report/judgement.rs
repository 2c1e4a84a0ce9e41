//! What one history came to: the checker's verdict, held against the lock service's contract.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use checker::{
    Answer, Counts, Efficiency, FaultReport, Options, PropertyVerdict, Verdict, Witness,
};
use histories::{Header, Plan, Reader};
use serde::Serialize;

use crate::contract::{Clause, Hazard, Promise, contract, hazards, unspecified};
use crate::locks::{self, LockService};
use crate::storages::{self, Policy};

/// The version of everything that machines read.
pub const SCHEMA_VERSION: u32 = 1;

/// What a property's outcome means against the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It holds, and nothing said that it might not.
    Kept,
    /// It was promised and is violated.
    Broken,
    /// It was not promised, and is violated.
    LimitShown,
    /// It was not promised, and holds this time.
    LimitNotShown,
    /// The history does not tell.
    Unknown,
}

/// One property of one history.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedProperty {
    /// Its name.
    pub name: String,
    /// `holds`, `violated` or `unknown`.
    pub outcome: Answer,
    /// What the contract says.
    pub contract: Promise,
    /// What the outcome means against the contract.
    pub class: Class,
    /// Why the history does not tell; else why the contract says what it says.
    pub reason: String,
    /// How often it is violated.
    pub violations: u64,
    /// The proof of the first violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
}

/// What one history came to: `verdict.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The history's file.
    pub history: String,
    /// The run's id.
    pub run: String,
    /// The scenario.
    pub scenario: String,
    /// The lock service.
    pub lock: String,
    /// The topology.
    pub topology: String,
    /// The storage.
    pub storage: String,
    /// The policy.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// `violated` if any property is, else `unknown` if any is, else `holds`.
    pub outcome: Answer,
    /// Whether the history was written to its end.
    pub complete: bool,
    /// The properties that the history can speak to.
    pub properties: Vec<JudgedProperty>,
    /// What the history lacks for anything to be said to hold.
    pub assumptions: Vec<String>,
    /// The properties that the scenario is there to show violated, as far as they are not promised.
    pub controls: Vec<String>,
    /// The faults, with their evidence.
    pub faults: Vec<FaultReport>,
    /// How much happened.
    pub counts: Counts,
    /// What the lock cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<Efficiency>,
}

/// Judges a saved history by every property that it can speak to.
pub fn judge(path: &Path) -> Result<Judgement> {
    judge_properties(path, &[])
}

/// Judges a saved history by these properties, by all if none is named.
pub fn judge_properties(path: &Path, properties: &[String]) -> Result<Judgement> {
    let options = if properties.is_empty() {
        Options::default()
    } else {
        Options::only(properties)?
    };
    let header = Reader::open(path)?.header().clone();
    let verdict = checker::check(|| Reader::open(path), options)
        .with_context(|| format!("judge {}", path.display()))?;
    Ok(Judgement::new(path, &header, verdict))
}

impl Judgement {
    fn new(path: &Path, header: &Header, verdict: Verdict) -> Judgement {
        let plan = &header.plan;
        let terms = Terms::new(plan, &verdict.counts);
        let properties: Vec<JudgedProperty> = verdict
            .properties
            .into_iter()
            .map(|property| JudgedProperty::new(property, &terms))
            .collect();
        let controls = plan
            .controls
            .iter()
            .filter(|control| terms.clause(control).promise == Promise::NotPromised)
            .cloned()
            .collect();
        Judgement {
            schema_version: SCHEMA_VERSION,
            history: path.display().to_string(),
            run: header.run.clone(),
            scenario: plan.scenario.clone(),
            lock: plan.lock.clone(),
            topology: plan.topology.clone(),
            storage: plan.storage.clone(),
            policy: plan.policy.clone(),
            seed: header.seed,
            outcome: verdict.outcome,
            complete: verdict.complete,
            properties,
            assumptions: verdict.assumptions,
            controls,
            faults: verdict.faults,
            counts: verdict.counts,
            efficiency: verdict.efficiency,
        }
    }

    /// What was found of the property of this name.
    pub fn property(&self, name: &str) -> Option<&JudgedProperty> {
        self.properties
            .iter()
            .find(|property| property.name == name)
    }

    /// Whether any property has this class.
    pub fn has(&self, class: Class) -> bool {
        self.properties
            .iter()
            .any(|property| property.class == class)
    }

    /// Whether every property that both speak to has the same outcome in both.
    pub fn same_as(&self, other: &Judgement) -> bool {
        let same = |property: &JudgedProperty| {
            other
                .property(&property.name)
                .is_none_or(|before| before.outcome == property.outcome)
        };
        self.outcome == other.outcome && self.properties.iter().all(same)
    }

    /// As one line of JSON.
    pub fn to_json(&self) -> String {
        // Strings, numbers, lists and maps with string keys always can be written.
        serde_json::to_string(self).expect("a judgement is plain data")
    }

    /// As JSON over several lines, with an end of line.
    pub fn to_json_pretty(&self) -> String {
        serde_json::to_string_pretty(self).expect("a judgement is plain data") + "\n"
    }
}

impl JudgedProperty {
    fn new(property: PropertyVerdict, terms: &Terms) -> JudgedProperty {
        let clause = terms.clause(&property.name);
        let outcome = property.outcome.answer();
        JudgedProperty {
            outcome,
            contract: clause.promise,
            class: Class::of(outcome, clause.promise),
            reason: property.outcome.reason().unwrap_or(clause.why).to_owned(),
            violations: property.violations,
            witness: property.outcome.witness().cloned(),
            name: property.name,
        }
    }
}

impl Class {
    fn of(outcome: Answer, promise: Promise) -> Class {
        match (outcome, promise) {
            (Answer::Unknown, _) => Class::Unknown,
            (Answer::Violated, Promise::Promised) => Class::Broken,
            (Answer::Violated, _) => Class::LimitShown,
            (Answer::Holds, Promise::NotPromised) => Class::LimitNotShown,
            (Answer::Holds, _) => Class::Kept,
        }
    }
}

/// On what terms the lock service is held to its contract.
struct Terms {
    /// None where this build lacks the lock service or the policy.
    parties: Option<(&'static dyn LockService, &'static Policy)>,
    hazards: BTreeSet<Hazard>,
}

impl Terms {
    /// The terms follow from the plan, and from one thing that was not planned: that a client was late for reasons of the
    /// machine's own, and outlived its lease. No lease promises anything to such a client.
    fn new(plan: &Plan, counts: &Counts) -> Terms {
        let mut hazards = hazards(plan);
        if counts.outlived > 0 {
            hazards.insert(Hazard::OutlivedLease);
        }
        Terms {
            parties: locks::service(&plan.lock).zip(storages::policy(&plan.policy)),
            hazards,
        }
    }

    fn clause(&self, property: &str) -> Clause {
        match self.parties {
            Some((service, policy)) => contract(service, policy, &self.hazards, property),
            None => unspecified("this build does not know the lock service or the policy"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_broken_only_where_it_was_promised_otherwise() {
        assert_eq!(
            Class::of(Answer::Violated, Promise::Promised),
            Class::Broken
        );
        assert_eq!(
            Class::of(Answer::Violated, Promise::NotPromised),
            Class::LimitShown
        );
        assert_eq!(
            Class::of(Answer::Holds, Promise::NotPromised),
            Class::LimitNotShown
        );
        assert_eq!(
            Class::of(Answer::Unknown, Promise::Promised),
            Class::Unknown
        );
    }
}
