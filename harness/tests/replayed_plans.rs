//! `replay` runs the plan of the history again, and says so where the `plan.toml` beside it is another. Nothing here needs
//! Docker: all of it is told before Docker is looked for.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use histories::{Plan, Reader};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../histories/corpus");

/// What a replay of a run's directory says before it finds no Docker.
fn replay(run: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .arg("replay")
        .arg(run)
        .arg("--out")
        .arg(run.join("again"))
        .env("DOCKER_HOST", "unix:///nowhere")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(69), "{said}");
    said
}

/// A saved history as in a run's directory, and its plan.
fn run_of(history: &str) -> (tempfile::TempDir, Plan) {
    let run = tempfile::tempdir().unwrap();
    let from = Path::new(CORPUS).join(history);
    fs::copy(&from, run.path().join("history.jsonl")).unwrap();
    let plan = Reader::open(&from).unwrap().header().plan.clone();
    (run, plan)
}

fn says(run: &Path, plan: &str, what: &str) {
    fs::write(run.join("plan.toml"), plan).unwrap();
    let said = replay(run);
    for part in [what, "plan.toml", "history.jsonl", "`fencepost run`"] {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
}

#[test]
fn a_plan_beside_the_history_that_is_another_is_told() {
    let (run, plan) = run_of("v2/paused-client-redis-token-unfenced.jsonl");
    let different = "is not the plan of the history beside it";
    let mut longer = plan.clone();
    longer.faults[0].until.after_ms = Some(700);
    let mut other_seed = plan.clone();
    other_seed.seed += 1;
    let mut without = plan;
    without.faults.clear();
    for other in [longer, other_seed, without] {
        says(run.path(), &toml::to_string(&other).unwrap(), different);
    }
    says(run.path(), "clients = 2\nseed = ", "plan.toml: line 2: ");
}

#[test]
fn a_history_that_was_edited_is_told() {
    let name = "v2/paused-client-redis-token-unfenced.jsonl";
    let (run, _) = run_of(name);
    assert!(!replay(run.path()).contains("was edited"));
    let text = fs::read_to_string(Path::new(CORPUS).join(name)).unwrap();
    let edited = text.replacen("\"rounds\":", "\"rounds\": ", 1);
    fs::write(run.path().join("history.jsonl"), edited).unwrap();
    assert!(replay(run.path()).contains("history.jsonl was edited after its run had closed it"));
}

#[test]
fn a_plan_beside_the_history_that_is_its_own_is_no_news() {
    for history in [
        "v2/paused-client-redis-token-unfenced.jsonl",
        "v1/paused-client.jsonl",
    ] {
        let (run, plan) = run_of(history);
        assert!(!replay(run.path()).contains("plan.toml"));
        fs::write(
            run.path().join("plan.toml"),
            toml::to_string(&plan).unwrap(),
        )
        .unwrap();
        let said = replay(run.path());
        assert!(!said.contains("plan.toml"), "{said}");
    }
}
