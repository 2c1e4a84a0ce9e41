//! The closed form against brute force, on small random histories.

use histories::entries::Value;

use super::*;
use crate::linearizability::{Call, NEVER, brute_force};
use crate::models::{Outcome, Recorded, Told};

mod named;

/// Splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// A model that knows the first whole numbers by their own value, and holds 0 at first.
fn numbered<M: Recorded>(mut model: M, end: i64) -> M {
    for number in 1..end {
        let input = Value::Integer(number);
        let told = Told {
            f: "write",
            key: None,
            process: (0, "0"),
            input: &input,
            outcome: Outcome::Unknown,
            token: None,
            validity: None,
            op: None,
            grant: None,
            begun: 0,
        };
        assert!(matches!(model.read(&told), Ok(Some(_))));
    }
    model
}

fn cas_register() -> CasRegister {
    numbered(CasRegister::new(&Value::Integer(0)), 30)
}

fn register() -> Register {
    numbered(Register::new(&Value::Integer(0)), 30)
}

/// The times of so many calls: up to six at once.
fn intervals(random: &mut Random, count: usize) -> Vec<(u32, u32)> {
    let at_once = 1 + random.below(6);
    let mut intervals = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for position in 0.. {
        let begins = intervals.len() < count && open.len() < at_once;
        if begins && (open.is_empty() || random.one_in(2)) {
            open.push(intervals.len());
            intervals.push((position, NEVER));
        } else if open.is_empty() {
            break;
        } else {
            let call = open.swap_remove(random.below(open.len()));
            intervals[call].1 = position;
        }
    }
    intervals
}

/// Calls as a right register answers them; some of them without anyone knowing whether they happened.
fn answered(random: &mut Random, count: usize, cas: bool) -> Vec<Call<cas_register::Operation>> {
    let (mut value, mut greatest) = (0, 0);
    let mut effects: Vec<(u32, usize)> = Vec::new();
    let intervals = intervals(random, count);
    for (at, &(invoked, returned)) in intervals.iter().enumerate() {
        // Two halves to a position, so that effects lie between events.
        let length = 2 * (returned - invoked) as usize;
        effects.push((2 * invoked + random.below(length) as u32, at));
    }
    effects.sort_unstable();
    let mut calls = Vec::new();
    for (_, at) in effects {
        let (invoked, returned) = intervals[at];
        let certain = !random.one_in(5);
        let kind = random.below(if cas { 6 } else { 4 });
        let (expected, new) = (value, greatest + 1);
        let operation = match kind {
            0 | 1 => cas_register::Operation::Read(value),
            2 | 3 => cas_register::Operation::Write(new),
            _ => cas_register::Operation::Cas { expected, new },
        };
        if kind > 1 {
            greatest = new;
            if certain || random.one_in(2) {
                value = new;
            }
        }
        let open = !certain && random.one_in(2);
        calls.push(Call {
            operation,
            id: u64::from(invoked),
            process: at as u32,
            invoked,
            returned: if open { NEVER } else { returned },
            certain,
        });
    }
    calls
}

/// Makes calls find or write something else than they did.
fn damage(random: &mut Random, calls: &mut [Call<cas_register::Operation>]) {
    for _ in 0..1 + random.below(2) {
        let other = random.below(calls.len() + 1) as Datum;
        let at = random.below(calls.len());
        match &mut calls[at].operation {
            cas_register::Operation::Read(value)
            | cas_register::Operation::Cas {
                expected: value, ..
            } => *value = other,
            cas_register::Operation::Write(value) if random.one_in(8) => *value = other,
            _ => {}
        }
    }
}

fn random_history(
    random: &mut Random,
    longest: usize,
    cas: bool,
) -> History<cas_register::Operation> {
    let count = 1 + random.below(longest);
    let mut calls = answered(random, count, cas);
    if !random.one_in(3) {
        damage(random, &mut calls);
    }
    History::new(calls)
}

/// The same history of a register without cas.
fn without_cas(history: &History<cas_register::Operation>) -> History<register::Operation> {
    let calls = history.calls().iter().map(|call| Call {
        operation: match call.operation {
            cas_register::Operation::Read(value) => register::Operation::Read(value),
            cas_register::Operation::Write(value) => register::Operation::Write(value),
            _ => unreachable!("no cas was asked for"),
        },
        id: call.id,
        process: call.process,
        invoked: call.invoked,
        returned: call.returned,
        certain: call.certain,
    });
    History::new(calls.collect())
}

/// What of the calls has happened up to an event.
fn prefix<M: Accessed>(
    model: &M,
    history: &History<M::Operation>,
    last: u32,
) -> Vec<Call<M::Operation>> {
    let begun = history.calls().iter().filter(|call| call.invoked <= last);
    begun
        .filter_map(|call| {
            let mut call = call.clone();
            if call.returned > last {
                if matches!(model.access(&call.operation), Access::Read(_)) {
                    return None;
                }
                (call.returned, call.certain) = (NEVER, false);
            }
            Some(call)
        })
        .collect()
}

/// The position of the first event with which a history is not linearizable.
fn first_wrong<M: Accessed>(model: &M, history: &History<M::Operation>) -> Option<u32> {
    let mut positions: Vec<u32> = history
        .calls()
        .iter()
        .flat_map(|call| [call.invoked, call.returned])
        .filter(|&position| position != NEVER)
        .collect();
    positions.sort_unstable();
    positions
        .into_iter()
        .find(|&last| !brute_force::linearizable(model, &prefix(model, history, last)))
}

