//! How calls end when their readers go away, their terminal vanishes or a signal comes: exit statuses and messages.

mod calls;
mod daemons;
mod docker;
mod machines;
mod runs;
mod terminals;
mod verdicts;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fencepost");

fn fencepost(arguments: &[&str]) -> Command {
    // Whoever starts the tests with nohup ignores hangups, and what they start would too.
    let mut command = Command::new("env");
    command.args(["--default-signal", PROGRAM]);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A call that is not root's, which may do what others may not, by the program `by` if there is one. The folder holds our
/// own, which has to lie where nobody may reach it.
fn as_nobody(by: &[&str], arguments: &[&str]) -> (Command, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("fencepost");
    fs::copy(PROGRAM, &program).unwrap();
    let mut command = Command::new("env");
    if nix::unistd::geteuid().is_root() {
        command.args([
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ]);
    }
    command.args(by).arg(program).args(arguments);
    command.stdin(Stdio::null());
    (command, folder)
}

/// Where one of the streams of a call goes.
#[derive(Clone, Copy, Debug)]
enum To {
    Reader,
    ClosedPipe,
    Full,
}

impl To {
    fn open(self) -> Stdio {
        match self {
            To::Reader => Stdio::piped(),
            To::ClosedPipe => {
                let (reader, writer) = io::pipe().unwrap();
                drop(reader);
                writer.into()
            }
            To::Full => OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .unwrap()
                .into(),
        }
    }
}

fn with(mut command: Command, stdout: To, stderr: To) -> Output {
    let output = command
        .stdout(stdout.open())
        .stderr(stderr.open())
        .output()
        .unwrap();
    assert!(!said(&output).contains("panicked"), "{}", said(&output));
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Histories of every kind, by the exit status that `check` of each alone has.
struct Histories(TempDir);

impl Histories {
    fn new() -> Histories {
        let histories = Histories(tempfile::tempdir().unwrap());
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../histories/corpus");
        let saved = |name: &str| fs::read_to_string(corpus.join(name)).unwrap();
        histories.write("holds.log", &saved("porcupine/jepsen/etcd_002.log"));
        histories.write("violated.jsonl", &saved("v1/paused-client.jsonl"));
        histories.write("unreadable.jsonl", "hello\n");
        // Without the nemesis's own events, nothing shows that the fault took hold, and what speaks of c2 is gone too.
        let violated = saved("v1/paused-client.jsonl");
        let quiet: Vec<&str> = violated.lines().take(4).collect();
        histories.write("unknown.jsonl", &(quiet.join("\n") + "\n"));
        histories
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn check(&self, names: &[&str]) -> Command {
        let paths: Vec<String> = names.iter().map(|name| self.path(name)).collect();
        let mut command = fencepost(&["check"]);
        command.args(paths);
        command
    }
}
