//! A mutex whose grants end by themselves once their validity is over.

use super::Model;
use super::locking::{Attempt, Owner, Owners, Verb, validity};
use super::recorded::{Misfit, Outcome, Recorded, Told, no_operation};
use crate::closed_forms::lease_mutex;
use crate::linearizability::{Decision, History};

/// An owner-aware mutex whose grants are leases: one ends by its release or, at any time after its validity, by itself.
///
/// Legal, for the grant to `A` may have ended by itself before `B` had it:
///
/// ```text
///  A:  |- acquire -| - - - - - valid until here
///  B:                                             |- acquire -|
/// ```
///
/// Illegal, for the grant to `A` was still valid:
///
/// ```text
///  A:  |- acquire -| - - - - - - - - - - - - - - - - - - valid until here
///  B:                 |- acquire -|
/// ```
///
/// A grant may last longer than its validity: services end leases late. A release that succeeds proves that it had not
/// ended before.
#[derive(Default)]
pub struct LeaseMutex {
    owners: Owners,
    refusals_count: bool,
    /// Whose each grant is.
    grants: Vec<Owner>,
    /// Until when each of them was valid at last, as far as that was told.
    valid: Vec<u64>,
    /// For each owner its latest grant and that grant's latest lease.
    latest: Vec<Option<(Grant, u32)>>,
}

/// A grant, numbered from 0 in the order in which they were read.
pub type Grant = u32;

/// What is done to a lease mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It was free, and is held under this grant from then on, by its lease 0.
    Acquire(Grant),
    /// It was held under this grant, and is free from then on.
    Release(Grant),
    /// It was held under this grant, and is held by this lease of it from then on.
    Extend {
        /// The grant.
        grant: Grant,
        /// The number of the new lease: 1 for the first extension.
        lease: u32,
    },
    /// It was held under this grant, by this very lease, and is free from then on: the lease ended by itself.
    Expire {
        /// The grant.
        grant: Grant,
        /// The lease.
        lease: u32,
    },
    /// It was held when this one asked for it.
    Busy(Owner),
}

impl LeaseMutex {
    /// A free mutex. If refusals count, one that was refused as busy proves that it was held.
    pub fn new(refusals_count: bool) -> LeaseMutex {
        LeaseMutex {
            refusals_count,
            ..LeaseMutex::default()
        }
    }

    /// A new grant to an owner.
    fn grant(&mut self, by: Owner) -> Grant {
        let grant = self.grants.len() as Grant;
        self.grants.push(by);
        self.valid.push(0);
        let by = by as usize;
        if self.latest.len() <= by {
            self.latest.resize(by + 1, None);
        }
        self.latest[by] = Some((grant, 0));
        grant
    }

    /// An owner's latest grant and lease; a new grant, which nothing acquires, if it has none.
    fn latest(&mut self, by: Owner) -> (Grant, u32) {
        let known = self.latest.get(by as usize).copied().flatten();
        known.unwrap_or_else(|| (self.grant(by), 0))
    }

    /// Keeps until when a grant is valid, if that is told.
    fn tell_validity(&mut self, grant: Grant, told: &Told<'_>) -> Result<(), Misfit> {
        if let Some(until) = validity(told)? {
            self.valid[grant as usize] = until;
        }
        Ok(())
    }

    fn name(&self, grant: Grant) -> String {
        match self.grants.get(grant as usize) {
            Some(&by) => self.owners.name(by),
            None => format!("grant {grant}"),
        }
    }
}

impl Model for LeaseMutex {
    type State = Option<(Grant, u32)>;
    type Operation = Operation;

    fn initial(&self) -> Self::State {
        None
    }

    fn step(&self, &held: &Self::State, operation: &Operation) -> Option<Self::State> {
        match (*operation, held) {
            (Operation::Acquire(grant), None) => Some(Some((grant, 0))),
            (Operation::Release(grant), Some((holder, _))) if grant == holder => Some(None),
            (Operation::Extend { grant, lease }, Some((holder, _))) if grant == holder => {
                Some(Some((grant, lease)))
            }
            (Operation::Expire { grant, lease }, held) if held == Some((grant, lease)) => {
                Some(None)
            }
            (Operation::Busy(_), Some(_)) => Some(held),
            _ => None,
        }
    }

