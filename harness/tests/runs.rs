//! The whole, on real servers: what the scenarios show, what the tests of the tester notice, and what is left behind.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use containers::owner::{self, Owner};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Runs compete for two processors and for what `clean` may remove: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A test's turn with Docker.
struct Turn {
    _alone: MutexGuard<'static, ()>,
    /// What others had left before, for good: the daemon itself may hold on to a network.
    before: Vec<String>,
}

impl Turn {
    /// What the test has left behind so far.
    fn left_behind(&self) -> Vec<String> {
        let mut left = left_behind();
        left.retain(|thing| !self.before.contains(thing));
        left
    }
}

/// A turn with Docker; none where there is no Docker, which only a person's machine may lack.
fn turn() -> Option<Turn> {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    containers::docker_or_skip().map(|()| Turn {
        _alone: alone,
        before: left_behind(),
    })
}

fn fencepost(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs to the end; the exit status and the judgements that were printed.
fn run(out: &Path, arguments: &[&str]) -> (Option<i32>, Vec<Value>, String) {
    let out = out.to_string_lossy();
    let arguments = [&["run", "--format", "json", "--out", &out], arguments].concat();
    let output = fencepost(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let judgements = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}; stderr:\n{said}"));
    (output.status.code(), judgements, said)
}

fn class<'v>(judgement: &'v Value, property: &str) -> &'v str {
    let properties = judgement["properties"].as_array().unwrap();
    let property = properties.iter().find(|found| found["name"] == property);
    property.map_or("absent", |property| property["class"].as_str().unwrap())
}

fn cell(judgement: &Value) -> String {
    format!(
        "{} {} {}",
        judgement["scenario"].as_str().unwrap(),
        judgement["lock"].as_str().unwrap(),
        judgement["policy"].as_str().unwrap()
    )
}

/// What Docker still holds of runs whose owners are dead; somebody else's run may be going on.
fn left_behind() -> Vec<String> {
    let of_the_dead = |kind: &str, arguments: &[&str], name: &str| -> Vec<String> {
        let format = format!(
            r#"{{{{.Label "{}"}}}} {kind} {{{{.{name}}}}}"#,
            owner::LABEL_OWNER
        );
        let filter = format!("label={}", owner::LABEL_OWNER);
        let output = Command::new("docker")
            .args(arguments)
            .args(["--filter", &filter, "--format", &format])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_dead = |label: &str| !Owner::parse(label).is_some_and(|owner| owner.is_alive());
        let dead = lines
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(label, _)| is_dead(label));
        dead.map(|(_, what)| what.to_owned()).collect()
    };
    [
        of_the_dead("container", &["ps", "-a"], "Names"),
        of_the_dead("network", &["network", "ls"], "Name"),
        of_the_dead("volume", &["volume", "ls"], "Name"),
    ]
    .concat()
}

/// What a run has to show: classes of properties, and whether a write has to be rejected.
fn expectation(judgement: &Value) -> (&'static [(&'static str, &'static str)], bool) {
    let fenced = judgement["policy"] == "fenced";
    match judgement["scenario"].as_str().unwrap() {
        _ if judgement["lock"] == "postgres-advisory-xact" => {
            (&[("exclusive-belief", "kept")], false)
        }
        "paused-client" | "delayed-write" if fenced => (&[("no-stale-write", "kept")], true),
        "paused-client" | "delayed-write" => (&[("no-stale-write", "limit-shown")], false),
        "redis-clock-step" | "redlock-clock-step" => {
            (&[("mutual-exclusion", "limit-shown")], false)
        }
        _ => (
            &[
                ("mutual-exclusion", "kept"),
                ("no-stale-write", "kept"),
                ("progress", "kept"),
            ],
            false,
        ),
    }
}

