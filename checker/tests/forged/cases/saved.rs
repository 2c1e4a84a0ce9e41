//! The saved histories of `histories/corpus/verdicts` and their right answers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::contracts;
use crate::file::File;
use crate::judge::{Judgement, judge};

/// One line of `expected.tsv`.
pub struct Expected {
    pub history: String,
    pub property: String,
    pub answer: String,
    pub class: String,
}

fn folder() -> String {
    format!(
        "{}/../histories/corpus/verdicts",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// All lines of `expected.tsv`.
pub fn expected() -> Vec<Expected> {
    let table = std::fs::read_to_string(format!("{}/expected.tsv", folder())).expect("the table");
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut cells = line.split('\t').map(str::to_owned);
            let mut cell = || cells.next().expect("a cell");
            Expected {
                history: cell(),
                property: cell(),
                answer: cell(),
                class: cell(),
            }
        })
        .collect()
}

/// A saved history with a contract, and with the ends of its clients where those are no part of the case.
pub fn completed(name: &str) -> String {
    let text = std::fs::read_to_string(format!("{}/{name}.jsonl", folder())).expect("a history");
    let mut file = read(&text);
    file.header["contract"] = contracts::of_a_lease(file.header["plan"]["policy"] == "fenced");
    if !["tail-missing", "killed-client-goes-on"].contains(&name) {
        add_exits(&mut file);
    }
    file.text()
}

/// Reads a text that has a header, events and a footer.
fn read(text: &str) -> File {
    let lines = text.lines().map(serde_json::from_str);
    let mut lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("lines of JSON");
    lines.pop();
    let header = lines.remove(0);
    File::new(header, lines)
}

fn add_exits(file: &mut File) {
    let end = file.end() + 1_000_000;
    let processes: BTreeSet<String> = file
        .events
        .iter()
        .filter_map(|event| event["process"].as_str())
        .filter(|process| process.starts_with('c'))
        .map(str::to_owned)
        .collect();
    for process in processes {
        let ended = |e: &Value| e["f"] == "exit" && e["process"] == process.as_str();
        if !file.events.iter().any(ended) {
            file.events
                .push(json!({"t": end, "process": process, "op": 0, "type": "info", "f": "exit", "error": "exit 0"}));
        }
    }
}

/// Violated before unknown before holding.
fn of_the_run(judgement: &Judgement) -> &'static str {
    let all: Vec<&str> = judgement.properties.values().map(|f| f.outcome).collect();
    ["violated", "unknown"]
        .into_iter()
        .find(|outcome| all.contains(outcome))
        .unwrap_or("holds")
}

#[test]
fn saved_histories_have_their_right_answers() {
    let mut wrong = Vec::new();
    for line in expected() {
        let judgement = judge(&completed(&line.history)).expect("a saved history");
        let (outcome, class) = match line.property.as_str() {
            "run" => (of_the_run(&judgement), Some("unknown")),
            property => (judgement.outcome(property), judgement.class(property)),
        };
        if outcome != line.answer || class != Some(&line.class) {
            wrong.push(format!(
                "{} {}: {outcome} {class:?} {judgement:#?}",
                line.history, line.property
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn saved_histories_are_unknown_for_the_right_reason() {
    for (history, reason) in [
        ("killed-client-goes-on", "c1 goes on after its death"),
        (
            "pause-with-evidence-of-a-running-process",
            "nothing shows that inject 1 took hold",
        ),
        (
            "fault-on-another-host-than-planned",
            "inject 1 was not planned so",
        ),
        ("another-fault-than-planned", "inject 1 was not planned so"),
        (
            "storage-log-was-never-read",
            "the storage's log was not read to its end",
        ),
        ("tail-missing", "c1 never ended"),
        (
            "write-with-another-token-than-its-grant",
            "write 13 lacks the token of its grant",
        ),
        (
            "log-tokens-are-not-those-sent",
            "a row of the log is of no write",
        ),
        (
            "fenced-storage-without-tokens",
            "write 13 lacks the token of its grant",
        ),
        ("only-one-client-ever-granted", "no two clients competed"),
    ] {
        let judgement = judge(&completed(history)).expect("a saved history");
        let said = judgement
            .assumptions
            .iter()
            .any(|failure| failure.starts_with(reason));
        assert!(said, "{history}: {:?}", judgement.assumptions);
    }
}

#[test]
fn the_saved_pause_is_judged_whole() {
    let path = format!("{}/../v1/paused-client.jsonl", folder());
    let judgement = judge(&std::fs::read_to_string(path).expect("a history")).expect("a history");
    assert_eq!(judgement.assumptions, Vec::<String>::new());
    for (property, outcome) in [
        ("mutual-exclusion", "holds"),
        ("exclusive-belief", "violated"),
        ("no-stale-write", "violated"),
        ("no-lost-update", "violated"),
        ("document", "holds"),
        ("progress", "holds"),
    ] {
        assert_eq!(judgement.outcome(property), outcome, "{property}");
    }
    assert!(!judgement.properties.contains_key("token-order"));
}
