//! Histories that are easy to get wrong, one by one.

use super::super::decide;
use super::{CasRegister, Decision, NEVER, Violation, cas_register, compare};
use crate::linearizability::{Call, History};
use crate::models::cas_register::Operation::{self, Cas, Read, ReadOther, Write};

/// A call that certainly happened.
fn call(operation: Operation, invoked: u32, returned: u32) -> Call<Operation> {
    Call {
        operation,
        id: u64::from(invoked) + 100,
        process: invoked,
        invoked,
        returned,
        certain: true,
    }
}

/// A call that may have happened, by a position or at any time.
fn unknown(operation: Operation, invoked: u32, returned: u32) -> Call<Operation> {
    let certain = false;
    Call {
        certain,
        ..call(operation, invoked, returned)
    }
}

fn cas(expected: u32, new: u32) -> Operation {
    Cas { expected, new }
}

fn decided(calls: &[Call<Operation>]) -> Option<Decision> {
    let model: CasRegister = cas_register();
    let history = History::new(calls.to_vec());
    compare(&model, &history, &mut [0; 3]);
    let decision = decide(&model, &history);
    assert_eq!(decision, decide(&model, &history), "always the same");
    decision
}

fn spared(calls: &[Call<Operation>]) {
    assert_eq!(decided(calls), Some(Decision::Linearizable));
}

fn identified(calls: &[Call<Operation>], witness: &[usize], prefix: u32, sentence: &str) {
    let violation = Violation {
        calls: witness.to_vec(),
        alone: false,
        prefix,
        sentence: Some(sentence.to_owned()),
    };
    assert_eq!(decided(calls), Some(Decision::Violated(violation)));
}

#[test]
fn spares_nothing_at_all() {
    spared(&[]);
}

#[test]
fn spares_reads_beside_a_write_in_either_order() {
    spared(&[
        call(Write(1), 0, 5),
        call(Read(0), 1, 2),
        call(Read(1), 3, 4),
    ]);
}

#[test]
fn identifies_a_read_of_what_was_overwritten() {
    identified(
        &[
            call(Write(1), 0, 1),
            call(Write(2), 2, 3),
            call(Read(1), 4, 5),
        ],
        &[1, 2],
        5,
        "write 1 (100) was over before write 2 (102) began, and that before read 1 (104) began, and nothing wrote 1 again",
    );
}

#[test]
fn identifies_the_initial_value_after_a_write() {
    identified(
        &[call(Write(1), 0, 1), call(Read(0), 2, 3)],
        &[0, 1],
        3,
        "write 1 (100) was over before read 0 (102) began, and nothing wrote 0 again",
    );
}

#[test]
fn identifies_two_values_that_alternate() {
    identified(
        &[
            call(Write(1), 0, 20),
            call(Write(2), 1, 21),
            call(Read(1), 2, 3),
            call(Read(2), 4, 5),
            call(Read(1), 6, 7),
            call(Read(2), 8, 9),
        ],
        &[2, 3, 4],
        7,
        "read 1 (102) was over before read 2 (104) began, and that before read 1 (106) began, and nothing wrote 1 again",
    );
}

#[test]
fn identifies_a_read_before_its_write() {
    identified(
        &[call(Read(1), 0, 1), call(Write(1), 2, 3)],
        &[0],
        1,
        "read 1 (100) was over before write 1 (102) began, without which it could not have been",
    );
}

#[test]
fn identifies_a_value_that_nothing_wrote() {
    identified(
        &[call(Read(7), 0, 1)],
        &[0],
        1,
        "read 7 (100) needs a value that nothing wrote",
    );
}

#[test]
fn spares_an_unknown_write_that_is_found_late_or_never() {
    let write = unknown(Write(1), 0, NEVER);
    spared(&[write.clone(), call(Read(0), 1, 2)]);
    spared(&[write.clone(), call(Read(0), 1, 2), call(Read(1), 3, 4)]);
    spared(&[unknown(Write(1), 0, 1), call(Read(0), 2, 3)]);
}

#[test]
fn identifies_an_unknown_write_that_was_found_too_late() {
    // It may have happened only before the other write began.
    identified(
        &[
            unknown(Write(1), 0, 1),
            call(Write(2), 2, 3),
            call(Read(1), 4, 5),
        ],
        &[1, 2],
        5,
        "write 1 (100) was over before write 2 (102) began, and that before read 1 (104) began, and nothing wrote 1 again",
    );
}

#[test]
fn spares_values_written_twice_that_nobody_found() {
    spared(&[
        call(Write(1), 0, 1),
        call(Write(1), 2, 3),
        call(Write(2), 4, 5),
        call(Read(2), 6, 7),
    ]);
}

#[test]
fn does_not_know_of_values_found_and_written_twice() {
    for write in [call(Write(1), 2, 3), unknown(Write(1), 2, NEVER)] {
        let calls = [call(Write(1), 0, 1), write, call(Read(1), 4, 5)];
        assert_eq!(decided(&calls), None);
    }
    assert_eq!(decided(&[call(Write(0), 0, 1), call(Read(0), 2, 3)]), None);
}

#[test]
fn does_not_know_of_a_cas_that_found_another_value() {
    assert_eq!(decided(&[call(ReadOther(1), 0, 1)]), None);
    spared(&[unknown(ReadOther(0), 0, 1)]);
}

#[test]
fn does_not_know_of_cas_in_a_ring() {
    let calls = [call(cas(2, 1), 0, 2), call(cas(1, 2), 1, 3)];
    assert_eq!(decided(&calls), None);
}

#[test]
fn spares_cas_in_a_chain_of_unknown_ones() {
    spared(&[
        unknown(cas(2, 3), 0, NEVER),
        unknown(cas(1, 2), 1, NEVER),
        unknown(cas(0, 1), 2, NEVER),
        call(Read(0), 3, 4),
        call(Read(3), 5, 6),
    ]);
}

#[test]
fn identifies_two_cas_of_one_value() {
    identified(
        &[call(cas(0, 1), 0, 2), call(cas(0, 2), 1, 3)],
        &[0, 1],
        3,
        "cas 0→1 (100) and cas 0→2 (101) cannot both have found what was there only once",
    );
}

#[test]
fn identifies_a_cas_over_before_the_one_that_led_to_it_began() {
    identified(
        &[call(cas(1, 2), 0, 1), call(cas(0, 1), 2, 3)],
        &[0],
        1,
        "cas 1→2 (100) was over before cas 0→1 (102) began, without which it could not have been",
    );
}

#[test]
fn identifies_a_read_of_what_cas_had_led_away_from() {
    identified(
        &[
            call(cas(1, 2), 0, 2),
            unknown(cas(0, 1), 1, NEVER),
            call(Read(0), 3, 4),
        ],
        &[0, 2],
        4,
        "cas 1→2 (100) was over before read 0 (103) began, and nothing wrote 0 again",
    );
}

#[test]
fn identifies_a_write_within_a_chain() {
    identified(
        &[
            call(Write(1), 0, 1),
            call(Write(9), 2, 3),
            call(cas(1, 2), 4, 5),
        ],
        &[1, 2],
        5,
        "write 1 (100) was over before write 9 (102) began, and that before cas 1→2 (104) began, and only cas led from 1 to 2",
    );
}

#[test]
fn identifies_a_cas_of_what_nothing_wrote() {
    identified(
        &[unknown(cas(8, 1), 0, NEVER), call(Read(1), 1, 2)],
        &[1],
        2,
        "read 1 (101) needs a value that nothing wrote",
    );
}
