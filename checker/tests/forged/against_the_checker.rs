//! The checker and the judge say the same of honest and of forged histories.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::cases::saved::{completed, expected};
use crate::differences::differences;
use crate::forged_tests::{edited_often, forgeries};
use crate::honest;

/// Fails with what differs: a line for each kind of edit and difference, with the first seed and how many there were.
fn assert_none(differences: Vec<(String, u64, String)>) {
    let mut kinds: BTreeMap<(String, String), (u64, usize)> = BTreeMap::new();
    for (name, seed, difference) in differences {
        kinds.entry((name, difference)).or_insert((seed, 0)).1 += 1;
    }
    let lines: Vec<String> = kinds
        .iter()
        .map(|((name, difference), (seed, times))| {
            format!("{name} (seed {seed}, {times} times): {difference}")
        })
        .collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

#[test]
fn both_say_the_same_of_honest_histories() {
    let all = (0..150).into_par_iter().flat_map_iter(|seed| {
        let found = differences(&honest::history(seed).text());
        found
            .into_iter()
            .map(move |difference| ("honest".to_owned(), seed, difference))
    });
    assert_none(all.collect());
}

#[test]
fn both_say_the_same_of_forged_histories() {
    let all = forgeries(8)
        .into_par_iter()
        .flat_map_iter(|(edit, seed, forged)| {
            let found = differences(&forged.text());
            found
                .into_iter()
                .map(move |difference| (edit.name.to_owned(), seed, difference))
        });
    assert_none(all.collect());
}

#[test]
fn both_say_the_same_of_histories_that_were_edited_often() {
    let all = edited_often(10_000)
        .into_par_iter()
        .flat_map_iter(|(seed, forged)| {
            let found = differences(&forged.text());
            found
                .into_iter()
                .map(move |difference| ("edited".to_owned(), seed, difference))
        });
    assert_none(all.collect());
}

#[test]
fn both_say_the_same_of_saved_histories() {
    let all = expected().into_iter().flat_map(|line| {
        let found = differences(&completed(&line.history));
        found
            .into_iter()
            .map(move |difference| (line.history.clone(), 0, difference))
    });
    assert_none(all.collect());
}
