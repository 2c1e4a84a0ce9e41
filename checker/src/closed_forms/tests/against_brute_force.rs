//! Decisions, prefixes and witnesses, held against brute force.

use super::random::{Random, Shape, Step, history};
use crate::closed_forms as closed;
use crate::linearizability::brute_force::linearizable;
use crate::linearizability::{Call, Decision, History, Limits, NEVER, Violation};
use crate::models::{
    Model, fenced_mutex, lease_mutex, owner_aware_mutex, reentrant_fenced_mutex, reentrant_mutex,
    semaphore,
};

/// How much a violation's calls prove.
#[derive(Clone, Copy, PartialEq)]
enum Proof {
    /// That they have no order, whatever the others did; and none of them can be left out.
    Whole,
    /// That they have no order, whatever of what the others were told to they did; and none of them can be left out.
    AsTold,
    /// That they have no order alone.
    Alone,
}

#[derive(Debug, Default)]
struct Count {
    linearizable: u32,
    violated: u32,
    undecided: u32,
    calls_max: usize,
    /// Violations with a call too many.
    loose: u32,
}

/// What a history says of a call of unknown outcome: `forget` takes away what only the outcome told.
trait Forget {
    fn forget(&mut self) {}
}

impl Forget for owner_aware_mutex::Operation {}
impl Forget for lease_mutex::Operation {}
impl Forget for reentrant_mutex::Operation {}
impl Forget for semaphore::Operation {}

impl Forget for fenced_mutex::Operation {
    fn forget(&mut self) {
        if let fenced_mutex::Operation::Acquire { token, .. } = self {
            *token = None;
        }
    }
}

/// The call, of unknown outcome.
fn unknown<O: Clone + Forget>(call: &Call<O>, returned: u32) -> Call<O> {
    let mut call = Call {
        certain: false,
        returned,
        ..call.clone()
    };
    call.operation.forget();
    call
}

fn compare<M: Model<Operation: Forget>>(
    model: &M,
    history: &History<M::Operation>,
    decision: Option<Decision>,
    proof: Proof,
    count: &mut Count,
) {
    let calls = history.calls();
    match decision {
        None => count.undecided += 1,
        Some(Decision::Linearizable) => {
            count.linearizable += 1;
            assert!(linearizable(model, calls), "is a violation: {history:#?}");
        }
        Some(Decision::Violated(violation)) => {
            count.violated += 1;
            count.calls_max = count.calls_max.max(violation.calls.len());
            assert!(!linearizable(model, calls), "is none: {history:#?}");
            assert_eq!(
                violation.prefix,
                first_bad(model, calls),
                "{history:#?} {violation:?}"
            );
            count.loose += u32::from(!assert_proves(model, calls, &violation, proof));
            assert_eq!(violation.alone, proof == Proof::Alone);
            if violation.alone && count.violated.is_multiple_of(16) {
                assert_search_proves_more(model, history);
            }
        }
        Some(Decision::Unknown { .. }) => panic!("a closed form knows or is not asked"),
    }
}

/// Where a closed form's calls have no order alone, the search finds some that have none whatever of theirs the others did.
fn assert_search_proves_more<M: Model<Operation: Forget>>(
    model: &M,
    history: &History<M::Operation>,
) {
    match crate::linearizability::linearizable(model, history, &Limits::default()) {
        Decision::Violated(violation) => {
            assert!(!violation.alone, "{violation:?} of {history:#?}");
            assert_proves(model, history.calls(), &violation, Proof::AsTold);
        }
        decision => panic!("is a violation, not {decision:?}: {history:#?}"),
    }
}

/// The first position with which the history is no longer linearizable.
fn first_bad<M: Model<Operation: Forget>>(model: &M, calls: &[Call<M::Operation>]) -> u32 {
    let mut returns: Vec<u32> = calls
        .iter()
        .filter(|call| call.certain)
        .map(|call| call.returned)
        .collect();
    returns.sort_unstable();
    let bad = |&end: &u32| {
        let prefix: Vec<_> = calls
            .iter()
            .filter(|call| call.invoked < end)
            .map(|call| match call.returned > end {
                true => unknown(call, NEVER),
                false => call.clone(),
            })
            .collect();
        !linearizable(model, &prefix)
    };
    returns.into_iter().find(bad).expect("a violation")
}

