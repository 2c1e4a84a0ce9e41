//! The streaming mode finds what the closed forms find, at the same event, when calls also fail.

use super::random::{Random, Shape, Step, history};
use crate::closed_forms::streaming::{Finding, Locks};
use crate::closed_forms::{self, Kind, owner_aware_mutex as closed};
use crate::linearizability::{Call, Decision, History, NEVER};
use crate::models::lease_mutex;
use crate::models::owner_aware_mutex::{Operation, OwnerAwareMutex};

const LOCK: u32 = 1;

/// Streams a history's calls; those that `fails` names are not in it, and fail.
fn stream(calls: &[Call<Operation>], fails: impl Fn(usize) -> bool) -> Locks {
    let mut events: Vec<(u32, usize)> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        events.push((call.invoked, at));
        if call.certain {
            events.push((call.returned, at));
        }
    }
    events.sort_unstable();
    let mut locks = Locks::new(Kind::OwnerAware);
    for (position, at) in events {
        let call = &calls[at];
        match (call.operation, position == call.invoked) {
            (Operation::Acquire(by) | Operation::Busy(by), true) => {
                locks.invoke_acquire(LOCK, by, at as u64);
                if !call.certain {
                    locks.acquire_unknown(LOCK, by);
                }
            }
            (Operation::Release(by), true) => {
                locks.invoke_release(LOCK, by, at as u64);
                if !call.certain {
                    locks.release_unknown(LOCK, by);
                }
            }
            (Operation::Acquire(by), false) if fails(at) => locks.acquire_failed(LOCK, by),
            (Operation::Acquire(by), false) => locks.acquired(LOCK, by, None),
            (Operation::Busy(by), false) => locks.busy(LOCK, by),
            (Operation::Release(by), false) if fails(at) => locks.release_failed(LOCK, by),
            (Operation::Release(by), false) => locks.released(LOCK, by),
        }
    }
    locks
}

type Judged = Option<Option<Vec<usize>>>;

/// The calls of a violation, none for a linearizable history; `None` where the closed form does not decide.
fn judge(calls: &[Call<Operation>]) -> Judged {
    let model = OwnerAwareMutex::new(true);
    match closed::decide(&model, &History::new(calls.to_vec()))? {
        Decision::Violated(violation) => Some(Some(violation.calls)),
        _ => Some(None),
    }
}

#[test]
fn streams_as_the_closed_form_decides() {
    let mut compared = 0;
    for seed in 0..100_000 {
        let mut random = Random(seed);
        let mut shape = Shape::draw(&mut random);
        shape.busy = [0, 20][random.below(2) as usize];
        let drawn = history(&mut random, shape, |_, step, by, _| match step {
            Step::Acquire => Operation::Acquire(by),
            Step::Release | Step::Expire => Operation::Release(by),
            Step::Busy => Operation::Busy(by),
        });
        // A refusal of unknown outcome is an acquire like any other.
        let known = |call: &&Call<Operation>| {
            call.returned != NEVER || !matches!(call.operation, Operation::Busy(_))
        };
        let calls: Vec<_> = drawn.calls().iter().filter(known).cloned().collect();
        let chosen = random.next();
        let fails = |at: usize| {
            chosen >> at & 7 == 0
                && calls[at].certain
                && !matches!(calls[at].operation, Operation::Busy(_))
        };
        let kept: Vec<usize> = (0..calls.len()).filter(|&at| !fails(at)).collect();
        let left: Vec<_> = kept.iter().map(|&at| calls[at].clone()).collect();
        let locks = stream(&calls, fails);
        let (found, wanted) = (locks.finding(LOCK), judge(&left));
        match (found, wanted) {
            (Finding::Unclear(_), _) | (_, None) => continue,
            (Finding::Linearizable, wanted) => assert_eq!(wanted, Some(None), "{calls:#?}"),
            (Finding::Violated(found), wanted) => {
                let calls_found: Vec<usize> = found.calls.iter().map(|&id| id as usize).collect();
                let wanted = wanted
                    .flatten()
                    .map(|wanted| wanted.into_iter().map(|at| kept[at]).collect::<Vec<_>>());
                // A refusal in flight may yet be a grant: what depends on that is found later, and otherwise.
                if kept.len() == calls.len() && shape.busy == 0 {
                    assert_eq!(Some(calls_found), wanted, "{calls:#?}");
                } else {
                    assert!(wanted.is_some(), "{found:?} {calls:#?}");
                }
            }
        }
        compared += 1;
    }
    assert!(compared > 80_000, "{compared}");
}

/// Streams a history of leases, each of whose grants is known by its acquire; releases that `fails` names fail.
fn stream_leases(calls: &[Call<lease_mutex::Operation>], fails: impl Fn(usize) -> bool) -> Locks {
    use lease_mutex::Operation;
    let ends = calls.iter().map(|call| call.returned).zip(0..);
    let begins = calls.iter().map(|call| call.invoked).zip(0..);
    let mut events: Vec<(u32, usize)> = begins.chain(ends).collect();
    events.retain(|&(position, _)| position != NEVER);
    events.sort_unstable();
    let mut locks = Locks::new(Kind::Lease);
    for (position, at) in events {
        let call = &calls[at];
        let (by, begins) = (call.process, position == call.invoked);
        match call.operation {
            Operation::Acquire(_) if begins => {
                locks.invoke_acquire(LOCK, by, at as u64);
                if !call.certain {
                    locks.acquire_unknown(LOCK, by);
                }
            }
            Operation::Release(_) if begins => {
                locks.invoke_release(LOCK, by, at as u64);
                if !call.certain {
                    locks.release_unknown(LOCK, by);
                }
            }
            Operation::Acquire(_) => locks.acquired(LOCK, by, None),
            Operation::Release(_) if fails(at) => locks.release_failed(LOCK, by),
            Operation::Release(_) => locks.released(LOCK, by),
            Operation::Expire { grant, .. } => {
                let granted = |call: &Call<Operation>| call.operation == Operation::Acquire(grant);
                if let Some(acquire) = calls.iter().position(granted) {
                    locks.validity_over(LOCK, calls[acquire].process, acquire as u64);
                }
            }
            _ => {}
        }
    }
    locks
}

