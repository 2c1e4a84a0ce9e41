//! Sites in real containers.

mod stage;
mod touched;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use containers::Error;
use containers::agent::protocol::{Action, At, Command, Notice, Rule, Signal};
use containers::services::SERVER;
use containers::site::{Ended, Host, Site};

use self::stage::{
    PATIENCE, expect_bounds, expect_servers, left_of, request, runtime_of, start, wait_until,
};

/// What a host writes where all paths are the same is ours to read. It sees its own folder and no other host's, nor their
/// sockets.
fn expect_own_folder_alone(site: &Site, out: &Path) {
    let host = site.host("c1").unwrap();
    let mut client = host.agent().unwrap();
    assert!(host.folder.starts_with(out.canonicalize().unwrap()));
    client.log_to(&host.folder.join("logs")).unwrap();
    let script = format!(
        "hostname; cd {} && ls; ls ..; ls {} /run/fencepost",
        host.folder.display(),
        out.display()
    );
    let talker = Command {
        argv: ["sh", "-c", &script].map(str::to_owned).into(),
        ..Command::default()
    };
    client.start("talker", talker).unwrap();
    let log = || std::fs::read_to_string(host.folder.join("logs/talker.log")).unwrap_or_default();
    let expected = format!(
        "c1\nlogs\nc1\n/run/fencepost:\nc1.sock\n\n{}:\n",
        out.display()
    );
    wait_until("the client spoke", || log() == expected);
}

#[tokio::test]
async fn redis_comes_up_steps_its_clock_and_is_gone_after_stop() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let stage = start("redis", 2).await;
    let site = stage.site;
    expect_servers(&site, site.topology, true);
    let names: Vec<&str> = site.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["s1", "storage", "c1", "c2"]);
    assert!(
        matches!(site.leader(), Err(Error::NoLeader { answers }) if answers.contains("has no leader"))
    );

    expect_own_folder_alone(&site, &stage.shared.path().join("out"));
    expect_bounds(&site);

    // A crashed server comes back empty under its own address, and its clock is still its own.
    let redis = site.host("s1").unwrap();
    let mut agent = redis.agent().unwrap();
    agent
        .run(["redis-cli", "set", "key", "value"], PATIENCE)
        .unwrap();
    agent.signal(SERVER, Signal::Kill).unwrap();
    assert!(!redis.service().unwrap().ready(&mut agent).unwrap());
    agent.restart(SERVER).unwrap();
    wait_until("it is back", || {
        redis.service().unwrap().ready(&mut agent).unwrap()
    });
    assert_eq!(
        agent
            .run(["redis-cli", "get", "key"], PATIENCE)
            .unwrap()
            .stdout,
        "\n"
    );

    let (run, runtime) = (site.run.clone(), runtime_of(&site));
    assert_eq!(left_of(&run, &runtime).len(), 4 + 1 + 1);
    site.stop().await.unwrap();
    assert_eq!(left_of(&run, &runtime), [""; 0]);
}

#[tokio::test]
async fn an_end_that_nobody_asked_for_is_told_and_a_planned_one_is_told_apart() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let site = start("redis", 1).await.site;
    let mut server = site.host("s1").unwrap().agent().unwrap();
    server.signal(SERVER, Signal::Kill).unwrap();
    server.restart(SERVER).unwrap();
    wait_until("the planned end is told", || {
        let ends = site.ends.take();
        ends.iter().any(|end| end.host == "s1" && end.asked)
    });
    assert_eq!(site.ends.unasked(), None);

    server
        .run(["sh", "-c", "kill -9 $(pidof redis-server)"], PATIENCE)
        .unwrap();
    let within = Duration::from_secs(5);
    let end = tokio::time::timeout(within, site.ends.await_unasked()).await;
    let end = end.expect("told in time");
    assert_eq!((end.host.as_str(), end.how.as_str()), ("s1", "signal 9"));
    let second = Ended::Process {
        name: SERVER.to_owned(),
        life: 2,
    };
    assert_eq!(end.ended, second);

    let client = site.host("c1").unwrap();
    let killed = std::process::Command::new("docker")
        .args(["rm", "-f", &client.container])
        .output();
    assert!(killed.unwrap().status.success());
    let told = || {
        site.ends
            .take()
            .into_iter()
            .any(|end| end.host == "c1" && end.ended == Ended::Host)
    };
    wait_until("the end of the host is told", told);
    let engine = containers::engine().await.unwrap();
    assert_eq!(
        client.container_state(&engine, true).await,
        ", and its container was removed"
    );
    site.stop().await.unwrap();
}

