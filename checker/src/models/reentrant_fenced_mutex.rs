//! A reentrant mutex whose grants carry tokens that rise.

use super::Model;
use super::fenced_mutex::Operation;
use super::locking::{Attempt, Owner, Owners, Verb, token};
use super::recorded::{Misfit, Recorded, Told};
use crate::closed_forms::reentrant_fenced_mutex;
use crate::linearizability::{Decision, History};

/// A reentrant mutex whose first grants carry ever higher tokens, and whose reentries repeat the token of the first, as
/// Hazelcast's `FencedLock` does.
///
/// Legal:
///
/// ```text
///  A:  |- acquire: 3 -|  |- acquire: 3 -|  |- release -|  |- release -|
///  B:                                                                    |- acquire: 4 -|
/// ```
///
/// Illegal, for the second grant to `A` is a reentry:
///
/// ```text
///  A:  |- acquire: 3 -|  |- acquire: 4 -|
/// ```
///
/// A first grant of unknown token takes the lowest that is left; a reentry that tells the token raises it to that.
#[derive(Default)]
pub struct ReentrantFencedMutex {
    owners: Owners,
    depth_max: Option<u32>,
    refusals_count: bool,
}

/// A hold of a reentrant fenced mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hold {
    /// Whose it is.
    pub by: Owner,
    /// How often it was acquired and not released: once at least.
    pub depth: u32,
    /// Its token, if a grant told it.
    pub token: Option<u64>,
}

/// Who holds a reentrant fenced mutex, and which tokens are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The hold there is.
    pub hold: Option<Hold>,
    /// The lowest token that a first grant can have; if the hold's token is not known, that hold's own lowest. `None` when
    /// all are used up.
    pub lowest: Option<u64>,
}

impl ReentrantFencedMutex {
    /// A free mutex without grants, that one owner may hold so many times at once, or any number of times. If refusals
    /// count, one that was refused as busy proves that somebody else held it.
    pub fn new(depth_max: Option<u32>, refusals_count: bool) -> ReentrantFencedMutex {
        ReentrantFencedMutex {
            owners: Owners::default(),
            depth_max,
            refusals_count,
        }
    }

    /// How often one owner may hold it at once.
    pub fn depth_max(&self) -> Option<u32> {
        self.depth_max
    }

    fn acquire(&self, state: &State, by: Owner, token: Option<u64>) -> Option<State> {
        let hold = match state.hold {
            None => Hold {
                by,
                depth: 1,
                token,
            },
            Some(hold) if hold.by == by => Hold {
                depth: hold.depth.checked_add(1)?,
                token: hold.token.or(token),
                ..hold
            },
            Some(_) => return None,
        };
        let agrees = token.is_none_or(|token| hold.token == Some(token));
        if !agrees || self.depth_max.is_some_and(|most| hold.depth > most) {
            return None;
        }
        let known_before = state.hold.is_some_and(|hold| hold.token.is_some());
        let lowest = match hold.token {
            Some(token) if !known_before => {
                (token >= state.lowest?).then(|| token.checked_add(1))?
            }
            Some(_) => state.lowest,
            None => Some(state.lowest?),
        };
        Some(State {
            hold: Some(hold),
            lowest,
        })
    }

    fn release(state: &State, by: Owner) -> Option<State> {
        let hold = state.hold.filter(|hold| hold.by == by)?;
        if hold.depth > 1 {
            let hold = Hold {
                depth: hold.depth - 1,
                ..hold
            };
            return Some(State {
                hold: Some(hold),
                ..*state
            });
        }
        let lowest = match hold.token {
            Some(_) => state.lowest,
            // It took some token, at least the lowest.
            None => state.lowest.and_then(|lowest| lowest.checked_add(1)),
        };
        Some(State { hold: None, lowest })
    }
}

impl Model for ReentrantFencedMutex {
    type State = State;
    type Operation = Operation;

    fn initial(&self) -> State {
        State {
            hold: None,
            lowest: Some(0),
        }
    }

    fn step(&self, state: &State, operation: &Operation) -> Option<State> {
        match *operation {
            Operation::Acquire { by, token } => self.acquire(state, by, token),
            Operation::Release(by) => ReentrantFencedMutex::release(state, by),
            Operation::Busy(by) => state.hold.filter(|hold| hold.by != by).map(|_| *state),
        }
    }

    fn decide(&self, history: &History<Operation>) -> Option<Decision> {
        reentrant_fenced_mutex::decide(self, history)
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
        state.hold.map_or("free".to_owned(), |hold| {
            let by = self.owners.name(hold.by);
            format!("held by {by}, {} times", hold.depth)
        })
    }
}

impl Recorded for ReentrantFencedMutex {
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let verb = Verb::of("reentrant fenced mutex", told)?;
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
