//! A history of calls as events, one after another.

use super::found::{State, Unclear};
use super::lock::{Kind, Lock};
use super::slot::Request;
use crate::linearizability::{Call, Decision, History, NEVER, Violation};

/// What a call of any lock model is to the algorithm.
pub(super) enum Action {
    Acquire {
        owner: u32,
        token: Option<u64>,
    },
    Release {
        owner: u32,
    },
    Busy,
    /// Nothing that the algorithm knows.
    Other,
    /// A release by the lock itself, which could not take effect after it is said to be over.
    End {
        owner: u32,
    },
}

/// One who judges the events of calls. Uncertain calls are never returned.
pub(super) trait Judge<O> {
    /// Whether the calls it names have no order alone, and may have one with others free to have done nothing.
    const NAMES_CALLS_ALONE: bool;

    fn invoked(&mut self, id: u64, call: &Call<O>);
    fn returned(&mut self, id: u64, call: &Call<O>);
    fn lock(&mut self) -> &mut Lock;

    /// Whether an uncertain call may have an end, since that says nothing: it could not take effect later anyway.
    fn may_end(&self, _call: &Call<O>) -> bool {
        false
    }
}

/// Gives a judge all events in order until it knows.
pub(super) fn replay<O, J: Judge<O>>(
    history: &History<O>,
    judge: &mut J,
    describe: impl Fn(&O) -> String,
) -> Option<Decision> {
    let calls = history.calls();
    let ends = |call: &Call<O>| !call.certain && call.returned != NEVER && !judge.may_end(call);
    if calls.iter().any(ends) {
        return None;
    }
    let mut returns: Vec<(u32, u32)> = calls
        .iter()
        .zip(0..)
        .filter(|(call, _)| call.certain)
        .map(|(call, at)| (call.returned, at))
        .collect();
    returns.sort_unstable();
    let mut returns = returns.into_iter().map(|(_, at)| at as usize).peekable();
    let mut invocations = (0..calls.len()).peekable();
    loop {
        if !matches!(judge.lock().state, State::Open) {
            break;
        }
        let returns_first = |&at: &usize| match invocations.peek() {
            Some(&next) => calls[at].returned < calls[next].invoked,
            None => true,
        };
        if let Some(at) = returns.next_if(returns_first) {
            judge.returned(at as u64, &calls[at]);
        } else if let Some(at) = invocations.next() {
            judge.invoked(at as u64, &calls[at]);
        } else {
            break;
        }
    }
    match &judge.lock().state {
        State::Open => Some(Decision::Linearizable),
        State::Unclear(_) => None,
        State::Violated(found) => {
            let name = |id: u64| {
                let call = &calls[id as usize];
                format!("{} (#{})", describe(&call.operation), call.id)
            };
            Some(Decision::Violated(Violation {
                calls: found.calls.iter().map(|&id| id as usize).collect(),
                alone: J::NAMES_CALLS_ALONE,
                prefix: found.position,
                sentence: Some(found.reason.sentence(name)),
            }))
        }
    }
}

/// Whether owners are numbered densely enough for tables.
pub(super) fn dense(calls: usize, owner: u32) -> bool {
    (owner as usize) < 4 * calls + 1024
}

/// Judges a lock that is not reentrant.
pub(super) struct Plain<F> {
    pub lock: Lock,
    pub calls: usize,
    pub action: F,
}

impl<F> Plain<F> {
    /// Decides a history against a lock of some kind, whose operations `action` translates.
    pub(super) fn decide<O>(
        kind: Kind,
        history: &History<O>,
        action: F,
        describe: impl Fn(&O) -> String,
    ) -> Option<Decision>
    where
        F: Fn(&O) -> Action,
    {
        let mut judge = Plain {
            lock: Lock::new(kind),
            calls: history.len(),
            action,
        };
        replay(history, &mut judge, describe)
    }
}

impl<O, F: Fn(&O) -> Action> Judge<O> for Plain<F> {
    const NAMES_CALLS_ALONE: bool = false;

    fn invoked(&mut self, id: u64, call: &Call<O>) {
        let lock = &mut self.lock;
        match (self.action)(&call.operation) {
            Action::Acquire { owner, .. } | Action::Release { owner } | Action::End { owner }
                if !dense(self.calls, owner) =>
            {
                lock.unclear(Unclear::OwnersSparse);
            }
            Action::Acquire { owner, .. } => {
                lock.invoke(owner, Request::Acquire, id, call.invoked);
                if !call.certain {
                    lock.unknown(owner, Request::Acquire);
                }
            }
            Action::Release { owner } | Action::End { owner } if call.certain => {
                lock.invoke(owner, Request::Release, id, call.invoked);
            }
            Action::Release { owner } | Action::End { owner } => lock.may_end(owner, call.invoked),
            Action::Busy => {}
            Action::Other => lock.unclear(Unclear::OperationUnknown),
        }
    }

    fn returned(&mut self, id: u64, call: &Call<O>) {
        let lock = &mut self.lock;
        match (self.action)(&call.operation) {
            Action::Acquire { owner, token } => lock.acquired(owner, token, call.returned),
            Action::Release { owner } | Action::End { owner } => {
                lock.released(owner, call.returned);
            }
            Action::Busy => lock.busy(id, call.invoked, call.returned),
            Action::Other => {}
        }
    }

    fn lock(&mut self) -> &mut Lock {
        &mut self.lock
    }

    fn may_end(&self, call: &Call<O>) -> bool {
        matches!((self.action)(&call.operation), Action::End { .. })
    }
}
