//! Named histories, as timelines would show them.

use crate::closed_forms as closed;
use crate::linearizability::{Call, Decision, History, NEVER};
use crate::models::owner_aware_mutex::{Operation, OwnerAwareMutex};
use crate::models::{Model, fenced_mutex, lease_mutex, reentrant_mutex, semaphore};

use Operation::{Acquire, Busy, Release};

fn history<O: Clone>(calls: &[(O, u32, u32)]) -> History<O> {
    let call = |(at, (operation, invoked, returned)): (usize, &(O, u32, u32))| Call {
        operation: operation.clone(),
        id: at as u64 + 1,
        process: 0,
        invoked: *invoked,
        returned: *returned,
        certain: *returned != NEVER,
    };
    History::new(calls.iter().enumerate().map(call).collect())
}

/// The calls of the violation and the position at which it is one; `None` for a linearizable history.
fn found(decision: Option<Decision>) -> Option<(Vec<usize>, u32)> {
    match decision.expect("the closed form covers it") {
        Decision::Violated(violation) => Some((violation.calls, violation.prefix)),
        _ => None,
    }
}

fn owner_aware(calls: &[(Operation, u32, u32)]) -> Option<(Vec<usize>, u32)> {
    let model = OwnerAwareMutex::new(true);
    found(closed::owner_aware_mutex::decide(&model, &history(calls)))
}

#[test]
fn identifies_two_holders() {
    let calls = [(Acquire(0), 1, 2), (Acquire(1), 3, 4), (Release(0), 5, 6)];
    assert_eq!(owner_aware(&calls), Some((vec![0, 1], 4)));
    let model = OwnerAwareMutex::new(true);
    let Some(Decision::Violated(violation)) =
        closed::owner_aware_mutex::decide(&model, &history(&calls))
    else {
        unreachable!("a violation")
    };
    let sentence = "acquire by owner 1 (#2) succeeded though the lock was still held by acquire by owner 0 (#1).";
    assert_eq!(violation.sentence.as_deref(), Some(sentence));
}

#[test]
fn spares_a_holder_whose_release_was_on_its_way() {
    let calls = [(Acquire(0), 1, 2), (Release(0), 3, 6), (Acquire(1), 4, 5)];
    assert_eq!(owner_aware(&calls), None);
}

#[test]
fn spares_unknown_acquires_and_takes_unknown_releases_as_made() {
    let calls = [
        (Acquire(2), 1, NEVER),
        (Acquire(0), 2, 3),
        (Release(0), 4, NEVER),
        (Acquire(1), 5, 6),
    ];
    assert_eq!(owner_aware(&calls), None);
}

#[test]
fn identifies_a_release_that_proves_an_unknown_one_was_not_made() {
    let calls = [
        (Acquire(0), 1, 2),
        (Release(0), 3, NEVER),
        (Acquire(1), 4, 5),
        (Release(1), 6, 7),
        (Release(0), 8, 9),
    ];
    assert_eq!(owner_aware(&calls), Some((vec![2, 4], 9)));
}

/// That the unknown acquire has a free instant before its release returns is not enough: it must still be held at the release.
#[test]
fn identifies_the_release_of_an_unknown_grant_while_another_holds() {
    let calls = [
        (Acquire(0), 1, NEVER),
        (Acquire(1), 3, 4),
        (Release(0), 5, 6),
        (Release(1), 7, 8),
    ];
    assert_eq!(owner_aware(&calls), Some((vec![1, 2], 6)));
}

#[test]
fn identifies_a_release_of_nothing() {
    assert_eq!(owner_aware(&[(Release(0), 1, 2)]), Some((vec![0], 2)));
    let calls = [(Acquire(0), 1, 2), (Release(0), 3, 4), (Release(0), 5, 6)];
    assert_eq!(owner_aware(&calls), Some((vec![1, 2], 6)));
}

#[test]
fn identifies_a_refusal_while_nobody_held() {
    let calls = [(Acquire(0), 1, 2), (Release(0), 3, 4), (Busy(1), 5, 6)];
    assert_eq!(owner_aware(&calls), Some((vec![1, 2], 6)));
    // The release may come after the refusal began; the next acquire may come before it ended.
    let calls = [(Acquire(0), 1, 2), (Release(0), 3, 5), (Busy(1), 4, 6)];
    assert_eq!(owner_aware(&calls), None);
    let calls = [(Busy(1), 1, 3), (Acquire(0), 2, 4)];
    assert_eq!(owner_aware(&calls), None);
}

