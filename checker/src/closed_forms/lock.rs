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
//! Of several unknown calls the oldest is used first, which leaves most to later ones. Where an unknown release and an
//! unknown acquire could together interrupt a hold, and in a few shapes as rare, the lock is unclear: a search decides.

use super::found::{Found, Reason, State, Unclear};
use super::slot::{Conflict, Hold, Pending, Request, Slot};
use crate::linearizability::NEVER;
use crate::names::NONE;

/// What a lock promises beyond mutual exclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: each grant is ended by its owner's release alone.
    OwnerAware,
    /// Tokens rise from grant to grant.
    Fenced,
    /// A grant ends by itself once its validity is over, and an unknown release ends no later grant.
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
    kind: Kind,
    slot_of: Vec<u32>,
    pub slots: Vec<Slot>,
    /// The slot whose hold nothing contradicts, or [`NONE`]: it is held for certain if nothing can have ended it.
    pub current: u32,
    /// Where the latest hold began for certain.
    last_start: u32,
    /// The highest token, the acquire that got it, and where that returned.
    highest: Option<(u64, u64, u32)>,
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
    pub state: State,
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
            state: State::Open,
        }
    }

    /// The slot of an owner; owners are to be numbered densely.
    fn slot(&mut self, owner: u32) -> usize {
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
            self.state = State::Violated(Box::new(Found {
                calls,
                position,
                reason,
            }));
        }
    }

    /// Adds the release before a grant whose token is that of an earlier one: without it that might be a reentry.
    pub(super) fn prove_new_hold(&mut self, released: Option<u64>) {
        if let State::Violated(found) = &mut self.state
            && let Reason::TokenFell { before, after } = found.reason
            && before.1 == after.1
        {
            found.calls.extend(released);
            found.calls.sort_unstable();
            found.calls.dedup();
        }
    }

    /// The hold that is certain to be there now, and whose it is.
    fn open(&self) -> Option<(&Slot, &Hold)> {
        let slot = self.slots.get(self.current as usize)?;
        let hold = slot.hold.as_ref()?;
        (hold.end_from == NEVER).then_some((slot, hold))
    }

    pub(super) fn invoke(&mut self, owner: u32, request: Request, id: u64, position: u32) {
        let at = self.slot(owner);
        let slot = &mut self.slots[at];
        if slot.pending.is_some() {
            return self.unclear(Unclear::OwnerOverlaps);
        }
        let mut end_from = if slot.releases > 0 { 0 } else { NEVER };
        match (request, &mut slot.hold) {
            (Request::Acquire, _) => self.pending_acquires += 1,
            (Request::Release, Some(hold)) => {
                end_from = hold.end_from;
                hold.end_from = hold.end_from.min(position);
            }
            (Request::Release, None) => {}
        }
        slot.pending = Some(Pending {
            request,
            id,
            invoked: position,
            end_from,
            expired: 0,
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

    /// An acquire was granted.
    pub(super) fn acquired(&mut self, owner: u32, token: Option<u64>, position: u32) {
        let Some((at, call)) = self.take(owner, Request::Acquire) else {
            return;
        };
        if self.kind == Kind::Fenced && token.is_none() {
            return self.unclear(Unclear::TokenUnknown);
        }
        if self.token_fell(&call, token, position) {
            return;
        }
        let Some(end_from) = self.end_former(at, &call, position) else {
            return;
        };
        let mut hold = Hold {
            id: call.id,
            start: position,
            end_from,
            conflict: None,
        };
        // A hold that may end before its acquire returns needs one instant from here on.
        let from = if end_from < position {
            call.invoked.max(end_from)
        } else {
            position
        };
        if self.meets_open(at, &call, token, from, &mut hold)
            || self.meets_tentative(at, &call, from, position)
        {
            return;
        }
        self.resolve_waiting(&call, position);
        if let (Kind::Fenced, Some(token)) = (self.kind, token) {
            self.check_token(at, &call, token, from < position, position);
        }
        if hold.conflict.is_none() {
            self.current = at as u32;
        }
        self.last_start = position;
        self.slots[at].hold = Some(hold);
    }

    /// Ends the hold that an owner has when it acquires anew, and says from where on the new one may end.
    fn end_former(&mut self, at: usize, call: &Pending, position: u32) -> Option<u32> {
        let slot = &mut self.slots[at];
        let Some(former) = slot.hold.take() else {
            if self.kind == Kind::Lease {
                slot.releases = call.expired;
            }
            return Some(call.end_from);
        };
        if former.end_from == NEVER {
            let mut calls = vec![former.id, call.id];
            calls.extend(&slot.spent_releases);
            let reason = Reason::AcquiredAgain(former.id, call.id);
            self.violated(position, reason, calls);
            return None;
        }
        if self.current == at as u32 {
            self.current = NONE;
        }
        if self.kind == Kind::Lease {
            slot.releases = call.expired;
            return Some(call.end_from);
        }
        slot.releases -= 1;
        slot.spent_releases.extend([former.id, call.id]);
        Some(if slot.releases > 0 { 0 } else { NEVER })
    }

    /// Holds a new grant against the one that is certain to be there; true if that is a violation.
    fn meets_open(
        &mut self,
        at: usize,
        call: &Pending,
        token: Option<u64>,
        from: u32,
        hold: &mut Hold,
    ) -> bool {
        let Some((other, open)) = self.open() else {
            return false;
        };
        let mut calls = vec![open.id];
        let rises = |(highest, ..): (u64, u64, u32)| token.is_none_or(|token| token > highest);
        // With the lower token it cannot be the later anyway, whatever may have ended the other.
        let rising = self.highest.is_none_or(rises);
        if rising {
            calls.extend(&other.spent_releases);
        }
        if from > open.start {
            calls.push(call.id);
            let spent = &self.slots[at].spent_releases;
            if !rising && !spent.is_empty() {
                self.unclear(Unclear::OrderUnknown);
                return true;
            }
            // A token that rises shows which is the later as well as its owner's lasting hold does.
            if call.invoked < open.start && self.kind != Kind::Fenced {
                calls.extend(spent);
            }
            let reason = Reason::HeldTwice(open.id, call.id);
            self.violated(hold.start, reason, calls);
            return true;
        }
        if self.reaches_back {
            self.unclear(Unclear::RefusalUnclear);
            return true;
        }
        hold.conflict = Some(Box::new(Conflict {
            position: hold.start,
            with: open.id,
            calls,
        }));
        false
    }

    /// Holds a new grant against a tentative one: that must have ended. True if it is unclear which of them gives way.
    fn meets_tentative(&mut self, at: usize, call: &Pending, from: u32, position: u32) -> bool {
        if self.current == NONE || self.open().is_some() {
            return false;
        }
        let mut calls = vec![call.id];
        let spent = self.slots[at].spent_releases.clone();
        let Some(other) = self.slots[self.current as usize].hold.as_mut() else {
            return false;
        };
        if from < other.start {
            self.unclear(Unclear::BothTentative);
            return true;
        }
        if call.invoked < other.start {
            calls.extend(spent);
        }
        other.conflict = Some(Box::new(Conflict {
            position,
            with: call.id,
            calls,
        }));
        self.current = NONE;
        false
    }

    /// Whether a grant asked for after another was made has no higher token: whoever held what, these two have no order.
    fn token_fell(&mut self, call: &Pending, token: Option<u64>, position: u32) -> bool {
        let fell = match (self.kind, token, self.highest) {
            (Kind::Fenced, Some(token), Some((highest, id, start))) => {
                (token <= highest && start < call.invoked).then_some((token, highest, id))
            }
            _ => None,
        };
        if let Some((token, highest, id)) = fell {
            let reason = Reason::TokenFell {
                before: (id, highest),
                after: (call.id, token),
            };
            self.violated(position, reason, vec![id, call.id]);
        }
        fell.is_some()
    }

    /// Holds a new grant's token against the highest, whose acquire may overlap the new one's.
    fn check_token(&mut self, at: usize, call: &Pending, token: u64, point: bool, position: u32) {
        if point && self.last_start > call.invoked {
            return self.unclear(Unclear::OrderUnknown);
        }
        if let Some((highest, id, _)) = self.highest
            && token <= highest
        {
            // Only that the new grant lasts shows that it is the later.
            if !self.slots[at].spent_releases.is_empty() {
                return self.unclear(Unclear::OrderUnknown);
            }
            let reason = Reason::TokenFell {
                before: (id, highest),
                after: (call.id, token),
            };
            return self.violated(position, reason, vec![id, call.id]);
        }
        self.highest = Some((token, call.id, position));
    }

    /// A release succeeded.
    pub(super) fn released(&mut self, owner: u32, position: u32) {
        let Some((at, call)) = self.take(owner, Request::Release) else {
            return;
        };
        let slot = &mut self.slots[at];
        match slot.hold.take() {
            Some(hold) => self.end_hold(at, &hold, &call, position),
            None if slot.acquires > 0 => self.end_unknown(at, &call, position),
            None => {
                let mut calls = vec![call.id];
                calls.extend(slot.last_release);
                calls.extend(&slot.spent_acquires);
                self.violated(position, Reason::ReleasedUnheld(call.id), calls);
            }
        }
        self.slots[at].last_release = Some(call.id);
        self.latest_release = position;
    }

    /// Ends a hold that was acquired for certain.
    fn end_hold(&mut self, at: usize, hold: &Hold, call: &Pending, position: u32) {
        let slot = &self.slots[at];
        if slot.acquires > 0 && (slot.releases > 0 || self.kind == Kind::Lease) {
            return self.unclear(Unclear::Interrupted);
        }
        if let Some(conflict) = &hold.conflict
            && conflict.position < call.invoked
        {
            let (mut with, mut calls) = (conflict.with, slot.lasting(hold, call, conflict));
            if let Some((other, open)) = self.open()
                && open.start < call.invoked
                && other.spent_releases.len() + 2 <= calls.len()
            {
                // It held the lock during all of the release.
                with = open.id;
                calls = vec![open.id, call.id];
                calls.extend(&other.spent_releases);
            }
            return self.violated(position, Reason::ReleasedLate(with, call.id), calls);
        }
        if self.current == at as u32 {
            self.current = NONE;
            self.last_end = position;
            self.last_release = Some(call.id);
        }
    }

    /// Ends a hold that an unknown acquire must have begun: at some instant of the release it was there.
    fn end_unknown(&mut self, at: usize, call: &Pending, position: u32) {
        let slot = &mut self.slots[at];
        slot.acquires -= 1;
        self.unknown_acquires -= 1;
        slot.spent_acquires.extend(slot.last_release);
        slot.spent_acquires.push(call.id);
        if let Some((other, open)) = self.open()
            && open.start < call.invoked
        {
            let mut calls = vec![open.id, call.id];
            calls.extend(&other.spent_releases);
            let reason = Reason::ReleasedLate(open.id, call.id);
            return self.violated(position, reason, calls);
        }
        if self.kind == Kind::Fenced {
            return self.unclear(Unclear::OrderUnknown);
        }
        if self.waiting.is_some() || self.reaches_back {
            return self.unclear(Unclear::RefusalUnclear);
        }
        let certain = self.open().is_some();
        if let Some(slot) = self.slots.get_mut(self.current as usize)
            && let Some(other) = &mut slot.hold
            && !certain
        {
            if other.start > call.invoked {
                return;
            }
            other.conflict = Some(Box::new(Conflict {
                position,
                with: call.id,
                calls: vec![call.id],
            }));
            self.current = NONE;
        }
        if !certain {
            self.last_end = position;
            self.last_release = Some(call.id);
        }
    }

    /// Nobody learned what came of a request.
    pub(super) fn unknown(&mut self, owner: u32, request: Request) {
        let Some((at, _)) = self.take(owner, request) else {
            return;
        };
        let slot = &mut self.slots[at];
        match request {
            Request::Acquire => {
                slot.acquires += 1;
                self.unknown_acquires += 1;
            }
            Request::Release => slot.releases += 1,
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
        let Some(hold) = &mut self.slots[at].hold else {
            return;
        };
        hold.end_from = call.end_from;
        let (id, end_from) = (hold.id, hold.end_from);
        if let Some(conflict) = &hold.conflict
            && conflict.position < end_from
        {
            let (position, with) = (conflict.position, conflict.with);
            let mut calls = conflict.calls.clone();
            calls.push(id);
            calls.extend(&self.slots[at].spent_releases);
            self.violated(position, Reason::HeldTwice(id, with), calls);
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

    /// As [`Lock::may_end`], for the grant of a certain acquire, if that is its owner's latest.
    pub(super) fn validity_over(&mut self, owner: u32, acquire: u64, position: u32) {
        let at = self.slot(owner);
        let slot = &self.slots[at];
        let asked = slot
            .pending
            .as_ref()
            .filter(|pending| pending.request == Request::Acquire);
        let latest = match asked {
            Some(pending) => Some(pending.id),
            None => slot.hold.as_ref().map(|hold| hold.id),
        };
        if latest == Some(acquire) {
            self.may_end(owner, position);
        }
    }
}
