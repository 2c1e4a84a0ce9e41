//! What is over: the things that no operation is about any longer ([`Model::about`]).
//!
//! Where nothing is certain, a lock may be held by any grant of the past, each a state of its own, since none need have been
//! given back. Once nothing more is about them they are alike, and one stands for all.

use super::script::{Event, Script};
use super::steps::Kinds;
use crate::models::Model;
use crate::names::Map;

/// When each thing is over.
pub(super) struct Over {
    /// The last event about each thing; none is the last if a call about it never returns.
    last: Map<u64, usize>,
    /// Of each event: whether something is over with it.
    ends: Vec<bool>,
}

impl Over {
    /// `None` for a model without things.
    pub(super) fn of<M: Model>(model: &M, kinds: &Kinds<'_, M>, script: &Script) -> Option<Over> {
        let mut last: Map<u64, usize> = Map::default();
        for (at, event) in script.events.iter().enumerate() {
            let (Event::Invoke(call) | Event::Return(call)) = *event;
            let call = script.call(call);
            if let Some(thing) = model.about(kinds.operation(call.kind)) {
                let until = if call.is_lasting() { usize::MAX } else { at };
                let last = last.entry(thing).or_default();
                *last = until.max(*last);
            }
        }
        let mut ends = vec![false; script.events.len()];
        for &at in last.values().filter(|at| **at != usize::MAX) {
            ends[at] = true;
        }
        (!last.is_empty()).then_some(Over { last, ends })
    }

    /// Whether something is over with an event.
    pub(super) fn ends_with(&self, event: usize) -> bool {
        self.ends[event]
    }

    /// Whether a thing is over after an event.
    pub(super) fn is_over(&self, thing: u64, event: usize) -> bool {
        self.last.get(&thing).is_none_or(|last| *last <= event)
    }
}
