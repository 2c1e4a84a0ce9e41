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

use crate::damage::Flaw;
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

/// How many violations of a property the checker counts.
fn violations(verdict: &Verdict, property: &str) -> usize {
    verdict
        .property(property)
        .map_or(0, |found| found.violations as usize)
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

    let late = moments::late(&told, &holds);
    let counted = violations(&verdict, "mutual-exclusion");
    prop_assert_eq!(counted, late.len(), "mutual-exclusion: {:?}", late);
    if let Some(pair) = proof(&verdict, "mutual-exclusion") {
        prop_assert!(
            moments::overlap(&holds, pair[0], pair[1]),
            "{:?} overlap for certain",
            pair
        );
    }
    let late = moments::late(&told, &beliefs);
    let counted = violations(&verdict, "exclusive-belief");
    prop_assert_eq!(counted, late.len(), "exclusive-belief: {:?}", late);
    if let Some(pair) = proof(&verdict, "exclusive-belief") {
        prop_assert!(
            moments::overlap(&beliefs, pair[0], pair[1]),
            "{:?} overlap in belief",
            pair
        );
    }
    let disorders = pairs::token_disorders(&told, &began);
    let counted = violations(&verdict, "token-order");
    prop_assert_eq!(counted, disorders.len(), "token-order: {:?}", disorders);

    let accepted = pairs::accepted(&told);
    let stale = pairs::stale(&told, &began, &accepted);
    let counted = violations(&verdict, "no-stale-write");
    prop_assert_eq!(counted, stale.len(), "no-stale-write: {:?}", stale);
    let lost = pairs::lost_updates(&told, &accepted);
    let counted = violations(&verdict, "no-lost-update");
    prop_assert_eq!(counted, lost.len(), "no-lost-update: {:?}", lost);

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

/// What is proven of a damaged history is true of the whole.
///
/// Two proofs can be overtaken. That a waiter came after the holder before it rests on the lock's exclusion, and which of
/// two grants is later may rest on the order of tokens; what the damage hides may refute either, and the history is
/// violated then for that.
fn compare_damaged(whole: &Verdict, damaged: &Verdict) -> Result<(), TestCaseError> {
    for found in &damaged.properties {
        let overtaken = match found.name.as_str() {
            "token-order" => violated(whole, "mutual-exclusion"),
            "no-stale-write" => {
                violated(whole, "mutual-exclusion") || violated(whole, "token-order")
            }
            _ => false,
        };
        if found.outcome.answer() == Answer::Violated && !overtaken {
            prop_assert!(
                violated(whole, &found.name),
                "{:?} of the damaged history",
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
        let cut = judge(&damage::cut(&history.events, &cuts), false);
        prop_assert!(cut.properties.iter().all(|found| found.outcome.answer() != Answer::Holds));
        compare_damaged(&judge(&history.events, true), &cut)?;
    }

    #[test]
    fn no_flaw_makes_up_a_violation(
        history in history(3, 44),
        flaw in prop::sample::select(vec![Flaw::NotBegun, Flaw::SameId, Flaw::OtherFunction]),
        at in 0_usize..900,
    ) {
        compare_damaged(&judge(&history.events, true), &judge(&damage::flawed(&history.events, flaw, at), true))?;
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