/// Whether these calls have an order if all others are free to have happened.
fn orderly<M: Accessed>(model: &M, history: &History<M::Operation>, certain: &[usize]) -> bool {
    let mut calls = history.calls().to_vec();
    for (at, call) in calls.iter_mut().enumerate() {
        call.certain &= certain.contains(&at);
    }
    brute_force::linearizable(model, &calls)
}

fn assert_proves<M: Accessed>(model: &M, history: &History<M::Operation>, violation: &Violation) {
    let calls = &violation.calls;
    assert!(calls.is_sorted() && calls.len() <= 4, "{violation:?}");
    assert!(!orderly(model, history, calls), "{violation:?} proves it");
    for &left_out in calls {
        let rest: Vec<usize> = calls.iter().copied().filter(|&at| at != left_out).collect();
        assert!(orderly(model, history, &rest), "{violation:?} is minimal");
    }
    let alone: Vec<_> = calls
        .iter()
        .map(|&at| history.calls()[at].clone())
        .collect();
    assert!(!brute_force::linearizable(model, &alone));
    let last = calls.iter().map(|&at| history.calls()[at].returned).max();
    assert_eq!(
        last,
        Some(violation.prefix),
        "the last call breaks the rule"
    );
    assert_eq!(first_wrong(model, history), Some(violation.prefix));
    assert!(violation.sentence.is_some());
}

/// How many histories were linearizable, violated, and not decided.
type Counts = [usize; 3];

fn compare<M: Accessed>(model: &M, history: &History<M::Operation>, counts: &mut Counts) {
    let right = brute_force::linearizable(model, history.calls());
    match decide(model, history) {
        Some(Decision::Linearizable) => {
            assert!(right, "no violation was found in {history:#?}");
            counts[0] += 1;
        }
        Some(Decision::Violated(violation)) => {
            assert!(!right, "{violation:?} was found in {history:#?}");
            assert_proves(model, history, &violation);
            counts[1] += 1;
        }
        Some(unknown) => panic!("{unknown:?}"),
        None => counts[2] += 1,
    }
}

#[test]
fn registers_are_judged_as_by_brute_force() {
    let mut random = Random(1);
    let (model, mut counts) = (register(), [0; 3]);
    for _ in 0..200_000 {
        let history = without_cas(&random_history(&mut random, 8, false));
        compare(&model, &history, &mut counts);
    }
    let [linearizable, violated, undecided] = counts;
    assert!(
        linearizable > 40_000 && violated > 30_000 && undecided < 20_000,
        "{counts:?}"
    );
}

#[test]
fn chains_of_cas_are_judged_as_by_brute_force() {
    let mut random = Random(2);
    let (model, mut counts) = (cas_register(), [0; 3]);
    for _ in 0..200_000 {
        compare(&model, &random_history(&mut random, 8, true), &mut counts);
    }
    let [linearizable, violated, undecided] = counts;
    assert!(
        linearizable > 40_000 && violated > 30_000 && undecided < 20_000,
        "{counts:?}"
    );
}

#[test]
fn values_of_any_number_are_judged_alike() {
    let mut random = Random(3);
    for _ in 0..2_000 {
        let history = without_cas(&random_history(&mut random, 8, false));
        let far = |value: Datum| if value == 0 { 0 } else { value + 1_000_000 };
        let mut calls = history.calls().to_vec();
        for call in &mut calls {
            call.operation = match call.operation {
                register::Operation::Read(value) => register::Operation::Read(far(value)),
                register::Operation::Write(value) => register::Operation::Write(far(value)),
            };
        }
        let near = Clusters::of(&register(), &history);
        let sparse = Clusters::of(&register(), &History::new(calls));
        assert_eq!(near.map(|known| known.of), sparse.map(|known| known.of));
    }
}

/// Whether the calls that returned before a position, all at once, keep the rules.
fn keeps_rules<M: Accessed>(model: &M, history: &History<M::Operation>, end: u32) -> bool {
    let clusters = Clusters::of(model, history).unwrap();
    let times = Times::of(history);
    let calls = history.calls();
    let returned = |&at: &u32| {
        let call = &calls[at as usize];
        call.certain && call.returned < end
    };
    let returned: Vec<u32> = (0..calls.len() as u32).filter(returned).collect();
    let evidence = Evidence::new(model, history, &times, &clusters);
    evidence.judge(&returned).is_none()
}

#[test]
fn long_histories_are_judged_as_by_the_rules() {
    let mut random = Random(4);
    let (model, mut counts) = (numbered(CasRegister::new(&Value::Integer(0)), 201), [0; 2]);
    for _ in 0..10_000 {
        let history = random_history(&mut random, 200, true);
        match decide(&model, &history) {
            Some(Decision::Linearizable) => {
                assert!(keeps_rules(&model, &history, NEVER));
                counts[0] += 1;
            }
            Some(Decision::Violated(violation)) => {
                assert!(violation.calls.len() <= 4);
                assert!(keeps_rules(&model, &history, violation.prefix));
                assert!(!keeps_rules(&model, &history, violation.prefix + 1));
                counts[1] += 1;
            }
            _ => {}
        }
    }
    assert!(counts.iter().all(|&count| count > 3_000), "{counts:?}");
}
