//! Makes long histories as the document workload leaves them: five clients, one lock with tokens, one document.
//!
//! A small simulation: the lock and the storage answer rightly, a busy lock is asked for again, one write in a thousand
//! never gets its reply, and the storage's log tells what became of it. The same seed gives the same history for ever.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use histories::{Event, FORMAT_VERSION, Function, Header, Kind, Plan, STORAGE, Workload};

const CLIENTS: u64 = 5;
const TTL_NS: u64 = 300_000_000;

/// Splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }
}

/// What a client does next, or is doing.
struct Client {
    next: Function,
    op: u64,
    last_op: u64,
    grant: u64,
    token: u64,
    read_version: u64,
    invoked: u64,
    /// What it writes; kept here so that the read after it can return it.
    value: String,
}

/// The history of so many operations; `each` gets its events in order.
pub fn generate(operations: u64, seed: u64, mut each: impl FnMut(&Event<'_>)) {
    let mut world = World {
        random: Random(seed),
        clients: (1..=CLIENTS).map(client).collect(),
        begun: 0,
        holder: None,
        token: 0,
        document: (0, String::new()),
        log: Vec::new(),
    };
    // When each client goes on; equal times go by client.
    let mut due: BinaryHeap<Reverse<(u64, usize, bool)>> = (0..CLIENTS as usize)
        .map(|client| Reverse((1_000_000 + client as u64 * 1_000, client, true)))
        .collect();
    let mut end = 0;
    while let Some(Reverse((t, client, begins))) = due.pop() {
        end = t;
        if begins {
            // A round that was begun is brought to its end, so that no operation stays in flight.
            if world.begun >= operations && world.clients[client].next == Function::Acquire {
                continue;
            }
            world.begin(t, client, &mut each);
            due.push(Reverse((
                t + world.random.between(80_000, 400_000),
                client,
                false,
            )));
        } else {
            let rest = world.end(t, client, &mut each);
            due.push(Reverse((t + rest, client, true)));
        }
    }
    world.read_log(end + 1_000_000, &mut each);
}

fn client(number: u64) -> Client {
    Client {
        next: Function::Acquire,
        op: 0,
        last_op: number * 10_000_000,
        grant: 0,
        token: 0,
        read_version: 0,
        invoked: 0,
        value: String::new(),
    }
}

struct World {
    random: Random,
    clients: Vec<Client>,
    begun: u64,
    holder: Option<usize>,
    token: u64,
    document: (u64, String),
    /// Operation, version, value and token of each accepted write.
    log: Vec<(u64, u64, String, u64)>,
}

const NAMES: [&str; CLIENTS as usize] = ["c1", "c2", "c3", "c4", "c5"];

impl World {
    fn begin(&mut self, t: u64, client: usize, each: &mut impl FnMut(&Event<'_>)) {
        self.begun += 1;
        let me = &mut self.clients[client];
        me.last_op += 1;
        (me.op, me.invoked) = (me.last_op, t);
        let mut event = Event::new(t, NAMES[client], me.op, Kind::Invoke, me.next);
        if me.next == Function::Acquire {
            (event.ttl_ms, event.wait_ms) = (Some(TTL_NS / 1_000_000), Some(0));
        } else {
            event.grant = Some(me.grant);
        }
        match me.next {
            Function::Read => event.document = Some("document".into()),
            Function::Write => {
                me.value = format!("{}-{}", NAMES[client], me.op);
                event.document = Some("document".into());
                event.value = Some(me.value.as_str().into());
                (event.based_on, event.token) = (Some(me.read_version), Some(me.token));
            }
            _ => event.lock = Some("lock".into()),
        }
        each(&event);
    }

    /// Ends a client's operation, and says how long it rests before the next.
    fn end(&mut self, t: u64, client: usize, each: &mut impl FnMut(&Event<'_>)) -> u64 {
        let me = &mut self.clients[client];
        let mut event = Event::new(t, NAMES[client], me.op, Kind::Ok, me.next);
        let mut value = None;
        let (next, rest) = match me.next {
            Function::Acquire if self.holder.is_some() => {
                event.kind = Kind::Fail;
                event.error = Some("busy".into());
                (Function::Acquire, self.random.between(1_000_000, 3_000_000))
            }
            Function::Acquire => {
                self.holder = Some(client);
                self.token += 1;
                (me.grant, me.token) = (me.op, self.token);
                (event.token, event.validity) = (Some(self.token), Some(me.invoked + TTL_NS));
                (Function::Read, 20_000)
            }
            Function::Read => {
                me.read_version = self.document.0;
                event.version = Some(self.document.0);
                value = Some(self.document.1.as_str());
                (Function::Write, self.random.between(300_000, 900_000))
            }
            Function::Write => {
                self.document = (self.document.0 + 1, me.value.clone());
                let accepted = (me.op, self.document.0, me.value.clone(), me.token);
                self.log.push(accepted);
                if self.random.between(0, 1000) == 0 {
                    event.kind = Kind::Info;
                    event.error = Some("no reply in time".into());
                } else {
                    event.version = Some(self.document.0);
                }
                (Function::Release, 20_000)
            }
            _ => {
                self.holder = None;
                (Function::Acquire, self.random.between(1_000_000, 5_000_000))
            }
        };
        if me.next != Function::Acquire {
            event.grant = Some(me.grant);
        }
        match me.next {
            Function::Read | Function::Write => event.document = Some("document".into()),
            _ => {}
        }
        event.value = value.map(Into::into);
        me.next = next;
        each(&event);
        rest
    }

    fn read_log(&mut self, t: u64, each: &mut impl FnMut(&Event<'_>)) {
        each(&Event::new(
            t,
            STORAGE,
            5_000_000,
            Kind::Invoke,
            Function::Log,
        ));
        for (op, version, value, token) in &self.log {
            let mut row = Event::new(t, STORAGE, *op, Kind::Ok, Function::Accepted);
            row.document = Some("document".into());
            (row.version, row.token) = (Some(*version), Some(*token));
            row.value = Some(value.as_str().into());
            each(&row);
        }
        let mut done = Event::new(t, STORAGE, 5_000_000, Kind::Ok, Function::Log);
        done.entries = Some(self.log.len() as u64);
        each(&done);
        for process in NAMES {
            let mut exit = Event::new(t, process, 0, Kind::Info, Function::Exit);
            exit.error = Some("exit 0".into());
            each(&exit);
        }
    }
}

/// The header of a generated history.
pub fn header(seed: u64) -> Header {
    let plan = Plan {
        scenario: "generated".into(),
        lock: "redis-token".into(),
        topology: "redis".into(),
        storage: "postgres".into(),
        write_condition: Some("token".into()),
        policy: "fenced".into(),
        seed,
        clients: CLIENTS as u32,
        ttl_ms: TTL_NS / 1_000_000,
        progress_bound_ms: 1000,
        limit_ms: u64::MAX / 1_000_000,
        controls: Vec::new(),
        workload: Workload {
            name: "document".into(),
            work_ms: 1,
            rest_ms: 5,
            retry_ms: 3,
            rounds: 1,
        },
        faults: Vec::new(),
    };
    Header {
        fencepost: FORMAT_VERSION,
        run: "00000000-0000-7000-8000-000000000000".into(),
        started: "2025-01-01T00:00:00Z".into(),
        seed,
        plan,
        contract: Vec::new(),
        heartbeat_ms: None,
        servers: BTreeMap::new(),
        images: BTreeMap::new(),
        machine: BTreeMap::new(),
    }
}
