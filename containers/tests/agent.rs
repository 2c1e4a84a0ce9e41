//! An agent at work, as an ordinary process on this machine: no Docker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program};
use std::time::{Duration, Instant};

use containers::agent::protocol::{Action, At, Command, Notice, Rule, Signal};
use containers::agent::{Agent, AgentError, Watch};
use nix::sys::signal::{self, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// No test waits longer for anything: what takes so long will not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// An agent in a process of its own.
struct Host {
    process: Child,
    folder: TempDir,
}

impl Host {
    fn start() -> Host {
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

    fn agent(&self) -> Agent {
        Agent::connect(&self.folder.path().join("s1.sock")).unwrap()
    }

    fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    fn log_of(&self, process: &str) -> String {
        let path = self.logs().join(format!("{process}.log"));
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Waits until the client has written what it must, and checks that it has written no more.
    fn expect_log_of_client(&self, expected: &str) {
        let enough = || self.log_of("client").len() >= expected.len();
        wait_until("the client wrote", enough);
        assert_eq!(self.log_of("client"), expected);
    }

    /// Starts a client that reaches rule 1 so many times.
    fn start_client(&self, times: u64) {
        let times = times.to_string();
        self.agent().log_to(&self.logs()).unwrap();
        let client = command(&["fencepost", "reach", "1", &times]);
        self.agent().start("client", client).unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.process.id() as i32);
        kill(pid, signal::Signal::SIGTERM).unwrap();
        self.process.wait().unwrap();
    }
}

/// The example beside this test's own binary.
fn host_agent() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let target = own.parent().and_then(Path::parent).unwrap();
    target.join("examples/host_agent")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: still not so");
        std::thread::yield_now();
    }
}

fn command(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().map(|argument| (*argument).to_owned()).collect(),
        ..Command::default()
    }
}

fn shell(script: &str) -> Command {
    command(&["sh", "-c", script])
}

fn arm(agent: &mut Agent, action: Action) {
    let at = At::Point {
        point: "before-write".to_owned(),
        nth_grant: 1,
    };
    let rule = Rule {
        rule: 1,
        at,
        action,
    };
    agent.arm(vec![rule]).unwrap();
}

fn next(watch: &mut Watch) -> Notice {
    watch.next(PATIENCE).unwrap().expect("a notice comes")
}

fn op_of(notice: &Notice) -> u64 {
    match notice {
        Notice::Reached { op, .. } => *op,
        other => panic!("not a client's notice: {other:?}"),
    }
}

fn failure<T: std::fmt::Debug>(result: Result<T, AgentError>) -> String {
    match result {
        Err(AgentError::Failed { error, .. }) => error,
        other => panic!("did not fail: {other:?}"),
    }
}

/// The state of a process of this machine, as its kernel says.
fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn a_process_starts_under_its_name_once_and_again_when_it_has_ended() {
    let host = Host::start();
    let mut agent = host.agent();
    assert!(failure(agent.restart("server")).contains("nothing was ever started"));
    let started = agent.start("server", shell("sleep 1000")).unwrap();
    assert_eq!(agent.look("server").unwrap().pid, Some(started.pid));
    assert!(failure(agent.start("server", shell("true"))).contains("runs already"));
    assert!(failure(agent.restart("server")).contains("runs already"));

    let killed = agent.signal("server", Signal::Kill).unwrap();
    assert_eq!(killed.status.ended.as_deref(), Some("signal 9"));
    assert_eq!(killed.status.states, "");
    assert!(killed.sent_ns <= killed.shown_ns && started.at_ns < killed.sent_ns);
    assert_eq!(state_of(started.pid), None, "it is reaped");

    let again = agent.restart("server").unwrap();
    assert_ne!(again.pid, started.pid);
    assert_eq!(agent.look("server").unwrap().ended, None);
}

#[test]
fn a_program_that_is_not_there_is_refused_by_name() {
    let host = Host::start();
    let error = failure(host.agent().start("server", command(&["no-such-program"])));
    assert!(error.contains("cannot start `no-such-program`"), "{error}");
    assert!(failure(host.agent().look("server")).contains("nothing was ever started"));
    assert!(failure(host.agent().start("../x", shell("true"))).contains("no name"));
}

