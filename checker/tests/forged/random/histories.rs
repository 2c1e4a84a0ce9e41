//! Small random histories: clients that go about their work on a lock and a storage that mostly do right.

use std::collections::BTreeMap;

use histories::{
    Deed, Effect, Event, FORMAT_VERSION, Function, Header, Kind, NEMESIS, Plan, STORAGE, Workload,
};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// One millisecond: all times are multiples of it.
pub const MS: u64 = 1_000_000;

/// The bound for progress.
pub const BOUND_MS: u64 = 12;

/// A history, ordered by time.
#[derive(Clone)]
pub struct History {
    pub events: Vec<Event<'static>>,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f)?;
        self.events.iter().try_for_each(|event| {
            writeln!(
                f,
                "{}",
                serde_json::to_string(event).map_err(|_| std::fmt::Error)?
            )
        })
    }
}

/// What one client does next, and what comes of it.
#[derive(Clone, Copy, Debug)]
struct Step {
    after_ms: u64,
    client: usize,
    action: u8,
    chance: u8,
    number: u64,
}

/// How the storage's log is read at the end.
#[derive(Clone, Copy, Debug)]
enum Log {
    Absent,
    Complete,
    RowMissing,
    RowMissingUnnoticed,
    RowTwice,
}

/// Histories of so many clients and at most so many steps.
pub fn history(clients: usize, steps: usize) -> impl Strategy<Value = History> {
    let step = (0_u64..4, 0..clients, 0_u8..16, any::<u8>(), 0_u64..16).prop_map(
        |(after_ms, client, action, chance, number)| Step {
            after_ms,
            client,
            action,
            chance,
            number,
        },
    );
    let log = prop_oneof![
        4 => Just(Log::Complete),
        3 => Just(Log::Absent),
        1 => Just(Log::RowMissing),
        1 => Just(Log::RowMissingUnnoticed),
        1 => Just(Log::RowTwice),
    ];
    (prop::collection::vec(step, 4..steps), log).prop_map(move |(steps, log)| {
        let mut world = World::new(clients);
        steps.into_iter().for_each(|step| world.step(step));
        world.read_log(log);
        History {
            events: world.events,
        }
    })
}

/// An operation in flight.
#[derive(Clone)]
struct InFlight {
    op: u64,
    f: Function,
    grant: Option<u64>,
    /// Until when an extension can have been made to last.
    valid_until: u64,
    /// What the storage did with it already.
    version: Option<u64>,
    value: String,
}

#[derive(Default)]
struct Client {
    life: u32,
    lock_op: Option<InFlight>,
    storage_op: Option<InFlight>,
    grants: Vec<u64>,
    crashing: Option<u64>,
    exited: bool,
}

struct World {
    t: u64,
    op: u64,
    token: u64,
    version: u64,
    value: String,
    accepted: Vec<(u64, u64, String)>,
    clients: Vec<Client>,
    events: Vec<Event<'static>>,
}

impl World {
    fn new(clients: usize) -> World {
        let clients = (0..clients)
            .map(|_| Client {
                life: 1,
                ..Client::default()
            })
            .collect();
        World {
            t: 0,
            op: 0,
            token: 0,
            version: 0,
            value: String::new(),
            accepted: Vec::new(),
            clients,
            events: Vec::new(),
        }
    }

