//! Saved histories keep their verdicts.

use checker::{Answer, Options, Verdict, check};
use histories::Reader;

fn verdict(name: &str) -> Verdict {
    let path = format!(
        "{}/../histories/corpus/v1/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    check(|| Reader::open(&path), Options::default()).expect("a saved history")
}

fn answers(verdict: &Verdict) -> Vec<(&str, Answer)> {
    verdict
        .properties
        .iter()
        .map(|found| (found.name.as_str(), found.outcome.answer()))
        .collect()
}

#[test]
fn the_paused_client_writes_over_its_successor_s_work() {
    use Answer::{Holds, Violated};
    for name in ["paused-client.jsonl", "paused-client.jsonl.zst"] {
        let verdict = verdict(name);
        assert_eq!(verdict.assumptions, Vec::<String>::new());
        assert_eq!(
            answers(&verdict),
            [
                ("mutual-exclusion", Holds),
                ("exclusive-belief", Violated),
                ("no-stale-write", Violated),
                ("no-lost-update", Violated),
                ("document", Holds),
                ("progress", Holds),
                ("efficiency", Holds),
            ]
        );
        assert_eq!(verdict.counts.outlived, 1, "the paused client alone");
        let stale = verdict
            .property("no-stale-write")
            .and_then(|found| found.outcome.witness());
        assert_eq!(
            stale.expect("it is violated").operations,
            [20_000_013, 10_000_010]
        );
    }
}

#[test]
fn of_the_same_history_cut_before_the_stale_write_was_answered_less_is_known() {
    use Answer::{Unknown, Violated};
    let verdict = verdict("paused-client-truncated.jsonl");
    assert_eq!(verdict.seal, histories::Seal::Cut);
    let violated: Vec<_> = answers(&verdict)
        .into_iter()
        .filter(|(_, answer)| *answer != Unknown)
        .collect();
    assert_eq!(violated, [("exclusive-belief", Violated)]);
}