#[test]
fn every_life_knows_its_number_and_its_agent() {
    let host = Host::start();
    let mut agent = host.agent();
    agent.log_to(&host.logs()).unwrap();
    let script = "echo $FENCEPOST_LIFE $FENCEPOST_AGENT $COLOUR";
    let mut talker = shell(script);
    talker.env.insert("COLOUR".to_owned(), "red".to_owned());
    agent.start("talker", talker).unwrap();
    let socket = host.folder.path().join("s1.sock").display().to_string();
    let first = format!("1 {socket} red\n");
    wait_until("the first life spoke", || host.log_of("talker") == first);
    wait_until("it ended", || agent.look("talker").unwrap().ended.is_some());
    agent.restart("talker").unwrap();
    let both = format!("{first}2 {socket} red\n");
    wait_until("the second life spoke", || host.log_of("talker") == both);
}

#[test]
fn a_stop_shows_as_state_t_of_the_whole_family_and_a_continue_ends_it() {
    let host = Host::start();
    let mut agent = host.agent();
    // A child in the group, one in a session of its own, as Postgres's are, and an orphan.
    let script = "sleep 1000 & setsid sleep 1000 & (sleep 1000 &) ; wait";
    agent.start("server", shell(script)).unwrap();
    let count = |agent: &mut Agent| agent.look("server").unwrap().states.len();
    wait_until("all four run", || count(&mut agent) == 4);

    let stopped = agent.signal("server", Signal::Stop).unwrap();
    assert_eq!(stopped.status.states, "TTTT");
    assert_eq!(state_of(stopped.status.pid.unwrap()), Some('T'));
    assert!(stopped.sent_ns < stopped.shown_ns);
    assert_eq!(agent.look("server").unwrap().states, "TTTT");

    let gone_on = agent.signal("server", Signal::Continue).unwrap();
    assert_eq!(gone_on.status.states.len(), 4);
    assert!(!gone_on.status.states.contains('T'));

    let killed = agent.signal("server", Signal::Kill).unwrap();
    assert_eq!(killed.status.states, "");
    assert_eq!(count(&mut agent), 0);
    assert!(failure(agent.signal("server", Signal::Stop)).contains("signal 9"));
}

#[test]
fn a_family_that_forks_all_the_time_is_stopped_whole_and_killed_whole() {
    let host = Host::start();
    let mut agent = host.agent();
    // The shell may use vfork: it is in state D while its child is stopped before its exec.
    let script = "while :; do setsid sleep 0.02 & sleep 0.001; done";
    agent.start("server", shell(script)).unwrap();
    for _ in 0..20 {
        wait_until("it forks", || {
            agent.look("server").unwrap().states.len() > 3
        });
        let stopped = agent.signal("server", Signal::Stop).unwrap().status.states;
        assert!(
            stopped.chars().all(|state| "TD".contains(state)),
            "{stopped}"
        );
        let later = agent.look("server").unwrap().states;
        assert!(later.chars().all(|state| "TD".contains(state)), "{later}");
        assert_eq!(later.len(), stopped.len(), "nobody escaped");
        agent.signal("server", Signal::Continue).unwrap();
    }
    agent.signal("server", Signal::Kill).unwrap();
    assert_eq!(agent.look("server").unwrap().states, "");
}

#[test]
fn terminate_lets_a_process_end_by_itself() {
    let host = Host::start();
    let mut agent = host.agent();
    let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    agent.start("server", shell(script)).unwrap();
    wait_until("it listens", || agent.tail("server").unwrap() == "ready\n");
    agent.signal("server", Signal::Terminate).unwrap();
    let ended = |agent: &mut Agent| agent.look("server").unwrap().ended;
    wait_until("it has ended", || ended(&mut agent).is_some());
    assert_eq!(ended(&mut agent).as_deref(), Some("exit 3"));
    wait_until("it said so", || {
        agent.tail("server").unwrap().ends_with("bye\n")
    });
}

#[test]
fn an_armed_stop_stops_the_client_where_it_is_and_then_tells() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Stop);
    let mut watch = host.agent().watch().unwrap();
    host.start_client(2);
    let Notice::Reached {
        rule: 1,
        op: 1,
        reached_ns,
        stopped_ns: Some(stopped_ns),
        states,
        ..
    } = next(&mut watch)
    else {
        panic!("not the notice of a stop");
    };
    assert_eq!(states, "T");
    assert!(reached_ns < stopped_ns);
    assert_eq!(agent.look("client").unwrap().states, "T");
    assert_eq!(
        host.log_of("client"),
        "life 1\n",
        "it is stopped before it goes on"
    );

    arm(&mut agent, Action::Tell);
    agent.signal("client", Signal::Continue).unwrap();
    wait_until("it went on", || {
        host.log_of("client").contains("passed 2\n")
    });
    assert_eq!(host.log_of("client"), "life 1\npassed 1\npassed 2\n");
}

