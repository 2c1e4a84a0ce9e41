//! When leases end, in a stream.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use histories::entries::{Entry, Value};

use super::{InFlight, Stream};
use crate::models::locking::{self, Owner};
use crate::models::{Misfit, Outcome, Told};

/// A lease, numbered from 1.
type Lease = u64;

/// The leases that have an end.
#[derive(Default)]
pub(super) struct Leases {
    /// By time.
    ends: BinaryHeap<Reverse<End>>,
    /// The latest lease of each owner of a lock.
    latest: HashMap<(u32, Owner), Lease>,
    count: Lease,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct End {
    time: u64,
    lock: u32,
    owner: Owner,
    acquire: u64,
    lease: Lease,
    /// The extension that asked for no more, if it is not the lease's own end.
    asked_by: Option<u64>,
}

impl Leases {
    /// An owner has a new lease, which ends what was known of the end of the former.
    fn begin(&mut self, lock: u32, owner: Owner) -> Lease {
        self.count += 1;
        self.latest.insert((lock, owner), self.count);
        self.count
    }

    fn latest(&self, lock: u32, owner: Owner) -> Lease {
        self.latest.get(&(lock, owner)).copied().unwrap_or(0)
    }

    /// The next end until a time of a lease that is its owner's latest.
    fn next(&mut self, until: u64) -> Option<End> {
        while let Some(Reverse(next)) = self.ends.peek()
            && next.time <= until
        {
            let Reverse(end) = self.ends.pop()?;
            if end.lease == self.latest(end.lock, end.owner) {
                return Some(end);
            }
        }
        None
    }
}

impl Stream {
    /// A lease was granted, or may have been.
    pub(super) fn leased(&mut self, call: InFlight, told: &Told<'_>) -> Result<(), Misfit> {
        let InFlight {
            lock, owner, id, ..
        } = call;
        let validity = locking::validity(told)?;
        if told.outcome == Outcome::Unknown {
            self.locks.acquire_unknown(lock, owner);
            self.locks.validity_over(lock, owner, id);
            return Ok(());
        }
        match validity {
            Some(until) if until <= self.time => self.locks.acquired_late(lock, owner, until),
            _ => self.locks.acquired(lock, owner, None),
        }
        self.lease_until(lock, owner, id, validity);
        Ok(())
    }

    /// An owner has a new lease, until a time if that is told.
    fn lease_until(&mut self, lock: u32, owner: Owner, acquire: u64, until: Option<u64>) {
        let lease = self.leases.begin(lock, owner);
        if let Some(time) = until.filter(|&until| until > self.time) {
            self.leases.ends.push(Reverse(End {
                time,
                lock,
                owner,
                acquire,
                lease,
                asked_by: None,
            }));
        }
    }

    /// An extension begins, which may replace what is left by the time that it asks for.
    pub(super) fn ask_for_more(&mut self, call: InFlight, until: Option<u64>) {
        let InFlight {
            lock, owner, id, ..
        } = call;
        let Some(acquire) = call.grant else {
            return;
        };
        self.locks.invoke_extend_of(lock, owner, id, acquire);
        self.leases.ends.push(Reverse(End {
            time: until.unwrap_or(0),
            lock,
            owner,
            acquire,
            lease: self.leases.latest(lock, owner),
            asked_by: Some(id),
        }));
        self.let_leases_end(self.time);
    }

    /// An extension is over.
    pub(super) fn extended(&mut self, call: InFlight, told: &Told<'_>) -> Result<(), Misfit> {
        let InFlight {
            lock, owner, id, ..
        } = call;
        let Some(acquire) = call.grant else {
            return Ok(());
        };
        match told.outcome {
            Outcome::Done(_) => {
                let until = locking::validity(told)?;
                let over = until.filter(|&until| until <= self.time);
                self.locks.extended(lock, owner, over);
                self.lease_until(lock, owner, acquire, until);
            }
            Outcome::Refused(_) => {
                self.locks.extend_failed(lock, owner);
                self.leases
                    .ends
                    .retain(|Reverse(end)| end.asked_by != Some(id));
            }
            Outcome::Unknown => self.locks.extend_unknown(lock, owner),
        }
        Ok(())
    }

    /// What is told of a grant beside operations.
    pub(super) fn remark(&mut self, entry: &Entry<'_>, process: u32) {
        let (Some(acquire), Some(id)) = (entry.grant, entry.op) else {
            return;
        };
        let lock = self.keys.number(entry.key.as_ref().unwrap_or(&Value::Nil));
        let owner = self
            .owners
            .of(&super::told(entry, process, Outcome::Unknown));
        self.operations += 1;
        if entry.f == "lost" {
            self.unknown += 1;
            return self.locks.lost(lock, owner, acquire);
        }
        self.locks.renewed(lock, owner, id, acquire);
        self.lease_until(lock, owner, acquire, entry.validity);
    }

    /// Lets leases end whose validity is over at a time.
    pub(super) fn let_leases_end(&mut self, time: u64) {
        while let Some(End {
            lock,
            owner,
            acquire,
            asked_by,
            ..
        }) = self.leases.next(time)
        {
            match asked_by {
                None => self.locks.validity_over(lock, owner, acquire),
                Some(id) => self.locks.asked_over(lock, owner, id, acquire),
            }
        }
    }
}
