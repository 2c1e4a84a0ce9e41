//! Failed try-locks as evidence: somebody held the lock at some instant of the call.
//!
//! A hold can be stretched from its acquire's invocation to its release's return as far as the certain times of its
//! neighbours leave room, and two neighbours that both reach into the gap between them can fill it together. So a refusal
//! that meets no certain time is explained exactly if it began before the release of the hold before it returned, or ended
//! after the acquire of the hold after it was invoked. Which hold comes after is known when one begins for certain; until
//! then every acquire in flight, and every unknown one, may be it.

use super::found::{Reason, Unclear};
use super::lock::{Kind, Lock, Waiting};
use super::slot::{Pending, Request, Slot};
use crate::names::NONE;

impl Lock {
    /// An acquire that is in flight was refused as busy.
    pub(super) fn found_busy(&mut self, owner: u32, position: u32) {
        if let Some((_, call)) = self.take(owner, Request::Acquire) {
            self.acquire_failed(call.invoked);
            self.busy(call.id, call.invoked, position);
        }
    }

    /// An acquire was refused as busy.
    pub(super) fn busy(&mut self, id: u64, invoked: u32, position: u32) {
        if self.current != NONE || invoked < self.last_end || self.waiting.is_some() {
            return;
        }
        if matches!(self.highest, Some((u64::MAX, ..))) {
            // Whoever may yet be granted the lock, no token is left for it.
            return self.unclear(Unclear::RefusalUnclear);
        }
        self.waiting = Some(Waiting {
            id,
            invoked,
            returned: position,
            possible: self.pending_acquires + self.unknown_acquires,
        });
        self.give_up_waiting();
    }

    /// An acquire that was in flight held nothing.
    pub(super) fn acquire_failed(&mut self, invoked: u32) {
        if let Some(waiting) = &mut self.waiting
            && invoked < waiting.returned
        {
            waiting.possible -= 1;
            self.give_up_waiting();
        }
    }

    fn give_up_waiting(&mut self) {
        let Some(waiting) = self.waiting.take_if(|waiting| waiting.possible == 0) else {
            return;
        };
        if self.spent || self.undecided {
            return self.unclear(Unclear::RefusalUnclear);
        }
        let mut calls = vec![waiting.id];
        calls.extend(self.last_release);
        self.violated(waiting.returned, Reason::RefusedFree(waiting.id), calls);
    }

    /// A hold begins for certain: it explains the refusal that waits, or none will.
    pub(super) fn resolve_waiting(&mut self, call: &Pending, position: u32) {
        self.reaches_back = false;
        let Some(waiting) = self.waiting.take() else {
            return;
        };
        if call.invoked < waiting.returned {
            self.reaches_back = true;
            return;
        }
        let kind = self.kind;
        let could_pass = |slot: &Slot| {
            let asks = slot.pending.as_ref().map(|pending| pending.request);
            let acquires = slot.acquires > 0 || asks == Some(Request::Acquire);
            let releases = slot.releases > 0 || asks == Some(Request::Release);
            acquires && (releases || kind == Kind::Lease)
        };
        if self.spent || self.undecided || self.slots.iter().any(could_pass) {
            return self.unclear(Unclear::RefusalUnclear);
        }
        // Whoever held it during the refusal would have released it after that. If somebody may have, it is the last release
        // that shows that nobody was left to hold it.
        let mut calls = vec![waiting.id, call.id];
        let may_release = |slot: &Slot| {
            let asks = slot.pending.as_ref().map(|pending| pending.request);
            let releases = slot.releases > 0 || asks == Some(Request::Release);
            releases && (slot.hold.is_some() || slot.ever_released)
        };
        if self.latest_release > waiting.invoked || self.slots.iter().any(may_release) {
            calls.extend(self.last_release);
        }
        self.violated(position, Reason::RefusedFree(waiting.id), calls);
    }
}