/// Whether none of a violation's calls can be left out, after asserting all else.
fn assert_proves<M: Model<Operation: Forget>>(
    model: &M,
    calls: &[Call<M::Operation>],
    violation: &Violation,
    proof: Proof,
) -> bool {
    assert!(violation.calls.is_sorted_by(|one, next| one < next));
    let alone: Vec<_> = violation
        .calls
        .iter()
        .map(|&at| calls[at].clone())
        .collect();
    assert!(
        !linearizable(model, &alone),
        "have an order alone: {violation:?} of {calls:#?}"
    );
    if proof == Proof::Alone {
        return true;
    }
    let with_others_free = |certain: &dyn Fn(usize) -> bool| {
        let calls: Vec<_> = calls
            .iter()
            .enumerate()
            .map(|(at, call)| match certain(at) {
                true => call.clone(),
                false if proof == Proof::AsTold => Call {
                    certain: false,
                    ..call.clone()
                },
                false => unknown(call, call.returned),
            })
            .collect();
        linearizable(model, &calls)
    };
    let chosen = |at: usize| violation.calls.contains(&at);
    assert!(
        !with_others_free(&chosen),
        "others save them: {violation:?} of {calls:#?}"
    );
    let needed = |&left_out: &usize| with_others_free(&|at| at != left_out && chosen(at));
    let minimal = violation.calls.iter().all(needed);
    assert!(
        minimal || violation.calls.len() > 3,
        "one is too many: {violation:?} of {calls:#?}"
    );
    minimal
}

const ROUNDS: u64 = 100_000;

/// So many random histories. Of those decided some hold and some do not, and few are left undecided.
fn try_all(
    rounds: u64,
    undecided_percent: u64,
    mut each: impl FnMut(&mut Random, Shape, &mut Count),
) {
    let mut count = Count::default();
    for seed in 0..rounds {
        let mut random = Random(seed);
        let shape = Shape::draw(&mut random);
        each(&mut random, shape, &mut count);
    }
    println!("{count:?}");
    let part = |count: u32| u64::from(count) * 100 / rounds;
    assert!(part(count.linearizable) >= 5, "{count:?}");
    assert!(part(count.violated) >= 5, "{count:?}");
    assert!(count.loose * 1000 <= count.violated, "{count:?}");
    assert!(part(count.undecided) <= undecided_percent, "{count:?}");
}

fn owner_aware(step: Step, by: u32) -> owner_aware_mutex::Operation {
    match step {
        Step::Acquire => owner_aware_mutex::Operation::Acquire(by),
        Step::Release | Step::Expire => owner_aware_mutex::Operation::Release(by),
        Step::Busy => owner_aware_mutex::Operation::Busy(by),
    }
}

#[test]
fn owner_aware_mutex_decides_as_brute_force_does() {
    let model = owner_aware_mutex::OwnerAwareMutex::new(true);
    try_all(ROUNDS, 5, |random, mut shape, count| {
        shape.busy = [0, 0, 25][random.below(3) as usize];
        shape.expire = [0, 0, 5][random.below(3) as usize];
        let history = history(random, shape, |_, step, by, _| owner_aware(step, by));
        let decision = closed::owner_aware_mutex::decide(&model, &history);
        compare(&model, &history, decision, Proof::Whole, count);
    });
}

