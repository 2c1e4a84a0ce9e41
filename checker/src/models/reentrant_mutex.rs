//! A mutex that its owner may acquire again.

use super::Model;
use super::locking::{Attempt, Owner, Owners, Verb};
use super::recorded::{Misfit, Recorded, Told};
use crate::closed_forms::reentrant_mutex;
use crate::linearizability::{Decision, History};

/// A mutex that is free again when its owner has released it as often as it acquired it.
///
/// Legal:
///
/// ```text
///  A:  |- acquire -|  |- acquire -|  |- release -|  |- release -|
///  B:                                                   |- acquire -|
/// ```
///
/// Illegal, for `A` has yet to release it once more:
///
/// ```text
///  A:  |- acquire -|  |- acquire -|  |- release -|
///  B:                                                |- acquire -|
/// ```
#[derive(Default)]
pub struct ReentrantMutex {
    owners: Owners,
    depth_max: Option<u32>,
    refusals_count: bool,
}

/// What is done to a reentrant mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It was free or held by this one, and is held by this one once more from then on.
    Acquire(Owner),
    /// It was held by this one, and is held once less from then on.
    Release(Owner),
    /// It was held by somebody else when this one asked for it.
    Busy(Owner),
}

/// Who holds it and how often, which is once at least.
pub type Hold = Option<(Owner, u32)>;

impl ReentrantMutex {
    /// A free mutex that one owner may hold so many times at once, or any number of times. If refusals count, one that was
    /// refused as busy proves that somebody else held it.
    pub fn new(depth_max: Option<u32>, refusals_count: bool) -> ReentrantMutex {
        ReentrantMutex {
            owners: Owners::default(),
            depth_max,
            refusals_count,
        }
    }

    /// How often one owner may hold it at once.
    pub fn depth_max(&self) -> Option<u32> {
        self.depth_max
    }
}

impl Model for ReentrantMutex {
    type State = Hold;
    type Operation = Operation;

    fn initial(&self) -> Hold {
        None
    }

    fn step(&self, &hold: &Hold, operation: &Operation) -> Option<Hold> {
        match (*operation, hold) {
            (Operation::Acquire(by), None) => self.deepen(by, 0),
            (Operation::Acquire(by), Some((holder, depth))) if by == holder => {
                self.deepen(by, depth)
            }
            (Operation::Release(by), Some((holder, depth))) if by == holder => {
                Some((depth > 1).then(|| (by, depth - 1)))
            }
            (Operation::Busy(by), Some((holder, _))) if by != holder => Some(hold),
            _ => None,
        }
    }

    fn decide(&self, history: &History<Operation>) -> Option<Decision> {
        reentrant_mutex::decide(self, history)
    }

    fn describe(&self, operation: &Operation) -> String {
        match *operation {
            Operation::Acquire(by) => format!("acquire by {}", self.owners.name(by)),
            Operation::Release(by) => format!("release by {}", self.owners.name(by)),
            Operation::Busy(by) => format!("acquire by {}, busy", self.owners.name(by)),
        }
    }

    fn describe_state(&self, hold: &Hold) -> String {
        hold.map_or("free".to_owned(), |(by, depth)| {
            format!("held by {}, {depth} times", self.owners.name(by))
        })
    }
}

impl ReentrantMutex {
    fn deepen(&self, by: Owner, depth: u32) -> Option<Hold> {
        let deeper = depth.checked_add(1)?;
        self.depth_max
            .is_none_or(|most| deeper <= most)
            .then_some(Some((by, deeper)))
    }
}

impl Recorded for ReentrantMutex {
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let verb = Verb::of("reentrant mutex", told)?;
        let by = self.owners.of(told);
        Ok(match (verb, verb.attempt(told, self.refusals_count)) {
            (_, Attempt::Nothing) => None,
            (_, Attempt::Busy) => Some(Operation::Busy(by)),
            (Verb::Acquire, Attempt::Granted) => Some(Operation::Acquire(by)),
            (Verb::Release, Attempt::Granted) => Some(Operation::Release(by)),
        })
    }
}
