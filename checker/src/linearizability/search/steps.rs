//! A model's steps, each computed once.

use crate::models::{Effect, Model, Outlook};
use crate::names::Map;

/// Stands for a step that the model does not allow.
pub(super) const FORBIDDEN: u32 = u32::MAX;

/// Stands for a step that was not asked for yet.
const UNASKED: u32 = u32::MAX - 1;

/// With so many kinds of operations or fewer, the steps from a state stand in a row of their own.
const DENSE_KINDS: usize = 256;

/// The kinds of operations of a history, numbered: calls of equal operations are of one kind.
pub(super) struct Kinds<'m, M: Model> {
    operations: Vec<&'m M::Operation>,
    effects: Vec<Effect>,
    /// The kind of each call.
    pub(super) of_call: Vec<u32>,
}

impl<'m, M: Model> Kinds<'m, M> {
    pub(super) fn new(model: &M, operations: impl Iterator<Item = &'m M::Operation>) -> Self {
        let mut numbers: Map<&M::Operation, u32> = Map::default();
        let mut kinds = Kinds {
            operations: Vec::new(),
            effects: Vec::new(),
            of_call: Vec::new(),
        };
        for operation in operations {
            let next = kinds.operations.len() as u32;
            let kind = *numbers.entry(operation).or_insert(next);
            if kind == next {
                kinds.operations.push(operation);
                kinds.effects.push(model.effect(operation));
            }
            kinds.of_call.push(kind);
        }
        kinds
    }

    /// How many kinds there are.
    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn operation(&self, kind: u32) -> &'m M::Operation {
        self.operations[kind as usize]
    }

    pub(super) fn effect(&self, kind: u32) -> Effect {
        self.effects[kind as usize]
    }
}

/// The states that were met, numbered, and the steps between them.
pub(super) struct Steps<'m, M: Model> {
    model: &'m M,
    kinds: &'m Kinds<'m, M>,
    states: Vec<M::State>,
    numbers: Map<M::State, u32>,
    rows: Vec<u32>,
    sparse: Map<u64, u32>,
}

impl<M: Model> Clone for Steps<'_, M> {
    fn clone(&self) -> Self {
        Steps {
            model: self.model,
            kinds: self.kinds,
            states: self.states.clone(),
            numbers: self.numbers.clone(),
            rows: self.rows.clone(),
            sparse: self.sparse.clone(),
        }
    }
}

impl<'m, M: Model> Steps<'m, M> {
    /// The number of the initial state is 0.
    pub(super) fn new(model: &'m M, kinds: &'m Kinds<'m, M>) -> Self {
        let mut steps = Steps {
            model,
            kinds,
            states: Vec::new(),
            numbers: Map::default(),
            rows: Vec::new(),
            sparse: Map::default(),
        };
        steps.number(model.initial());
        steps
    }

    pub(super) fn kinds(&self) -> &'m Kinds<'m, M> {
        self.kinds
    }

    /// The state after an operation of a kind, or [`FORBIDDEN`].
    #[inline]
    pub(super) fn step(&mut self, state: u32, kind: u32) -> u32 {
        let width = self.kinds.operations.len();
        if width <= DENSE_KINDS {
            let at = state as usize * width + kind as usize;
            if self.rows[at] == UNASKED {
                self.rows[at] = self.compute(state, kind);
            }
            return self.rows[at];
        }
        let key = u64::from(state) << 32 | u64::from(kind);
        if let Some(&known) = self.sparse.get(&key) {
            return known;
        }
        let next = self.compute(state, kind);
        self.sparse.insert(key, next);
        next
    }

    fn compute(&mut self, state: u32, kind: u32) -> u32 {
        let operation = self.kinds.operations[kind as usize];
        match self.model.step(&self.states[state as usize], operation) {
            Some(next) => self.number(next),
            None => FORBIDDEN,
        }
    }

    /// What a state is about.
    pub(super) fn about(&self, state: u32) -> Option<u64> {
        self.model.about_state(&self.states[state as usize])
    }

    /// What is to become of a state for an operation of a kind to be a step, among others that overwrite.
    pub(super) fn outlook(
        &self,
        state: u32,
        kind: u32,
        overwriting: &mut dyn Iterator<Item = u32>,
    ) -> Outlook {
        let state = &self.states[state as usize];
        let mut overwriting = overwriting.map(|kind| self.kinds.operation(kind));
        let observed = self.kinds.operation(kind);
        self.model.outlook(state, observed, &mut overwriting)
    }

    fn number(&mut self, state: M::State) -> u32 {
        if let Some(&known) = self.numbers.get(&state) {
            return known;
        }
        let number = self.states.len() as u32;
        self.numbers.insert(state.clone(), number);
        self.states.push(state);
        let width = self.kinds.operations.len();
        if width <= DENSE_KINDS {
            self.rows.resize(self.rows.len() + width, UNASKED);
        }
        number
    }

    /// How many states are kept.
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// About how many bytes the states and steps take, counting what a state owns elsewhere as nothing.
    pub(super) fn bytes(&self) -> usize {
        let state = 2 * size_of::<M::State>() + 16;
        self.states.len() * state + self.rows.len() * 4 + self.sparse.len() * 16
    }

    /// Forgets all states but these, and gives those new numbers, in their order.
    pub(super) fn keep(&mut self, live: &[u32]) -> Map<u32, u32> {
        let states: Vec<M::State> = live
            .iter()
            .map(|&state| self.states[state as usize].clone())
            .collect();
        self.states.clear();
        self.numbers = Map::default();
        self.rows.clear();
        self.sparse = Map::default();
        let renumbered = live.iter().copied().zip(states);
        renumbered
            .map(|(old, state)| (old, self.number(state)))
            .collect()
    }
}
