//! The same history by property and by model: `mutual-exclusion` and `lease-mutex` say the same of it (docs/verdicts.md).

mod history;
mod naive;
mod random;
mod table;

use checker::Answer::{self, Holds, Unknown, Violated};
use checker::linearizability::{Judgement, Limits, Request, check};
use checker::models::{Setup, kinds};
use histories::entries::Entries;

use history::Told;

#[test]
fn the_table_is_what_every_judge_says() {
    for case in table::cases() {
        let (name, expected) = (case.name, case.says);
        let told = Told::of(case.timeline);
        assert_eq!(told.by_model(false), expected, "{name}, by model");
        let stream = told.by_model(true);
        let cannot_tell = table::STREAM_CANNOT_TELL.contains(&name) && stream == Unknown;
        assert!(
            stream == expected || cannot_tell,
            "{name}, in a stream: {stream:?}"
        );
        if expected == Unknown {
            continue; // No order of calls tells that the record does not fit itself.
        }
        assert_eq!(told.by_search(), expected, "{name}, by search");
        let brute = told.by_brute_force(12);
        assert!(
            brute.is_none_or(|brute| brute == expected),
            "{name}, by brute force"
        );
    }
}

#[test]
fn the_table_is_what_the_property_says() {
    let mut differ = Vec::new();
    for case in table::cases() {
        let (found, _) = Told::of(case.timeline).by_property();
        if found != case.says {
            differ.push((case.name, found));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

fn judged(name: &str, streaming: bool) -> Judgement {
    let path = format!(
        "{}/../histories/corpus/engine/{name}.edn",
        env!("CARGO_MANIFEST_DIR")
    );
    let setup = Setup {
        streaming,
        ..Setup::default()
    };
    let model = kinds().iter().find(|kind| kind.name == "lease-mutex");
    let request = Request { model, setup };
    let checked = check(|| Entries::open(&path), &request, &Limits::default());
    checked
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .judgement
}

#[test]
fn a_call_counts_from_its_invocation_whatever_its_completion_does() {
    let files: [(&str, Answer); 5] = [
        ("lease-reacquire-unknown-info-release", Holds),
        ("lease-unreturned-acquire-false-violation", Holds),
        ("lease-unreturned-acquire-with-info", Holds),
        ("lease-unreturned-ok-acquire-then-extend", Holds),
        ("stream-lease-late-return-missed", Violated),
    ];
    for (name, answer) in files {
        assert_eq!(judged(name, false).outcome, answer, "{name}");
    }
    assert_eq!(
        judged("stream-lease-late-return-missed", true).outcome,
        Violated
    );
}
