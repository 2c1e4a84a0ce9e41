//! Processes: started, signalled, logged, run to their end.

use std::fs;
use std::path::Path;
use std::time::Duration;

use containers::agent::Agent;
use containers::agent::protocol::Signal;

use crate::host::{Host, PATIENCE, command, failure, shell, state_of, wait_until};

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
    let script = "sleep 1000 & setsid sleep 1000 & (sleep 1000 &) ; echo ready; wait";
    agent.start("server", shell(script)).unwrap();
    let count = |agent: &mut Agent| agent.look("server").unwrap().states.len();
    wait_until("all run", || agent.tail("server").unwrap() == "ready\n");
    assert_eq!(count(&mut agent), 4);

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

    // A program that does nothing about its signals finds them as any program does.
    agent.start("plain", command(&["sleep", "1000"])).unwrap();
    agent.signal("plain", Signal::Terminate).unwrap();
    wait_until("it has ended", || {
        agent.look("plain").unwrap().ended.as_deref() == Some("signal 15")
    });
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