#[test]
fn a_held_client_goes_on_at_proceed() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Hold);
    agent.proceed(1).unwrap();
    host.start_client(2);
    let mut watch = host.agent().watch().unwrap();
    assert_eq!(op_of(&next(&mut watch)), 1);
    agent.proceed(2).unwrap();
    host.expect_log_of_client("life 1\n");
    agent.proceed(1).unwrap();
    assert_eq!(op_of(&next(&mut watch)), 2);
    host.expect_log_of_client("life 1\npassed 1\n");

    // Another arming lets go whoever is held.
    arm(&mut agent, Action::Tell);
    wait_until("it went on", || {
        host.log_of("client").ends_with("passed 2\n")
    });
}

#[test]
fn a_client_that_dies_while_it_is_held_is_forgotten() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Hold);
    host.start_client(1);
    let mut watch = host.agent().watch().unwrap();
    next(&mut watch);
    agent.signal("client", Signal::Kill).unwrap();
    assert!(
        matches!(next(&mut watch), Notice::Ended { life: 1, ended, .. } if ended == "signal 9")
    );
    agent.restart("client").unwrap();
    assert_eq!(op_of(&next(&mut watch)), 1);
    agent.proceed(1).unwrap();
    wait_until("it went on", || {
        host.log_of("client").ends_with("passed 1\n")
    });
}

#[test]
fn every_watcher_gets_every_notice_since_the_arming() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Tell);
    let mut early = host.agent().watch().unwrap();
    host.start_client(100);
    for op in 1..=100 {
        assert_eq!(op_of(&next(&mut early)), op);
    }
    let ended = next(&mut early);
    assert!(
        matches!(&ended, Notice::Ended { process, ended, .. } if process == "client" && ended == "exit 0")
    );
    let mut late = host.agent().watch().unwrap();
    for op in 1..=100 {
        assert_eq!(op_of(&next(&mut late)), op);
    }
    assert_eq!(next(&mut late), ended);
    assert_eq!(late.next(Duration::from_millis(1)).unwrap(), None);

    arm(&mut agent, Action::Tell);
    let mut after = host.agent().watch().unwrap();
    assert_eq!(after.next(Duration::from_millis(1)).unwrap(), None);
}

#[test]
fn only_a_process_of_the_agent_is_stopped() {
    let host = Host::start();
    let mut agent = host.agent();
    arm(&mut agent, Action::Stop);
    let error = failure(host.agent().reached(1, 1, 1, 1));
    assert!(error.contains("not a process of this agent"), "{error}");
    assert!(failure(host.agent().reached(2, 1, 1, 1)).contains("not armed"));
}

#[test]
fn output_from_before_the_first_log_and_after_a_switch_is_where_it_belongs() {
    let host = Host::start();
    let mut agent = host.agent();
    let script = "echo one; echo two >&2; read line < \"$GATE\"; echo three";
    let gate = host.folder.path().join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut talker = shell(script);
    talker
        .env
        .insert("GATE".to_owned(), gate.display().to_string());
    agent.start("talker", talker).unwrap();
    wait_until("it spoke", || agent.tail("talker").unwrap() == "one\ntwo\n");
    agent.log_to(&host.logs()).unwrap();
    assert_eq!(host.log_of("talker"), "one\ntwo\n");
    let later = host.folder.path().join("later");
    agent.log_to(&later).unwrap();
    fs::write(&gate, "go\n").unwrap();
    let log = || fs::read_to_string(later.join("talker.log")).unwrap_or_default();
    wait_until("it spoke again", || log() == "three\n");
    assert_eq!(host.log_of("talker"), "one\ntwo\n");
}

