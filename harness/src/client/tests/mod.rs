//! Clients at work with a lock, a storage and an agent that do as they are told.

mod agents;
mod rounds;
mod told;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use containers::agent::protocol::Rule;
use histories::{Event, Function, Plan};
use tempfile::TempDir;
use tokio::sync::watch;

use super::points::Reach;
use super::{Client, ClientConfig, Record, Tools, first_op, process_name, random_of};
use crate::connections::postgres::Session;
use crate::locks::{Answer, Has, Lock, Loss, Renewals, Teller};
use crate::storages::{Policy, Read, Storage, UNFENCED, Write, Written};
use crate::workloads::workload;

const TTL: Duration = Duration::from_millis(300);

/// A lock that gives the answers it was given, and grants and releases when they are used up.
struct ScriptedLock {
    answers: VecDeque<Answer>,
    loss: Loss,
    renewals: Renewals,
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

    fn renewals(&self) -> Renewals {
        self.renewals.clone()
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
    record: Rc<Record>,
    teller: Teller,
    renewed: watch::Sender<u64>,
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
        let (renewed, renewals) = Renewals::new(1);
        let (stop, stopping) = watch::channel(false);
        let reach = Reach::new(setting.rules, setting.agent);
        let record = Record::open(&config.events, "c1", 0, 10_000_001, reach).unwrap();
        let record = Rc::new(record);
        let tools = Tools {
            record: Rc::clone(&record),
            lock: Box::new(ScriptedLock {
                answers: setting.answers.into(),
                loss,
                renewals,
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
            record,
            teller,
            renewed,
            stop,
        }
    }

    fn round(&mut self) {
        runtime().block_on(async {
            let document = workload("document").unwrap();
            document.round(&mut self.client).await.unwrap();
        });
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("c1.jsonl")
    }

    /// What was written down, but for the stalls of a busy machine.
    fn events(&self) -> Vec<Event<'static>> {
        let mut events = written(&self.path());
        events.retain(|event| event.f != Function::Stall);
        events
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

/// The events in a file.
fn written(path: &Path) -> Vec<Event<'static>> {
    let text = std::fs::read_to_string(path).unwrap();
    let event = |line: &str| {
        serde_json::from_str::<Event<'_>>(line)
            .unwrap()
            .into_owned()
    };
    text.lines().map(event).collect()
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
        write_condition: None,
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

/// The events of a round in which nothing goes wrong.
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
