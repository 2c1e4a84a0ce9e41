//! A grant: what it proves of the holds before it.

use super::found::{Reason, State, Unclear};
use super::lock::{Kind, Lock};
use super::slot::{Conflict, Hold, Pending, Request};
use crate::linearizability::NEVER;
use crate::names::NONE;

impl Lock {
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

    /// An acquire was granted.
    pub(super) fn acquired(&mut self, owner: u32, token: Option<u64>, position: u32) {
        if let Some((at, call)) = self.take(owner, Request::Acquire) {
            self.granted(at, call, token, position);
        }
    }

    /// A lease was granted whose validity was over when its acquire returned.
    ///
    /// It needs an instant from the end of its validity on, and if the hold that is there now began before that, that hold
    /// has left none.
    pub(super) fn acquired_late(&mut self, owner: u32, validity: u64, position: u32) {
        let Some((at, mut call)) = self.take(owner, Request::Acquire) else {
            return;
        };
        let hold = self.slots.get(self.current as usize);
        let hold = hold.and_then(|slot| slot.hold.as_ref());
        let before = hold.filter(|hold| hold.since < validity);
        call.end_from = before.map_or(call.invoked, |hold| hold.start + 1);
        call.expired += 1;
        self.granted(at, call, None, position);
    }

    fn granted(&mut self, at: usize, call: Pending, token: Option<u64>, position: u32) {
        self.started_at = self.now;
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
            since: self.now,
            end_from,
            given_up: None,
            conflict: None,
        };
        // A hold that may end before its acquire returns needs one instant from here on.
        let from = if end_from < position {
            call.invoked.max(end_from)
        } else {
            position
        };
        if self.meets_open(at, &call, token, from, &mut hold)
            || self.meets_tentative(at, &call, from, &mut hold)
        {
            return;
        }
        self.resolve_waiting(&call, position);
        if let (Kind::Fenced, Some(token)) = (self.kind, token) {
            self.check_token(at, &call, token, from < position, position);
        }
        if hold.conflict.is_none() {
            self.current = at as u32;
            self.undecided &= end_from != NEVER;
        }
        self.last_start = position;
        self.slots[at].hold = Some(hold);
    }

    /// Ends the hold that an owner has when it acquires anew, and says from where on the new one may end.
    fn end_former(&mut self, at: usize, call: &Pending, position: u32) -> Option<u32> {
        let slot = &mut self.slots[at];
        slot.latest_unknown = false;
        if self.kind == Kind::Lease {
            slot.begin_lease();
        }
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
        self.spent = true;
        Some(if slot.releases > 0 { 0 } else { NEVER })
    }

    /// Holds a new grant against the one that is certain to be there; true if that is a violation.
    pub(super) fn meets_open(
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
            time: hold.since,
            with: open.id,
            calls,
            undecided: false,
        }));
        false
    }

    /// Holds a new grant against a tentative one: that must have ended, or began only when the new one had. True if it is
    /// unclear which.
    pub(super) fn meets_tentative(
        &mut self,
        at: usize,
        call: &Pending,
        from: u32,
        hold: &mut Hold,
    ) -> bool {
        if self.current == NONE || self.open().is_some() {
            return false;
        }
        let mut calls = vec![call.id];
        let spent = self.slots[at].spent_releases.clone();
        let Some(other) = self.slots[self.current as usize].hold.as_mut() else {
            return false;
        };
        if from < other.start {
            // There is an instant just before the other's acquire returned, and the other goes on as if nothing had been.
            hold.conflict = Some(Box::new(Conflict {
                position: hold.start,
                time: hold.since,
                with: other.id,
                calls: Vec::new(),
                undecided: true,
            }));
            self.undecided = true;
            if self.reaches_back {
                self.unclear(Unclear::RefusalUnclear);
            }
            return self.reaches_back;
        }
        if call.invoked < other.start {
            calls.extend(spent);
        }
        other.conflict = Some(Box::new(Conflict {
            position: hold.start,
            time: hold.since,
            with: call.id,
            calls,
            undecided: false,
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
}