    fn tell(
        &mut self,
        process: String,
        op: u64,
        kind: Kind,
        f: Function,
        fill: impl FnOnce(&mut Event<'static>),
    ) {
        let mut event = Event::new(self.t, process, op, kind, f);
        fill(&mut event);
        self.events.push(event);
    }

    fn next_op(&mut self) -> u64 {
        self.op += 1;
        self.op
    }

    fn process(&self, client: usize) -> String {
        match self.clients[client].life {
            1 => format!("c{}", client + 1),
            life => format!("c{}.{life}", client + 1),
        }
    }

    fn step(&mut self, step: Step) {
        self.t += step.after_ms * MS;
        let client = step.client;
        if self.clients[client].exited {
            self.clients[client] = Client {
                life: self.clients[client].life + 1,
                ..Client::default()
            };
        }
        let Client {
            lock_op,
            storage_op,
            grants,
            crashing,
            ..
        } = &self.clients[client];
        match step.action {
            0..8 if lock_op.is_some() => self.end_lock(client, step),
            0..12 if storage_op.is_some() => self.end_storage(client, step),
            14 if crashing.is_none() || step.chance < 128 => self.crash(client, step),
            0..13 if grants.is_empty() => self.begin_lock(client, step, Function::Acquire),
            0 => self.begin_lock(client, step, Function::Acquire),
            1 => self.begin_lock(client, step, Function::Release),
            2 => self.begin_lock(client, step, Function::Extend),
            3 => self.begin_lock(client, step, Function::Held),
            4..10 => self.begin_storage(client, step, Function::Write),
            10..13 => self.begin_storage(client, step, Function::Read),
            13 => self.lose(client, step),
            _ if step.chance < 60 => self.exit(client),
            _ => {}
        }
    }

    fn grant(&self, client: usize, number: u64) -> Option<u64> {
        let grants = &self.clients[client].grants;
        (!grants.is_empty())
            .then(|| grants[grants.len() - 1 - number as usize % grants.len().min(2)])
    }

    fn begin_lock(&mut self, client: usize, step: Step, f: Function) {
        let grant = if f == Function::Acquire {
            None
        } else {
            self.grant(client, step.number)
        };
        if self.clients[client].lock_op.is_some() || (f != Function::Acquire && grant.is_none()) {
            return;
        }
        let op = self.next_op();
        let ttl_ms = step.number;
        self.tell(self.process(client), op, Kind::Invoke, f, |event| {
            event.grant = grant;
            event.ttl_ms = (f == Function::Extend).then_some(ttl_ms);
            event.lock = Some(if step.chance < 20 { "other" } else { "l" }.into());
        });
        self.clients[client].lock_op = Some(InFlight {
            op,
            f,
            grant,
            valid_until: self.t + ttl_ms * MS,
            version: None,
            value: String::new(),
        });
    }

    fn end_lock(&mut self, client: usize, step: Step) {
        let Some(in_flight) = self.clients[client].lock_op.take() else {
            return;
        };
        let InFlight { op, f, grant, .. } = in_flight;
        let kind = match step.chance % 8 {
            0..=5 => Kind::Ok,
            6 => Kind::Fail,
            _ => Kind::Info,
        };
        self.token += u64::from(f == Function::Acquire);
        let token = if step.chance < 230 {
            self.token
        } else {
            step.number
        };
        let validity = match f {
            Function::Extend => in_flight.valid_until,
            _ => (self.t + step.number * MS).saturating_sub(3 * MS),
        };
        self.tell(self.process(client), op, kind, f, |event| {
            event.grant = grant;
            if kind == Kind::Ok {
                let expires =
                    matches!(f, Function::Acquire | Function::Extend) && step.chance % 16 > 1;
                event.validity = expires.then_some(validity);
                event.token =
                    (f == Function::Acquire && !step.chance.is_multiple_of(3)).then_some(token);
                event.held = (f == Function::Held).then_some(step.number > 5);
            }
        });
        if f == Function::Acquire && kind == Kind::Ok {
            self.clients[client].grants.push(op);
        }
    }

    fn begin_storage(&mut self, client: usize, step: Step, f: Function) {
        if self.clients[client].storage_op.is_some() {
            return;
        }
        let op = self.next_op();
        let grant = self
            .grant(client, step.number)
            .filter(|_| !step.chance.is_multiple_of(16));
        let value = format!("v{op}");
        let based_on = self.version.saturating_sub(u64::from(step.chance % 4 == 3));
        let (document, written) = (Some("d".into()), Some(value.clone().into()));
        self.tell(self.process(client), op, Kind::Invoke, f, |event| {
            (event.document, event.grant) = (document, grant);
            if f == Function::Write {
                event.value = written;
                event.based_on = (!step.chance.is_multiple_of(32)).then_some(based_on);
            }
        });
        let mut in_flight = InFlight {
            op,
            f,
            grant,
            valid_until: 0,
            version: None,
            value,
        };
        if step.chance < 128 {
            self.take_effect(&mut in_flight, step);
        }
        self.clients[client].storage_op = Some(in_flight);
    }

    /// The storage does what it is asked, nearly always as it should.
    fn take_effect(&mut self, asked: &mut InFlight, step: Step) {
        let wrong = step.number == 15;
        if asked.f == Function::Read {
            let back = u64::from(wrong && self.version > 0);
            asked.version = Some(self.version - back);
            let written = self
                .accepted
                .iter()
                .find(|(_, version, _)| Some(*version) == asked.version);
            asked.value = written
                .map(|(_, _, value)| value.clone())
                .unwrap_or_default();
            return;
        }
        let version = if wrong {
            self.version.max(1)
        } else {
            self.version + 1 + u64::from(step.number == 14)
        };
        self.version = self.version.max(version);
        self.value.clone_from(&asked.value);
        asked.version = Some(version);
        self.accepted.push((asked.op, version, asked.value.clone()));
    }

    fn end_storage(&mut self, client: usize, step: Step) {
        let Some(mut asked) = self.clients[client].storage_op.take() else {
            return;
        };
        let kind = match step.chance % 8 {
            0..=4 => Kind::Ok,
            5 if asked.version.is_none() || step.number == 0 => Kind::Fail,
            _ => Kind::Info,
        };
        if asked.version.is_none() && kind == Kind::Ok {
            self.take_effect(&mut asked, step);
        }
        let rejected = asked.f == Function::Write && kind == Kind::Fail && step.number > 4;
        self.tell(self.process(client), asked.op, kind, asked.f, |event| {
            if kind == Kind::Ok {
                event.version = asked.version;
                event.value = (asked.f == Function::Read).then(|| asked.value.clone().into());
            }
            event.error = rejected.then(|| "rejected".into());
        });
    }

    fn lose(&mut self, client: usize, step: Step) {
        if let Some(grant) = self.grant(client, step.number) {
            let op = self.next_op();
            self.tell(
                self.process(client),
                op,
                Kind::Info,
                Function::Lost,
                |event| event.grant = Some(grant),
            );
        }
    }

    /// The nemesis crashes a client's host, which goes on for a while; then the crash is done.
    fn crash(&mut self, client: usize, step: Step) {
        let kind = match (self.clients[client].crashing, step.chance % 8) {
            (None, _) => Kind::Invoke,
            (Some(_), 0) => Kind::Fail,
            (Some(_), _) => Kind::Ok,
        };
        let op = self.clients[client]
            .crashing
            .unwrap_or_else(|| self.next_op());
        let host = format!("c{}", client + 1);
        self.tell(NEMESIS.to_owned(), op, kind, Function::Inject, |event| {
            event.fault = Some("crash".into());
            event.does = Some(vec![Effect::of(Deed::Kills)]);
            event.on = Some(vec![host]);
            event.evidence = (kind == Kind::Ok)
                .then(|| Map::from_iter([("gone".to_owned(), Value::Bool(true))]));
        });
        match kind {
            Kind::Invoke => self.clients[client].crashing = Some(op),
            Kind::Ok => self.clients[client].exited = true,
            _ => self.clients[client].crashing = None,
        }
    }

    fn exit(&mut self, client: usize) {
        let op = self.next_op();
        self.tell(
            self.process(client),
            op,
            Kind::Info,
            Function::Exit,
            |event| {
                event.error = Some("exit 0".into());
            },
        );
        self.clients[client].exited = true;
    }

    fn read_log(&mut self, log: Log) {
        let mut rows = std::mem::take(&mut self.accepted);
        let mut entries = rows.len();
        match log {
            Log::Absent => return,
            Log::Complete => {}
            Log::RowMissing => drop(rows.pop()),
            Log::RowMissingUnnoticed => entries -= usize::from(rows.pop().is_some()),
            Log::RowTwice => {
                let again = rows
                    .last()
                    .cloned()
                    .map(|(op, version, value)| (op, version + 1, value));
                entries += usize::from(again.is_some());
                rows.extend(again);
            }
        }
        self.t += MS;
        let op = self.next_op();
        self.tell(STORAGE.to_owned(), op, Kind::Invoke, Function::Log, |_| {});
        for (write, version, value) in rows {
            self.tell(
                STORAGE.to_owned(),
                write,
                Kind::Ok,
                Function::Accepted,
                |event| {
                    (event.document, event.version, event.value) =
                        (Some("d".into()), Some(version), Some(value.into()));
                },
            );
        }
        self.tell(STORAGE.to_owned(), op, Kind::Ok, Function::Log, |event| {
            event.entries = Some(entries as u64)
        });
    }
}

/// A header whose plan has a bound for progress and no faults.
pub fn header() -> Header {
    let workload = Workload {
        name: "document".into(),
        work_ms: 1,
        rest_ms: 1,
        retry_ms: 1,
        rounds: 1,
    };
    let plan = Plan {
        scenario: "random".into(),
        lock: "redis-token".into(),
        topology: "redis".into(),
        storage: "postgres".into(),
        policy: "unfenced".into(),
        write_condition: None,
        seed: 0,
        clients: 4,
        ttl_ms: 10,
        progress_bound_ms: BOUND_MS,
        limit_ms: 1000,
        controls: Vec::new(),
        workload,
        faults: Vec::new(),
    };
    Header {
        fencepost: FORMAT_VERSION,
        run: String::new(),
        started: String::new(),
        seed: 0,
        plan,
        contract: Vec::new(),
        heartbeat_ms: None,
        servers: BTreeMap::new(),
        images: BTreeMap::new(),
        machine: BTreeMap::new(),
    }
}