#[test]
fn streams_leases_as_the_closed_form_decides() {
    use lease_mutex::Operation;
    let model = lease_mutex::LeaseMutex::new(false);
    let mut compared = 0;
    for seed in 0..100_000 {
        let mut random = Random(seed);
        let mut shape = Shape::draw(&mut random);
        shape.expire = 20;
        let drawn = history(&mut random, shape, |random, step, _, latest| match step {
            Step::Acquire => Operation::Acquire(latest),
            Step::Release | Step::Busy => Operation::Release(latest),
            Step::Expire => {
                // Now and then of an earlier grant.
                let grant = latest.saturating_sub(random.below(2) as u32);
                Operation::Expire { grant, lease: 0 }
            }
        });
        let calls = drawn.calls();
        let chosen = random.next();
        let fails = |at: usize| {
            let release = matches!(calls[at].operation, Operation::Release(_));
            release && calls[at].certain && chosen >> at & 3 == 0
        };
        let locks = stream_leases(calls, fails);
        let kept: Vec<usize> = (0..calls.len()).filter(|&at| !fails(at)).collect();
        let left = kept.iter().map(|&at| calls[at].clone());
        let decided = closed_forms::lease_mutex::decide(&model, &History::new(left.collect()));
        let found = match (locks.finding(LOCK), &decided) {
            (Finding::Unclear(_), _) | (_, None) => continue,
            (Finding::Linearizable, _) => None,
            (Finding::Violated(found), _) => Some(found.calls.clone()),
        };
        let wanted = match decided {
            Some(Decision::Violated(violation)) => {
                Some(violation.calls.iter().map(|&at| kept[at] as u64).collect())
            }
            _ => None,
        };
        // A release in flight may yet have ended the lease: what depends on that is found later, and otherwise.
        if kept.len() == calls.len() {
            assert_eq!(found, wanted, "{drawn:#?}");
        } else {
            assert_eq!(found.is_some(), wanted.is_some(), "{found:?} {drawn:#?}");
        }
        compared += 1;
    }
    assert!(compared > 70_000, "{compared}");
}

#[test]
fn identifies_a_second_grant_before_the_validity_is_over_and_spares_one_after() {
    for over_before in [true, false] {
        let mut locks = Locks::new(Kind::Lease);
        locks.invoke_acquire(LOCK, 0, 10);
        locks.acquired(LOCK, 0, None);
        if over_before {
            locks.validity_over(LOCK, 0, 10);
        }
        locks.invoke_acquire(LOCK, 1, 11);
        locks.acquired(LOCK, 1, None);
        locks.validity_over(LOCK, 0, 10);
        let violated = matches!(locks.finding(LOCK), Finding::Violated(found)
            if found.calls == [10, 11] && found.position == 3);
        assert_eq!(violated, !over_before);
        assert_eq!(locks.finding(0), Finding::Linearizable);
    }
}

#[test]
fn identifies_a_release_after_another_had_the_lease() {
    let mut locks = Locks::new(Kind::Lease);
    locks.invoke_acquire(LOCK, 0, 10);
    locks.acquired(LOCK, 0, None);
    locks.validity_over(LOCK, 0, 10);
    locks.invoke_acquire(LOCK, 1, 11);
    locks.acquired(LOCK, 1, None);
    locks.invoke_release(LOCK, 0, 12);
    assert_eq!(locks.finding(LOCK), Finding::Linearizable);
    locks.released(LOCK, 0);
    assert!(matches!(locks.finding(LOCK), Finding::Violated(found) if found.calls == [11, 12]));
}

#[test]
fn identifies_a_token_that_fell() {
    let mut locks = Locks::new(Kind::Fenced);
    for (owner, token) in [(0, 7), (1, 7)] {
        locks.invoke_acquire(LOCK, owner, token + u64::from(owner));
        locks.acquired(LOCK, owner, Some(token));
        locks.invoke_release(LOCK, owner, 20 + u64::from(owner));
        locks.released(LOCK, owner);
    }
    assert!(matches!(locks.finding(LOCK), Finding::Violated(found)
        if found.calls == [7, 8] && found.position == 5));
}

#[test]
fn a_million_operations_leave_no_more_than_their_owners() {
    let mut locks = Locks::new(Kind::Fenced);
    for round in 0..500_000_u64 {
        let owner = (round % 5) as u32;
        locks.invoke_acquire(0, owner, 2 * round);
        locks.acquired(0, owner, Some(round));
        locks.invoke_release(0, owner, 2 * round + 1);
        locks.released(0, owner);
    }
    assert_eq!(locks.finding(0), Finding::Linearizable);
    assert_eq!(locks.slots(), 5);
}
