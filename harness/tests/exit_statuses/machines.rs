//! Machines that lack something: file descriptors, threads, a place to write to, an honest Docker.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::thread;

use super::daemons::Daemon;
use super::{Histories, PROGRAM, To, as_nobody, fencepost, said, with};

#[test]
fn too_few_file_descriptors_are_named_as_such() {
    let limited = |limit: u32, arguments: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" {arguments}")]);
        shell.arg(PROGRAM).env("DOCKER_HOST", "tcp://127.0.0.1:1");
        with(shell, To::Reader, To::Reader)
    };
    let histories = Histories::new();
    let check = format!("check {}", histories.path("violated.jsonl"));
    let out = tempfile::tempdir().unwrap();
    let run = format!(
        "run no-fault --lock redis-set --out {}",
        out.path().display()
    );
    let mut short = 0;
    // Wherever it runs short of them; with less than 5 the shell does.
    for limit in 5..24 {
        for arguments in [check.as_str(), "clean", run.as_str()] {
            let output = limited(limit, arguments);
            match output.status.code() {
                Some(69) if said(&output).contains("ulimit -n") => short += 1,
                // Nothing is short but Docker.
                Some(69) => assert_ne!(arguments, check, "{}", said(&output)),
                status => assert_eq!(status, Some(1), "{limit}: {}", said(&output)),
            }
        }
    }
    assert!(short > 12, "{short}");
}

/// Each limit of processes is short of another thread: that for signals, that which judges, those that help it, those of
/// the runtime and of the sites.
#[test]
fn too_few_threads_are_named_as_such() {
    let docker = Daemon::Answers("").listen();
    let histories = Histories::new();
    fs::set_permissions(histories.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let out = histories.0.path().join("runs");
    fs::create_dir(&out).unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o777)).unwrap();
    let (of_model, own) = (
        histories.path("holds.log"),
        histories.path("violated.jsonl"),
    );
    for (processes, arguments, whole) in [
        (1, ["check", &own].as_slice(), 1),
        (2, &["check", &own], 1),
        (3, &["check", &of_model], 0),
        (1, &["list", "locks"], 0),
        (1, &["clean"], 69),
        (1, &["images", "list"], 69),
        (12, &["run", "no-fault", "--out", out.to_str().unwrap()], 69),
    ] {
        let limit = format!("--nproc={processes}");
        for (by, status) in [(["prlimit", &limit].as_slice(), 69), (&[], whole)] {
            let (mut command, _program) = as_nobody(by, arguments);
            command.env("DOCKER_HOST", docker.address());
            let output = with(command, To::Reader, To::Reader);
            let told = said(&output);
            assert_eq!(
                output.status.code(),
                Some(status),
                "{by:?} {arguments:?}: {told}"
            );
            let times = usize::from(!by.is_empty());
            for part in ["no more threads can be started", "`ulimit -u`"] {
                assert_eq!(
                    told.matches(part).count(),
                    times,
                    "{by:?} {arguments:?}: {told}"
                );
            }
        }
    }
}

#[test]
fn a_place_that_is_closed_comes_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let out = folder.path().join("out").to_string_lossy().into_owned();
    for option in ["--out", "--summary"] {
        let (command, _program) = as_nobody(&[], &["run", "no-fault", option, &out]);
        let output = with(command, To::Reader, To::Reader);
        assert_eq!(output.status.code(), Some(69), "{}", said(&output));
        assert!(
            said(&output).contains("name another place"),
            "{}",
            said(&output)
        );
    }
}

/// What listens where Docker should, and answers for as long as anybody reads.
#[test]
fn an_answer_that_never_ends_is_not_read_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let sent = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 16]).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"Version\":\"")
            .unwrap();
        let block = [b'2'; 64 << 10];
        (0_u64..).find(|_| stream.write_all(&block).is_err())
    });
    let mut doctor = fencepost(&["doctor"]);
    doctor.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let output = with(doctor, To::Reader, To::Reader);
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    let blocks = sent.join().unwrap();
    assert!(blocks.is_some_and(|blocks| blocks < 2_000), "{blocks:?}");
}
