//! A mutex whose grants end by themselves once their validity is over.

mod grants;

use self::grants::{Grants, Of};
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
/// ended before; not so in our own histories, where it says that its client gave up whatever was left. There a grant also
/// ends when its client learned that it was lost, and a renewal in the background may begin it again.
#[derive(Default)]
pub struct LeaseMutex {
    owners: Owners,
    refusals_count: bool,
    grants: Grants,
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
    /// It was held under this grant, and is free from then on: its client gave it up, or lost it.
    End(Grant),
    /// It was free or held under this grant, and is held by this lease of it from then on.
    Renew {
        /// The grant.
        grant: Grant,
        /// The lease.
        lease: u32,
    },
    /// It was held by this one, under whichever grant, and is free from then on.
    ReleaseAny(Owner),
    /// It was held by this one, under whichever grant, and is held by this lease of it from then on.
    ExtendAny {
        /// The owner.
        by: Owner,
        /// The lease, which no other grant has.
        lease: u32,
    },
    /// It was held by this lease, and is free from then on: the lease ended by itself.
    ExpireAny {
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

    fn name(&self, grant: Grant) -> String {
        match self.grants.owner(grant) {
            Some(by) => self.owners.name(by),
            None => format!("grant {grant}"),
        }
    }

    /// An operation that names its grant.
    fn read_named(
        &mut self,
        request: Request,
        told: &Told<'_>,
    ) -> Result<Option<Operation>, Misfit> {
        if matches!(told.outcome, Outcome::Refused(_)) {
            self.grants.refused(told);
            return Ok(None);
        }
        let Some((grant, lease)) = self.grants.of_named(told) else {
            return Ok(None);
        };
        let of = Of::Grant(grant);
        Ok(Some(match (request, told.outcome) {
            (Request::Release, _) => Operation::End(grant),
            // It may have replaced what was left.
            (Request::Extend, Outcome::Unknown) => Operation::Expire { grant, lease },
            (Request::Extend, _) => {
                self.grants.tell_validity(of, validity(told)?);
                of.extend(self.grants.next_lease(of))
            }
            (Request::Renew, _) => {
                self.grants.tell_validity(of, told.validity);
                let lease = self.grants.next_lease(of);
                Operation::Renew { grant, lease }
            }
        }))
    }

    /// An extension that names no grant.
    fn read_extension(&mut self, by: Owner, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let certain = matches!(told.outcome, Outcome::Done(_));
        if matches!(told.outcome, Outcome::Refused(_)) {
            return Ok(None);
        }
        let of = self.grants.of_owner(by, told, certain);
        self.grants.tell_validity(of, validity(told)?);
        Ok(Some(of.extend(self.grants.next_lease(of))))
    }

    /// An acquire, or a release that names no grant.
    fn read_lock(&mut self, by: Owner, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        let known = ["acquire", "release", "extend"];
        let verb =
            Verb::of("lease mutex", told).map_err(|_| no_operation("lease mutex", &known, told))?;
        let certain = matches!(told.outcome, Outcome::Done(_));
        Ok(match (verb, verb.attempt(told, self.refusals_count)) {
            (_, Attempt::Nothing) => None,
            (_, Attempt::Busy) => Some(Operation::Busy(by)),
            (Verb::Acquire, Attempt::Granted) => {
                let grant = self.grants.add(by, told, certain);
                self.grants.tell_validity(Of::Grant(grant), validity(told)?);
                Some(Operation::Acquire(grant))
            }
            (Verb::Release, Attempt::Granted) => {
                let of = self.grants.of_owner(by, told, certain);
                if certain {
                    self.grants.gave_back(of);
                }
                Some(of.release())
            }
        })
    }
}

/// What is asked of a grant.
#[derive(Clone, Copy)]
enum Request {
    Release,
    Extend,
    Renew,
}

impl Request {
    /// What is asked of the grant that is named.
    fn named(told: &Told<'_>) -> Option<Request> {
        told.grant?;
        Some(match told.f {
            "release" | "lost" => Request::Release,
            "extend" => Request::Extend,
            "renewed" => Request::Renew,
            _ => return None,
        })
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
            (Operation::End(grant), Some((holder, _))) if grant == holder => Some(None),
            (Operation::Renew { grant, lease }, held) => {
                let can = held.is_none_or(|(holder, _)| grant == holder);
                can.then_some(Some((grant, lease)))
            }
            (Operation::ReleaseAny(by), Some((holder, _))) => {
                (self.grants.owner(holder) == Some(by)).then_some(None)
            }
            (Operation::ExtendAny { by, lease }, Some((holder, _))) => {
                (self.grants.owner(holder) == Some(by)).then_some(Some((holder, lease)))
            }
            (Operation::ExpireAny { lease }, Some((_, held))) if lease == held => Some(None),
            (Operation::Busy(_), Some(_)) => Some(held),
            _ => None,
        }
    }

