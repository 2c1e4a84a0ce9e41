//! Both searches, held against trying every order.

use super::*;
use crate::linearizability::{Call, brute_force};
use crate::models::Effect;

/// Splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    Read(u8),
    Write(u8),
    Cas(u8, u8),
    /// The value was not this one.
    Differs(u8),
    Take,
    Give,
    Append(u8),
}

/// A register of small values; `Take` and `Give` go from 0 to 1 and back, and `Append` remembers what came before.
struct Register;

impl Model for Register {
    type State = u64;
    type Operation = Operation;

    fn initial(&self) -> u64 {
        0
    }

    fn step(&self, &state: &u64, operation: &Operation) -> Option<u64> {
        match *operation {
            Operation::Read(value) => (state == u64::from(value)).then_some(state),
            Operation::Write(value) => Some(value.into()),
            Operation::Cas(from, to) => (state == u64::from(from)).then_some(to.into()),
            Operation::Differs(value) => (state != u64::from(value)).then_some(state),
            Operation::Take => (state == 0).then_some(1),
            Operation::Give => (state == 1).then_some(0),
            Operation::Append(value) => Some(state.wrapping_mul(4) + u64::from(value)),
        }
    }

    fn effect(&self, operation: &Operation) -> Effect {
        match operation {
            Operation::Read(_) | Operation::Differs(_) => Effect::Observes,
            Operation::Write(_) => Effect::Overwrites,
            _ => Effect::Depends,
        }
    }
}

fn operation(random: &mut Random, flavour: u64) -> Operation {
    let value = random.below(3) as u8;
    match (flavour, random.below(6)) {
        (0, 0..3) | (1, 0..2) => Operation::Read(value),
        (0, _) | (1, 2) => Operation::Write(value),
        (1, 3) => Operation::Differs(value),
        (1, _) => Operation::Cas(value, random.below(3) as u8),
        (2, 0..3) => Operation::Take,
        (2, 3..5) => Operation::Give,
        (2, _) => Operation::Read(value),
        (_, 0..3) => Operation::Append(value),
        (_, 3) => Operation::Write(value),
        _ => Operation::Read((random.below(3) * 4 + random.below(3)) as u8),
    }
}

/// A history of up to seven calls.
fn history(random: &mut Random, flavour: u64) -> History<Operation> {
    let count = 1 + random.below(7) as usize;
    let mut positions: Vec<u32> = (0..2 * count as u32).collect();
    // Mostly near to each other, so that some calls come after others.
    for at in 0..positions.len() {
        let other = (at + random.below(5) as usize).min(positions.len() - 1);
        positions.swap(at, other);
    }
    let calls = positions.chunks(2).enumerate().map(|(id, ends)| {
        let certain = random.below(4) != 0;
        let lasting = !certain && random.below(2) == 0;
        Call {
            operation: operation(random, flavour),
            id: id as u64,
            process: id as u32,
            invoked: ends[0].min(ends[1]),
            returned: if lasting { NEVER } else { ends[0].max(ends[1]) },
            certain,
        }
    });
    History::new(calls.collect())
}

/// The position at which a history stops to be linearizable, by trying every order of every prefix.
fn end_of_prefix(history: &History<Operation>) -> Option<u32> {
    let positions = 0..2 * history.len() as u32;
    positions.into_iter().find(|&position| {
        let mut calls = history.calls().to_vec();
        calls.retain(|call| call.invoked <= position);
        for call in &mut calls {
            if call.returned > position {
                (call.returned, call.certain) = (NEVER, false);
            }
        }
        !brute_force::linearizable(&Register, &calls)
    })
}

fn answer(end: End, script: &Script, history: &History<Operation>) -> Option<u32> {
    match end {
        End::Through => None,
        End::Dead(event) => match script.events[event] {
            Event::Invoke(call) => Some(history.calls()[call as usize].invoked),
            Event::Return(call) => Some(history.calls()[call as usize].returned),
        },
        _ => panic!("a small history passes no limit"),
    }
}

#[test]
fn both_searches_agree_with_trying_every_order() {
    let mut random = Random(1);
    let mut violated = 0;
    for round in 0..300_000 {
        let history = history(&mut random, round % 4);
        let expected = end_of_prefix(&history);
        violated += u64::from(expected.is_some());
        let kinds = Kinds::new(
            &Register,
            history.calls().iter().map(|call| &call.operation),
        );
        let script = Script::new(&history, &kinds, NEVER);
        let leash = Leash {
            limits: Limits::default(),
            done: None,
        };
        let graph = || Graph::<Register, 1>::new(Steps::new(&Register, &kinds));
        let mut broad = BreadthFirst::new(graph(), &script);
        let end = broad.run(script.events.len(), usize::MAX, &script.certain, &leash);
        assert_eq!(
            answer(end, &script, &history),
            expected,
            "breadth first: {history:#?}"
        );
        let end = depth_first::search(BreadthFirst::new(graph(), &script), &script, &leash);
        assert_eq!(
            answer(end, &script, &history),
            expected,
            "depth first: {history:#?}"
        );
    }
    assert!(
        (50_000..250_000).contains(&violated),
        "{violated} histories are violated"
    );
}

/// A history with these calls certain as they are, and all others free to have happened or not.
fn only_certain(history: &History<Operation>, core: &[usize]) -> Vec<Call<Operation>> {
    let mut calls = history.calls().to_vec();
    for (at, call) in calls.iter_mut().enumerate() {
        call.certain &= core.contains(&at);
    }
    calls
}

#[test]
fn a_core_proves_the_violation_and_nothing_of_it_can_be_left_out() {
    let mut random = Random(2);
    for round in 0..30_000 {
        let history = history(&mut random, round % 4);
        let Decision::Violated(violation) = search(&Register, &history, &Limits::default()) else {
            continue;
        };
        let core = violation.calls;
        let has_order =
            |core: &[usize]| brute_force::linearizable(&Register, &only_certain(&history, core));
        assert!(!has_order(&core), "{core:?} of {history:#?}");
        for left_out in 0..core.len() {
            let mut less = core.clone();
            less.remove(left_out);
            assert!(has_order(&less), "{left_out} of {core:?} of {history:#?}");
        }
    }
}