#[test]
fn every_scenario_shows_what_it_is_there_to_show_and_check_agrees() {
    let Some(turn) = turn() else { return };
    let out = tempfile::tempdir().unwrap();
    let (status, judgements, said) = run(out.path(), &["--suite", "quick"]);
    assert_eq!(status, Some(0), "{said}");
    for judgement in &judgements {
        let cell = cell(judgement);
        let (classes, rejects) = expectation(judgement);
        for (property, expected) in classes {
            assert_eq!(
                class(judgement, property),
                *expected,
                "{property} of {cell}"
            );
        }
        let rejected = judgement["counts"]["writes_rejected"].as_u64().unwrap();
        assert!(rejected > 0 || !rejects, "no write was rejected in {cell}");
        for fault in judgement["faults"].as_array().unwrap() {
            assert_eq!(fault["took_hold"], true, "{cell}: {fault}");
        }
    }
    let ran = |what: &str| {
        judgements
            .iter()
            .map(|judgement| judgement[what].as_str().unwrap())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(ran("lock").len(), harness::locks::SERVICES.len());
    assert_eq!(ran("scenario").len(), nemesis::scenarios().len());
    agrees(&judgements);
    let checked = fencepost(&["check", "--by-contract", &out.path().to_string_lossy()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!((checked.status.code(), said.as_str()), (Some(0), ""));
    assert_eq!(turn.left_behind(), Vec::<String>::new());
}

/// `check` of each history, without Docker, comes to what the run came to.
fn agrees(judgements: &[Value]) {
    for before in judgements {
        let history = before["history"].as_str().unwrap();
        let output = fencepost(&["check", "--format", "json", history])
            .env("DOCKER_HOST", "unix:///nowhere")
            .output()
            .unwrap();
        let again: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(&again[0], before, "{history}");
        let expected = match before["outcome"].as_str().unwrap() {
            "violated" => 1,
            "holds" => 0,
            _ => 2,
        };
        assert_eq!(output.status.code(), Some(expected), "{history}");
    }
}

/// A scenario for the fault that no built-in one has.
const RESTARTED: &str = r#"
summary = "a holder is killed and comes back at once"

[[fault]]
fault = "restart"
on = "c1"
when = { client = "c1", point = "before-write", grant = 3 }
"#;

#[test]
fn a_fault_whose_mechanism_is_broken_makes_the_run_unknown() {
    let Some(_turn) = turn() else { return };
    let out = tempfile::tempdir().unwrap();
    let restart = out.path().join("restarted.toml");
    std::fs::write(&restart, RESTARTED).unwrap();
    let restart = restart.to_string_lossy();
    // Together they use every fault that there is.
    let broken: [&[&str]; 5] = [
        &[&restart, "--lock", "redis-set"],
        &[
            "paused-client",
            "redis-clock-step",
            "holder-crash",
            "--lock",
            "redis-set",
        ],
        &[
            "delayed-write",
            "--lock",
            "redis-token",
            "--policy",
            "fenced",
        ],
        &["redlock-minority-cut"],
        &["leader-failover", "--policy", "fenced"],
    ];
    let mut used = BTreeSet::new();
    for arguments in broken {
        let (status, judgements, said) = run(out.path(), &[arguments, &["--sabotage"]].concat());
        assert_eq!(status, Some(2), "{said}");
        for judgement in &judgements {
            assert_eq!(judgement["outcome"], "unknown", "{}", cell(judgement));
            for fault in judgement["faults"].as_array().unwrap() {
                assert_eq!(
                    fault["took_hold"], false,
                    "{} was said to have taken hold: {fault}",
                    fault["fault"]
                );
                used.insert(fault["fault"].as_str().unwrap().to_owned());
            }
        }
        agrees(&judgements);
    }
    let all: BTreeSet<String> = nemesis::faults::FAULTS
        .iter()
        .map(|fault| fault.name().to_owned())
        .collect();
    assert_eq!(used, all, "every fault is broken by this test");
}

/// Starts a run, and waits until its first fault is in force: line by line, its history says so.
fn in_the_middle(out: &Path) -> (Running, PathBuf) {
    let out_dir = out.to_string_lossy();
    let arguments = [
        "run",
        "paused-client",
        "--lock",
        "redis-token",
        "--times",
        "50",
        "--out",
        &out_dir,
    ];
    let run = Running(
        fencepost(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let limit = Instant::now() + Duration::from_secs(120);
    while Instant::now() < limit {
        if let Some(history) = histories_under(out)
            .into_iter()
            .find(|path| has_inject(path))
        {
            return (run, history);
        }
        std::thread::yield_now();
    }
    panic!("no fault within two minutes");
}

fn histories_under(out: &Path) -> Vec<PathBuf> {
    let runs = std::fs::read_dir(out.join("paused-client"))
        .into_iter()
        .flatten()
        .flatten();
    runs.map(|run| run.path().join("history.jsonl"))
        .filter(|path| path.is_file())
        .collect()
}

fn has_inject(history: &Path) -> bool {
    let Ok(file) = std::fs::File::open(history) else {
        return false;
    };
    BufReader::new(file)
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains(r#""f":"inject""#))
}

/// A run that does not outlive its test.
struct Running(Child);

impl Running {
    fn signalled(mut self, signal: Signal) -> ExitStatus {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
        self.0.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn check(history: &Path) -> Output {
    fencepost(&["check", "--format", "json", &history.to_string_lossy()])
        .output()
        .unwrap()
}

#[test]
fn a_killed_harness_leaves_a_readable_history_and_clean_removes_the_rest() {
    let Some(turn) = turn() else { return };
    let out = tempfile::tempdir().unwrap();
    let (child, history) = in_the_middle(out.path());
    child.signalled(Signal::SIGKILL);

    let checked = check(&history);
    assert_eq!(
        checked.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    let judgements: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert!(
        judgements[0]["counts"]["grants"].as_u64() > Some(0),
        "{}",
        judgements[0]["counts"]
    );

    assert!(
        !turn.left_behind().is_empty(),
        "the run had left nothing to clean"
    );
    assert_eq!(
        fencepost(&["clean"]).output().unwrap().status.code(),
        Some(0)
    );
    assert_eq!(turn.left_behind(), Vec::<String>::new());
}

#[test]
fn an_interrupted_run_says_so_keeps_its_history_and_leaves_nothing() {
    let Some(turn) = turn() else { return };
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let out = tempfile::tempdir().unwrap();
        let (child, history) = in_the_middle(out.path());
        assert_eq!(child.signalled(signal).code(), Some(130));
        assert_eq!(turn.left_behind(), Vec::<String>::new());
        let reader = histories::Reader::open(&history).unwrap();
        assert_eq!(reader.header().plan.scenario, "paused-client");
        assert!(
            history.with_file_name("verdict.json").is_file(),
            "{signal}: no verdict"
        );
        assert!(history.with_file_name("plan.toml").is_file());
    }
}

#[test]
fn clean_spares_a_live_run_and_two_runs_do_not_disturb_each_other() {
    let Some(turn) = turn() else { return };
    let outs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let start = |out: &tempfile::TempDir| {
        let out = out.path().to_string_lossy().into_owned();
        let arguments = [
            "run",
            "short-pause",
            "paused-client",
            "--lock",
            "redis-token",
            "--policy",
            "fenced",
            "--out",
            &out,
        ];
        fencepost(&arguments).spawn().unwrap()
    };
    let mut children = outs.each_ref().map(start);
    while children[0].try_wait().unwrap().is_none() {
        assert_eq!(
            fencepost(&["clean"]).output().unwrap().status.code(),
            Some(0)
        );
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(turn.left_behind(), Vec::<String>::new());
}

#[test]
fn replay_says_how_often_it_comes_to_the_same() {
    let Some(_turn) = turn() else { return };
    let out = tempfile::tempdir().unwrap();
    let (status, judgements, said) = run(
        out.path(),
        &[
            "paused-client",
            "--lock",
            "redis-set",
            "--policy",
            "unfenced",
            "--seed",
            "7",
        ],
    );
    assert_eq!(status, Some(0), "{said}");
    let history = judgements[0]["history"].as_str().unwrap();
    let out_dir = out.path().to_string_lossy();
    let replayed = fencepost(&["replay", history, "--times", "2", "--out", &out_dir])
        .output()
        .unwrap();
    assert_eq!(
        replayed.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&replayed.stderr)
    );
    let said = String::from_utf8_lossy(&replayed.stdout);
    assert!(said.contains("2 of 2 came to the same"), "{said}");
}
