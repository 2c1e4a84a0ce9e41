//! One lock judged event by event: the algorithm behind the closed forms of owner-aware, fenced and lease mutexes.
//!
//! A grant is held for certain from the return of its acquire to the invocation of its release: these are the times that
//! every order of the calls agrees on, and where no two of them overlap, an order is made by letting each acquire take
//! effect just before it returns and each release just after it was invoked. What is left is unknown calls:
//!
//! - An unknown acquire did nothing, unless its owner then releases what nothing else acquired. Then it was held at some
//!   instant of that release, which must not lie within a certain time of another grant.
//! - An unknown release took effect at its invocation, unless its owner then releases for certain. Until that is known,
//!   a grant that it may have ended is *tentative*: others may be granted the lock, and the first that is, is remembered as
//!   the conflict which makes a later certain release a violation.
//! - An unknown release that nothing has used may also end a later grant of its owner, even before its acquire returns.
//!   Such a grant needs one instant of its acquire that no certain time of another covers.
//!
//! Of two tentative grants the later one may have been there just before the other's acquire returned; it is taken to be so, and
//! only if it turns out to have lasted, or a refusal comes to depend on it, is the lock unclear.
//!
//! Of several unknown calls the oldest is used first, which leaves most to later ones. Where an unknown release and an
//! unknown acquire could together interrupt a hold, and in a few shapes as rare, the lock is unclear: a search decides.

use super::found::{Found, Reason, State, Unclear};
use super::slot::{Hold, Pending, Request, Slot};
use crate::linearizability::NEVER;
use crate::names::NONE;

/// What a lock promises beyond mutual exclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: each grant is ended by its owner's release alone.
    OwnerAware,
    /// Tokens rise from grant to grant.
    Fenced,
    /// A grant ends by itself once its validity is over, and an unknown release ends no later grant. Of streams: where the
    /// whole history is known, each grant is an owner of an owner-aware mutex.
    Lease,
}

/// A failed try-lock that only a grant yet to come can explain.
#[derive(Debug)]
pub(super) struct Waiting {
    pub id: u64,
    pub invoked: u32,
    pub returned: u32,
    /// The acquires, in flight or unknown, that could have held the lock then.
    pub possible: u32,
}

/// What is remembered of one lock.
#[derive(Debug)]
pub(super) struct Lock {
    pub kind: Kind,
    slot_of: Vec<u32>,
    pub slots: Vec<Slot>,
    /// The slot whose hold nothing contradicts, or [`NONE`]: it is held for certain if nothing can have ended it.
    pub current: u32,
    /// Where the latest hold began for certain.
    pub last_start: u32,
    /// The highest token, the acquire that got it, and where that returned.
    pub highest: Option<(u64, u64, u32)>,
    /// Until where the latest hold that ended can have lasted, and the release that ended it.
    pub last_end: u32,
    pub last_release: Option<u64>,
    /// Where the latest release returned, whatever it ended.
    pub latest_release: u32,
    pub pending_acquires: u32,
    pub unknown_acquires: u32,
    pub waiting: Option<Waiting>,
    /// Whether a refusal needs the latest hold to have begun well before its acquire returned.
    pub reaches_back: bool,
    /// Whether a hold may have ended before another began, or begun after that ended, and no lasting one came later.
    pub undecided: bool,
    /// Whether unknown calls are known to have taken effect.
    pub spent: bool,
    pub state: State,
    /// The time of the event that is looked at, where times count.
    pub now: u64,
    /// When a hold began last, or was to.
    pub started_at: u64,
    /// When the second of two holds began that make the violation.
    pub violated_at: u64,
}

impl Lock {
    pub(super) fn new(kind: Kind) -> Lock {
        Lock {
            kind,
            slot_of: Vec::new(),
            slots: Vec::new(),
            current: NONE,
            last_start: 0,
            highest: None,
            last_end: 0,
            last_release: None,
            latest_release: 0,
            pending_acquires: 0,
            unknown_acquires: 0,
            waiting: None,
            reaches_back: false,
            undecided: false,
            spent: false,
            state: State::Open,
            now: 0,
            started_at: 0,
            violated_at: 0,
        }
    }

    /// The slot of an owner; owners are to be numbered densely.
    pub(super) fn slot(&mut self, owner: u32) -> usize {
        let owner = owner as usize;
        if owner >= self.slot_of.len() {
            self.slot_of.resize(owner + 1, NONE);
        }
        if self.slot_of[owner] == NONE {
            self.slot_of[owner] = self.slots.len() as u32;
            self.slots.push(Slot::default());
        }
        self.slot_of[owner] as usize
    }

    pub(super) fn unclear(&mut self, why: Unclear) {
        if matches!(self.state, State::Open) {
            self.state = State::Unclear(why);
        }
    }

    pub(super) fn violated(&mut self, position: u32, reason: Reason, mut calls: Vec<u64>) {
        calls.sort_unstable();
        calls.dedup();
        if matches!(self.state, State::Open) {
            self.violated_at = self.now;
            self.state = State::Violated(Box::new(Found {
                calls,
                position,
                reason,
            }));
        }
    }

