//! The closed forms of the checker against brute force that is plainly right, on small random histories.
//!
//! [`random`] makes histories of few operations, most of them sensible and some of them not; [`moments`] judges locks by
//! looking at every single millisecond, [`pairs`] judges tokens and writes by looking at every pair, and [`search`]
//! judges documents by trying every order. Each is written from the definitions alone and shares no code with the
//! checker.

mod damage;
mod moments;
mod pairs;
mod random;
mod search;
mod told;

use checker::{Answer, Checker, Options, Verdict};
use histories::Event;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::random::{History, history};
use crate::told::Told;

/// What the checker says.
fn judge(events: &[Event<'_>], complete: bool) -> Verdict {
    let mut checker = Checker::new(&random::header(), Options::default());
    for event in events {
        checker
            .push(event)
            .expect("random histories can be understood");
    }
    checker.finish(complete)
}

/// Whether the checker calls a property violated; not if the history cannot speak to it.
fn violated(verdict: &Verdict, property: &str) -> bool {
    let found = verdict.property(property);
    found.is_some_and(|found| found.outcome.answer() == Answer::Violated)
}

/// The two operations by which the checker proves that a property is violated.
fn proof(verdict: &Verdict, property: &str) -> Option<Vec<u64>> {
    let witness = verdict.property(property)?.outcome.witness()?;
    Some(witness.operations.clone())
}

fn compare(history: &History) -> Result<(), TestCaseError> {
    let verdict = judge(&history.events, true);
    let told = Told::of(&history.events);
    let holds = moments::certain_holds(&told);
    let beliefs = moments::beliefs(&told);
    let began = moments::began(&told, &holds);

    prop_assert_eq!(
        violated(&verdict, "mutual-exclusion"),
        moments::any_two(&told, &holds),
        "mutual-exclusion"
    );
    if let Some(pair) = proof(&verdict, "mutual-exclusion") {
        prop_assert!(
            moments::overlap(&holds, pair[0], pair[1]),
            "{:?} overlap for certain",
            pair
        );
    }
    prop_assert_eq!(
        violated(&verdict, "exclusive-belief"),
        moments::any_two(&told, &beliefs),
        "exclusive-belief"
    );
    if let Some(pair) = proof(&verdict, "exclusive-belief") {
        prop_assert!(
            moments::overlap(&beliefs, pair[0], pair[1]),
            "{:?} overlap in belief",
            pair
        );
    }
    let disorders = pairs::token_disorders(&told, &began);
    let counted = verdict
        .property("token-order")
        .map_or(0, |found| found.violations);
    prop_assert_eq!(
        counted,
        disorders.len() as u64,
        "token-order: {:?}",
        disorders
    );

    let accepted = pairs::accepted(&told);
    let stale = pairs::stale(&told, &began, &accepted);
    let counted = verdict
        .property("no-stale-write")
        .map_or(0, |found| found.violations);
    prop_assert_eq!(counted, stale.len() as u64, "no-stale-write: {:?}", stale);
    let lost = pairs::lost_updates(&told, &accepted);
    let counted = verdict
        .property("no-lost-update")
        .map_or(0, |found| found.violations);
    prop_assert_eq!(counted, lost.len() as u64, "no-lost-update: {:?}", lost);

    prop_assert_eq!(
        violated(&verdict, "document"),
        !search::linearizable(&told),
        "document"
    );
    prop_assert_eq!(
        violated(&verdict, "progress"),
        moments::stuck(&told, &beliefs),
        "progress"
    );
    Ok(())
}

/// What is proven of a history that is cut stays proven of the whole.
///
/// One proof can be overtaken: that a waiter came after the holder before it rests on the lock's exclusion, which the
/// rest of the history may refute; the history is violated then for that.
fn compare_cut(history: &History, cuts: &[usize]) -> Result<(), TestCaseError> {
    let whole = judge(&history.events, true);
    let cut = judge(&damage::cut(&history.events, cuts), false);
    for found in &cut.properties {
        prop_assert_ne!(found.outcome.answer(), Answer::Holds);
        let overtaken = matches!(found.name.as_str(), "token-order" | "no-stale-write")
            && violated(&whole, "mutual-exclusion");
        if found.outcome.answer() == Answer::Violated && !overtaken {
            prop_assert!(
                violated(&whole, &found.name),
                "{:?} of the cut history",
                found
            );
        }
    }
    Ok(())
}

/// Few cases, for every day; PROPTEST_CASES asks for more.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 1000;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn closed_forms_agree_with_brute_force(history in history(2, 44)) {
        compare(&history)?;
    }

    #[test]
    fn closed_forms_agree_with_brute_force_on_many_clients(history in history(4, 30)) {
        compare(&history)?;
    }

    #[test]
    fn a_cut_proves_nothing_that_the_whole_does_not(
        history in history(3, 50),
        cuts in prop::collection::vec(0_usize..8, 8),
    ) {
        compare_cut(&history, &cuts)?;
    }

    #[test]
    fn no_event_makes_the_checker_panic(events in damage::nonsense()) {
        let mut checker = Checker::new(&random::header(), Options::default());
        for event in &events {
            // What cannot be understood is an error; that there is one changes nothing about the rest.
            let _ = checker.push(event);
        }
        let first = checker.finish(true);
        let mut again = Checker::new(&random::header(), Options::default());
        events.iter().for_each(|event| drop(again.push(event)));
        prop_assert_eq!(first, again.finish(true), "the same events give the same verdict");
    }
}

#[test]
fn random_histories_show_both_sides_of_every_property() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut sides = std::collections::BTreeMap::<String, [u32; 2]>::new();
    for _ in 0..2000 {
        let history = history(3, 40)
            .new_tree(&mut runner)
            .expect("a strategy without filters")
            .current();
        for found in judge(&history.events, true).properties {
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
