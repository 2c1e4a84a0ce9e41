//! What others do in the middle of a run. Where they kill or stop a server, a client, an agent or a container, or cut it off,
//! the run ends at once, says which host it was, and comes to no judgement. It tells a Docker that goes away, and goes on when
//! its program is replaced.

mod blow;
mod run;

use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use histories::{Ending, Reader};

use self::blow::{Blow, strike};
use self::run::{PATIENCE, Run, docker, lines_of};

/// Runs a lock, strikes one of its hosts in the middle, and sees that it is told and judged as it has to be.
fn expect_the_end_of(lock: &str, host: &str, blow: Blow, how: &str) {
    let mut run = Run::start(lock);
    let history = run.in_the_middle();
    let summary = run.out.path().join("summary.md");
    let container = run.container(host);
    if !strike(&container, host, blow) {
        eprintln!("skipped: only root can kill an agent from outside");
        return;
    }
    let what = format!("{lock}, {host}, {blow:?}");
    let told = run.told_of(host);
    assert!(told.contains(how), "{what}:\n{told}");
    for word in ["kept", "BROKEN", "bug of fencepost"] {
        assert!(!told.contains(word), "{what}: `{word}` in:\n{told}");
    }
    let (status, printed, rest) = run_to_end(&mut run, &history, host);
    assert_eq!(status, Some(69), "{what}:\n{told}{rest}");
    let judged: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let verdict = std::fs::read(history.with_file_name("verdict.json")).unwrap();
    let verdict: serde_json::Value = serde_json::from_slice(&verdict).unwrap();
    assert_eq!(verdict["outcome"], "unknown", "{what}");
    assert_eq!(judged, serde_json::json!([verdict]), "{what}");
    let checked = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["check", "--format", "json"])
        .arg(&history)
        .output()
        .unwrap();
    let again: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(checked.status.code(), Some(2), "{what}: {again}");
    assert_eq!(again[0]["outcome"], "unknown", "{what}: {again}");
    let summary = std::fs::read_to_string(summary).unwrap();
    for counted in [
        "# Fencepost: 1 of ",
        ", 1 unknown, ",
        ", 0 kept, ",
        " not run; ",
        "❔ unknown 1 of 3 ",
    ] {
        assert!(summary.contains(counted), "{what}: {summary}");
    }
    assert!(!rest.contains("ended: "), "{what}: said twice:\n{rest}");
}

/// Waits for the end of a run that is told by then; its history must tell it too.
fn run_to_end(run: &mut Run, history: &Path, host: &str) -> (Option<i32>, String, String) {
    let text = std::fs::read_to_string(history).unwrap();
    let exit = text.lines().find(|line| {
        line.contains(r#""f":"exit""#) && line.contains(&format!(r#""process":"{host}""#))
    });
    assert!(exit.is_some(), "{host}: its end is not in the history");
    let mut events = Reader::open(history).unwrap();
    while events.next().unwrap().is_some() {}
    let ending = events.ending();
    assert!(
        !matches!(ending, None | Some(Ending::Truncated { .. })),
        "{host}: {ending:?}"
    );
    run.ended()
}

const SIGNAL: &str = "ended (signal 9), and no fault of the plan did that";

#[test]
fn a_server_that_is_killed_ends_the_run_on_every_topology() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    for lock in ["redis-token", "redlock", "etcd-lease", "postgres-lease"] {
        expect_the_end_of(lock, "s1", Blow::Process, SIGNAL);
        expect_the_end_of(lock, "storage", Blow::Process, SIGNAL);
    }
}

#[test]
fn a_server_that_is_told_to_end_or_loses_a_process_ends_the_run() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let by_itself = |how: &str| SIGNAL.replace("signal 9", how);
    expect_the_end_of("redis-token", "s1", Blow::Asked, &by_itself("exit 0"));
    for host in ["s1", "storage"] {
        expect_the_end_of("postgres-lease", host, Blow::Child, &by_itself("exit 1"));
    }
}

#[test]
fn sessions_of_postgres_that_somebody_ends_end_the_run() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    for host in ["s1", "storage"] {
        let how = "somebody has laid hands on its server, which says ";
        expect_the_end_of("postgres-lease", host, Blow::Sessions, how);
    }
}

#[test]
fn a_client_that_is_killed_ends_the_run_though_the_plan_kills_it_later() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    for lock in ["redis-token", "redlock", "etcd-lease", "postgres-lease"] {
        expect_the_end_of(lock, "c1", Blow::Process, SIGNAL);
    }
    expect_the_end_of("redis-token", "c2", Blow::Process, SIGNAL);
    let asked = SIGNAL.replace("signal 9", "exit 0");
    expect_the_end_of("redis-token", "c1", Blow::Asked, &asked);
}

#[test]
fn a_container_that_goes_ends_the_run_on_every_topology() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let killed = "its agent is gone, and its container ended with status 137";
    // Docker may be about to remove it when it is asked.
    let removed = "its agent is gone, and its container ";
    expect_the_end_of("redis-token", "s1", Blow::Kill, killed);
    expect_the_end_of("redlock", "s2", Blow::Remove, removed);
    expect_the_end_of("etcd-lease", "s3", Blow::Kill, killed);
    expect_the_end_of("postgres-lease", "storage", Blow::Remove, removed);
    expect_the_end_of("redis-token", "c1", Blow::Kill, killed);
    expect_the_end_of("redis-token", "c2", Blow::Remove, removed);
}