#[test]
fn lease_mutex_decides_as_brute_force_does() {
    use lease_mutex::Operation;
    let model = lease_mutex::LeaseMutex::new(true);
    try_all(ROUNDS, 3, |random, mut shape, count| {
        shape.busy = [0, 0, 25][random.below(3) as usize];
        shape.expire = 20;
        let history = history(random, shape, |_, step, by, grant| match step {
            Step::Acquire => Operation::Acquire(grant),
            Step::Release => Operation::Release(grant),
            Step::Expire => Operation::Expire { grant, lease: 0 },
            Step::Busy => Operation::Busy(by),
        });
        let decision = closed::lease_mutex::decide(&model, &history);
        compare(&model, &history, decision, Proof::Whole, count);
    });
}

/// A token that mostly rises; rarely none.
fn token(random: &mut Random, next: &mut u64) -> Option<u64> {
    *next += 1;
    match random.below(40) {
        0 => None,
        1..5 => Some(random.below(*next + 2)),
        _ => Some(*next),
    }
}

#[test]
fn fenced_mutex_decides_as_brute_force_does() {
    use fenced_mutex::Operation;
    let model = fenced_mutex::FencedMutex::new(true);
    try_all(ROUNDS, 20, |random, mut shape, count| {
        shape.busy = [0, 0, 25][random.below(3) as usize];
        let mut next = 0;
        let drawn = history(random, shape, |random, step, by, _| match step {
            Step::Acquire => Operation::Acquire {
                by,
                token: token(random, &mut next),
            },
            Step::Release | Step::Expire => Operation::Release(by),
            Step::Busy => Operation::Busy(by),
        });
        let history = forget_tokens(&drawn);
        let decision = closed::fenced_mutex::decide(&model, &history);
        compare(&model, &history, decision, Proof::Whole, count);
    });
}

/// Of an unknown grant nobody learned the token.
fn forget_tokens<O: Clone + Forget>(history: &History<O>) -> History<O> {
    let mut calls = history.calls().to_vec();
    for call in calls.iter_mut().filter(|call| !call.certain) {
        call.operation.forget();
    }
    History::new(calls)
}

#[test]
fn reentrant_mutex_decides_as_brute_force_does() {
    use reentrant_mutex::Operation;
    let model = reentrant_mutex::ReentrantMutex::new(None, false);
    try_all(ROUNDS, 36, |random, shape, count| {
        let history = history(random, shape, |random, step, by, _| match step {
            Step::Acquire => Operation::Acquire(by),
            _ if random.percent(30) => Operation::Acquire(by),
            _ => Operation::Release(by),
        });
        let decision = closed::reentrant_mutex::decide(&model, &history);
        compare(&model, &history, decision, Proof::Alone, count);
    });
}

#[test]
fn reentrant_fenced_mutex_decides_as_brute_force_does() {
    let model = reentrant_fenced_mutex::ReentrantFencedMutex::new(None, false);
    try_all(ROUNDS, 36, |random, shape, count| {
        let mut next = 0;
        let drawn = history(random, shape, |random, step, by, _| {
            let again = step != Step::Acquire && random.percent(30);
            if step != Step::Acquire && !again {
                return fenced_mutex::Operation::Release(by);
            }
            let token = match again && random.percent(80) {
                true => Some(next),
                false => token(random, &mut next),
            };
            fenced_mutex::Operation::Acquire { by, token }
        });
        let history = forget_tokens(&drawn);
        let decision = closed::reentrant_fenced_mutex::decide(&model, &history);
        compare(&model, &history, decision, Proof::Alone, count);
    });
}

#[test]
fn semaphore_decides_as_brute_force_does() {
    use semaphore::Operation;
    try_all(ROUNDS, 34, |random, shape, count| {
        let model = semaphore::Semaphore::new(1 + random.below(3) as u32, false);
        let history = history(random, shape, |random, step, by, _| {
            let permits = 1 + u32::from(random.percent(20));
            match step {
                Step::Acquire => Operation::Acquire { by, permits },
                _ if random.percent(20) => Operation::Acquire { by, permits },
                _ => Operation::Release { by, permits },
            }
        });
        let decision = closed::semaphore::decide(&model, &history);
        compare(&model, &history, decision, Proof::Alone, count);
    });
}
