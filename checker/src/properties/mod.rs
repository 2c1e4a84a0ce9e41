//! The properties: one file each, and one line in [`PROPERTIES`].

mod document;
pub(crate) mod efficiency;
mod exclusive_belief;
mod mutual_exclusion;
mod no_lost_update;
mod no_stale_write;
mod progress;
mod token_order;

use histories::{Event, Hazard, Plan};

use crate::contract::Contract;
use crate::grants::{Cuts, Grants};
use crate::hazards::{Excuse, Hazards};
use crate::operations::Record;
use crate::sentences;
use crate::storage::StorageOrder;
use crate::verdict::{Outcome, Witness};

/// All properties, in the order in which they are reported.
static PROPERTIES: &[Property] = &[
    mutual_exclusion::PROPERTY,
    exclusive_belief::PROPERTY,
    token_order::PROPERTY,
    no_stale_write::PROPERTY,
    no_lost_update::PROPERTY,
    document::PROPERTY,
    progress::PROPERTY,
    efficiency::PROPERTY,
];

/// Those for which it matters when a write reached the storage, whatever its client learned of it.
pub(crate) const IS_ABOUT_LANDING: [&str; 2] =
    [no_stale_write::PROPERTY.name, no_lost_update::PROPERTY.name];

/// All properties, in the order in which they are reported.
pub fn properties() -> &'static [Property] {
    PROPERTIES
}

/// The names of all properties, for an error's remedy.
pub(crate) fn list() -> String {
    PROPERTIES
        .iter()
        .map(|property| format!("`{}`", property.name))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A property of locks or of storages.
pub struct Property {
    /// Its name: `no-stale-write`.
    pub name: &'static str,
    /// When it is violated, in one sentence.
    pub summary: &'static str,
    /// Why a history cannot speak to it, if it cannot.
    pub(crate) silent: fn(&Case<'_>) -> Option<&'static str>,
    /// Judges it, with grants left aside from their cuts on.
    pub(crate) judge: fn(&Case<'_>, &Cuts) -> Finding,
}

/// A history, prepared to be judged.
pub(crate) struct Case<'a> {
    pub(crate) record: &'a Record,
    pub(crate) grants: Grants,
    pub(crate) storage: StorageOrder,
    pub(crate) plan: &'a Plan,
    pub(crate) contract: &'a Contract,
    /// The hazards as they happened.
    pub(crate) hazards: Hazards,
    /// The hazards that the plan has in store.
    pub(crate) planned: Vec<Hazard>,
    /// Whether the history was written to its end.
    pub(crate) complete: bool,
    /// Whether events of it were left aside, so that what they told is not known.
    pub(crate) lost_events: bool,
    /// Whether clients may have held locks by other grants than those that are known.
    pub(crate) hidden_holds: bool,
}

impl Case<'_> {
    /// From when on grants are left aside when a property is judged: those that something excuses, and always those of
    /// processes that nobody can believe.
    pub(crate) fn cuts(&self, property: &str, excuse: Option<Excuse>) -> Cuts {
        match excuse {
            Some(excuse) => {
                let (record, grants) = (self.record, &self.grants);
                let contract = self.contract;
                self.hazards
                    .cuts(record, grants, contract, property, excuse)
            }
            None => Cuts::of_the_undead(self.record),
        }
    }

    /// Why the history says nothing of locks, if it does not.
    fn no_locks(&self) -> Option<&'static str> {
        self.record
            .locks
            .is_empty()
            .then_some("no client asked for a lock")
    }

    /// Why the history says nothing of documents, if it does not.
    fn no_documents(&self) -> Option<&'static str> {
        let untouched = self.record.reads.is_empty() && self.record.writes.is_empty();
        untouched.then_some("no client read or wrote a document")
    }

    /// Why nothing holds of all the accepted writes, if it does not: a write of unknown outcome may be one of them, and
    /// may have been accepted at any time.
    fn unsettled(&self) -> Option<String> {
        let first = *self.storage.unsettled.first()?;
        let write = sentences::write(self.record, &self.record.writes[first as usize]);
        Some(format!(
            "nothing tells whether {write} was accepted, for there is no complete log of the storage"
        ))
    }
}

/// What was found of a property.
pub(crate) struct Finding {
    pub(crate) outcome: Outcome,
    pub(crate) violations: u64,
}

impl Finding {
    /// Nothing speaks against it.
    fn holds() -> Finding {
        Finding {
            outcome: Outcome::Holds,
            violations: 0,
        }
    }

    /// It is violated so many times, first as the witness shows.
    fn violated(witness: Witness, violations: u64) -> Finding {
        Finding {
            outcome: Outcome::Violated { witness },
            violations,
        }
    }

    /// The history does not tell.
    fn unknown(reason: String) -> Finding {
        Finding {
            outcome: Outcome::Unknown { reason },
            violations: 0,
        }
    }
}

/// Makes a witness of operations and the events that show them, which it orders by time.
fn witness(sentence: String, operations: Vec<u64>, events: Vec<Vec<Event<'static>>>) -> Witness {
    let mut events: Vec<Event<'static>> = events.into_iter().flatten().collect();
    events.sort_by_key(|event| event.t);
    events.dedup();
    Witness {
        sentence,
        operations,
        overlap_ms: None,
        events,
    }
}
