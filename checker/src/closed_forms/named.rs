//! Leases whose requests name their grants, as those of our own histories do: what gives one up, and what shows that it lasted.
//!
//! A release of such a grant proves nothing: its client gave up what may have been over. An extension that succeeds proves that
//! the lease had not ended, and a renewal in the background that it is there again.

use super::found::{Reason, State, Unclear};
use super::lock::Lock;
use super::slot::{Hold, Pending, Request};
use crate::linearizability::NEVER;
use crate::names::NONE;

impl Lock {
    /// A release or an extension of the grant of an acquire.
    pub(super) fn invoke_of(
        &mut self,
        owner: u32,
        request: Request,
        id: u64,
        acquire: u64,
        position: u32,
    ) {
        let at = self.slot(owner);
        let slot = &mut self.slots[at];
        if slot.pending.is_some() {
            return self.unclear(Unclear::OwnerOverlaps);
        }
        let (mut of_hold, mut end_from) = (false, NEVER);
        if let Some(hold) = slot.hold.as_mut().filter(|hold| hold.id == acquire) {
            of_hold = hold.given_up.is_none();
            end_from = hold.end_from;
            if of_hold {
                hold.end_from = hold.end_from.min(position);
            }
        } else if request == Request::Extend && slot.hold.is_some() {
            return self.unclear(Unclear::OwnerOverlaps);
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
    /// The grant of an acquire may end now: if another was granted the lock at the same instant, it was free by then.
    pub(super) fn touches(&mut self, acquire: u64) {
        if self.now == 0 || self.now != self.started_at {
            return;
        }
        if let State::Violated(found) = &self.state
            && !matches!(found.reason, Reason::HeldTwice(_, second) if second == acquire)
            && self.violated_at == self.now
        {
            self.state = State::Unclear(Unclear::SameInstant);
        }
        let holds = self.slots.iter_mut().filter_map(|slot| slot.hold.as_mut());
        for conflict in holds.filter_map(|hold| hold.conflict.as_mut()) {
            conflict.undecided |= conflict.time == self.now && conflict.with == acquire;
        }
    }

    /// The hold of an owner, if it is that of an acquire.
    fn hold_of(&mut self, owner: u32, acquire: u64) -> Option<(usize, &mut Hold)> {
        let at = self.slot(owner);
        let hold = self.slots[at].hold.as_mut();
        hold.filter(|hold| hold.id == acquire)
            .map(|hold| (at, hold))
    }

    /// From here on the grant of an acquire may have ended, and no extension that is asked for later prolongs it.
    pub(super) fn lost(&mut self, owner: u32, acquire: u64, position: u32) {
        let now = self.now;
        let Some((at, hold)) = self.hold_of(owner, acquire) else {
            return;
        };
        hold.end_from = hold.end_from.min(position);
        hold.given_up.get_or_insert((position, now));
        let slot = &mut self.slots[at];
        slot.releases += 1;
        if let Some(pending) = &mut slot.pending
            && pending.request != Request::Acquire
        {
            pending.end_from = pending.end_from.min(position);
        }
    }

    /// From here on the grant of an acquire may have ended, unless the extension with this id fails.
    pub(super) fn asked_over(&mut self, owner: u32, acquire: u64, id: u64, position: u32) {
        let Some((at, hold)) = self.hold_of(owner, acquire) else {
            return;
        };
        hold.end_from = hold.end_from.min(position);
        if let Some(pending) = &mut self.slots[at].pending {
            match pending.request {
                Request::Acquire => {}
                _ if pending.id == id => pending.asked_from = position,
                _ => pending.end_from = pending.end_from.min(position),
            }
        }
    }

    /// An extension succeeded: the lease had not ended. `over` is the end of the new validity, if that is over.
    pub(super) fn extended(&mut self, owner: u32, over: Option<u64>, position: u32) {
        let Some((at, call)) = self.take(owner, Request::Extend) else {
            return;
        };
        let Some(hold) = self.slots[at].hold.as_mut().filter(|_| call.of_hold) else {
            return;
        };
        let (lost_from, lost_at) = hold.given_up.unwrap_or((NEVER, u64::MAX));
        let over_from = if over.is_some() { position } else { NEVER };
        hold.end_from = lost_from.min(over_from);
        let until = lost_at.min(over.unwrap_or(u64::MAX));
        let Some(conflict) = &hold.conflict else {
            return;
        };
        if conflict.position >= lost_from || conflict.time >= until {
            hold.end_from = hold.end_from.min(conflict.position);
            return;
        }
        if conflict.undecided {
            return self.unclear(Unclear::BothTentative);
        }
        let time = conflict.time;
        let mut calls = conflict.calls.clone();
        calls.push(call.id);
        let reason = Reason::ExtendedLate(conflict.with, call.id);
        self.violated(position, reason, calls);
        self.violated_at = time;
    }

    /// A grant was renewed in the background: whether or not its lease had ended, it is held again.
    pub(super) fn renewed(&mut self, owner: u32, id: u64, acquire: u64, position: u32) {
        let now = self.now;
        let Some((at, hold)) = self.hold_of(owner, acquire) else {
            let at = self.slot(owner);
            if self.slots[at].hold.is_some() {
                self.unclear(Unclear::OwnerOverlaps);
            }
            return;
        };
        let ended = hold.given_up.is_some();
        let (end_from, slot) = (hold.end_from, &self.slots[at]);
        let is_given_up = |call: &Pending| call.request == Request::Release && call.of_hold;
        if ended || end_from == NEVER || slot.pending.as_ref().is_some_and(is_given_up) {
            return;
        }
        self.begin_again(at, id, acquire, (position, now));
    }

    fn begin_again(&mut self, at: usize, id: u64, acquire: u64, (start, since): (u32, u64)) {
        let mut hold = Hold {
            id: acquire,
            start,
            since,
            end_from: NEVER,
            given_up: None,
            conflict: None,
        };
        let call = Pending {
            request: Request::Extend,
            id,
            invoked: start,
            end_from: NEVER,
            asked_from: NEVER,
            expired: 0,
            of_hold: true,
        };
        if self.current == at as u32 {
            self.current = NONE;
        }
        self.started_at = since;
        if self.meets_open(at, &call, None, start, &mut hold)
            || self.meets_tentative(at, &call, start, &mut hold)
        {
            return;
        }
        self.current = at as u32;
        self.undecided = false;
        self.last_start = start;
        let slot = &mut self.slots[at];
        if let Some(pending) = &mut slot.pending {
            pending.end_from = NEVER;
        }
        slot.hold = Some(hold);
    }
}
