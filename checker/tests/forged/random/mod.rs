//! Small random histories, of clients that mostly do right and sometimes do not, judged by both.
//!
//! Unlike the honest ones they were never thought of by a service: their grants, extensions and writes come in any order.

mod damage;
mod histories;
mod search;
mod told;

use ::histories::{Event, Seal};
use checker::{Answer, Checker, Options, Verdict};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use crate::differences::differences;
use crate::file::File;
use crate::judge::judge;
use damage::Flaw;
use histories::{History, header, history};
use told::Told;

/// What the checker says.
fn verdict(events: &[Event<'_>]) -> Verdict {
    let mut checker = Checker::new(&header(), Options::default());
    for event in events {
        checker
            .push(event)
            .expect("random histories can be understood");
    }
    checker.finish(Seal::Sealed)
}

/// The text of a history of these events.
fn text(events: &[Event<'_>], is_cut: bool) -> String {
    let json = |value: serde_json::Result<Value>| value.expect("it is JSON");
    let events = events.iter().map(serde_json::to_value).map(json).collect();
    let mut file = File::new(json(serde_json::to_value(header())), events);
    file.has_footer = !is_cut;
    file.text()
}

fn both_say_the_same(events: &[Event<'_>], is_cut: bool) -> Result<(), TestCaseError> {
    let found = differences(&text(events, is_cut));
    prop_assert!(found.is_empty(), "{found:#?}");
    Ok(())
}

/// Few cases, and the same ones every day; PROPTEST_CASES asks for more and for others.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 500;
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn both_say_the_same_of_random_histories(history in history(2, 44)) {
        both_say_the_same(&history.events, false)?;
    }

    #[test]
    fn both_say_the_same_of_random_histories_of_many_clients(history in history(4, 30)) {
        both_say_the_same(&history.events, false)?;
    }

    #[test]
    fn both_say_the_same_of_a_cut(history in history(3, 50), cuts in prop::collection::vec(0_usize..8, 8)) {
        both_say_the_same(&damage::cut(&history.events, &cuts), true)?;
    }

    #[test]
    fn both_say_the_same_of_a_flawed_history(
        history in history(3, 44),
        flaw in prop::sample::select(vec![Flaw::NotBegun, Flaw::SameId, Flaw::OtherFunction]),
        at in 0_usize..900,
    ) {
        both_say_the_same(&damage::flawed(&history.events, flaw, at), false)?;
    }

    #[test]
    fn a_document_is_linearizable_if_some_order_of_all_its_operations_explains_it(history in history(2, 44)) {
        let judgement = judge(&text(&history.events, false)).expect("it can be understood");
        // What the record alone gets wrong is left out by both judges, and would be searched for here.
        let doubtful = |reason: &String| reason.contains("cannot have read") || reason.contains("after its death");
        if !judgement.assumptions.iter().any(doubtful) {
            prop_assert_eq!(
                judgement.outcome("document") == "violated",
                !search::linearizable(&Told::of(&history.events))
            );
        }
    }

    #[test]
    fn no_event_makes_the_checker_panic(events in damage::nonsense()) {
        let said = || {
            let mut checker = Checker::new(&header(), Options::default());
            // What cannot be understood is an error; that there is one changes nothing about the rest.
            events.iter().for_each(|event| drop(checker.push(event)));
            checker.finish(Seal::Sealed)
        };
        prop_assert_eq!(said(), said(), "the same events give the same verdict");
    }
}

#[test]
fn random_histories_show_both_sides_of_every_property() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut sides = std::collections::BTreeMap::<String, [u32; 2]>::new();
    for _ in 0..2000 {
        let History { events } = history(3, 40)
            .new_tree(&mut runner)
            .expect("a strategy without filters")
            .current();
        for found in verdict(&events).properties {
            let violated = found.outcome.answer() == Answer::Violated;
            sides.entry(found.name).or_default()[usize::from(violated)] += 1;
        }
    }
    sides.remove("efficiency");
    assert_eq!(sides.len(), 7, "{sides:?}");
    assert!(
        sides.values().flatten().all(|&times| times >= 60),
        "{sides:?}"
    );
}
