//! A semaphore: so many permits, each held by somebody.

use histories::entries::Value;

use super::Model;
use super::locking::{Attempt, Owner, Owners, Verb};
use super::recorded::{Misfit, Recorded, Told, wrong_value};
use crate::closed_forms::semaphore;
use crate::linearizability::{Decision, History};

/// A semaphore that knows who holds how many of its permits.
///
/// Legal with two permits:
///
/// ```text
///  A:  |- acquire -|                               |- release -|
///  B:                 |- acquire -|                                |- release -|
///  C:                                |--- acquire -------|
/// ```
///
/// Illegal with two permits, for all three hold one:
///
/// ```text
///  A:  |- acquire -|
///  B:                 |- acquire -|
///  C:                                |- acquire -|
/// ```
pub struct Semaphore {
    owners: Owners,
    permits: u32,
    refusals_count: bool,
}

/// What is done to a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// So many permits were free, and are held by this one from then on.
    Acquire {
        /// By whom.
        by: Owner,
        /// How many.
        permits: u32,
    },
    /// So many permits were held by this one, and are free from then on.
    Release {
        /// By whom.
        by: Owner,
        /// How many.
        permits: u32,
    },
    /// Fewer permits were free than this one asked for.
    Busy {
        /// Who asked.
        by: Owner,
        /// For how many.
        permits: u32,
    },
}

impl Semaphore {
    /// A semaphore with so many permits, all free. If refusals count, one that was refused as busy proves that too few were.
    pub fn new(permits: u32, refusals_count: bool) -> Semaphore {
        Semaphore {
            owners: Owners::default(),
            permits,
            refusals_count,
        }
    }

    /// How many permits there are.
    pub fn permits(&self) -> u32 {
        self.permits
    }
}

/// The permits held: the owners that hold any, in rising order, each with how many.
pub type State = Vec<(Owner, u32)>;

impl Model for Semaphore {
    type State = State;
    type Operation = Operation;

    fn initial(&self) -> State {
        Vec::new()
    }

    fn step(&self, state: &State, operation: &Operation) -> Option<State> {
        let free = self.permits - state.iter().map(|&(_, held)| held).sum::<u32>();
        let find = |by| state.binary_search_by_key(&by, |&(owner, _)| owner);
        match *operation {
            Operation::Acquire { by, permits } => (permits <= free).then(|| {
                let mut state = state.clone();
                match find(by) {
                    Ok(at) => state[at].1 += permits,
                    Err(at) => state.insert(at, (by, permits)),
                }
                state
            }),
            Operation::Release { by, permits } => {
                let at = find(by).ok().filter(|&at| state[at].1 >= permits)?;
                let mut state = state.clone();
                state[at].1 -= permits;
                if state[at].1 == 0 {
                    state.remove(at);
                }
                Some(state)
            }
            Operation::Busy { permits, .. } => (free < permits).then(|| state.clone()),
        }
    }

    fn decide(&self, history: &History<Operation>) -> Option<Decision> {
        semaphore::decide(self, history)
    }

    fn describe(&self, operation: &Operation) -> String {
        let name = |by| self.owners.name(by);
        match *operation {
            Operation::Acquire { by, permits: 1 } => format!("acquire by {}", name(by)),
            Operation::Release { by, permits: 1 } => format!("release by {}", name(by)),
            Operation::Busy { by, permits: 1 } => format!("acquire by {}, busy", name(by)),
            Operation::Acquire { by, permits } => format!("acquire {permits} by {}", name(by)),
            Operation::Release { by, permits } => format!("release {permits} by {}", name(by)),
            Operation::Busy { by, permits } => format!("acquire {permits} by {}, busy", name(by)),
        }
    }

    fn describe_state(&self, state: &State) -> String {
        if state.is_empty() {
            return "free".to_owned();
        }
        let held = |&(by, held): &(Owner, u32)| format!("{held} by {}", self.owners.name(by));
        format!(
            "held: {}",
            state.iter().map(held).collect::<Vec<_>>().join(", ")
        )
    }
}

impl Recorded for Semaphore {
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let verb = Verb::of("semaphore", told)?;
        let by = self.owners.of(told);
        let permits = match told.input {
            Value::Integer(permits) => u32::try_from(*permits)
                .ok()
                .filter(|&permits| permits > 0)
                .ok_or_else(|| wrong_value("a number of permits, from 1 on", told, told.input))?,
            _ => 1,
        };
        Ok(match (verb, verb.attempt(told, self.refusals_count)) {
            (_, Attempt::Nothing) => None,
            (_, Attempt::Busy) => Some(Operation::Busy { by, permits }),
            (Verb::Acquire, Attempt::Granted) => Some(Operation::Acquire { by, permits }),
            (Verb::Release, Attempt::Granted) => Some(Operation::Release { by, permits }),
        })
    }
}
