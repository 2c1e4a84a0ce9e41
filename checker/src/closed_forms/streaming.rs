//! Lock histories judged event by event, with memory for what is in flight and for who holds what, not for what is past.

use super::found::{Found, State, Unclear};
use super::lock::{Kind, Lock};
use super::slot::Request;

/// The locks of a history, judged as its events come.
///
/// Locks and owners are numbered densely from 0, as the histories' names are met; calls have ids of the caller's choice.
/// Each event takes the next position, from 0 on. An owner makes one call at a time; a release is of its owner's latest
/// grant. A violation that depends on what becomes of a request in flight is found once that is known, which may be later
/// than a closed form finds it in the whole history.
///
/// ```
/// use checker::closed_forms::{Kind, streaming::{Finding, Locks}};
///
/// let mut locks = Locks::new(Kind::OwnerAware);
/// for owner in [0, 1] {
///     locks.invoke_acquire(0, owner, u64::from(owner));
///     locks.acquired(0, owner, None);
/// }
/// let Finding::Violated(found) = locks.finding(0) else {
///     unreachable!()
/// };
/// assert_eq!((&found.calls[..], found.position), (&[0, 1][..], 3));
/// ```
pub struct Locks {
    kind: Kind,
    locks: Vec<Lock>,
    position: u32,
    /// The time of the next event, where times count.
    now: u64,
}

/// What is found of one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding<'a> {
    /// All events so far are linearizable.
    Linearizable,
    /// They are not: the first violation.
    Violated(&'a Found),
    /// The closed form does not cover what came.
    Unclear(Unclear),
}

impl Locks {
    /// Locks of one kind, all free.
    pub fn new(kind: Kind) -> Locks {
        Locks {
            kind,
            locks: Vec::new(),
            position: 0,
            now: 0,
        }
    }

    /// The lock that an event is about, if its finding is still open, and the event's position.
    fn open(&mut self, lock: u32) -> Option<(&mut Lock, u32)> {
        let (lock, position) = self.next(lock);
        matches!(lock.state, State::Open).then_some((lock, position))
    }

    fn next(&mut self, lock: u32) -> (&mut Lock, u32) {
        let position = self.position;
        self.position += 1;
        let at = lock as usize;
        if at >= self.locks.len() {
            let kind = self.kind;
            self.locks.resize_with(at + 1, || Lock::new(kind));
        }
        let lock = &mut self.locks[at];
        lock.now = self.now;
        (lock, position)
    }

    /// The next events are of this time. It counts only for leases that are named.
    pub fn at(&mut self, time: u64) {
        self.now = time;
    }

    /// An owner asks for a lock.
    pub fn invoke_acquire(&mut self, lock: u32, owner: u32, id: u64) {
        if let Some((lock, position)) = self.open(lock) {
            lock.invoke(owner, Request::Acquire, id, position);
        }
    }

    /// The owner got it; a fenced one with a token.
    pub fn acquired(&mut self, lock: u32, owner: u32, token: Option<u64>) {
        if let Some((lock, position)) = self.open(lock) {
            lock.acquired(owner, token, position);
        }
    }

    /// The owner got a lease whose validity, which began to be over at this time, was over by now.
    pub fn acquired_late(&mut self, lock: u32, owner: u32, validity: u64) {
        if let Some((lock, position)) = self.open(lock) {
            lock.acquired_late(owner, validity, position);
        }
    }

    /// The owner did not get it, and that says nothing.
    pub fn acquire_failed(&mut self, lock: u32, owner: u32) {
        if let Some((lock, _)) = self.open(lock) {
            lock.refused(owner, Request::Acquire);
        }
    }

    /// The owner did not get it because somebody held it, and that counts as evidence.
    pub fn busy(&mut self, lock: u32, owner: u32) {
        if let Some((lock, position)) = self.open(lock) {
            lock.found_busy(owner, position);
        }
    }

    /// Nobody learned whether the owner got it.
    pub fn acquire_unknown(&mut self, lock: u32, owner: u32) {
        if let Some((lock, _)) = self.open(lock) {
            lock.unknown(owner, Request::Acquire);
        }
    }

    /// An owner gives a lock back.
    pub fn invoke_release(&mut self, lock: u32, owner: u32, id: u64) {
        if let Some((lock, position)) = self.open(lock) {
            lock.invoke(owner, Request::Release, id, position);
        }
    }

