//! The closed form of the semaphore.
//!
//! An acquire takes effect best just before it returns, a release just after it was invoked: that leaves others most
//! permits at all times, and owners whose calls do not overlap have no other freedom. So the history is linearizable
//! exactly when at no return of an acquire more permits are held so than there are, and nobody releases what it lacks.

use super::found::{Reason, Unclear};
use super::lock::{Kind, Lock};
use super::replay::{Judge, dense, replay};
use crate::linearizability::{Call, Decision, History};
use crate::models::Model;
use crate::models::semaphore::{Operation, Semaphore};

/// Whether a history is linearizable against a semaphore.
///
/// `None` also where a refusal counts, or an owner goes on after a call of unknown outcome. The calls of a violation have
/// no order alone; with others free to have done nothing, they may have one.
pub fn decide(model: &Semaphore, history: &History<Operation>) -> Option<Decision> {
    let mut judge = Permits {
        lock: Lock::new(Kind::OwnerAware),
        calls: history.len(),
        most: u64::from(model.permits()),
        held: 0,
        owners: Vec::new(),
    };
    replay(history, &mut judge, |operation| model.describe(operation))
}

/// What is remembered of one owner.
#[derive(Clone, Default)]
struct Owner {
    /// Its acquires whose permits are held, each with how many of them are.
    acquires: Vec<(u64, u32)>,
    in_flight: bool,
    ended: bool,
    /// Whether the release in flight asks for more than is held.
    lacks: bool,
}

/// The judge; its lock keeps no more than what was found.
struct Permits {
    lock: Lock,
    calls: usize,
    most: u64,
    held: u64,
    owners: Vec<Owner>,
}

impl Permits {
    /// Gives permits back, those acquired last first; false if there are too few.
    fn give_back(&mut self, by: u32, permits: u32) -> bool {
        let acquires = &mut self.owners[by as usize].acquires;
        let held: u64 = acquires.iter().map(|&(_, held)| u64::from(held)).sum();
        if held < u64::from(permits) {
            return false;
        }
        self.held -= u64::from(permits);
        let mut left = permits;
        while let Some((_, held)) = acquires.last_mut() {
            let given = left.min(*held);
            left -= given;
            *held -= given;
            if *held > 0 {
                break;
            }
            acquires.pop();
        }
        true
    }

    /// The fewest acquires that hold more permits than there are: those that hold most.
    fn too_many(&self) -> Vec<u64> {
        let mut acquires: Vec<(u64, u32)> = self
            .owners
            .iter()
            .flat_map(|owner| owner.acquires.iter().copied())
            .collect();
        acquires.sort_unstable_by_key(|&(id, held)| (std::cmp::Reverse(held), id));
        let mut sum = 0;
        acquires
            .into_iter()
            .take_while(|&(_, held)| {
                let wanted = sum <= self.most;
                sum += u64::from(held);
                wanted
            })
            .map(|(id, _)| id)
            .collect()
    }
}

impl Judge<Operation> for Permits {
    const NAMES_CALLS_ALONE: bool = true;

    fn invoked(&mut self, _: u64, call: &Call<Operation>) {
        let (Operation::Acquire { by, .. } | Operation::Release { by, .. }) = call.operation else {
            return self.lock.unclear(Unclear::OperationUnknown);
        };
        if !dense(self.calls, by) {
            return self.lock.unclear(Unclear::OwnersSparse);
        }
        let at = by as usize;
        if at >= self.owners.len() {
            self.owners.resize(at + 1, Owner::default());
        }
        let owner = &mut self.owners[at];
        if owner.in_flight || owner.ended {
            return self.lock.unclear(Unclear::AfterUnknown);
        }
        (owner.in_flight, owner.ended) = (call.certain, !call.certain);
        if let Operation::Release { permits, .. } = call.operation {
            self.owners[at].lacks = !self.give_back(by, permits);
        }
    }

    fn returned(&mut self, id: u64, call: &Call<Operation>) {
        let position = call.returned;
        match call.operation {
            Operation::Acquire { by, permits } => {
                let owner = &mut self.owners[by as usize];
                owner.in_flight = false;
                owner.acquires.push((id, permits));
                self.held += u64::from(permits);
                if self.held > self.most {
                    let calls = self.too_many();
                    self.lock.violated(position, Reason::TooMany(id), calls);
                }
            }
            Operation::Release { by, .. } => {
                let owner = &mut self.owners[by as usize];
                owner.in_flight = false;
                if owner.lacks {
                    let reason = Reason::ReleasedUnheld(id);
                    self.lock.violated(position, reason, vec![id]);
                }
            }
            Operation::Busy { .. } => {}
        }
    }

    fn lock(&mut self) -> &mut Lock {
        &mut self.lock
    }
}
