//! A run that somebody else disturbs: what it says, and how it ends.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long it may take from the kill to the message.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// No test waits longer for anything else: what takes so long will not come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A run that goes on for a minute before its plan kills the very hosts that are killed from outside here: a plan that
/// names a host excuses nothing before its time.
const LATER: &str = r#"
summary = "goes on until its faults come, which they do late"
ttl = "2s"

[[fault]]
fault = "crash"
on = "s1"
when = { after = "60s" }
until = { lasts = "1s" }

[[fault]]
fault = "crash"
on = "c1"
when = { after = "60s" }
until = { lasts = "1s" }
"#;

/// A run of ours, which does not outlive its test.
pub struct Run {
    pub child: Child,
    said: Receiver<String>,
    pub out: tempfile::TempDir,
}

impl Run {
    pub fn start(lock: &str) -> Run {
        Run::start_with(lock, |_| {})
    }

    /// With a change to the command.
    pub fn start_with(lock: &str, change: impl FnOnce(&mut Command)) -> Run {
        let out = tempfile::tempdir().unwrap();
        let scenario = out.path().join("later.toml");
        std::fs::write(&scenario, LATER).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        command
            .args(["run", "--lock", lock, "--times", "3", "--format", "json"])
            .arg("--out")
            .arg(out.path().join("runs"))
            .arg("--summary")
            .arg(out.path().join("summary.md"))
            .arg(&scenario)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let said = lines_of(child.stderr.take().unwrap());
        Run { child, said, out }
    }

    /// Waits until clients write under locks: the run's history.
    pub fn in_the_middle(&self) -> PathBuf {
        let limit = Instant::now() + PATIENCE;
        loop {
            let history = history_under(&self.out.path().join("runs/later"));
            let text = history.as_deref().map(std::fs::read_to_string);
            let written = text.is_some_and(|text| {
                text.is_ok_and(|text| text.contains(r#""type":"ok","f":"write""#))
            });
            if let Some(history) = history.filter(|_| written) {
                return history;
            }
            let said: Vec<String> = self.said.try_iter().collect();
            assert!(Instant::now() < limit, "nothing was written: {said:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the container of a host runs: Docker loses track of one that is removed while it is being started.
    pub fn await_container(&self, host: &str) -> String {
        let limit = Instant::now() + PATIENCE;
        loop {
            if let Some(name) = self.find_container(host) {
                return name;
            }
            assert!(Instant::now() < limit, "no container of {host}");
        }
    }

    /// The container of a host.
    pub fn container(&self, host: &str) -> String {
        self.find_container(host)
            .unwrap_or_else(|| panic!("no container of {host}"))
    }

    fn find_container(&self, host: &str) -> Option<String> {
        let listed = docker(&[
            "ps",
            "--format",
            r#"{{.Label "fencepost.owner"}} {{.Names}}"#,
        ]);
        let owner = format!("{}:", self.child.id());
        listed.lines().find_map(|line| {
            let name = line.strip_prefix(&owner)?.split(' ').nth(1)?;
            name.ends_with(&format!("-{host}")).then(|| name.to_owned())
        })
    }

    /// Waits for what is said of a host's end; all that was said with it.
    pub fn told_of(&self, host: &str) -> String {
        self.told_within(TOLD_WITHIN, host)
    }

    pub fn told_within(&self, within: Duration, host: &str) -> String {
        let needle = format!("host {host} ended: ");
        let limit = Instant::now() + within;
        let mut said = String::new();
        while !said.contains(&needle) {
            match self
                .said
                .recv_timeout(limit.saturating_duration_since(Instant::now()))
            {
                Ok(line) => said.push_str(&(line + "\n")),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("`{needle}` was not said within {within:?}, but:\n{said}")
                }
            }
        }
        said
    }

    /// Waits for the end: exit status, standard output, and the rest of standard error.
    pub fn ended(&mut self) -> (Option<i32>, String, String) {
        let mut printed = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut printed).unwrap();
        let status = self.child.wait().unwrap();
        let said: Vec<String> = self.said.iter().collect();
        (status.code(), printed, said.join("\n"))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Asked to end, it removes what it has started; it has ended already in most cases.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

pub fn lines_of(stderr: ChildStderr) -> Receiver<String> {
    let (tell, said) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(stderr).lines().map_while(Result::ok);
        // The test has ended where nobody hears.
        let _ = lines.map(|line| tell.send(line)).find(Result::is_err);
    });
    said
}

fn history_under(scenario: &Path) -> Option<PathBuf> {
    let runs = std::fs::read_dir(scenario).ok()?.flatten();
    runs.map(|run| run.path().join("history.jsonl"))
        .find(|history| history.is_file())
}

pub fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}
