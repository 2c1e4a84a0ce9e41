//! A search that looks ahead says what one says that tries every order: of maps, whose reads tell what was appended before.

use checker::linearizability::{
    Call, Decision, History, Limits, NEVER, Violation, brute_force, linearizable,
};
use checker::models::map::{Operation, StringMap};
use checker::models::{Outcome, Recorded, Told};
use histories::entries::Value;
use proptest::prelude::*;

/// Who does something, what, and with which string.
type Step = (u8, u8, u8);

const CALLS_MAX: usize = 8;

fn operation(map: &mut StringMap, f: &str, string: &str) -> Operation {
    let value = Value::Text(string.into());
    let told = Told {
        f,
        key: None,
        process: (0, "0"),
        input: &value,
        outcome: Outcome::Done(&value),
        token: None,
        validity: None,
        op: None,
        grant: None,
        begun: 0,
    };
    let read = map.read(&told).expect("a map does it");
    read.expect("what was done tells something")
}

/// A call in flight.
struct Open {
    invoked: u32,
    f: &'static str,
    string: &'static str,
}

/// A history of one key: a process without a call in flight begins one, and else ends it. Calls take effect as they return,
/// some have an outcome that nobody learned, and some reads find what was not there.
fn history(map: &mut StringMap, steps: &[Step]) -> History<Operation> {
    let mut now = String::new();
    let mut open: [Option<Open>; 5] = Default::default();
    let mut calls = Vec::new();
    let mut begun = 0;
    for (position, &(process, what, which)) in steps.iter().enumerate() {
        let position = position as u32;
        let strings = ["", "a", "b", "ab", "ba"];
        let string = strings[usize::from(which) % strings.len()];
        let place = &mut open[usize::from(process) % 5];
        let Some(Open { invoked, f, string }) = place.take() else {
            if begun < CALLS_MAX {
                begun += 1;
                let f = ["get", "get", "append", "append", "append", "put"][usize::from(what) % 6];
                *place = Some(Open {
                    invoked: position,
                    f,
                    string,
                });
            }
            continue;
        };
        let unknown = what % 8 == 0 && f != "get";
        if !(unknown && which % 2 == 0) {
            match f {
                "append" => now += string,
                "put" => now = string.to_owned(),
                _ => {}
            }
        }
        let found = if what % 8 == 1 { string } else { &now };
        calls.push(Call {
            operation: operation(map, f, if f == "get" { found } else { string }),
            id: invoked.into(),
            process: process.into(),
            invoked,
            returned: if unknown { NEVER } else { position },
            certain: !unknown,
        });
    }
    History::new(calls)
}

/// The first position with which a history is not linearizable.
fn end_of_prefix(map: &StringMap, history: &History<Operation>) -> Option<u32> {
    let returns = history.calls().iter().map(|call| call.returned);
    let mut returns: Vec<u32> = returns.filter(|&returned| returned != NEVER).collect();
    returns.sort_unstable();
    returns.into_iter().find(|&end| {
        let mut calls = history.calls().to_vec();
        calls.retain(|call| call.invoked < end);
        for call in calls.iter_mut().filter(|call| call.returned > end) {
            (call.returned, call.certain) = (NEVER, false);
        }
        !brute_force::linearizable(map, &calls)
    })
}

/// Whether these calls have an order where each of the others happened or did not.
fn has_order(map: &StringMap, history: &History<Operation>, core: &[usize]) -> bool {
    let mut calls = history.calls().to_vec();
    for (at, call) in calls.iter_mut().enumerate() {
        call.certain &= core.contains(&at);
    }
    brute_force::linearizable(map, &calls)
}

fn assert_proves(map: &StringMap, history: &History<Operation>, violation: &Violation) {
    let core = &violation.calls;
    assert!(!has_order(map, history, core), "{violation:?} {history:#?}");
    for left_out in core {
        let less: Vec<usize> = core.iter().copied().filter(|at| at != left_out).collect();
        assert!(has_order(map, history, &less), "{violation:?} {history:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn a_map_is_judged_as_by_trying_every_order(
        steps in prop::collection::vec((0..5_u8, any::<u8>(), any::<u8>()), 4..24)
    ) {
        let mut map = StringMap::default();
        let history = history(&mut map, &steps);
        let end = end_of_prefix(&map, &history);
        match linearizable(&map, &history, &Limits::default()) {
            Decision::Linearizable => prop_assert_eq!(end, None, "{:#?}", history),
            Decision::Violated(violation) => {
                prop_assert_eq!(Some(violation.prefix), end, "{:#?}", history);
                assert_proves(&map, &history, &violation);
            }
            Decision::Unknown { reason, .. } => panic!("{reason}"),
        }
    }
}
