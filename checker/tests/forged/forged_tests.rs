//! Forged histories never pass for honest ones that kept a promise which they break.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::file::File;
use crate::forger::{Edit, edits, forge, forge_by};
use crate::honest;
use crate::judge::judge;

/// How many honest histories are forged.
const BASES: u64 = 64;

/// Forged histories: each kind of edit, so many times, each at another place of another history.
pub fn forgeries(times: u64) -> Vec<(Edit, u64, File)> {
    let bases: Vec<File> = (0..BASES).map(honest::history).collect();
    let mut all = Vec::new();
    for (kind, edit) in edits().into_iter().enumerate() {
        let mut seed = kind as u64 * 1_000;
        let mut made = 0;
        while made < times {
            let base = &bases[(seed % BASES) as usize];
            if let Some(forged) = forge(base, edit, seed) {
                all.push((edit, seed, forged));
                made += 1;
            }
            seed += 1;
            assert!(
                seed < kind as u64 * 1_000 + 1_000,
                "{} never applies",
                edit.name
            );
        }
    }
    all
}

#[test]
fn there_are_many_kinds_of_edit_and_each_has_its_name() {
    let names: BTreeSet<&str> = edits().iter().map(|edit| edit.name).collect();
    assert_eq!(names.len(), edits().len());
    assert!(names.len() >= 60, "{}", names.len());
}

/// Edits that often make another history that may well be, so that nobody can tell: the outcome may be another, and
/// nothing has to be noticed.
const PLAUSIBLE: &[&str] = &[
    "a-failure-is-a-loss",
    "a-fault-with-a-limit-planned",
    "a-hazard-that-nobody-knows",
    "a-heal-asked-for-at-its-event",
    "a-heal-that-says-nothing",
    "a-kill-in-place-of-a-restart",
    "a-life-as-it-was-asked-for",
    "a-log-answers-of-no-document",
    "a-long-ttl",
    "a-longer-validity",
    "a-loss-is-no-loss",
    "a-pause-of-who-is-started-again",
    "a-pause-of-who-was-restarted",
    "a-question-while-work-is-held",
    "a-release-is-unknown",
    "a-shorter-validity",
    "a-stall-of-any-length",
    "a-trigger-that-had-come",
    "a-write-is-unknown",
    "an-extension-failed",
    "an-extension-is-unknown",
    "an-extension-without-ttl",
    "an-extension-without-validity",
    "another-lock-acquired",
    "another-policy",
    "another-renewal",
    "drop-a-read",
    "drop-a-remark",
    "drop-a-work",
    "drop-an-extend",
    "ended-as-asked",
    "fail-becomes-info",
    "held-is-the-other-way",
    "info-becomes-fail",
    "it-took-hold-after-it-was-told",
    "more-clients",
    "move-the-tail-later",
    "no-bases",
    "no-digest",
    "no-validity",
    "other-controls",
    "other-sufficient-evidence",
    "refusals-are-unknown",
    "stalls-were-not-recorded",
    "version-1",
    "version-1-that-tells-other-effects",
];

#[test]
fn most_kinds_of_edit_are_noticed() {
    let said: Vec<_> = (0..BASES)
        .map(|seed| judge(&honest::history(seed).text()))
        .collect();
    let noticed: BTreeSet<&str> = forgeries(10)
        .into_par_iter()
        .filter(|(_, seed, forged)| judge(&forged.text()) != said[(seed % BASES) as usize])
        .map(|(edit, _, _)| edit.name)
        .collect();
    let missed: Vec<&str> = edits()
        .iter()
        .map(|e| e.name)
        .filter(|name| !noticed.contains(name) && !PLAUSIBLE.contains(name))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// The history of a seed, with one to four edits.
pub fn edited_with(seed: u64) -> File {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let edits = rng.random_range(1..=4);
    let mut bytes = (seed % BASES).to_le_bytes().to_vec();
    bytes.extend((0..3 * edits).map(|_| rng.random::<u8>()));
    let (forged, _) = forge_by(&bytes).expect("there are eight bytes");
    forged
}

/// Histories with one to four edits each.
pub fn edited_often(count: u64) -> Vec<(u64, File)> {
    (0..count).map(|seed| (seed, edited_with(seed))).collect()
}

#[test]
fn a_history_that_was_edited_often_can_be_judged_again_and_again() {
    for (seed, forged) in edited_often(100) {
        let judged = |file: &File| judge(&file.text()).map(|judgement| judgement.assumptions);
        assert_eq!(judged(&forged), judged(&forged), "seed {seed}");
    }
}