#[tokio::test]
async fn redlock_comes_up_with_five_servers_that_know_nothing_of_each_other() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let site = start("redlock", 1).await.site;
    expect_servers(&site, site.topology, true);
    let (first, second) = (site.host("s1").unwrap(), site.host("s2").unwrap());
    first
        .agent()
        .unwrap()
        .run(["redis-cli", "set", "key", "value"], PATIENCE)
        .unwrap();
    let found = second
        .agent()
        .unwrap()
        .run(["redis-cli", "get", "key"], PATIENCE)
        .unwrap();
    assert_eq!(found.stdout, "\n");
    // A client reaches every server under its own address.
    let mut client = site.host("c1").unwrap().agent().unwrap();
    for host in site.servers() {
        let script = format!(
            "exec 3<>/dev/tcp/{}/6379; echo PING >&3; head -n 1 <&3",
            host.address
        );
        let answer = client.run(["bash", "-c", &script], PATIENCE).unwrap();
        assert_eq!(
            answer.stdout.trim(),
            "+PONG",
            "{}: {}",
            host.name,
            answer.said()
        );
    }
    site.stop().await.unwrap();
}

#[tokio::test]
async fn etcd_comes_up_with_a_leader_and_finds_another_when_that_is_paused() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let site = start("etcd", 1).await.site;
    expect_servers(&site, site.topology, false);
    let leader = site.leader().unwrap().clone();
    let mut agent = leader.agent().unwrap();
    let stopped = agent.signal(SERVER, Signal::Stop).unwrap();
    assert_eq!(stopped.status.states.trim_matches('T'), "");
    let another = |site: &Site| site.leader().is_ok_and(|host| host.name != leader.name);
    wait_until("another leads", || another(&site));
    agent.signal(SERVER, Signal::Continue).unwrap();
    let ready = |host: &Host| {
        host.service()
            .unwrap()
            .ready(&mut host.agent().unwrap())
            .unwrap()
    };
    wait_until("all serve", || site.servers().all(ready));

    let terms = || -> BTreeMap<String, String> {
        let term = |host: &Host| {
            let status = ["etcdctl", "endpoint", "status", "-w", "fields"];
            let status = host.agent().unwrap().run(status, PATIENCE).unwrap().stdout;
            status
                .lines()
                .find(|line| line.contains("RaftTerm"))
                .unwrap()
                .to_owned()
        };
        site.servers()
            .map(|host| (host.name.clone(), term(host)))
            .collect()
    };
    let before = terms();
    // One-second leases are what tests of locks want: they must be what they ask for.
    let lease = site
        .servers()
        .next()
        .unwrap()
        .agent()
        .unwrap()
        .run(["etcdctl", "lease", "grant", "1"], PATIENCE)
        .unwrap();
    assert!(lease.stdout.contains("TTL(1s)"), "{}", lease.said());
    assert_eq!(terms(), before, "nobody stood for election");
    site.stop().await.unwrap();
}

/// The command that has Postgres answer a statement, on its own host.
fn psql(statement: &str) -> [String; 7] {
    let words = [
        "psql",
        "-h",
        "127.0.0.1",
        "-U",
        "postgres",
        "-Atc",
        statement,
    ];
    words.map(str::to_owned)
}

