//! `check` and `export` of other people's histories, from the outside; nothing here needs Docker.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn corpus(name: &str) -> String {
    format!("{}/../histories/corpus/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn fencepost(arguments: &[&str]) -> Output {
    fencepost_with(arguments, "")
}

fn fencepost_with(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Whoever does not read its input closes it early, which is no matter here.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[track_caller]
fn says(output: &Output, status: i32, parts: &[&str]) {
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(status), "{said}");
    for part in parts {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
}

fn saved(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const STALE: &str = "\
{:process 0, :type :invoke, :f :write, :value 1}
{:process 0, :type :ok, :f :write, :value 1}
{:process 1, :type :invoke, :f :write, :value 2}
{:process 1, :type :ok, :f :write, :value 2}
{:process 2, :type :invoke, :f :read, :value nil}
{:process 2, :type :ok, :f :read, :value 1}
";

#[test]
fn a_folder_of_histories_is_judged_a_line_each_and_summed_up() {
    let output = fencepost(&["check", &corpus("porcupine/jepsen")]);
    says(
        &output,
        1,
        &[
            "etcd_002.log: holds (cas-register",
            "60 histories: 13 hold, 47 are violated, 0 unknown",
        ],
    );
    let output = fencepost(&["check", "--format", "json", &corpus("porcupine/kv")]);
    assert_eq!(output.status.code(), Some(1));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let outcomes: Vec<(&str, &str)> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|judged| {
            (
                judged["model"].as_str().unwrap(),
                judged["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = ["violated", "holds", "violated", "holds"].map(|outcome| ("map", outcome));
    assert_eq!(outcomes, expected);
    let witness = &list[0]["properties"][0]["witness"];
    assert_eq!(
        witness["operations"].as_array().unwrap().len(),
        witness["calls"].as_array().unwrap().len()
    );
    assert!(witness["linearizable_events"].as_u64().unwrap() > 0);
}

#[test]
fn a_violation_is_proven_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = saved(folder.path(), "history.edn", STALE);
    let told = [
        "violated (register, guessed; 3 operations",
        "write 2",
        "read 1",
        "prefix has 5 events",
    ];
    says(&fencepost(&["check", &path]), 1, &told);
    says(&fencepost_with(&["check", "-"], STALE), 1, &told);
    says(
        &fencepost(&["check", &path, "--model", "cas-register", "--initial", "1"]),
        1,
        &["(cas-register; 3"],
    );
    let two = STALE.replace(":ok, :f :read, :value 1", ":ok, :f :read, :value 2");
    says(
        &fencepost_with(&["check", "-", "--model", "register"], &two),
        0,
        &["holds"],
    );
}

#[test]
fn what_cannot_be_judged_is_told_with_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let broken = saved(
        folder.path(),
        "broken.edn",
        &STALE.replace(":value 2}\n{:process 2", ":value }\n{:process 2"),
    );
    says(&fencepost(&["check", &broken]), 65, &["broken.edn:4:"]);
    let twice = saved(
        folder.path(),
        "twice.edn",
        &STALE.replacen(":process 1, :type :invoke", ":process 0, :type :invoke", 1),
    );
    says(
        &fencepost(&["check", &twice]),
        65,
        &["twice.edn:4", "is not in flight"],
    );
    let queue = saved(
        folder.path(),
        "queue.edn",
        &STALE.replace(":read", ":dequeue"),
    );
    says(
        &fencepost(&["check", &queue]),
        65,
        &["`dequeue`", "name the model"],
    );
    says(
        &fencepost(&["check", &queue, "--model", "register"]),
        65,
        &["queue.edn:6", "no operation `dequeue`"],
    );
    let empty = saved(folder.path(), "empty.edn", "[]");
    says(
        &fencepost(&["check", &empty, "--model", "register"]),
        2,
        &["no operation"],
    );
    let cut = saved(
        folder.path(),
        "cut.edn",
        &STALE.replace(":read, :value 1}", ":re"),
    );
    says(&fencepost(&["check", &cut]), 2, &["cut"]);
}

#[test]
fn a_model_that_cannot_be_had_so_is_told_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let queue = saved(folder.path(), "queue.edn", STALE);
    says(
        &fencepost(&["check", &queue, "--model", "registr"]),
        64,
        &["did you mean `register`"],
    );
    says(
        &fencepost(&["check", &queue, "--model", "mutex", "--initial", "1"]),
        64,
        &["--initial means nothing"],
    );
    says(
        &fencepost(&["check", &queue, "--model", "semaphore"]),
        64,
        &["--permits"],
    );
    says(
        &fencepost(&["check", &queue, "--model", "register", "--stream"]),
        64,
        &["register", "as it comes"],
    );
    says(
        &fencepost(&["check", &queue, "--initial", "[1"]),
        64,
        &["--initial [1"],
    );
}

#[test]
fn locks_are_judged_as_they_come() {
    let lock = |process: u32, kind: &str, f: &str| {
        format!("{{:process {process}, :type :{kind}, :f :{f}, :value nil}}\n")
    };
    let held =
        lock(0, "invoke", "acquire") + &lock(0, "ok", "acquire") + &lock(1, "invoke", "acquire");
    let twice = held.clone() + &lock(1, "ok", "acquire");
    let stream = ["check", "-", "--model", "owner-aware-mutex", "--stream"];
    says(
        &fencepost_with(&stream, &twice),
        1,
        &[
            "that begins in line 3 succeeded though the lock was still held by the operation that begins in line 1",
        ],
    );
    says(
        &fencepost_with(&stream, &held),
        0,
        &["holds", "2 operations, 1 of unknown outcome"],
    );
}

#[test]
fn an_exported_history_gets_the_verdict_that_ours_gets() {
    let ours = corpus("v1/paused-client.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let output = fencepost(&["export", &ours, "--only", "read,write"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("{:index 0, :time "), "{text}");
    let path = saved(folder.path(), "exported.edn", &text);
    let initial = ["--model", "register", "--initial", "\"\""];
    let [exported, own] =
        [&path, &ours].map(|path| fencepost(&[&["check", path.as_str()], &initial[..]].concat()));
    assert_eq!(exported.status.code(), own.status.code());
    let counts = |output: &Output| {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said[said.find(": ").unwrap()..said.find(')').unwrap()].to_owned()
    };
    assert_eq!(counts(&exported), counts(&own));
    says(
        &fencepost(&["export", &ours, "--only", "cas"]),
        64,
        &["none of these operations"],
    );
}