    /// The grant.
    fn about(&self, operation: &Operation) -> Option<u64> {
        match *operation {
            Operation::Acquire(grant)
            | Operation::Release(grant)
            | Operation::Extend { grant, .. }
            | Operation::Expire { grant, .. } => Some(grant.into()),
            Operation::Busy(_) => None,
        }
    }

    fn about_state(&self, held: &Self::State) -> Option<u64> {
        held.map(|(grant, _)| grant.into())
    }

    fn decide(&self, history: &History<Operation>) -> Option<Decision> {
        lease_mutex::decide(self, history)
    }

    fn describe(&self, operation: &Operation) -> String {
        match *operation {
            Operation::Acquire(grant) => format!("acquire by {}", self.name(grant)),
            Operation::Release(grant) => format!("release by {}", self.name(grant)),
            Operation::Extend { grant, .. } => format!("extend by {}", self.name(grant)),
            Operation::Expire { grant, .. } => {
                format!("end of the lease of {}", self.name(grant))
            }
            Operation::Busy(by) => format!("acquire by {}, busy", self.owners.name(by)),
        }
    }

    fn describe_state(&self, held: &Self::State) -> String {
        held.map_or("free".to_owned(), |(grant, _)| {
            format!("held by {}", self.name(grant))
        })
    }
}

impl Recorded for LeaseMutex {
    const ACTS_BY_ITSELF: bool = true;

    /// Operations are to be read in the order in which they were invoked, for a release names no grant: it is of its
    /// owner's latest.
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let by = self.owners.of(told);
        if matches!(told.f, "extend" | "renew") {
            let (grant, lease) = self.latest(by);
            if matches!(told.outcome, Outcome::Refused(_)) {
                return Ok(None);
            }
            self.tell_validity(grant, told)?;
            self.latest[by as usize] = Some((grant, lease + 1));
            let lease = lease + 1;
            return Ok(Some(Operation::Extend { grant, lease }));
        }
        let known = ["acquire", "release", "extend"];
        let verb =
            Verb::of("lease mutex", told).map_err(|_| no_operation("lease mutex", &known, told))?;
        Ok(match (verb, verb.attempt(told, self.refusals_count)) {
            (_, Attempt::Nothing) => None,
            (_, Attempt::Busy) => Some(Operation::Busy(by)),
            (Verb::Acquire, Attempt::Granted) => {
                let grant = self.grant(by);
                self.tell_validity(grant, told)?;
                Some(Operation::Acquire(grant))
            }
            (Verb::Release, Attempt::Granted) => Some(Operation::Release(self.latest(by).0)),
        })
    }

    /// The end of the lease, from the end of its validity on. One of unknown outcome has a validity that nobody learned:
    /// it may end at any time, but an extension does not shorten what it extends.
    fn by_itself(&self, operation: &Operation, told: &Told<'_>) -> Option<(u64, Operation)> {
        let from = match (told.outcome, operation) {
            (Outcome::Unknown, Operation::Extend { grant, .. }) => self.valid[*grant as usize],
            (Outcome::Unknown, _) => 0,
            _ => validity(told).ok().flatten()?,
        };
        let (grant, lease) = match *operation {
            Operation::Acquire(grant) => (grant, 0),
            Operation::Extend { grant, lease } => (grant, lease),
            _ => return None,
        };
        Some((from, Operation::Expire { grant, lease }))
    }

    /// A lease that was given back or extended, or whose owner has another one, does not end by itself any more.
    fn is_void_after(&self, by_itself: &Operation, later: &Operation) -> bool {
        let Operation::Expire { grant, lease } = *by_itself else {
            return false;
        };
        match *later {
            Operation::Release(released) => released == grant,
            Operation::Extend {
                grant: extended,
                lease: extension,
            } => extended == grant && extension > lease,
            Operation::Acquire(next) => {
                next != grant && self.grants[next as usize] == self.grants[grant as usize]
            }
            Operation::Expire { .. } | Operation::Busy(_) => false,
        }
    }
}