#[tokio::test]
async fn a_paused_postgres_stands_still_with_all_its_backends_and_a_crashed_one_keeps_its_rows() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let site = start("postgres", 1).await.site;
    expect_servers(&site, site.topology, true);
    let host = site.host("s1").unwrap();
    let mut agent = host.agent().unwrap();
    agent
        .run(psql("create table kept as select 42 as answer"), PATIENCE)
        .unwrap();
    let sleeper = Command {
        argv: psql("select pg_sleep(1000)").into(),
        ..Command::default()
    };
    agent.start("sleeper", sleeper).unwrap();
    let sleeping = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    wait_until("a backend sleeps", || {
        agent.run(psql(sleeping), PATIENCE).unwrap().stdout == "1\n"
    });

    let stopped = agent.signal(SERVER, Signal::Stop).unwrap();
    let states = stopped.status.states;
    assert!(
        states.len() > 5 && states.trim_matches('T').is_empty(),
        "{states}"
    );
    // The kernel's own word for it. A backend that has just ended may wait for the paused postmaster to reap it.
    let look = "cat /proc/[0-9]*/stat | grep '(postgres)' | cut -d' ' -f3 | grep -v Z | sort -u";
    let seen = agent.run(["sh", "-c", look], PATIENCE).unwrap();
    assert_eq!(seen.stdout, "T\n");
    agent.signal(SERVER, Signal::Continue).unwrap();

    let killed = agent.signal(SERVER, Signal::Kill).unwrap();
    assert_eq!(killed.status.ended.as_deref(), Some("signal 9"));
    agent.restart(SERVER).unwrap();
    let service = host.service().unwrap();
    wait_until("it is back", || service.ready(&mut agent).unwrap());
    assert_eq!(
        agent
            .run(psql("select answer from kept"), PATIENCE)
            .unwrap()
            .stdout,
        "42\n"
    );

    let (run, runtime) = (site.run.clone(), runtime_of(&site));
    drop(site);
    assert_eq!(
        left_of(&run, &runtime),
        [""; 0],
        "a drop leaves nothing either"
    );
}

#[tokio::test]
async fn a_client_in_a_host_is_stopped_at_its_point() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let site = start("redis", 1).await.site;
    let host = site.host("c1").unwrap();
    let mut agent = host.agent().unwrap();
    let at = At::Point {
        point: "before-write".to_owned(),
        nth_grant: 1,
    };
    agent
        .arm(vec![Rule {
            rule: 1,
            at,
            action: Action::Stop,
        }])
        .unwrap();
    let mut watch = host.agent().unwrap().watch().unwrap();
    let argv = ["fencepost", "reach", "1", "200"].map(str::to_owned).into();
    agent
        .start(
            "client",
            Command {
                argv,
                ..Command::default()
            },
        )
        .unwrap();
    let mut took_ns = Vec::new();
    for expected in 1..=200 {
        match watch.next(PATIENCE).unwrap() {
            Some(Notice::Reached {
                op,
                reached_ns,
                stopped_ns: Some(stopped_ns),
                states,
                ..
            }) => {
                assert_eq!((op, states.trim_matches('T')), (expected, ""));
                took_ns.push(stopped_ns - reached_ns);
            }
            other => panic!("not a stop: {other:?}"),
        }
        agent.signal("client", Signal::Continue).unwrap();
    }
    took_ns.sort_unstable();
    let at = |percent: usize| took_ns[(took_ns.len() - 1) * percent / 100] / 1000;
    println!(
        "from the point to state T: median {} us, 99 of 100 {} us, most {} us",
        at(50),
        at(99),
        at(100)
    );
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_start_that_is_given_up_at_any_time_leaves_nothing() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    for after_ms in [1, 400, 1500] {
        let shared = tempfile::tempdir().unwrap();
        let request = request("redis", 1, shared.path());
        let run = request.run.clone();
        let start = Site::start(request);
        // On a machine on which all of it is up by then, the last of these is a drop of a whole site.
        drop(tokio::time::timeout(Duration::from_millis(after_ms), start).await);
        assert_eq!(left_of(&run, Path::new("/nonexistent")), [""; 0]);
    }
}

#[tokio::test]
async fn a_program_that_is_no_agent_is_told_with_what_it_wrote() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let shared = tempfile::tempdir().unwrap();
    let mut request = request("redis", 1, shared.path());
    request.exe = PathBuf::from("/bin/ls");
    let run = request.run.clone();
    let Err(error) = Site::start(request).await else {
        panic!("it started")
    };
    assert!(
        error.to_string().contains("unrecognized option '--socket'"),
        "{error}"
    );
    assert_eq!(left_of(&run, Path::new("/nonexistent")), [""; 0]);
}

#[test]
fn the_storage_is_made_from_its_own_stage() {
    use containers::site::{STORAGE_SERVICE, STORAGE_STAGE};
    assert_eq!(STORAGE_SERVICE.name(), STORAGE_STAGE);
}