    /// The grant, where it is plain.
    fn about(&self, operation: &Operation) -> Option<u64> {
        match *operation {
            Operation::Acquire(grant)
            | Operation::Release(grant)
            | Operation::Extend { grant, .. }
            | Operation::Expire { grant, .. }
            | Operation::End(grant)
            | Operation::Renew { grant, .. } => Some(grant.into()),
            Operation::ReleaseAny(_)
            | Operation::ExtendAny { .. }
            | Operation::ExpireAny { .. }
            | Operation::Busy(_) => None,
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
            Operation::End(grant) => format!("end of the grant of {}", self.name(grant)),
            Operation::Renew { grant, .. } => format!("renewal of {}", self.name(grant)),
            Operation::ReleaseAny(by) => format!("release by {}", self.owners.name(by)),
            Operation::ExtendAny { by, .. } => format!("extend by {}", self.owners.name(by)),
            Operation::ExpireAny { .. } => "end of a lease".to_owned(),
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

    fn begin(&mut self, told: &Told<'_>) -> u32 {
        if told.op.is_some() {
            return self.grants.begin_named(told);
        }
        let by = self.owners.of(told);
        self.grants.begin(by)
    }

    fn read(&mut self, told: &Told<'_>) -> Result<Option<Operation>, Misfit> {
        if let Some(request) = Request::named(told) {
            return self.read_named(request, told);
        }
        let by = self.owners.of(told);
        let read = match told.f {
            "extend" | "renew" => self.read_extension(by, told),
            _ => self.read_lock(by, told),
        };
        self.grants.over(by);
        read
    }

    /// What a client gave up or lost may have ended from then on, and what an extension of unknown outcome may have replaced is
    /// over when that is.
    fn allows_from(&self, operation: &Operation, told: &Told<'_>) -> Option<u64> {
        match *operation {
            Operation::End(_) => Some(0),
            Operation::Expire { grant, .. } => {
                let asked = told.validity.unwrap_or(0);
                Some(
                    self.grants
                        .valid(grant)
                        .map_or(asked, |valid| valid.min(asked)),
                )
            }
            _ => None,
        }
    }

    /// The end of the lease, from the end of its validity on. One of unknown outcome has a validity that nobody learned:
    /// it may end at any time, but an extension does not shorten what it extends.
    fn by_itself(&self, operation: &Operation, told: &Told<'_>) -> Option<(u64, Operation)> {
        let valid = |grant| self.grants.valid(grant);
        let unknown = told.outcome == Outcome::Unknown;
        let told_until = || validity(told).ok().flatten();
        let (from, end) = match *operation {
            Operation::Acquire(grant) if unknown => {
                (Some(0), Operation::Expire { grant, lease: 0 })
            }
            Operation::Acquire(grant) => (valid(grant), Operation::Expire { grant, lease: 0 }),
            Operation::Extend { grant, lease } if unknown => (
                Some(valid(grant).unwrap_or(0)),
                Operation::Expire { grant, lease },
            ),
            // An extension of ours without a validity leaves the one that was there.
            Operation::Extend { grant, lease } if told.grant.is_some() => {
                (valid(grant), Operation::Expire { grant, lease })
            }
            Operation::Extend { grant, lease } => {
                (told_until(), Operation::Expire { grant, lease })
            }
            Operation::Renew { grant, lease } => (valid(grant), Operation::Expire { grant, lease }),
            Operation::ExtendAny { lease, .. } if unknown => {
                (Some(0), Operation::ExpireAny { lease })
            }
            Operation::ExtendAny { lease, .. } => (told_until(), Operation::ExpireAny { lease }),
            _ => return None,
        };
        from.map(|from| (from, end))
    }

    /// A grant that was given back, or whose owner has another one, does not end by itself any more, nor does a lease that was
    /// extended.
    fn is_void_after(&self, by_itself: &Operation, later: &Operation) -> bool {
        let (grant, lease) = match *by_itself {
            Operation::Expire { grant, lease } => (grant, Some(lease)),
            Operation::End(grant) => (grant, None),
            _ => return false,
        };
        match *later {
            Operation::Release(released) => released == grant,
            Operation::Extend {
                grant: extended,
                lease: extension,
            }
            | Operation::Renew {
                grant: extended,
                lease: extension,
            } => extended == grant && lease.is_some_and(|lease| extension > lease),
            Operation::Acquire(next) => {
                next != grant && self.grants.owner(next) == self.grants.owner(grant)
            }
            _ => false,
        }
    }
}
