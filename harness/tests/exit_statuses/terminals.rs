//! Terminals that vanish, and signals.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Histories, fencepost};

/// A pseudo-terminal's two ends, neither of which a child inherits by chance: its last holder keeps a terminal alive.
fn terminal() -> (PtyMaster, File) {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let slave = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlag::O_NOCTTY.bits())
        .open(ptsname_r(&master).unwrap())
        .unwrap();
    (master, slave)
}

/// A call on a pseudo-terminal, as its session's leader where the terminal is to control it: only then does a terminal
/// that goes away send SIGHUP, and else writing to it fails.
pub fn on_a_terminal(command: &Command, controls: bool) -> (Child, PtyMaster) {
    let (master, slave) = terminal();
    let mut wrapped = Command::new("setsid");
    wrapped.args(controls.then_some("--ctty"));
    wrapped.arg(command.get_program()).args(command.get_args());
    let child = wrapped
        .stdin(slave.try_clone().unwrap())
        .stdout(slave.try_clone().unwrap())
        .stderr(slave)
        .spawn()
        .unwrap();
    (child, master)
}

/// The exit status and the signal that a child ends by, which it has to within a minute.
pub fn end_of(mut child: Child) -> (Option<i32>, Option<i32>) {
    let limit = Instant::now() + Duration::from_secs(60);
    while Instant::now() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code(), status.signal());
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    panic!("it does not end");
}

/// So many copies of a history that their verdicts fill any pipe and any terminal that is not read.
fn many(histories: &Histories, name: &str) -> PathBuf {
    let folder = histories.0.path().join("many");
    fs::create_dir(&folder).unwrap();
    let extension = Path::new(name).extension().unwrap().to_str().unwrap();
    for number in 0..2_000 {
        let copy = folder.join(format!("{number:04}.{extension}"));
        fs::hard_link(histories.path(name), copy).unwrap();
    }
    folder
}

#[test]
fn a_terminal_that_vanishes_is_an_interruption_but_hides_no_violation() {
    for (name, status) in [("holds.log", 130), ("violated.jsonl", 1)] {
        let histories = Histories::new();
        let folder = many(&histories, name);
        for controls in [true, false] {
            let check = fencepost(&["check", &folder.to_string_lossy()]);
            let (child, mut terminal) = on_a_terminal(&check, controls);
            // The first verdict is on its way.
            terminal.read_exact(&mut [0; 64]).unwrap();
            drop(terminal);
            assert_eq!(
                end_of(child),
                (Some(status), None),
                "{name}, controls: {controls}"
            );
        }
    }
}

#[test]
fn a_signal_interrupts_a_check_also_where_nobody_reads() {
    let histories = Histories::new();
    let folder = many(&histories, "holds.log");
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGQUIT,
        Signal::SIGHUP,
    ] {
        let mut child = fencepost(&["check", &folder.to_string_lossy()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 64]).unwrap();
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let ended = child.wait().unwrap();
        assert_eq!(
            (ended.code(), ended.signal()),
            (Some(130), None),
            "{signal}"
        );
    }
}

/// A history comes through standard input and never ends.
#[test]
fn a_signal_interrupts_what_waits_for_its_input() {
    let mut child = fencepost(&["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds: once it is written, the call has begun to read.
    let write = b"{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n";
    stdin.write_all(&write.repeat(2_000)).unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let mut stderr = child.stderr.take().unwrap();
    assert_eq!(end_of(child), (Some(130), None));
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("interrupted"), "{said}");
    drop(stdin);
}