#[test]
fn a_container_that_goes_while_its_run_is_starting_is_told() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    for (lock, host) in [("redis-token", "s1"), ("etcd-lease", "c1")] {
        let mut run = Run::start(lock);
        let container = run.await_container(host);
        docker(&["rm", "--force", &container]);
        // What Docker was asked for besides has to be there before it can be removed.
        let said = run.told_within(PATIENCE, host);
        // Where Docker takes its time, the start is over by then.
        let is_told = ["removed while it was starting", "its agent is gone"];
        assert!(is_told.iter().any(|told| said.contains(told)), "{said}");
        let (status, ..) = run.ended();
        assert_eq!(status, Some(69));
    }
}

#[test]
fn what_somebody_stops_ends_the_run() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let stopped = |process: &str| {
        format!("somebody has stopped its {process}, and no fault of the plan did that")
    };
    expect_the_end_of("redis-token", "s1", Blow::Stop, &stopped("server"));
    expect_the_end_of("etcd-lease", "s2", Blow::Stop, &stopped("server"));
    expect_the_end_of("postgres-lease", "s1", Blow::StopChild, &stopped("server"));
    expect_the_end_of("redis-token", "c1", Blow::Stop, &stopped("client"));
    let paused = "somebody has paused its container";
    for host in ["s1", "storage", "c2"] {
        expect_the_end_of("redis-token", host, Blow::Pause, paused);
    }
    for host in ["s1", "c1"] {
        expect_the_end_of("redis-token", host, Blow::Freeze, "its agent stands still");
    }
}

#[test]
fn who_is_taken_off_the_network_ends_the_run() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let cut_off = "somebody has taken its container off the network";
    for host in ["s1", "storage", "c1"] {
        expect_the_end_of("redis-token", host, Blow::CutOff, cut_off);
    }
    expect_the_end_of("redlock", "s4", Blow::CutOff, cut_off);
}

#[test]
fn an_agent_that_is_killed_ends_the_run() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    for host in ["s1", "storage", "c1"] {
        expect_the_end_of("redis-token", host, Blow::Agent, "its agent is gone");
    }
}

/// A way to Docker that can break.
struct Way {
    folder: tempfile::TempDir,
    passing: Arc<Mutex<Vec<UnixStream>>>,
}

impl Way {
    fn open() -> Way {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("docker.sock")).unwrap();
        let passing = Arc::new(Mutex::new(Vec::new()));
        let way = passing.clone();
        std::thread::spawn(move || {
            for ours in listener.incoming().map_while(Result::ok) {
                let docker = UnixStream::connect("/var/run/docker.sock").unwrap();
                for (from, to) in [(&ours, &docker), (&docker, &ours)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
                way.lock().unwrap().extend([ours, docker]);
            }
        });
        Way { folder, passing }
    }

    fn address(&self) -> String {
        format!("unix://{}/docker.sock", self.folder.path().display())
    }

    fn breaks(self) {
        self.folder.close().unwrap();
        for stream in self.passing.lock().unwrap().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn docker_that_goes_away_in_the_middle_is_told_once_with_what_to_do() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let way = Way::open();
    let mut run = Run::start_with("redis-token", |command| {
        command.env("DOCKER_HOST", way.address());
    });
    run.in_the_middle();
    let container = run.container("s1");
    way.breaks();
    assert!(strike(&container, "s1", Blow::Kill));
    let told = run.told_of("s1");
    assert!(
        told.contains("its agent is gone, and Docker does not say why"),
        "{told}"
    );
    let (status, _, rest) = run.ended();
    assert_eq!(status, Some(69), "{told}{rest}");
    let said = told + &rest;
    assert_eq!(
        said.matches("no Docker daemon answers").count(),
        1,
        "{said}"
    );
    assert_eq!(
        said.matches("`fencepost clean` removes it").count(),
        1,
        "{said}"
    );
    let clean = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .arg("clean")
        .output();
    assert!(clean.unwrap().status.success());
    let left = docker(&[
        "ps",
        "--all",
        "--filter",
        &format!("name={container}"),
        "--quiet",
    ]);
    assert_eq!(left, "", "`clean` left the container");
}

#[test]
fn a_program_that_is_replaced_in_the_middle_goes_on_as_it_was_started() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("fencepost");
    std::fs::copy(env!("CARGO_BIN_EXE_fencepost"), &program).unwrap();
    // Two sites, one after the other: the second is started when the program is another by its path.
    let mut child = Command::new(&program)
        .args([
            "run",
            "no-fault",
            "--lock",
            "redis-token",
            "--lock",
            "postgres-lease",
        ])
        .args(["--policy", "fenced", "--times", "1", "--jobs", "1", "--out"])
        .arg(folder.path().join("runs"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = lines_of(child.stderr.take().unwrap());
    assert!(said.recv_timeout(PATIENCE).is_ok(), "it does not begin");
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "another").unwrap();
    let status = child.wait().unwrap();
    let said: Vec<String> = said.iter().collect();
    assert_eq!(status.code(), Some(0), "{}", said.join("\n"));
}
