//! Docker daemons that hang, die or talk nonsense, and what is said of them.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::daemons::{Daemon, Listening};
use super::runs::{left_of, turn};
use super::{To, fencepost, said, with};

/// How long a call may take to end once it is interrupted, whatever Docker does.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(10);

const RUN: [&str; 4] = ["run", "no-fault", "--lock", "redis-set"];

/// A call that has this daemon for Docker, and writes to a folder of its own.
fn with_docker(daemon: &Listening, call: &[&str]) -> (Command, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let mut command = fencepost(call);
    command
        .env("DOCKER_HOST", daemon.address())
        .env("FENCEPOST_OUT", out.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    (command, out)
}

fn clean() {
    let cleaned = with(fencepost(&["clean"]), To::Reader, To::Reader);
    assert_eq!(cleaned.status.code(), Some(0), "{}", said(&cleaned));
}

/// Interrupts a run when the daemon has stopped to answer; what it said, and its process id.
fn interrupted(daemon: Daemon, signal: Signal, change: impl FnOnce(&mut Command)) -> (String, u32) {
    let docker = daemon.listen();
    let (mut command, _out) = with_docker(&docker, &RUN);
    change(&mut command);
    let child = command.spawn().unwrap();
    let pid = child.id();
    docker.wait();
    let since = Instant::now();
    kill(Pid::from_raw(pid as i32), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    let took = since.elapsed();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(130), "{daemon:?}: {said}");
    assert!(took < GIVEN_UP_WITHIN, "{daemon:?}: {took:?}: {said}");
    assert_eq!(said.matches("fencepost: stopping").count(), 1, "{said}");
    assert_eq!(said.matches("fencepost: interrupted").count(), 1, "{said}");
    (said, pid)
}

#[test]
fn an_interrupt_ends_a_run_for_which_docker_has_not_begun_anything() {
    let Some(_turn) = turn() else { return };
    let image = Command::new("docker")
        .args(["images", "--quiet", "fencepost/client"])
        .output()
        .unwrap();
    let image = String::from_utf8(image.stdout).unwrap();
    let image = image.lines().next().unwrap();
    for (daemon, signal) in [
        (Daemon::Silent, Signal::SIGINT),
        (Daemon::HangsAt("/info"), Signal::SIGTERM),
        (Daemon::HangsAt("/containers/json"), Signal::SIGINT),
        (Daemon::HangsAt("/images/"), Signal::SIGINT),
        (Daemon::HangsAt("/build"), Signal::SIGTERM),
    ] {
        let (said, _) = interrupted(daemon, signal, |command| {
            // With another base than the images were built on, they have to be built.
            if matches!(daemon, Daemon::HangsAt("/build")) {
                command.env("FENCEPOST_BASE", image);
            }
        });
        assert!(!said.contains("fencepost clean"), "{daemon:?}: {said}");
    }
}

#[test]
fn an_interrupt_ends_a_run_whose_start_hangs_and_names_what_removes_the_rest() {
    let Some(_turn) = turn() else { return };
    for (daemon, signal) in [
        (Daemon::HangsAt("/networks/create"), Signal::SIGINT),
        (Daemon::HangsAt("/containers/create"), Signal::SIGTERM),
        (Daemon::HangsOnlyAt("/containers/create"), Signal::SIGINT),
        (Daemon::HangsAt("/start"), Signal::SIGINT),
        // When the run is over.
        (Daemon::HangsAt("DELETE /"), Signal::SIGTERM),
    ] {
        let (said, pid) = interrupted(daemon, signal, |_| {});
        assert_eq!(said.matches("`fencepost clean`").count(), 1, "{said}");
        assert!(!said.contains("WARN"), "{said}");
        clean();
        assert_eq!(left_of(pid), Vec::<String>::new());
    }
}

#[test]
fn a_second_interrupt_ends_a_run_that_hangs_and_names_what_removes_the_rest() {
    let Some(_turn) = turn() else { return };
    let docker = Daemon::HangsAt("/containers/create").listen();
    let (mut command, _out) = with_docker(&docker, &RUN);
    let child = command.spawn().unwrap();
    docker.wait();
    let since = Instant::now();
    let pid = Pid::from_raw(child.id() as i32);
    kill(pid, Signal::SIGINT).unwrap();
    // Two that come at once are one.
    thread::sleep(Duration::from_millis(500));
    kill(pid, Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(since.elapsed() < Duration::from_secs(5), "{said}");
    assert_eq!(said.matches("`fencepost clean`").count(), 1, "{said}");
    clean();
}

#[test]
fn a_daemon_that_does_not_answer_is_told_soon_and_given_up() {
    let calls: [&[&str]; 4] = [&RUN, &["doctor"], &["clean"], &["images", "list"]];
    thread::scope(|scope| {
        for call in calls {
            scope.spawn(move || {
                let docker = Daemon::Silent.listen();
                let (mut command, _out) = with_docker(&docker, call);
                let since = Instant::now();
                let mut child = command.spawn().unwrap();
                let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
                let first = lines.next().unwrap().unwrap();
                assert!(first.contains("waiting for Docker"), "{call:?}: {first}");
                assert!(since.elapsed() < Duration::from_secs(5), "{call:?}");
                let output = child.wait_with_output().unwrap();
                assert_eq!(output.status.code(), Some(69), "{call:?}");
                let rest: Vec<String> = lines.map_while(Result::ok).collect();
                let stdout = String::from_utf8_lossy(&output.stdout);
                let told = rest.join("\n") + &stdout;
                assert!(told.contains("did not answer within 20 s"), "{told}");
                assert!(!told.contains("waiting for"), "told twice: {told}");
            });
        }
    });
}

#[test]
fn a_daemon_that_stops_to_answer_while_hosts_start_is_given_up_too() {
    let Some(_turn) = turn() else { return };
    let docker = Daemon::HangsAt("/containers/create").listen();
    let (mut command, _out) = with_docker(&docker, &RUN);
    let since = Instant::now();
    let output = command.output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(since.elapsed() < Duration::from_secs(45), "{said}");
    for (word, times) in [
        ("waiting for Docker", 1),
        ("did not answer within", 1),
        ("`fencepost clean`", 1),
        ("WARN", 0),
    ] {
        assert_eq!(said.matches(word).count(), times, "{word}: {said}");
    }
    clean();
}

/// Words of the libraries through which Docker is spoken to.
const OF_LIBRARIES: [&str; 7] = [
    "hyper",
    "client error",
    "SendRequest",
    "deserialize",
    "WARN",
    "ERROR",
    "legacy",
];

fn expect_plain(daemon: Daemon, output: &Output) -> String {
    let said = said(output);
    assert_eq!(output.status.code(), Some(69), "{daemon:?}: {said}");
    for word in OF_LIBRARIES {
        assert!(!said.contains(word), "{daemon:?}: `{word}` in {said}");
    }
    said
}

#[test]
fn a_daemon_that_dies_while_hosts_start_is_told_once_with_what_to_do() {
    let Some(_turn) = turn() else { return };
    for at in ["/networks/create", "/containers/create", "/start"] {
        let daemon = Daemon::DiesAt(at);
        let docker = daemon.listen();
        let (mut command, _out) = with_docker(&docker, &RUN);
        let output = command.output().unwrap();
        let said = expect_plain(daemon, &output);
        let told = said.lines().filter(|line| line.starts_with("fencepost: "));
        assert_eq!(told.count(), 1, "{said}");
        assert_eq!(said.matches("Docker went away while").count(), 1, "{said}");
        assert_eq!(said.matches("`fencepost clean`").count(), 1, "{said}");
    }
    clean();
}

#[test]
fn what_is_no_docker_is_told_in_one_plain_sentence() {
    const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let page = format!("<html>{}</html>", "It works! ".repeat(1_000)).leak();
    let pages = ["200 OK", "500 Internal Server Error"]
        .map(|status| &*format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{page}").leak());
    let of_json = [
        "{}",
        "[1, 2]",
        "",
        r#"{"ApiVersion": "1.41", "Version": "20.10.24"}"#,
    ]
    .map(|json| &*format!("{JSON}\r\n{json}").leak());
    let others = [
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"Version",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "",
    ];
    for answer in pages.into_iter().chain(of_json).chain(others) {
        let daemon = Daemon::Answers(answer);
        let docker = daemon.listen();
        let (mut command, _out) = with_docker(&docker, &RUN);
        let said = expect_plain(daemon, &command.output().unwrap());
        let sentence = format!("what answers at {} is not Docker, or not", docker.address());
        assert!(said.contains(&sentence), "{answer}: {said}");
        assert_eq!(said.trim().lines().count(), 1, "{answer}: {said}");
        assert!(said.len() < 600, "{answer}: {said}");
    }
}
