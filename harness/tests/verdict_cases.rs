//! Saved histories keep their answers and classes, whoever judges them: small ones on which a judge may be fooled
//! (`histories/corpus/verdicts`, whose `expected.tsv` says why), and real ones of version 2 (`histories/corpus/v2`). They
//! are judged by the command itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use histories::{Reader, Writer};
use serde_json::Value;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../histories/corpus")
        .join(name)
}

fn fencepost(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

/// What the command makes of each history in a folder, by name.
fn judged(folder: &Path) -> BTreeMap<String, Value> {
    let output = fencepost(&["check", "--format", "json", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "some are violated");
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let name = |history: &Value| {
        let path = PathBuf::from(history["history"].as_str().unwrap());
        path.file_stem().unwrap().to_string_lossy().into_owned()
    };
    list.into_iter().map(|one| (name(&one), one)).collect()
}

/// Answer and class of a property, or of the whole run: unknown where all of it is.
fn found(history: &Value, property: &str) -> (Value, Value) {
    let properties = history["properties"].as_array().unwrap();
    if property == "run" {
        let unknown = properties.iter().all(|one| one["class"] == "unknown");
        let class = if unknown {
            "unknown"
        } else {
            "not all unknown"
        };
        return (history["outcome"].clone(), class.into());
    }
    let one = properties.iter().find(|one| one["name"] == property);
    one.map_or((Value::Null, Value::Null), |one| {
        (one["outcome"].clone(), one["class"].clone())
    })
}

/// Compares with the folder's `expected.tsv`; how many lines that has.
fn compare(judged: &BTreeMap<String, Value>, expected: &Path) -> usize {
    let expected = fs::read_to_string(expected.join("expected.tsv")).unwrap();
    let lines = expected.lines().filter(|line| !line.starts_with('#'));
    let mut wrong = Vec::new();
    for line in lines.clone() {
        let words: Vec<&str> = line.split('\t').take(4).collect();
        let [name, property, answer, class] = words[..] else {
            panic!("four words in `{line}`");
        };
        let found = found(&judged[name], property);
        if found != (answer.into(), class.into()) {
            wrong.push(format!(
                "{name} {property}: {answer} {class}, not {found:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    lines.count()
}

#[test]
fn histories_that_may_fool_a_judge_have_their_right_answers() {
    let folder = corpus("verdicts");
    let judged = judged(&folder);
    assert_eq!((compare(&judged, &folder), judged.len()), (21, 20));
}

#[test]
fn histories_of_version_2_keep_their_verdicts_and_are_sealed() {
    let folder = corpus("v2");
    let judged = judged(&folder);
    assert_eq!((compare(&judged, &folder), judged.len()), (59, 8));
    for (name, history) in &judged {
        assert_eq!(history["seal"], "sealed", "{name}");
        assert_eq!(history["assumptions"], Value::Array(Vec::new()), "{name}");
    }
    let by_contract = fencepost(&["check", "--by-contract", folder.to_str().unwrap()]);
    assert_eq!(by_contract.status.code(), Some(0), "no promise is broken");
}

/// The same history of a lock, a topology and a policy that no build knows.
fn disguise(from: &Path, to: &Path) {
    let mut reader = Reader::open(from).unwrap();
    let mut header = reader.header().clone();
    header.plan.lock = "their-lock".into();
    header.plan.topology = "their-servers".into();
    header.plan.policy = "their-policy".into();
    let mut writer = Writer::create(to, &header).unwrap();
    while let Some(event) = reader.next().unwrap() {
        writer.write(&event).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_lock_that_the_build_does_not_know_is_judged_by_the_contract_that_its_history_brings() {
    let out = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(corpus("v2")).unwrap() {
        let from = entry.unwrap().path();
        if from
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            disguise(&from, &out.path().join(from.file_name().unwrap()));
        }
    }
    let judged = judged(out.path());
    assert_eq!(compare(&judged, &corpus("v2")), 59);
    let page = fencepost(&["check", "--by-contract", out.path().to_str().unwrap()]);
    assert_eq!(page.status.code(), Some(0));
    let page = String::from_utf8(page.stdout).unwrap();
    let row = page
        .lines()
        .find(|line| line.starts_with(" their-lock their-policy"));
    let row = row.expect("the matrix has a row of that lock");
    assert!(row.contains("limit shown") && row.contains("kept"), "{row}");

    let run = out.path().join("paused-client/a-run");
    fs::create_dir_all(&run).unwrap();
    let one = &judged["paused-client-redis-token-unfenced"];
    fs::write(run.join("verdict.json"), one.to_string()).unwrap();
    let listed = fencepost(&["list", "runs", "--out", out.path().to_str().unwrap()]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("paused-client their-lock their-policy"),
        "{listed}"
    );
    assert!(listed.contains("violated"), "{listed}");
}

#[test]
fn an_unknown_lock_without_a_contract_promises_nothing_and_is_not_green() {
    let out = tempfile::tempdir().unwrap();
    let saved = corpus("v2").join("no-fault-redlock-unfenced.jsonl");
    let mut reader = Reader::open(&saved).unwrap();
    let mut header = reader.header().clone();
    header.plan.lock = "their-lock".into();
    header.contract.clear();
    let path = out.path().join("history.jsonl");
    let mut writer = Writer::create(&path, &header).unwrap();
    while let Some(event) = reader.next().unwrap() {
        writer.write(&event).unwrap();
    }
    writer.finish().unwrap();
    let path = path.to_str().unwrap();
    let output = fencepost(&["check", "--by-contract", "--format", "json", path]);
    assert_eq!(output.status.code(), Some(2));
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    for property in list[0]["properties"].as_array().unwrap() {
        assert_eq!(property["class"], "unspecified", "{property}");
    }
}
