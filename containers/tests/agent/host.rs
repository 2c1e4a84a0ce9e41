//! An agent in a process of its own, and what tests ask of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program};
use std::thread;
use std::time::{Duration, Instant};

use containers::agent::protocol::Command;
use containers::agent::{Agent, AgentError};
use nix::sys::signal::{self, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// No test waits longer for anything: what takes so long will not come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An agent in a process of its own.
pub struct Host {
    process: Child,
    pub folder: TempDir,
}

impl Host {
    pub fn start() -> Host {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s1.sock");
        let process = Program::new(host_agent())
            .args(["agent", "--socket"])
            .arg(&socket)
            .spawn()
            .expect("`cargo test` builds it; for one test alone: cargo build -p containers --example host_agent");
        let host = Host { process, folder };
        wait_until("the agent is up", || Agent::connect(&socket).is_ok());
        host
    }

    pub fn agent(&self) -> Agent {
        Agent::connect(&self.folder.path().join("s1.sock")).unwrap()
    }

    pub fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    pub fn log_of(&self, process: &str) -> String {
        let path = self.logs().join(format!("{process}.log"));
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Waits until the client has written what it must, and checks that it has written no more.
    pub fn expect_log_of_client(&self, expected: &str) {
        let enough = || self.log_of("client").len() >= expected.len();
        wait_until("the client wrote", enough);
        assert_eq!(self.log_of("client"), expected);
    }

    /// Starts a client that reaches rule 1 so many times.
    pub fn start_client(&self, times: u64) {
        let times = times.to_string();
        self.agent().log_to(&self.logs()).unwrap();
        let client = command(&["fencepost", "reach", "1", &times]);
        self.agent().start("client", client).unwrap();
    }

    /// Lets the agent itself stand still for at least so long.
    pub fn stand_still(&self, duration: Duration) {
        self.signal(signal::Signal::SIGSTOP);
        let stopped = Some('T');
        wait_until("it stands still", || {
            state_of(self.process.id() as i32) == stopped
        });
        thread::sleep(duration);
        self.signal(signal::Signal::SIGCONT);
    }

    /// How the agent's thread of this name is scheduled, if there is one.
    pub fn scheduling_of(&self, thread: &str) -> Option<[String; 3]> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let mut threads = threads.map(|entry| entry.unwrap().path());
        let found = threads.find(|path| {
            fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == thread)
        });
        scheduling(found?.join("stat"))
    }

    fn signal(&self, signal: signal::Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.signal(signal::Signal::SIGTERM);
        self.process.wait().unwrap();
    }
}

/// The example beside this test's own binary.
fn host_agent() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let target = own.parent().and_then(Path::parent).unwrap();
    target.join("examples/host_agent")
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: still not so");
        thread::sleep(Duration::from_millis(1));
    }
}

pub fn command(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().map(|argument| (*argument).to_owned()).collect(),
        ..Command::default()
    }
}

pub fn shell(script: &str) -> Command {
    command(&["sh", "-c", script])
}

pub fn failure<T: std::fmt::Debug>(result: Result<T, AgentError>) -> String {
    match result {
        Err(AgentError::Failed { error, .. }) => error,
        other => panic!("did not fail: {other:?}"),
    }
}

/// The niceness, real-time priority and policy in a `/proc/…/stat`.
pub fn scheduling(stat: impl AsRef<Path>) -> Option<[String; 3]> {
    let stat = fs::read_to_string(stat).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    // proc(5) counts from 1, and the name is the second.
    Some([19, 40, 41].map(|field| fields[field - 3].to_owned()))
}

/// The state of a process of this machine, as its kernel says.
pub fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