#[test]
fn a_command_runs_to_its_end_and_says_how() {
    let host = Host::start();
    let mut agent = host.agent();
    let ran = agent
        .run(["sh", "-c", "echo out; echo err >&2; exit 4"], PATIENCE)
        .unwrap();
    assert_eq!(
        (ran.code, &*ran.stdout, &*ran.stderr),
        (Some(4), "out\n", "err\n")
    );
    assert_eq!(ran.said(), "exit status 4: out err");
    let ran = agent.run(["sh", "-c", "kill -9 $$"], PATIENCE).unwrap();
    assert_eq!(ran.code, None);
    let big = "head -c 300000 /dev/zero | tr '\\0' x";
    assert_eq!(
        agent.run(["sh", "-c", big], PATIENCE).unwrap().stdout.len(),
        300_000
    );
    assert!(failure(agent.run(["no-such-program"], PATIENCE)).contains("no-such-program"));
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_its_children() {
    let host = Host::start();
    let mut agent = host.agent();
    let script = "setsid sleep 1000 & echo $!; sleep 1000";
    let ran = agent
        .run(["sh", "-c", script], Duration::from_millis(300))
        .unwrap();
    assert_eq!(ran.code, None);
    assert!(
        ran.stderr.ends_with("killed after 300 ms\n"),
        "{}",
        ran.stderr
    );
    let child: i32 = ran.stdout.trim().parse().unwrap();
    wait_until("the child is gone", || state_of(child).is_none());
}

#[test]
fn a_command_that_leaves_a_process_behind_does_not_wait_for_it() {
    let host = Host::start();
    let mut agent = host.agent();
    let ran = agent
        .run(["sh", "-c", "sleep 1000 & echo done"], PATIENCE)
        .unwrap();
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "done\n"));
}

#[test]
fn connections_do_not_wait_for_each_other() {
    let host = Host::start();
    let gate = host.folder.path().join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut slow = host.agent();
    let script = format!("read line < {}; echo $line", gate.display());
    let slow = std::thread::spawn(move || slow.run(["sh", "-c", &script], PATIENCE).unwrap());
    let mut quick = host.agent();
    quick.start("server", shell("sleep 1000")).unwrap();
    quick.signal("server", Signal::Stop).unwrap();
    quick.run(["true"], PATIENCE).unwrap();
    assert!(!slow.is_finished());
    fs::write(&gate, "go\n").unwrap();
    assert_eq!(slow.join().unwrap().stdout, "go\n");
}

#[test]
fn a_file_is_put_with_its_folders() {
    let host = Host::start();
    let path = host.folder.path().join("a/b/offset");
    host.agent().put(&path, "+0").unwrap();
    host.agent().put(&path, "+30").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "+30");
    assert!(!failure(host.agent().put("/", "x")).is_empty());
}

#[test]
fn what_is_no_request_is_answered_and_the_connection_stays() {
    use std::io::{BufRead, BufReader, Write};
    let host = Host::start();
    let socket = host.folder.path().join("s1.sock");
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    for nonsense in [
        &b"nonsense\n"[..],
        b"{\"do\":\"dance\"}\n",
        b"\xff\xfe\n",
        b"\n",
    ] {
        stream.write_all(nonsense).unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert!(answer.contains("not a request"), "{answer}");
    }
    stream.write_all(b"{\"do\":\"hello\"}\n").unwrap();
    let answer = answers.next().unwrap().unwrap();
    assert!(answer.contains("scheduling"), "{answer}");
}

#[test]
fn orphans_are_reaped_and_the_end_of_the_agent_ends_all() {
    let host = Host::start();
    let mut agent = host.agent();
    let script = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; exec sleep 1000";
    let started = agent.start("server", shell(script)).unwrap();
    wait_until("the orphan spoke", || {
        agent.tail("server").unwrap().ends_with('\n')
    });
    let orphan: i32 = agent.tail("server").unwrap().trim().parse().unwrap();
    assert!(state_of(orphan).is_some());
    let ran = agent
        .run(["sh", "-c", "(sleep 0.01 &) ; echo"], PATIENCE)
        .unwrap();
    assert_eq!(ran.code, Some(0));
    drop(agent);
    drop(host);
    for pid in [started.pid, orphan] {
        wait_until("it is gone", || {
            state_of(pid).is_none_or(|state| state == 'Z')
        });
    }
}

#[test]
fn nobody_at_the_socket_is_said_with_the_hosts_name() {
    let error = Agent::connect(Path::new("/nonexistent/s9.sock")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("host s9: no agent answers at"),
        "{error}"
    );
}
