//! A mutex whose grants carry tokens that rise.

use super::Model;
use super::locking::{Attempt, Owner, Owners, Verb, token};
use super::recorded::{Misfit, Recorded, Told};
use crate::closed_forms::fenced_mutex;
use crate::linearizability::{Decision, History};

/// An owner-aware mutex each of whose grants carries a higher token than all before.
///
/// Legal:
///
/// ```text
///  A:  |- acquire: 3 -|  |- release -|
///  B:                                   |- acquire: 5 -|
/// ```
///
/// Illegal, for the later grant has the lower token:
///
/// ```text
///  A:  |- acquire: 5 -|  |- release -|
///  B:                                   |- acquire: 3 -|
/// ```
///
/// A grant whose token nobody learned took *some* token above those before it. The state keeps the lowest token that the
/// next grant can have: one more than a token that is known, and one more for each unknown grant. That is enough, for an
/// unknown grant that took the lowest token allows all that one with any other token allows.
#[derive(Default)]
pub struct FencedMutex {
    owners: Owners,
    refusals_count: bool,
}

/// What is done to a fenced mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It was free, and is held by this one from then on.
    Acquire {
        /// By whom.
        by: Owner,
        /// With which token, if that is known.
        token: Option<u64>,
    },
    /// It was held by this one, and is free from then on.
    Release(Owner),
    /// It was held when this one asked for it.
    Busy(Owner),
}

/// Who holds a fenced mutex, and which tokens are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Who holds it.
    pub holder: Option<Owner>,
    /// The lowest token that the next grant can have; `None` when all are used up.
    pub next: Option<u64>,
}

impl FencedMutex {
    /// A free mutex without grants. If refusals count, one that was refused as busy proves that it was held.
    pub fn new(refusals_count: bool) -> FencedMutex {
        FencedMutex {
            owners: Owners::default(),
            refusals_count,
        }
    }
}

impl Model for FencedMutex {
    type State = State;
    type Operation = Operation;

    fn initial(&self) -> State {
        State {
            holder: None,
            next: Some(0),
        }
    }

    fn step(&self, state: &State, operation: &Operation) -> Option<State> {
        let State { holder, next } = *state;
        match *operation {
            Operation::Acquire { by, token } if holder.is_none() => {
                let lowest = next?;
                let token = token.unwrap_or(lowest);
                (token >= lowest).then(|| State {
                    holder: Some(by),
                    next: token.checked_add(1),
                })
            }
            Operation::Release(by) if holder == Some(by) => Some(State { holder: None, next }),
            Operation::Busy(_) if holder.is_some() => Some(*state),
            _ => None,
        }
    }

    fn decide(&self, history: &History<Operation>) -> Option<Decision> {
        fenced_mutex::decide(self, history)
    }

    fn describe(&self, operation: &Operation) -> String {
        match *operation {
            Operation::Acquire { by, token: None } => {
                format!("acquire by {}", self.owners.name(by))
            }
            Operation::Acquire {
                by,
                token: Some(token),
            } => format!("acquire by {} with token {token}", self.owners.name(by)),
            Operation::Release(by) => format!("release by {}", self.owners.name(by)),
            Operation::Busy(by) => format!("acquire by {}, busy", self.owners.name(by)),
        }
    }

    fn describe_state(&self, state: &State) -> String {
        let holder = state.holder.map_or("free".to_owned(), |by| {
            format!("held by {}", self.owners.name(by))
        });
        match state.next {
            Some(next) => format!("{holder}, the next token is {next} or more"),
            None => format!("{holder}, all tokens are used up"),
        }
    }
}

impl Recorded for FencedMutex {
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let verb = Verb::of("fenced mutex", told)?;
        let by = self.owners.of(told);
        Ok(match (verb, verb.attempt(told, self.refusals_count)) {
            (_, Attempt::Nothing) => None,
            (_, Attempt::Busy) => Some(Operation::Busy(by)),
            (Verb::Acquire, Attempt::Granted) => Some(Operation::Acquire {
                by,
                token: token(told)?,
            }),
            (Verb::Release, Attempt::Granted) => Some(Operation::Release(by)),
        })
    }
}
