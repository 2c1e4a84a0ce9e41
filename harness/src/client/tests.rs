//! Clients at work with a lock, a storage and an agent that do as they are told.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use async_trait::async_trait;
use containers::agent::protocol::{Action, At, Reply, Request, Rule};
use histories::{Event, Function, Kind, Plan};
use tempfile::TempDir;
use tokio::sync::watch;

use super::points::Reach;
use super::{Client, ClientConfig, Record, Tools, first_op, process_name, random_of};
use crate::connections::postgres::Session;
use crate::locks::{Answer, Has, Lock, Loss, Teller};
use crate::storages::{FENCED, Policy, Read, SAME_TRANSACTION, Storage, UNFENCED, Write, Written};
use crate::workloads::workload;

const TTL: Duration = Duration::from_millis(300);

/// A lock that gives the answers it was given, and grants and releases when they are used up.
struct ScriptedLock {
    answers: VecDeque<Answer>,
    loss: Loss,
}

impl ScriptedLock {
    fn answer(&mut self, otherwise: Answer) -> Answer {
        self.answers.pop_front().unwrap_or(otherwise)
    }
}

#[async_trait(?Send)]
impl Lock for ScriptedLock {
    async fn acquire(&mut self, _lock: &str, ttl: Duration, _wait: Duration) -> Answer {
        self.answer(Answer::granted(Some(7), ttl))
    }

    async fn extend(&mut self, ttl: Duration) -> Answer {
        self.answer(Answer::granted(Some(7), ttl))
    }

    async fn release(&mut self) -> Answer {
        self.answer(Answer::Released)
    }

    async fn held(&mut self) -> Answer {
        self.answer(Answer::held(Some(7)))
    }

    fn loss(&self) -> Loss {
        self.loss.clone()
    }
}

/// A storage whose document is at version 3, and whose writes come out as they were told to.
struct ScriptedStorage {
    written: Written,
    /// Told in the middle of a write, when it has been sent.
    loss_at_write: Option<Teller>,
}

#[async_trait(?Send)]
impl Storage for ScriptedStorage {
    async fn read(&mut self, _session: Option<&Session>, _document: &str) -> Read {
        Read::Is {
            version: 3,
            value: "before".to_owned(),
        }
    }

    async fn write(&mut self, _session: Option<&Session>, _write: &Write<'_>) -> Written {
        if let Some(teller) = &self.loss_at_write {
            teller.send_replace(Some("told at the write".to_owned()));
            tokio::task::yield_now().await;
        }
        self.written.clone()
    }
}

/// A client, and what it needs to be one.
struct Bench {
    folder: TempDir,
    client: Client,
    teller: Teller,
    stop: watch::Sender<bool>,
}

struct Setting {
    answers: Vec<Answer>,
    written: Written,
    policy: &'static Policy,
    loss_at_write: bool,
    rules: Vec<Rule>,
    agent: Option<PathBuf>,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            answers: Vec::new(),
            written: Written::Accepted { version: 4 },
            policy: &UNFENCED,
            loss_at_write: false,
            rules: Vec::new(),
            agent: None,
        }
    }
}

impl Bench {
    fn new(setting: Setting) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let config = config(&folder.path().join("c1.jsonl"));
        let (teller, loss) = Loss::new();
        let (stop, stopping) = watch::channel(false);
        let reach = Reach::new(setting.rules, setting.agent);
        let tools = Tools {
            record: Record::open(&config.events, "c1", 0, 10_000_001, reach).unwrap(),
            lock: Box::new(ScriptedLock {
                answers: setting.answers.into(),
                loss,
            }),
            has: Has {
                tokens: true,
                expiry: true,
                ..Has::default()
            },
            storage: Box::new(ScriptedStorage {
                written: setting.written,
                loss_at_write: setting.loss_at_write.then(|| teller.clone()),
            }),
            policy: setting.policy,
            random: random_of(1, "c1"),
            stop: stopping,
        };
        let client = Client::new(&config, "c1", tools);
        Bench {
            folder,
            client,
            teller,
            stop,
        }
    }

    fn round(&mut self) {
        runtime().block_on(async {
            let document = workload("document").unwrap();
            document.round(&mut self.client).await.unwrap();
        });
    }

    fn events(&self) -> Vec<Event<'static>> {
        let text = std::fs::read_to_string(self.folder.path().join("c1.jsonl")).unwrap();
        let event = |line: &str| {
            let event: Event<'_> = serde_json::from_str(line).unwrap();
            owned(&event)
        };
        text.lines().map(event).collect()
    }

    /// What happened, without its particulars: `acquire invoke`.
    fn course(&self) -> Vec<String> {
        let said = |event: &Event| format!("{:?} {:?}", event.f, event.kind).to_lowercase();
        self.events().iter().map(said).collect()
    }

    fn last(&self, f: Function) -> Event<'static> {
        let mut events = self.events();
        events.retain(|event| event.f == f);
        events.pop().unwrap()
    }
}

