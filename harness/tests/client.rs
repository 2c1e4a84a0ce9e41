//! The client as a process of its own, which no server ever answers.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use harness::client::ClientConfig;
use histories::{Event, Function, Kind, Plan, Workload};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long to wait for what has to come.
const PATIENCE: Duration = Duration::from_secs(30);

fn config(events: &Path, lock: &str) -> ClientConfig {
    // Nothing listens on port 1.
    let nobody = "127.0.0.1:1".parse().unwrap();
    ClientConfig {
        client: "c2".to_owned(),
        base_ns: 0,
        events: events.to_owned(),
        plan: Plan {
            scenario: "a-test".to_owned(),
            lock: lock.to_owned(),
            topology: "any".to_owned(),
            storage: "postgres".to_owned(),
            write_condition: None,
            policy: "unfenced".to_owned(),
            seed: 1,
            clients: 2,
            ttl_ms: 300,
            progress_bound_ms: 3000,
            limit_ms: 60_000,
            controls: Vec::new(),
            workload: Workload {
                name: "document".to_owned(),
                work_ms: 1,
                rest_ms: 1,
                retry_ms: 1,
                rounds: 1,
            },
            faults: Vec::new(),
        },
        lock: "lock".to_owned(),
        lock_servers: vec![nobody],
        document: "document".to_owned(),
        storage_server: nobody,
        rules: Vec::new(),
    }
}

fn start(folder: &Path, config: &ClientConfig, life: u32) -> Child {
    let path = folder.join("client.json");
    fs::write(&path, serde_json::to_string(config).unwrap()).unwrap();
    Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .arg("client")
        .arg(path)
        .env("FENCEPOST_LIFE", life.to_string())
        .env_remove("FENCEPOST_AGENT")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the file of events has so many whole lines.
fn await_lines(path: &Path, count: usize) -> String {
    let limit = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.matches('\n').count() >= count {
            return text;
        }
        assert!(
            Instant::now() < limit,
            "waited in vain for {count} lines: {text}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn terminate(child: Child) -> Output {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn goes_on_without_a_server_and_ends_when_it_is_asked_to() {
    for lock in ["redis-set", "redlock", "postgres-lease", "etcd-lease"] {
        let folder = tempfile::tempdir().unwrap();
        let events = folder.path().join("c2.jsonl");
        let child = start(folder.path(), &config(&events, lock), 1);
        await_lines(&events, 20);
        let ended = terminate(child);
        assert_eq!(ended.status.code(), Some(0), "{lock}: {ended:?}");

        let text = fs::read_to_string(&events).unwrap();
        let events: Vec<Event<'_>> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(events[0].op >= 20_000_001, "{:?}", events[0]);
        // Nothing was ever sent, so that no lock can have been granted.
        for event in events.iter().filter(|event| event.f != Function::Stall) {
            assert_eq!(event.f, Function::Acquire, "{lock}: {event:?}");
            assert!(
                matches!(event.kind, Kind::Invoke | Kind::Fail),
                "{lock}: {event:?}"
            );
        }
    }
}

#[test]
fn a_second_life_goes_on_in_the_same_file_under_a_name_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("c2.jsonl");
    let mut child = start(folder.path(), &config(&events, "redis-set"), 1);
    await_lines(&events, 4);
    child.kill().unwrap();
    child.wait().unwrap();
    let lines = fs::read_to_string(&events).unwrap().lines().count();
    let child = start(folder.path(), &config(&events, "redis-set"), 2);
    let text = await_lines(&events, lines + 4);
    terminate(child);
    let first: Event<'_> = serde_json::from_str(text.lines().nth(lines).unwrap()).unwrap();
    assert_eq!(first.process, "c2.2");
    assert!((21_000_001..22_000_000).contains(&first.op), "{first:?}");
}

#[test]
fn ends_with_an_error_when_it_cannot_write_down_what_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let child = start(
        folder.path(),
        &config(Path::new("/dev/full"), "redis-set"),
        1,
    );
    let ended = child.wait_with_output().unwrap();
    assert!(matches!(ended.status.code(), Some(1..)), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("/dev/full"), "{said}");
}

#[test]
fn refuses_a_policy_that_the_lock_cannot_serve() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder.path().join("c2.jsonl"), "redlock");
    config.plan.policy = "fenced".to_owned();
    let ended = start(folder.path(), &config, 1).wait_with_output().unwrap();
    assert_ne!(ended.status.code(), Some(0));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        said.contains("redlock has no token, so the storage cannot fence its writes"),
        "{said}"
    );
}
