//! A release: what must have been held until it was made.

use super::found::{Reason, Unclear};
use super::lock::{Kind, Lock};
use super::slot::{Conflict, Hold, Pending, Request};
use crate::names::NONE;

impl Lock {
    /// A release succeeded.
    pub(super) fn released(&mut self, owner: u32, position: u32) {
        let Some((at, call)) = self.take(owner, Request::Release) else {
            return;
        };
        let lease = self.kind == Kind::Lease;
        if self.slots[at].hold.is_some() && self.releases_later_grant(at) {
            return self.unclear(Unclear::Interrupted);
        }
        let slot = &mut self.slots[at];
        match slot.hold.take() {
            Some(hold) => self.end_hold(at, &hold, &call, position),
            None if slot.latest_unknown || (slot.acquires > 0 && !lease) => {
                self.end_unknown(at, &call, position)
            }
            None => {
                let mut calls = vec![call.id];
                calls.extend(slot.last_release);
                calls.extend(&slot.spent_acquires);
                self.violated(position, Reason::ReleasedUnheld(call.id), calls);
            }
        }
        let slot = &mut self.slots[at];
        (slot.last_release, slot.ever_released) = (Some(call.id), true);
        self.latest_release = position;
    }

    /// Ends a hold that was acquired for certain.
    fn end_hold(&mut self, at: usize, hold: &Hold, call: &Pending, position: u32) {
        let slot = &self.slots[at];
        let interrupts = slot.acquires > 0 && self.kind != Kind::Lease;
        if interrupts && slot.releases > 0 {
            return self.unclear(Unclear::Interrupted);
        }
        if let Some(conflict) = &hold.conflict
            && conflict.position < call.invoked
        {
            if conflict.undecided {
                return self.unclear(Unclear::BothTentative);
            }
            let (mut with, mut calls) = (
                conflict.with,
                slot.lasting(hold, call, conflict, interrupts),
            );
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
        slot.latest_unknown = false;
        self.spent = true;
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
                time: self.now,
                with: call.id,
                calls: vec![call.id],
                undecided: false,
            }));
            self.current = NONE;
        }
        if !certain {
            self.last_end = position;
            self.last_release = Some(call.id);
        }
    }
}
