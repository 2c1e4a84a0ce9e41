//! A mutex that only its owner releases.

use super::Model;
use super::locking::{Attempt, Owner, Owners, Verb};
use super::recorded::{Misfit, Recorded, Told};
use crate::closed_forms::owner_aware_mutex;
use crate::linearizability::{Decision, History};

/// A mutex that knows who holds it: nobody else releases it, and its owner cannot acquire it again.
///
/// Legal, for `A` may have released before `B` acquired:
///
/// ```text
///  A:  |- acquire -|  |--- release ---|
///  B:                    |- acquire -|
/// ```
///
/// Illegal, for `A` still holds it when `B` has it:
///
/// ```text
///  A:  |- acquire -|                  |- release -|
///  B:                 |- acquire -|
/// ```
#[derive(Default)]
pub struct OwnerAwareMutex {
    owners: Owners,
    refusals_count: bool,
}

/// What is done to an owner-aware mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It was free, and is held by this one from then on.
    Acquire(Owner),
    /// It was held by this one, and is free from then on.
    Release(Owner),
    /// It was held when this one asked for it.
    Busy(Owner),
}

impl OwnerAwareMutex {
    /// A free mutex. If refusals count, one that was refused as busy proves that it was held.
    pub fn new(refusals_count: bool) -> OwnerAwareMutex {
        OwnerAwareMutex {
            owners: Owners::default(),
            refusals_count,
        }
    }
}

impl Model for OwnerAwareMutex {
    type State = Option<Owner>;
    type Operation = Operation;

    fn initial(&self) -> Option<Owner> {
        None
    }

    fn step(&self, &holder: &Option<Owner>, operation: &Operation) -> Option<Option<Owner>> {
        match *operation {
            Operation::Acquire(by) => holder.is_none().then_some(Some(by)),
            Operation::Release(by) => (holder == Some(by)).then_some(None),
            Operation::Busy(_) => holder.map(Some),
        }
    }

    fn decide(&self, history: &History<Operation>) -> Option<Decision> {
        owner_aware_mutex::decide(self, history)
    }

    fn describe(&self, operation: &Operation) -> String {
        match *operation {
            Operation::Acquire(by) => format!("acquire by {}", self.owners.name(by)),
            Operation::Release(by) => format!("release by {}", self.owners.name(by)),
            Operation::Busy(by) => format!("acquire by {}, busy", self.owners.name(by)),
        }
    }

    fn describe_state(&self, holder: &Option<Owner>) -> String {
        holder.map_or("free".to_owned(), |by| {
            format!("held by {}", self.owners.name(by))
        })
    }
}

impl Recorded for OwnerAwareMutex {
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