fn owned(event: &Event<'_>) -> Event<'static> {
    let text = serde_json::to_string(event).unwrap();
    serde_json::from_str::<Event<'_>>(Box::leak(text.into_boxed_str())).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn config(events: &Path) -> ClientConfig {
    let server = "127.0.0.1:1".parse().unwrap();
    ClientConfig {
        client: "c1".to_owned(),
        base_ns: 0,
        events: events.to_owned(),
        plan: plan(),
        lock: "the-lock".to_owned(),
        lock_servers: vec![server],
        document: "the-document".to_owned(),
        storage_server: server,
        rules: Vec::new(),
    }
}

fn plan() -> Plan {
    Plan {
        scenario: "a-test".to_owned(),
        lock: "redis-token".to_owned(),
        topology: "redis".to_owned(),
        storage: "postgres".to_owned(),
        policy: "fenced".to_owned(),
        seed: 1,
        clients: 2,
        ttl_ms: TTL.as_millis() as u64,
        progress_bound_ms: 3000,
        limit_ms: 60_000,
        controls: Vec::new(),
        workload: histories::Workload {
            name: "document".to_owned(),
            work_ms: 1,
            rest_ms: 1,
            retry_ms: 1,
            rounds: 1,
        },
        faults: Vec::new(),
    }
}

const WHOLE_ROUND: &[&str] = &[
    "acquire invoke",
    "acquire ok",
    "work invoke",
    "read invoke",
    "read ok",
    "write invoke",
    "write ok",
    "work ok",
    "release invoke",
    "release ok",
];

#[test]
fn a_round_is_written_down_as_it_goes() {
    let mut bench = Bench::new(Setting {
        policy: &FENCED,
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.course(), WHOLE_ROUND);

    let events = bench.events();
    assert!(events.is_sorted_by_key(|event| event.t), "{events:?}");
    let acquire = &events[0];
    assert_eq!(acquire.op, 10_000_001);
    assert_eq!(acquire.lock.as_deref(), Some("the-lock"));
    assert_eq!(acquire.ttl_ms, Some(300));
    let granted = &events[1];
    assert_eq!((granted.op, granted.token), (acquire.op, Some(7)));
    assert_eq!(granted.validity, Some(acquire.t + TTL.as_nanos() as u64));
    for event in &events[2..] {
        assert_eq!(event.process, "c1");
        if event.kind == Kind::Invoke {
            assert_eq!(event.grant, Some(acquire.op), "{event:?}");
        }
    }
    let (read, write) = (&events[4], &events[5]);
    assert_eq!(
        (read.version, read.value.as_deref()),
        (Some(3), Some("before"))
    );
    assert_eq!(write.based_on, Some(3));
    assert_eq!(write.token, Some(7));
    assert_eq!(
        write.value.as_deref(),
        Some(format!("c1-{}", write.op).as_str())
    );
    assert_eq!((events[6].op, events[6].version), (write.op, Some(4)));
}

#[test]
fn values_and_operations_are_never_used_twice() {
    let mut bench = Bench::new(Setting::default());
    bench.round();
    bench.round();
    let events = bench.events();
    let begun = || events.iter().filter(|event| event.kind == Kind::Invoke);
    let mut ops: Vec<u64> = begun().map(|event| event.op).collect();
    assert!(ops.is_sorted());
    ops.dedup();
    assert_eq!(ops.len(), begun().count());
    let writes: Vec<_> = begun().filter(|event| event.f == Function::Write).collect();
    assert_ne!(writes[0].value, writes[1].value);
}

#[test]
fn a_token_is_sent_only_where_the_policy_looks_at_it() {
    let mut bench = Bench::new(Setting::default());
    bench.round();
    assert_eq!(bench.last(Function::Write).token, None);
}

#[test]
fn a_busy_lock_certainly_was_not_granted() {
    let mut bench = Bench::new(Setting {
        answers: vec![Answer::Busy],
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.course(), ["acquire invoke", "acquire fail"]);
    assert_eq!(bench.last(Function::Acquire).error.as_deref(), Some("busy"));
}

#[test]
fn what_was_not_answered_may_have_happened() {
    let error = "no answer".to_owned();
    let mut bench = Bench::new(Setting {
        answers: vec![Answer::Unknown {
            error: error.clone(),
        }],
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.course(), ["acquire invoke", "acquire info"]);
    assert_eq!(
        bench.last(Function::Acquire).error.as_ref().unwrap(),
        &error
    );

    let mut bench = Bench::new(Setting {
        answers: vec![
            Answer::granted(Some(7), TTL),
            Answer::Unknown {
                error: error.clone(),
            },
        ],
        written: Written::Unknown { error },
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.last(Function::Write).kind, Kind::Info);
    assert_eq!(bench.last(Function::Release).kind, Kind::Info);
}

#[test]
fn a_rejected_writer_learns_that_it_lost_the_lock() {
    let mut bench = Bench::new(Setting {
        answers: vec![Answer::granted(Some(7), TTL), Answer::lost("over")],
        written: Written::Rejected,
        policy: &FENCED,
        ..Setting::default()
    });
    bench.round();
    let course = bench.course();
    assert_eq!(
        course[5..],
        [
            "write invoke",
            "write fail",
            "lost info",
            "work ok",
            "release invoke",
            "release fail"
        ]
    );
    assert_eq!(
        bench.last(Function::Write).error.as_deref(),
        Some("rejected")
    );
    assert_eq!(bench.last(Function::Lost).grant, Some(10_000_001));
}

#[test]
fn a_client_that_was_told_of_its_loss_does_not_write() {
    let mut bench = Bench::new(Setting::default());
    bench
        .teller
        .send_replace(Some("the lease is over".to_owned()));
    bench.round();
    let course = bench.course();
    assert!(!course.contains(&"write invoke".to_owned()), "{course:?}");
    assert_eq!(
        course.iter().filter(|said| *said == "lost info").count(),
        1,
        "{course:?}"
    );
    assert_eq!(bench.last(Function::Release).kind, Kind::Ok);
    assert_eq!(
        bench.last(Function::Lost).error.as_deref(),
        Some("the lease is over")
    );
}

#[test]
fn a_loss_that_is_told_during_a_write_is_learnt_then() {
    let mut bench = Bench::new(Setting {
        loss_at_write: true,
        ..Setting::default()
    });
    bench.round();
    assert_eq!(
        bench.course()[5..8],
        ["write invoke", "lost info", "write ok"]
    );
}

#[test]
fn a_write_in_the_locks_transaction_is_decided_by_the_release() {
    let unknown = Answer::Unknown {
        error: "no answer".to_owned(),
    };
    for (released, write) in [
        (Answer::Released, Kind::Ok),
        (Answer::lost("rolled back"), Kind::Fail),
        (unknown, Kind::Info),
    ] {
        let mut bench = Bench::new(Setting {
            answers: vec![Answer::held(None), released],
            written: Written::AtCommit { version: 4 },
            policy: &SAME_TRANSACTION,
            ..Setting::default()
        });
        bench.round();
        let said = |f: &str| format!("{f} {write:?}").to_lowercase();
        let expected = [
            "work ok".to_owned(),
            "release invoke".to_owned(),
            said("write"),
            said("release"),
        ];
        assert_eq!(bench.course()[6..], expected);
    }
}

#[test]
fn a_client_that_is_asked_to_end_does_not_rest() {
    let bench = Bench::new(Setting::default());
    let Bench {
        mut client, stop, ..
    } = bench;
    stop.send_replace(true);
    assert!(client.is_stopping());
    runtime().block_on(client.pause(3_600_000));
}

/// An agent that writes down what it is told, and answers when it is let.
struct FakeAgent {
    _folder: TempDir,
    socket: PathBuf,
    told: mpsc::Receiver<Request>,
    answer: mpsc::Sender<()>,
}

impl FakeAgent {
    fn new() -> FakeAgent {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("c1.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let (tell, told) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let answers = std::sync::Arc::new(std::sync::Mutex::new(answers));
            for connection in listener.incoming() {
                let (tell, answers) = (tell.clone(), answers.clone());
                std::thread::spawn(move || {
                    let mut connection = connection.unwrap();
                    let lines = BufReader::new(connection.try_clone().unwrap()).lines();
                    for line in lines.map_while(Result::ok) {
                        tell.send(serde_json::from_str(&line).unwrap()).unwrap();
                        answers.lock().unwrap().recv().unwrap();
                        let reply = serde_json::to_string(&Reply::Done).unwrap();
                        writeln!(connection, "{reply}").unwrap();
                    }
                });
            }
        });
        FakeAgent {
            _folder: folder,
            socket,
            told,
            answer,
        }
    }

    fn let_answer(&self, times: usize) {
        (0..times).for_each(|_| self.answer.send(()).unwrap());
    }
}

fn at_point(point: &str, nth_grant: u64, action: Action) -> Rule {
    Rule {
        rule: 5,
        at: At::Point {
            point: point.to_owned(),
            nth_grant,
        },
        action,
    }
}

#[test]
fn an_armed_point_is_reached_at_its_grant_and_no_other() {
    let agent = FakeAgent::new();
    agent.let_answer(1);
    let mut bench = Bench::new(Setting {
        rules: vec![at_point("before-write", 2, Action::Stop)],
        agent: Some(agent.socket.clone()),
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.course(), WHOLE_ROUND);
    bench.round();
    bench.round();
    let events = bench.events();
    let points: Vec<_> = events
        .iter()
        .filter(|event| event.f == Function::Point)
        .collect();
    assert_eq!(points.len(), 2, "{points:?}");
    assert_eq!(
        (points[0].point.as_deref(), points[0].nth),
        (Some("before-write"), Some(2))
    );
    assert_eq!(points[0].op, points[1].op);
    let told: Vec<Request> = agent.told.try_iter().collect();
    let reached = Request::Reached {
        rule: 5,
        reached_ns: points[0].t,
        invoked_ns: points[0].t,
        op: points[0].op,
    };
    assert_eq!(told, [reached]);
    let at = events
        .iter()
        .position(|event| event.f == Function::Point)
        .unwrap();
    assert_eq!(events[at + 2].f, Function::Write);
}

#[test]
fn a_completion_that_a_rule_names_is_told_each_time() {
    let agent = FakeAgent::new();
    agent.let_answer(2);
    let at = At::Event {
        f: "write".to_owned(),
        outcome: "ok".to_owned(),
    };
    let mut bench = Bench::new(Setting {
        rules: vec![Rule {
            rule: 9,
            at,
            action: Action::Tell,
        }],
        agent: Some(agent.socket.clone()),
        ..Setting::default()
    });
    bench.round();
    bench.round();
    let events = bench.events();
    let of = |kind| {
        events
            .iter()
            .filter(move |event| event.f == Function::Write && event.kind == kind)
    };
    let expected: Vec<Request> = of(Kind::Invoke)
        .zip(of(Kind::Ok))
        .map(|(invoke, ok)| Request::Reached {
            rule: 9,
            reached_ns: ok.t,
            invoked_ns: invoke.t,
            op: ok.op,
        })
        .collect();
    assert_eq!(expected.len(), 2);
    assert_eq!(agent.told.try_iter().collect::<Vec<_>>(), expected);
}

/// Whether a background task of the client, such as a keep-alive, runs while the client is kept at a point.
fn background_runs(action: Action, within: Duration) -> bool {
    let agent = FakeAgent::new();
    let rule = at_point("after-acquire", 1, action);
    let mut bench = Bench::new(Setting {
        rules: vec![rule],
        agent: Some(agent.socket.clone()),
        ..Setting::default()
    });
    let (beat, heard) = mpsc::channel();
    let kept = std::thread::spawn(move || {
        agent.told.recv().unwrap();
        // Whatever was said before the client got there does not count.
        heard.try_iter().for_each(drop);
        let runs = heard.recv_timeout(within).is_ok();
        agent.let_answer(1);
        runs
    });
    runtime().block_on(async {
        tokio::spawn(async move {
            while beat.send(()).is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        workload("document")
            .unwrap()
            .round(&mut bench.client)
            .await
            .unwrap();
    });
    kept.join().unwrap()
}

#[test]
fn a_held_client_lives_and_a_stopped_one_stands_still() {
    assert!(background_runs(Action::Hold, Duration::from_secs(30)));
    assert!(!background_runs(Action::Stop, Duration::from_millis(300)));
}

#[test]
fn a_line_that_a_kill_tore_off_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c1.jsonl");
    std::fs::write(&path, "{\"t\":1,\"proc").unwrap();
    let reach = Reach::new(Vec::new(), None);
    let record = Record::open(&path, "c1.2", 0, 11_000_001, reach).unwrap();
    record.remark(Function::Lost, |_| {}).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    let event: Event<'_> = serde_json::from_str(lines[1]).unwrap();
    assert_eq!((event.process.as_ref(), event.op), ("c1.2", 11_000_001));
}

#[test]
fn what_cannot_be_written_down_ends_the_client() {
    let reach = Reach::new(Vec::new(), None);
    let record = Record::open(Path::new("/dev/full"), "c1", 0, 1, reach).unwrap();
    let error = record.invoke(Function::Acquire, |_| {}).unwrap_err();
    assert!(error.to_string().contains("/dev/full"), "{error}");
}

#[test]
fn operations_of_lives_and_clients_never_meet() {
    assert_eq!(first_op("c1", 1).unwrap(), 10_000_001);
    assert_eq!(first_op("c2", 1).unwrap(), 20_000_001);
    assert_eq!(first_op("c2", 3).unwrap(), 22_000_001);
    assert_eq!(process_name("c2", 1), "c2");
    assert_eq!(process_name("c2", 3), "c2.3");
    for wrong in ["s1", "c", "c0", "cx", ""] {
        assert!(
            first_op(wrong, 1).is_err(),
            "{wrong} was taken for a client"
        );
    }
}
