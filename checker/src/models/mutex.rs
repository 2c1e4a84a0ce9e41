//! A mutex that anybody may release.

use super::Model;
use super::locking::{Attempt, Owner, Owners, Verb};
use super::recorded::{Misfit, Recorded, Told};

/// A mutex that knows whether it is held, and not by whom.
///
/// Legal, for `B` may release what `A` acquired:
///
/// ```text
///  A:  |- acquire -|
///  B:                 |- release -|
///  C:                               |- acquire -|
/// ```
///
/// Illegal, for nobody released it between the two:
///
/// ```text
///  A:  |- acquire -|
///  B:                 |- acquire -|
/// ```
#[derive(Default)]
pub struct Mutex {
    owners: Owners,
    refusals_count: bool,
}

/// What is done to a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It was free, and is held from then on.
    Acquire(Owner),
    /// It was held, and is free from then on.
    Release(Owner),
    /// It was held when this one asked for it.
    Busy(Owner),
}

impl Mutex {
    /// A free mutex. If refusals count, one that was refused as busy proves that it was held.
    pub fn new(refusals_count: bool) -> Mutex {
        Mutex {
            owners: Owners::default(),
            refusals_count,
        }
    }
}

impl Model for Mutex {
    type State = bool;
    type Operation = Operation;

    fn initial(&self) -> bool {
        false
    }

    fn step(&self, &held: &bool, operation: &Operation) -> Option<bool> {
        match operation {
            Operation::Acquire(_) => (!held).then_some(true),
            Operation::Release(_) => held.then_some(false),
            Operation::Busy(_) => held.then_some(true),
        }
    }

    fn describe(&self, operation: &Operation) -> String {
        match *operation {
            Operation::Acquire(by) => format!("acquire by {}", self.owners.name(by)),
            Operation::Release(by) => format!("release by {}", self.owners.name(by)),
            Operation::Busy(by) => format!("acquire by {}, busy", self.owners.name(by)),
        }
    }

    fn describe_state(&self, &held: &bool) -> String {
        if held { "held" } else { "free" }.to_owned()
    }
}

impl Recorded for Mutex {
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let verb = Verb::of("mutex", told)?;
        let by = self.owners.of(told);
        Ok(match (verb, verb.attempt(told, self.refusals_count)) {
            (_, Attempt::Nothing) => None,
            (_, Attempt::Busy) => Some(Operation::Busy(by)),
            (Verb::Acquire, Attempt::Granted) => Some(Operation::Acquire(by)),
            (Verb::Release, Attempt::Granted) => Some(Operation::Release(by)),
        })
    }
}
