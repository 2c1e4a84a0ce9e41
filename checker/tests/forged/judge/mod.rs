//! The second judge: written from `docs/verdicts.md` alone, slow and obvious, and sharing no code with the checker.

pub mod assumptions;
pub mod beliefs;
pub mod contract;
pub mod document;
pub mod faults;
pub mod grants;
pub mod hazards;
pub mod history;
pub mod lives;
pub mod operations;
pub mod progress;
pub mod properties;
pub mod shown;
pub mod spans;
pub mod storage;
pub mod touches;

use std::collections::BTreeMap;

use beliefs::Party;
use faults::Strike;
use grants::Grant;
use hazards::Hazard;
use history::{History, number};
use operations::{Op, Operations};
use properties::Violation;
use spans::Span;
use storage::Storage;

/// What the judge says of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `holds`, `violated` or `unknown`.
    pub outcome: &'static str,
    /// The class; `None` where more than one may follow from the page.
    pub class: Option<&'static str>,
}

/// What the judge says of a history.
#[derive(Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The assumptions that failed.
    pub assumptions: Vec<String>,
    /// Whether operations do not fit, so that what happened depends on who reads it.
    pub is_garbled: bool,
    /// The properties by name; one that neither contract nor history speaks of is not there.
    pub properties: BTreeMap<&'static str, Finding>,
}

impl Judgement {
    /// The outcome of a property; one that is not there is unknown.
    pub fn outcome(&self, property: &str) -> &'static str {
        self.properties
            .get(property)
            .map_or("unknown", |finding| finding.outcome)
    }

    /// The class of a property.
    pub fn class(&self, property: &str) -> Option<&'static str> {
        self.properties
            .get(property)
            .map_or(Some("unknown"), |finding| finding.class)
    }
}

/// All that is computed from a history before anything is judged.
pub struct Facts<'a> {
    /// The history.
    pub history: &'a History,
    /// Its operations.
    pub ops: Operations<'a>,
    /// The faults that struck.
    pub strikes: Vec<Strike<'a>>,
    /// The hazards in force.
    pub hazards: Vec<Hazard>,
    /// The grants.
    pub grants: Vec<Grant<'a>>,
    /// The grants with their beliefs, and acts without one.
    pub parties: Vec<Party<'a>>,
    /// What the storage accepted.
    pub storage: Storage<'a>,
    /// The last event's time.
    pub end: u64,
    /// When each grant began at the earliest.
    pub began: Vec<u64>,
    /// The writes that are based on what their clients cannot have read.
    pub baseless: Vec<u64>,
    /// The processes that have events after one of their deaths.
    pub undead: Vec<&'a str>,
}

impl<'a> Facts<'a> {
    fn of(history: &'a History) -> Self {
        let ops = Operations::of(history);
        let strikes = faults::strikes(history, &ops);
        let grants = grants::grants(history, &ops, &strikes);
        let storage = Storage::of(history, &ops);
        let mut facts = Facts {
            began: grants
                .iter()
                .map(|grant| grants::began(&grants, grant))
                .collect(),
            baseless: ops
                .with("write")
                .filter(|write| !storage.can_be_based(&ops, write))
                .map(|write| write.id)
                .collect(),
            undead: lives::processes(history)
                .into_iter()
                .filter(|process| lives::goes_on_after_death(history, &strikes, process))
                .collect(),
            hazards: Vec::new(),
            parties: beliefs::parties(&ops, &grants),
            storage,
            end: history
                .events
                .iter()
                .filter_map(|e| number(e, "t"))
                .max()
                .unwrap_or(0),
            history,
            ops,
            strikes,
            grants,
        };
        facts.hazards = hazards::in_force(&facts);
        facts
    }

    /// The party that did this.
    pub fn party_of(&self, act: &Op) -> Option<usize> {
        self.parties
            .iter()
            .position(|party| party.process == act.process && party.acts.contains(&act.id))
    }

    /// The deaths of a process.
    pub fn deaths(&self, process: &str) -> Vec<Span> {
        lives::deaths(self.history, &self.strikes, process)
    }

    /// Whether the client of a write can have read what it is based on.
    pub fn can_be_based(&self, write: &Op) -> bool {
        !self.baseless.contains(&write.id)
    }

    fn has(&self, f: &str) -> bool {
        self.ops.with(f).next().is_some()
    }
}

/// Judges the text of a file. The error says why nothing may be concluded from it.
pub fn judge(text: &str) -> Result<Judgement, String> {
    let history = History::read(text)?;
    let facts = Facts::of(&history);
    let assumptions = assumptions::failed(&facts);
    let found = violations(&facts);
    let mut properties = BTreeMap::new();
    for (name, speaks, violated) in found {
        if !speaks && !contract::speaks_of(&history, name) {
            continue;
        }
        let finding = match violated {
            Some(class) => Finding {
                outcome: "violated",
                class,
            },
            None if speaks && assumptions.is_empty() => Finding {
                outcome: "holds",
                class: Some(contract::class_of_holding(&history, name)),
            },
            None => Finding {
                outcome: "unknown",
                class: Some("unknown"),
            },
        };
        properties.insert(name, finding);
    }
    Ok(Judgement {
        assumptions,
        is_garbled: !facts.ops.misfits.is_empty(),
        properties,
    })
}

/// A property, whether the history can speak to it, and the class of its violation.
type Found = (&'static str, bool, Option<Option<&'static str>>);

fn violations(facts: &Facts) -> Vec<Found> {
    let wrote = facts.has("write");
    let says_its_base = facts
        .ops
        .with("write")
        .any(|write| write.number("based_on").is_some());
    let with_tokens = facts.grants.iter().any(|grant| grant.token.is_some());
    let classify = |name: &'static str, speaks, found| (name, speaks, class(facts, name, found));
    let holds_locks = |process: &&str| !history::is_server(process) && *process != "storage";
    let hides_holds = assumptions::fits::hides_holds(facts) || facts.undead.iter().any(holds_locks);
    let free = match hides_holds {
        true => Vec::new(),
        false => progress::too_long(facts),
    };
    vec![
        classify(
            "mutual-exclusion",
            !facts.grants.is_empty(),
            properties::mutual_exclusion(facts),
        ),
        classify(
            "exclusive-belief",
            !facts.parties.is_empty(),
            properties::exclusive_belief(facts),
        ),
        classify("token-order", with_tokens, properties::token_order(facts)),
        classify("no-stale-write", wrote, properties::no_stale_write(facts)),
        classify(
            "no-lost-update",
            says_its_base,
            properties::no_lost_update(facts),
        ),
        (
            "document",
            wrote || facts.has("read"),
            document::is_violated(facts).then_some(None),
        ),
        (
            "progress",
            facts.has("acquire"),
            (!free.is_empty()).then(|| Some(contract::class_of_progress(facts, &free))),
        ),
    ]
}

/// The class of what is violated, less what rests on processes that went on after their death.
fn class(facts: &Facts, name: &str, mut found: Vec<Violation>) -> Option<Option<&'static str>> {
    found.retain(|violation| {
        let undead = |party: &usize| facts.undead.contains(&facts.parties[*party].process);
        !violation.parties.iter().any(undead)
    });
    (!found.is_empty()).then(|| Some(contract::gravest(facts, name, &found)))
}
