//! The forger: edits of a history, each with a name, at a place that a seed draws.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::edits;
use crate::file::{File, time};
use crate::honest;

/// One kind of edit. `apply` says whether there was something to edit.
#[derive(Clone, Copy)]
pub struct Edit {
    /// Its name.
    pub name: &'static str,
    /// Edits a history.
    pub apply: fn(&mut Draft) -> bool,
}

/// A history that is edited, and where the places are drawn from.
pub struct Draft {
    /// The history.
    pub file: File,
    /// Draws the places.
    pub rng: ChaCha8Rng,
}

/// All kinds of edit.
pub fn edits() -> Vec<Edit> {
    [
        edits::events::EDITS,
        edits::times::EDITS,
        edits::fields::EDITS,
        edits::outcomes::EDITS,
        edits::record::EDITS,
        edits::faults::EDITS,
        edits::plan::EDITS,
        edits::insertions::EDITS,
        edits::impossible::EDITS,
        edits::healings::EDITS,
        edits::lives::EDITS,
        edits::unsaid::EDITS,
        edits::moments::EDITS,
        edits::shown::EDITS,
        edits::several::EDITS,
        edits::waits::EDITS,
        edits::kills::EDITS,
        edits::documents::EDITS,
    ]
    .concat()
}

/// Applies one edit at a place that the seed draws; `None` if the history has no such place.
pub fn forge(honest: &File, edit: Edit, seed: u64) -> Option<File> {
    let mut draft = Draft {
        file: honest.clone(),
        rng: ChaCha8Rng::seed_from_u64(seed),
    };
    let is_edited = (edit.apply)(&mut draft);
    draft.file.sort();
    is_edited.then_some(draft.file)
}

/// Several edits of one honest history, all drawn from bytes: eight for the honest history's seed, then three for each
/// edit: a number that says which it is and draws its place. With them come the names of those edits.
pub fn forge_by(bytes: &[u8]) -> Option<(File, Vec<&'static str>)> {
    let (seed, rest) = bytes.split_first_chunk::<8>()?;
    let kinds = edits();
    let mut file = honest::history(u64::from_le_bytes(*seed));
    let mut names = Vec::new();
    for [low, middle, high] in rest.as_chunks::<3>().0 {
        let drawn = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
        let edit = kinds[drawn % kinds.len()];
        let place = drawn / kinds.len();
        if let Some(forged) = forge(&file, edit, place as u64) {
            names.push(edit.name);
            file = forged;
        }
    }
    Some((file, names))
}

impl Draft {
    /// The place of an event that this is true of.
    pub fn pick(&mut self, fits: impl Fn(&Value) -> bool) -> Option<usize> {
        let places: Vec<usize> = (0..self.file.events.len())
            .filter(|&place| fits(&self.file.events[place]))
            .collect();
        let choice = self.choose(places.len())?;
        Some(places[choice])
    }

    /// A number below this.
    pub fn choose(&mut self, choices: usize) -> Option<usize> {
        (choices > 0).then(|| self.rng.random_range(0..choices))
    }

    /// One of these.
    pub fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        Some(all[self.choose(all.len())?].clone())
    }

    /// Changes one event that this is true of.
    pub fn change(
        &mut self,
        fits: impl Fn(&Value) -> bool,
        change: impl FnOnce(&mut Value, &mut ChaCha8Rng),
    ) -> bool {
        let Some(place) = self.pick(fits) else {
            return false;
        };
        change(&mut self.file.events[place], &mut self.rng);
        true
    }

    /// Removes the events that this is true of.
    pub fn remove(&mut self, fits: impl Fn(&Value) -> bool) -> bool {
        let before = self.file.events.len();
        self.file.events.retain(|event| !fits(event));
        self.file.events.len() < before
    }

    /// An instant of the history.
    pub fn instant(&mut self) -> u64 {
        let last = self.file.events.iter().filter(|event| is_of_client(event));
        let last = last.map(time).max().unwrap_or(1);
        self.rng.random_range(0..last.max(1))
    }

    /// An operation: its id, and the places of its events.
    pub fn operation(&mut self, f: &str) -> Option<(u64, String)> {
        let place = self.pick(|event| event["f"] == f && is(event, "invoke"))?;
        let event = &self.file.events[place];
        Some((op_of(event), event["process"].as_str()?.to_owned()))
    }

    /// The first fault of the plan.
    pub fn fault(&mut self) -> Option<&mut Value> {
        self.file.header["plan"]["faults"].get_mut(0)
    }

    /// An op that no event has.
    pub fn new_op(&self) -> u64 {
        let ops = self.file.events.iter().map(op_of);
        ops.max().unwrap_or(0) + 1
    }
}

/// The op of an event.
pub fn op_of(event: &Value) -> u64 {
    event["op"].as_u64().unwrap_or(0)
}

/// Whether an event is of this type.
pub fn is(event: &Value, kind: &str) -> bool {
    event["type"] == kind
}

/// Whether an event is of this function and type.
pub fn is_a(event: &Value, f: &str, kind: &str) -> bool {
    event["f"] == f && is(event, kind)
}

/// The first effect that a fault has.
pub fn effect(fault: &Value) -> &str {
    let does = fault["does"].get(0);
    does.and_then(|does| does["effect"].as_str())
        .unwrap_or_default()
}

/// Whether an event is a client's.
pub fn is_of_client(event: &Value) -> bool {
    event["process"]
        .as_str()
        .is_some_and(|process| process.starts_with('c'))
}

/// Whether an event belongs to this operation.
pub fn is_of(event: &Value, op: u64, process: &str) -> bool {
    op_of(event) == op && event["process"] == process
}