#[test]
fn identifies_a_refusal_that_an_acquire_in_flight_cannot_explain() {
    let calls = [
        (Acquire(0), 1, 8),
        (Busy(1), 2, 3),
        (Acquire(2), 4, 5),
        (Release(2), 6, 7),
    ];
    assert_eq!(owner_aware(&calls), Some((vec![1, 2], 5)));
}

#[test]
fn leaves_to_the_search_what_unknown_calls_may_interrupt() {
    let calls = [
        (Acquire(0), 1, 2),
        (Release(0), 3, NEVER),
        (Acquire(0), 4, NEVER),
        (Release(0), 5, 6),
    ];
    let model = OwnerAwareMutex::new(true);
    assert_eq!(
        closed::owner_aware_mutex::decide(&model, &history(&calls)),
        None
    );
}

#[test]
fn identifies_a_token_that_fell_and_spares_overlapping_acquires() {
    use fenced_mutex::Operation::{Acquire, Release};
    let model = fenced_mutex::FencedMutex::new(false);
    let acquire = |by, token| Acquire {
        by,
        token: Some(token),
    };
    let calls = [
        (acquire(0, 5), 1, 2),
        (Release(0), 3, 4),
        (acquire(1, 5), 5, 6),
    ];
    let decide = |calls: &[_]| found(closed::fenced_mutex::decide(&model, &history(calls)));
    assert_eq!(decide(&calls), Some((vec![0, 2], 6)));
    let calls = [
        (acquire(0, 6), 1, 6),
        (acquire(1, 5), 2, 3),
        (Release(1), 4, 5),
    ];
    assert_eq!(decide(&calls), None);
}

#[test]
fn identifies_a_second_lease_and_spares_one_after_the_validity() {
    use lease_mutex::Operation::{Acquire, Expire};
    let model = lease_mutex::LeaseMutex::new(false);
    let over = Expire { grant: 0, lease: 0 };
    let decide = |calls: &[_]| found(closed::lease_mutex::decide(&model, &history(calls)));
    let calls = [(Acquire(0), 1, 2), (Acquire(1), 3, 4), (over, 5, NEVER)];
    assert_eq!(decide(&calls), Some((vec![0, 1], 4)));
    let calls = [(Acquire(0), 1, 2), (over, 3, NEVER), (Acquire(1), 4, 5)];
    assert_eq!(decide(&calls), None);
}

#[test]
fn identifies_a_grant_before_the_last_of_several_releases() {
    use reentrant_mutex::Operation::{Acquire, Release};
    let model = reentrant_mutex::ReentrantMutex::new(None, false);
    let decide = |calls: &[_]| found(closed::reentrant_mutex::decide(&model, &history(calls)));
    let mut calls = vec![
        (Acquire(0), 1, 2),
        (Acquire(0), 3, 4),
        (Release(0), 5, 6),
        (Acquire(1), 7, 8),
    ];
    assert_eq!(decide(&calls), Some((vec![0, 3], 8)));
    calls[3] = (Release(0), 7, 8);
    calls.push((Acquire(1), 9, 10));
    assert_eq!(decide(&calls), None);
}

#[test]
fn identifies_a_permit_too_many() {
    use semaphore::Operation::{Acquire, Release};
    let model = semaphore::Semaphore::new(2, false);
    let acquire = |by, permits| Acquire { by, permits };
    let decide = |calls: &[_]| found(closed::semaphore::decide(&model, &history(calls)));
    let calls = [
        (acquire(0, 1), 1, 2),
        (acquire(1, 1), 3, 4),
        (acquire(2, 1), 5, 6),
    ];
    assert_eq!(decide(&calls), Some((vec![0, 1, 2], 6)));
    let release = Release { by: 0, permits: 1 };
    let calls = [
        (acquire(0, 2), 1, 2),
        (release, 3, 6),
        (acquire(2, 1), 4, 5),
    ];
    assert_eq!(decide(&calls), None);
}

#[test]
fn unknown_grants_take_a_token_each() {
    use fenced_mutex::Operation::{Acquire, Release};
    let model = fenced_mutex::FencedMutex::new(false);
    let grant = |state: &fenced_mutex::State, token| {
        let held = model.step(state, &Acquire { by: 0, token })?;
        model.step(&held, &Release(0))
    };
    let five = grant(&model.initial(), Some(5)).unwrap();
    let unknown = grant(&five, None).unwrap();
    assert_eq!(grant(&unknown, Some(6)), None);
    assert!(grant(&unknown, Some(7)).is_some());
    let last = grant(&five, Some(u64::MAX)).unwrap();
    assert_eq!(grant(&last, None), None);
}
