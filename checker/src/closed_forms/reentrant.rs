//! Reentrant locks as plain ones: only the outermost acquire and release of a hold begin and end it.
//!
//! An owner whose calls do not overlap holds the lock for certain from the return of its first acquire to the invocation of
//! its last release, whatever lies within. So the inner calls say nothing to others, and are left out.

use super::found::{Reason, Unclear};
use super::lock::{Kind, Lock};
use super::replay::{Action, Judge, dense, replay};
use super::slot::Request;
use crate::linearizability::{Call, Decision, History};

/// One owner's hold.
#[derive(Clone, Default)]
struct Nest {
    depth: u32,
    in_flight: bool,
    /// Whether it made a call of unknown outcome, after which its depth is not known.
    ended: bool,
    first: u64,
    released: Option<u64>,
    token: Option<u64>,
}

/// Judges a reentrant lock.
pub(super) struct Reentrant<F> {
    lock: Lock,
    calls: usize,
    nests: Vec<Nest>,
    action: F,
}

impl<F> Reentrant<F> {
    /// Decides a history against a reentrant lock without a bound on its depth.
    pub(super) fn decide<O>(
        kind: Kind,
        history: &History<O>,
        action: F,
        describe: impl Fn(&O) -> String,
    ) -> Option<Decision>
    where
        F: Fn(&O) -> Action,
    {
        let mut judge = Reentrant {
            lock: Lock::new(kind),
            calls: history.len(),
            nests: Vec::new(),
            action,
        };
        replay(history, &mut judge, describe)
    }

    /// An owner that begins a call; `None` where the closed form ends.
    fn begin(&mut self, owner: u32, certain: bool) -> Option<u32> {
        if !dense(self.calls, owner) {
            self.lock.unclear(Unclear::OwnersSparse);
            return None;
        }
        let at = owner as usize;
        if at >= self.nests.len() {
            self.nests.resize(at + 1, Nest::default());
        }
        let nest = &mut self.nests[at];
        if nest.ended || nest.in_flight {
            self.lock.unclear(Unclear::AfterUnknown);
            return None;
        }
        (nest.ended, nest.in_flight) = (!certain, certain);
        Some(nest.depth)
    }
}

impl<O, F: Fn(&O) -> Action> Judge<O> for Reentrant<F> {
    const NAMES_CALLS_ALONE: bool = true;

    fn invoked(&mut self, id: u64, call: &Call<O>) {
        let (owner, request) = match (self.action)(&call.operation) {
            Action::Acquire { owner, .. } => (owner, Request::Acquire),
            Action::Release { owner } => (owner, Request::Release),
            Action::End { .. } | Action::Busy | Action::Other => {
                return self.lock.unclear(Unclear::OperationUnknown);
            }
        };
        let Some(depth) = self.begin(owner, call.certain) else {
            return;
        };
        let lock = &mut self.lock;
        match (request, depth, call.certain) {
            (Request::Acquire, 0, true) | (Request::Release, 0 | 1, true) => {
                lock.invoke(owner, request, id, call.invoked);
            }
            (Request::Acquire, 0, false) => {
                lock.invoke(owner, request, id, call.invoked);
                lock.unknown(owner, request);
            }
            (Request::Release, 1, false) => lock.may_end(owner, call.invoked),
            _ => {}
        }
    }

    fn returned(&mut self, id: u64, call: &Call<O>) {
        match (self.action)(&call.operation) {
            Action::Acquire { owner, token } => {
                let nest = &mut self.nests[owner as usize];
                nest.in_flight = false;
                if nest.depth == 0 {
                    (nest.first, nest.token) = (id, token);
                    let released = nest.released;
                    self.lock.acquired(owner, token, call.returned);
                    self.lock.prove_new_hold(released);
                } else if token.is_some() && token != nest.token {
                    let reason = Reason::TokenChanged(nest.first, id);
                    self.lock
                        .violated(call.returned, reason, vec![nest.first, id]);
                }
                nest.depth += 1;
            }
            Action::Release { owner } => {
                let nest = &mut self.nests[owner as usize];
                nest.in_flight = false;
                nest.released = Some(id);
                if nest.depth <= 1 {
                    self.lock.released(owner, call.returned);
                }
                nest.depth = nest.depth.saturating_sub(1);
            }
            Action::End { .. } | Action::Busy | Action::Other => {}
        }
    }

    fn lock(&mut self) -> &mut Lock {
        &mut self.lock
    }
}
