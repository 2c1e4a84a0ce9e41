//! What a wrong call is told, and which exit status it gets; nothing here needs Docker.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

fn fencepost(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn corpus(name: &str) -> String {
    format!(
        "{}/../histories/corpus/v1/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// The exit status, and that one message says these things.
#[track_caller]
fn fails(mut command: Command, status: i32, says: &[&str]) {
    let output: Output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    for part in says {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn wrong_usage_is_told_what_would_be_right() {
    fails(
        fencepost(&["run", "paused-clint"]),
        64,
        &["paused-clint", "did you mean `paused-client`"],
    );
    fails(
        fencepost(&["run", "--lock", "redis-tokn"]),
        64,
        &["redis-tokn", "did you mean `redis-token`"],
    );
    fails(
        fencepost(&["run", "--lock", "redlock", "--policy", "fenced"]),
        64,
        &["redlock", "fenced", "token"],
    );
    fails(
        fencepost(&["run", "leader-failover", "--lock", "redis-set"]),
        64,
        &["nothing to run", "leader"],
    );
    fails(fencepost(&["run", "--times", "0"]), 64, &["--times"]);
    fails(
        fencepost(&["run", "--partition", "slice:3/2"]),
        64,
        &["slice:M/N"],
    );
    fails(fencepost(&["run", "nothere.toml"]), 64, &["nothere.toml"]);
    fails(
        fencepost(&["check", "/nowhere/at/all"]),
        64,
        &["/nowhere/at/all", "no such file"],
    );
    fails(
        fencepost(&["check", "--property", "no-stale-writes", "x"]),
        64,
        &["did you mean `no-stale-write`"],
    );
    for limit in ["--time-limit", "--memory-limit"] {
        let check = ["check", limit, "0", &corpus("paused-client.jsonl")];
        fails(fencepost(&check), 64, &["invalid value '0'", limit, "1.."]);
    }
    fails(fencepost(&["frobnicate"]), 64, &["frobnicate"]);
    fails(
        fencepost(&["check", "/dev/stdin"]),
        64,
        &["/dev/stdin", "save it to a file first"],
    );
    fails(
        fencepost(&["run", "no-fault", "--out", "/dev/null"]),
        64,
        &["/dev/null", "name another place"],
    );
}

#[test]
fn a_scenario_file_is_told_line_and_nearest_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, "summary = \"mine\"\nclients = 2\nttl = \"300ms\"\n\n[[fault]]\nfault = \"pauze\"\non = \"c1\"\n").unwrap();
    fails(
        fencepost(&["run", &file.to_string_lossy()]),
        64,
        &["mine.toml:6", "pauze", "did you mean `pause`"],
    );
}

#[test]
fn no_docker_and_no_permission_say_what_to_do() {
    let out = tempfile::tempdir().unwrap();
    let run = |host: &str| {
        let mut command = fencepost(&[
            "run",
            "no-fault",
            "--lock",
            "redis-set",
            "--out",
            &out.path().to_string_lossy(),
        ]);
        command.env("DOCKER_HOST", host);
        command
    };
    fails(
        run("unix:///nowhere/docker.sock"),
        69,
        &["no Docker daemon", "/nowhere/docker.sock", "start it"],
    );
    fails(run("nonsense"), 69, &["DOCKER_HOST=nonsense"]);

    if !nix::unistd::geteuid().is_root() {
        eprintln!(
            "skipped: only root can make a socket that this user may not use and become another user"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let socket = folder.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
    // The program has to lie where nobody may reach it.
    let program = folder.path().join("fencepost");
    fs::copy(env!("CARGO_BIN_EXE_fencepost"), &program).unwrap();
    let mut nobody = Command::new("setpriv");
    nobody
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["clean"]);
    nobody.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    fails(nobody, 69, &["no permission", "docker.sock", "usermod"]);
}

#[test]
fn histories_of_the_corpus_get_their_verdicts() {
    let judged = |name: &str| {
        let output = fencepost(&["check", "--format", "json", &corpus(name)])
            .output()
            .unwrap();
        let judgements: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), judgements[0].clone())
    };
    for name in ["paused-client.jsonl", "paused-client.jsonl.zst"] {
        let (status, judgement) = judged(name);
        assert_eq!(status, Some(1), "{name}");
        let outcome = |property: &str| {
            let properties = judgement["properties"].as_array().unwrap();
            properties
                .iter()
                .find(|found| found["name"] == property)
                .unwrap()["outcome"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(outcome("no-stale-write"), "violated");
        assert_eq!(outcome("exclusive-belief"), "violated");
        assert_eq!(outcome("no-lost-update"), "violated");
        assert_eq!(outcome("mutual-exclusion"), "holds");
        assert_eq!(outcome("document"), "holds");
    }
}

#[test]
fn what_is_no_history_is_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_string_lossy().into_owned()
    };
    fails(
        fencepost(&["check", &file("empty.jsonl", b"")]),
        65,
        &["empty.jsonl"],
    );
    fails(
        fencepost(&["check", &file("words.jsonl", b"hello\nworld\n")]),
        65,
        &["words.jsonl"],
    );
    let whole = fs::read_to_string(corpus("paused-client.jsonl")).unwrap();
    let broken = whole.replacen("\"type\":\"ok\"", "\"type\":\"perhaps\"", 1);
    fails(
        fencepost(&["check", &file("broken.jsonl", broken.as_bytes())]),
        65,
        &["broken.jsonl:"],
    );
}

/// Cut anywhere, a history gets a verdict or is called unreadable. The property test on the reader goes further; this
/// one goes through the whole of `check`, in one process a cut.
#[test]
fn a_history_cut_anywhere_gets_a_verdict_or_is_unreadable() {
    let whole = fs::read(corpus("paused-client.jsonl")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cuts: Vec<String> = (0..whole.len())
        .step_by(331)
        .map(|cut| {
            let path = folder.path().join(format!("{cut:06}.jsonl"));
            fs::write(&path, &whole[..cut]).unwrap();
            path.to_string_lossy().into_owned()
        })
        .collect();
    for cut in &cuts {
        let status = fencepost(&["check", cut]).output().unwrap().status.code();
        assert!(matches!(status, Some(0 | 1 | 2 | 65)), "{cut}: {status:?}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_call_quietly() {
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!(
            "'{}' man | head -n 1",
            env!("CARGO_BIN_EXE_fencepost")
        ))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn lists_are_read_by_machines_as_well() {
    for what in [
        "locks",
        "topologies",
        "storages",
        "policies",
        "faults",
        "scenarios",
        "properties",
    ] {
        let output = fencepost(&["list", what, "--format", "json"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{what}");
        let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(!rows.as_array().unwrap().is_empty(), "{what}");
        assert!(
            rows.as_array()
                .unwrap()
                .iter()
                .all(|row| row["schema_version"] == 1 && row["name"].is_string()),
            "{what}"
        );
    }
}
