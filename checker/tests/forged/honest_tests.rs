//! Honest histories are judged right.

use std::collections::BTreeSet;

use crate::honest;
use crate::judge::judge;

#[test]
fn the_same_seed_gives_the_same_history() {
    assert_eq!(honest::history(7).text(), honest::history(7).text());
}

#[test]
fn honest_histories_fail_no_assumption_and_break_no_promise() {
    let mut seen = BTreeSet::new();
    for seed in 0..400 {
        let judgement = judge(&honest::history(seed).text()).expect("it is a history");
        assert_eq!(judgement.assumptions, Vec::<String>::new(), "seed {seed}");
        for (property, finding) in &judgement.properties {
            let class = finding.class.unwrap_or("broken");
            assert!(
                !["broken", "unspecified"].contains(&class),
                "seed {seed}: {property} is {class}"
            );
            seen.insert((*property, class));
        }
    }
    for property in [
        "mutual-exclusion",
        "exclusive-belief",
        "no-stale-write",
        "no-lost-update",
    ] {
        for class in ["kept", "limit-shown", "limit-not-shown"] {
            assert!(
                seen.contains(&(property, class)),
                "no {property} is {class}"
            );
        }
    }
}
