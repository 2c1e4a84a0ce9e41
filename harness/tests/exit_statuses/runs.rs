//! Runs on real servers.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use containers::owner;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::terminals::{end_of, on_a_terminal};
use super::{To, fencepost, said, with};

/// Runs compete for two processors: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A turn with Docker; none where there is no Docker, which only a person's machine may lack.
pub fn turn() -> Option<MutexGuard<'static, ()>> {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    containers::docker_or_skip().map(|()| turn)
}

/// A run of one cell with these arguments, and where it goes and writes its summary.
fn run(out: &Path, arguments: &[&str]) -> (Command, PathBuf) {
    let summary = out.join("summary.md");
    let mut command = fencepost(&["run"]);
    command.args(arguments).arg("--out").arg(out);
    command.arg("--summary").arg(&summary);
    (command, summary)
}

/// All `verdict.json` of runs of a scenario.
fn verdicts(out: &Path, scenario: &str) -> usize {
    let runs = fs::read_dir(out.join(scenario));
    let verdicts = runs.into_iter().flatten().flatten().filter(|run| {
        run.file_type().is_ok_and(|kind| kind.is_dir()) && run.path().join("verdict.json").is_file()
    });
    verdicts.count()
}

/// Waits, for two minutes at most, until so many runs were judged; does something else meanwhile.
fn wait_for_verdicts(out: &Path, scenario: &str, count: usize, mut meanwhile: impl FnMut()) {
    let limit = Instant::now() + Duration::from_secs(120);
    while verdicts(out, scenario) < count {
        assert!(Instant::now() < limit, "no {count} verdicts in two minutes");
        meanwhile();
        thread::sleep(Duration::from_millis(5));
    }
}

/// What Docker still holds of a process.
pub fn left_of(pid: u32) -> Vec<String> {
    let format = format!("{{{{.Names}}}} {{{{.Label {:?}}}}}", owner::LABEL_OWNER);
    let listed = Command::new("docker")
        .args(["ps", "-a", "--format", &format])
        .output()
        .unwrap();
    assert!(listed.status.success(), "{}", said(&listed));
    let lines = String::from_utf8_lossy(&listed.stdout).into_owned();
    let its = format!(" {pid}:");
    let is_its = |line: &&str| line.contains(&its);
    lines.lines().filter(is_its).map(str::to_owned).collect()
}

#[test]
fn a_run_that_nobody_reads_ends_as_its_verdicts_say_and_writes_its_files() {
    let Some(_turn) = turn() else { return };
    let kept: &[&str] = &["no-fault", "--lock", "redis-set"];
    let without_evidence: &[&str] = &["short-pause", "--lock", "redis-set", "--sabotage"];
    for (arguments, stdout, stderr, status, cell) in [
        (kept, To::ClosedPipe, To::ClosedPipe, 0, "kept"),
        (kept, To::Full, To::Reader, 69, "kept"),
        (
            without_evidence,
            To::ClosedPipe,
            To::ClosedPipe,
            2,
            "unknown",
        ),
    ] {
        let out = tempfile::tempdir().unwrap();
        let (command, summary) = run(out.path(), arguments);
        let output = with(command, stdout, stderr);
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert_eq!(verdicts(out.path(), arguments[0]), 1);
        let summary = fs::read_to_string(summary).unwrap();
        assert!(summary.contains("# Fencepost: 1 run: "), "{summary}");
        assert!(summary.contains(cell), "{summary}");
    }
}

#[test]
fn an_interrupted_cell_counts_only_what_ran() {
    let Some(_turn) = turn() else { return };
    let out = tempfile::tempdir().unwrap();
    let (mut command, summary) = run(
        out.path(),
        &["no-fault", "--lock", "redis-set", "--times", "500"],
    );
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_verdicts(out.path(), "no-fault", 2, || {});
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert_eq!(said(&output).matches(": interrupted").count(), 1);

    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    for told in [stdout, fs::read_to_string(summary).unwrap()] {
        assert!(told.contains(" of 500 runs: "), "{told}");
        assert!(told.contains(" not run"), "{told}");
        assert!(told.contains(" of 500"), "{told}");
        assert!(!told.contains("/500"), "{told}");
    }
}

#[test]
fn a_terminal_that_vanishes_interrupts_a_run() {
    let Some(_turn) = turn() else { return };
    let out = tempfile::tempdir().unwrap();
    let (command, summary) = run(
        out.path(),
        &["no-fault", "--lock", "redis-set", "--times", "500"],
    );
    let (child, mut terminal) = on_a_terminal(&command, true);
    let pid = child.id();
    // A terminal that is not read would hold up its bars.
    fcntl(&terminal, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    wait_for_verdicts(out.path(), "no-fault", 1, || {
        while terminal.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
    });
    drop(terminal);
    assert_eq!(end_of(child), (Some(130), None));
    assert_eq!(left_of(pid), Vec::<String>::new());
    let summary = fs::read_to_string(summary).unwrap();
    assert!(summary.contains(" of 500 runs: "), "{summary}");
}
