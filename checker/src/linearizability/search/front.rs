//! Configurations, and sets of them in which none is better than another.

use super::slots::Slots;
use crate::names::Map;

/// So many states are looked through one by one; more are looked up.
const FEW_STATES: usize = 16;

/// A new configuration is held against so many of its state, and only if it equals one of the others is it told apart.
const RIVALS: usize = 256;

/// Where a search may stand between two events: the state, and what became of the calls in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Configuration<const WORDS: usize> {
    pub(super) state: u32,
    /// The calls that have yet to take effect.
    pub(super) owed: Slots<WORDS>,
    /// The calls that may yet take effect; all that are owed, and those that need not.
    pub(super) open: Slots<WORDS>,
}

impl<const WORDS: usize> Configuration<WORDS> {
    /// Whether whatever can follow the other one can follow this one too.
    #[inline]
    pub(super) fn is_as_good_as(&self, other: &Self) -> bool {
        self.state == other.state && self.owed.within(&other.owed) && other.open.within(&self.open)
    }
}

/// Configurations of which none is as good as another, as far as that is cheap to find.
pub(super) struct Front<const WORDS: usize> {
    by_state: Vec<Vec<Configuration<WORDS>>>,
    used: usize,
    index: Map<u32, usize>,
    len: usize,
}

impl<const WORDS: usize> Front<WORDS> {
    pub(super) fn new() -> Self {
        Front {
            by_state: Vec::new(),
            used: 0,
            index: Map::default(),
            len: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.by_state[..self.used].iter_mut().for_each(Vec::clear);
        self.used = 0;
        self.len = 0;
        self.index.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Configuration<WORDS>> {
        self.by_state[..self.used].iter().flatten()
    }

    /// Adds a configuration, unless there is one that is as good; takes out those that it is as good as.
    pub(super) fn add(&mut self, new: Configuration<WORDS>) -> bool {
        let place = self.place(new.state);
        let rivals = &mut self.by_state[place];
        let near = rivals.len().min(RIVALS);
        if rivals[..near].iter().any(|old| old.is_as_good_as(&new)) || rivals[near..].contains(&new)
        {
            return false;
        }
        let before = rivals.len();
        let mut at = near;
        while at > 0 {
            at -= 1;
            if new.is_as_good_as(&rivals[at]) {
                rivals.remove(at);
            }
        }
        rivals.push(new);
        self.len = self.len + rivals.len() - before;
        true
    }

    /// Where the configurations of a state are.
    fn place(&mut self, state: u32) -> usize {
        if self.index.is_empty() {
            let known = self.by_state[..self.used]
                .iter()
                .position(|of| of.first().is_some_and(|first| first.state == state));
            if let Some(known) = known {
                return known;
            }
            if self.used >= FEW_STATES {
                let states = self.by_state[..self.used].iter().enumerate();
                self.index
                    .extend(states.map(|(place, of)| (of[0].state, place)));
            }
        } else if let Some(&known) = self.index.get(&state) {
            return known;
        }
        if self.used == self.by_state.len() {
            self.by_state.push(Vec::new());
        }
        if !self.index.is_empty() {
            self.index.insert(state, self.used);
        }
        self.used += 1;
        self.used - 1
    }
}
