//! What one history came to: the checker's verdict, held against the lock service's contract.

use std::path::Path;

use anyhow::{Context, Result};
pub use checker::Class;
use checker::{
    Answer, CheckError, Counts, Efficiency, FaultReport, Options, PropertyVerdict, Verdict, Witness,
};
use histories::{Clause, Header, Plan, Promise, Reader, Seal};
use serde::Serialize;

use crate::contract::contract;
use crate::{locks, storages};

/// The version of everything that machines read.
pub const SCHEMA_VERSION: u32 = 1;

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
    /// Whether it is as it was when it was closed.
    pub seal: Seal,
    /// The properties that the history can speak to.
    pub properties: Vec<JudgedProperty>,
    /// What the history lacks for anything to be said to hold.
    pub assumptions: Vec<String>,
    /// The properties that the scenario is there to show violated, as far as they are not promised and were to be judged.
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
    nemesis::validate_form(&header.plan).with_context(|| path.display().to_string())?;
    let options = options.or_contract(contract_of_build(&header.plan));
    let verdict = checker::check(|| Reader::open(path), options).map_err(|error| match error {
        // It names the file already.
        CheckError::Read(error) => error.into(),
        error => anyhow::Error::new(error).context(path.display().to_string()),
    })?;
    let mut judgement = Judgement::new(path, &header, verdict);
    let is_judged = |control: &String| properties.is_empty() || properties.contains(control);
    judgement.controls.retain(is_judged);
    Ok(judgement)
}

/// What this build says of a plan's lock service and policy, for histories that bring no contract; nothing of those that it
/// does not know.
fn contract_of_build(plan: &Plan) -> Vec<Clause> {
    let parties = locks::service(&plan.lock).zip(storages::policy(&plan.policy));
    parties.map_or_else(Vec::new, |(service, policy)| contract(service, policy))
}

impl Judgement {
    fn new(path: &Path, header: &Header, verdict: Verdict) -> Judgement {
        let plan = &header.plan;
        let properties = verdict.properties.into_iter();
        let properties = properties.map(JudgedProperty::new).collect();
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
            complete: verdict.seal != Seal::Cut,
            seal: verdict.seal,
            properties,
            assumptions: verdict.assumptions,
            controls: verdict.controls,
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
    fn new(property: PropertyVerdict) -> JudgedProperty {
        JudgedProperty {
            outcome: property.outcome.answer(),
            contract: property.contract,
            class: property.class,
            reason: property
                .outcome
                .reason()
                .unwrap_or(&property.why)
                .to_owned(),
            violations: property.violations,
            witness: property.outcome.witness().cloned(),
            name: property.name,
        }
    }
}