    /// The hold that is certain to be there now, and whose it is.
    pub(super) fn open(&self) -> Option<(&Slot, &Hold)> {
        let slot = self.slots.get(self.current as usize)?;
        let hold = slot.hold.as_ref()?;
        (hold.end_from == NEVER).then_some((slot, hold))
    }

    /// Whether a release is not of the hold that is remembered: one of a lease is of its owner's latest grant, and that is
    /// one that an unknown acquire may have made.
    pub(super) fn releases_later_grant(&self, at: usize) -> bool {
        self.kind == Kind::Lease && self.slots[at].latest_unknown
    }

    pub(super) fn invoke(&mut self, owner: u32, request: Request, id: u64, position: u32) {
        let at = self.slot(owner);
        let later = self.releases_later_grant(at);
        let slot = &mut self.slots[at];
        if slot.pending.is_some() {
            return self.unclear(Unclear::OwnerOverlaps);
        }
        let stale = slot.releases > 0 && self.kind != Kind::Lease;
        let mut end_from = if stale { 0 } else { NEVER };
        let mut of_hold = false;
        match (request, &mut slot.hold) {
            (Request::Acquire, _) => self.pending_acquires += 1,
            (_, Some(hold)) if !later => {
                of_hold = true;
                end_from = hold.end_from;
                hold.end_from = hold.end_from.min(position);
            }
            _ => {}
        }
        slot.pending = Some(Pending {
            request,
            id,
            invoked: position,
            end_from,
            asked_from: NEVER,
            expired: 0,
            of_hold,
        });
    }

    /// Takes what is in flight for an owner.
    pub(super) fn take(&mut self, owner: u32, request: Request) -> Option<(usize, Pending)> {
        let at = self.slot(owner);
        let pending = self.slots[at].pending.take();
        let Some(pending) = pending.filter(|pending| pending.request == request) else {
            self.unclear(Unclear::NotInvoked);
            return None;
        };
        if request == Request::Acquire {
            self.pending_acquires -= 1;
        }
        Some((at, pending))
    }

    /// Nobody learned what came of a request.
    pub(super) fn unknown(&mut self, owner: u32, request: Request) {
        let Some((at, call)) = self.take(owner, request) else {
            return;
        };
        let slot = &mut self.slots[at];
        match request {
            Request::Acquire => {
                slot.acquires += 1;
                slot.latest_unknown = true;
                if self.kind == Kind::Lease {
                    slot.begin_lease();
                }
                self.unknown_acquires += 1;
            }
            Request::Release => {
                slot.releases += 1;
                if let Some(hold) = slot.hold.as_mut().filter(|_| call.of_hold) {
                    hold.given_up = Some((call.invoked, self.now));
                }
            }
            Request::Extend => self.lasts(at, &call, call.end_from.min(call.asked_from)),
        }
    }

    /// A request was refused, and that says nothing.
    pub(super) fn refused(&mut self, owner: u32, request: Request) {
        let Some((at, call)) = self.take(owner, request) else {
            return;
        };
        if request == Request::Acquire {
            return self.acquire_failed(call.invoked);
        }
        self.lasts(at, &call, call.end_from);
    }

    /// What a request is of did not end by it: it lasts until some position at least.
    fn lasts(&mut self, at: usize, call: &Pending, end_from: u32) {
        let Some(hold) = self.slots[at].hold.as_mut().filter(|_| call.of_hold) else {
            return;
        };
        hold.end_from = end_from;
        let id = hold.id;
        if let Some(conflict) = &hold.conflict
            && conflict.position < end_from
        {
            if conflict.undecided {
                return self.unclear(Unclear::BothTentative);
            }
            let (position, with, time) = (conflict.position, conflict.with, conflict.time);
            let mut calls = conflict.calls.clone();
            calls.push(id);
            calls.extend(&self.slots[at].spent_releases);
            self.violated(position, Reason::HeldTwice(id, with), calls);
            self.violated_at = time;
        }
    }

    /// From here on an owner's grant may have ended by itself: its validity is over, or an unknown release was made that
    /// overlaps the owner's other requests.
    pub(super) fn may_end(&mut self, owner: u32, position: u32) {
        let at = self.slot(owner);
        let slot = &mut self.slots[at];
        if let Some(pending) = &mut slot.pending {
            if pending.request == Request::Acquire && slot.hold.is_some() {
                return self.unclear(Unclear::OwnerOverlaps);
            }
            pending.end_from = pending.end_from.min(position);
            pending.expired += 1;
        }
        slot.releases += 1;
        if let Some(hold) = &mut slot.hold {
            hold.end_from = hold.end_from.min(position);
        }
    }

    /// From here on the grant of an acquire may have ended by itself, if that is its owner's latest or is still held.
    pub(super) fn validity_over(&mut self, owner: u32, acquire: u64, position: u32) {
        let at = self.slot(owner);
        let slot = &mut self.slots[at];
        if let Some(pending) = &mut slot.pending
            && pending.id == acquire
        {
            pending.end_from = pending.end_from.min(position);
            pending.expired += 1;
        } else if let Some(hold) = &mut slot.hold
            && hold.id == acquire
        {
            hold.end_from = hold.end_from.min(position);
            slot.releases += 1;
            if let Some(pending) = &mut slot.pending
                && pending.request != Request::Acquire
            {
                pending.end_from = pending.end_from.min(position);
            }
        }
    }
}