    /// It gave it back.
    pub fn released(&mut self, lock: u32, owner: u32) {
        if let Some((lock, position)) = self.open(lock) {
            lock.released(owner, position);
        }
    }

    /// It did not give it back.
    pub fn release_failed(&mut self, lock: u32, owner: u32) {
        if let Some((lock, _)) = self.open(lock) {
            lock.refused(owner, Request::Release);
        }
    }

    /// Nobody learned whether it gave it back.
    pub fn release_unknown(&mut self, lock: u32, owner: u32) {
        if let Some((lock, _)) = self.open(lock) {
            lock.unknown(owner, Request::Release);
        }
    }

    /// The validity of the grant that an acquire got, or is about to get, is over. Nothing for a grant that is no longer its
    /// owner's latest.
    pub fn validity_over(&mut self, lock: u32, owner: u32, acquire: u64) {
        if let Some((lock, position)) = self.open(lock) {
            lock.validity_over(owner, acquire, position);
        }
    }

    /// An owner gives back the grant of this acquire, which is named.
    pub fn invoke_release_of(&mut self, lock: u32, owner: u32, id: u64, acquire: u64) {
        if let Some((lock, position)) = self.ends(lock, acquire) {
            lock.invoke_of(owner, Request::Release, id, acquire, position);
        }
    }

    /// From here on the grant of this acquire may have ended: its owner learned that it was lost, or is dead.
    pub fn lost(&mut self, lock: u32, owner: u32, acquire: u64) {
        if let Some((lock, position)) = self.ends(lock, acquire) {
            match lock.kind {
                Kind::Lease => lock.lost(owner, acquire, position),
                Kind::OwnerAware | Kind::Fenced => lock.may_end(owner, position),
            }
        }
    }

    /// An owner asks for more time on the grant of this acquire. What comes of it may be less, and until that is known the grant
    /// may have ended.
    pub fn invoke_extend_of(&mut self, lock: u32, owner: u32, id: u64, acquire: u64) {
        if let Some((lock, position)) = self.ends(lock, acquire) {
            lock.invoke_of(owner, Request::Extend, id, acquire, position);
        }
    }

    /// It got more time; if that was over before it arrived, until when.
    pub fn extended(&mut self, lock: u32, owner: u32, over: Option<u64>) {
        if let Some((lock, position)) = self.open(lock) {
            lock.extended(owner, over, position);
        }
    }

    /// It got no more time.
    pub fn extend_failed(&mut self, lock: u32, owner: u32) {
        if let Some((lock, _)) = self.open(lock) {
            lock.refused(owner, Request::Extend);
        }
    }

    /// Nobody learned whether it got more time.
    pub fn extend_unknown(&mut self, lock: u32, owner: u32) {
        if let Some((lock, _)) = self.open(lock) {
            lock.unknown(owner, Request::Extend);
        }
    }

    /// The time is over for which the extension with this id was asked, which did not fail so far: it may have replaced what was
    /// left.
    pub fn asked_over(&mut self, lock: u32, owner: u32, id: u64, acquire: u64) {
        if let Some((lock, position)) = self.open(lock) {
            lock.asked_over(owner, acquire, id, position);
        }
    }

    /// The grant of this acquire was renewed in the background, by the operation with this id.
    pub fn renewed(&mut self, lock: u32, owner: u32, id: u64, acquire: u64) {
        if let Some((lock, position)) = self.open(lock) {
            lock.renewed(owner, id, acquire, position);
        }
    }

    /// The lock of which the grant of an acquire may end, if its finding is still open then.
    fn ends(&mut self, lock: u32, acquire: u64) -> Option<(&mut Lock, u32)> {
        let (lock, position) = self.next(lock);
        lock.touches(acquire);
        matches!(lock.state, State::Open).then_some((lock, position))
    }

    /// What is found of a lock so far.
    pub fn finding(&self, lock: u32) -> Finding<'_> {
        match self.locks.get(lock as usize).map(|lock| &lock.state) {
            None | Some(State::Open) => Finding::Linearizable,
            Some(State::Violated(found)) => Finding::Violated(found),
            Some(State::Unclear(why)) => Finding::Unclear(*why),
        }
    }

    /// How many owners are remembered, of all locks: all that memory depends on.
    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.locks.iter().map(|lock| lock.slots.len()).sum()
    }

    /// How many locks were met.
    pub fn len(&self) -> usize {
        self.locks.len()
    }

    /// Whether none was met.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }
}
