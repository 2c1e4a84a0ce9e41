//! The simulation: requests reach the servers one after the other, and each leads its client on.

mod trouble;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::client::{Call, Client, Grant};
use super::plan::{Kind, Setup, Trouble};
use super::service::{Lock, Storage};
use super::{MS, between};
use crate::file::File;

/// What the nemesis does to the server later.
#[derive(Clone, Copy, Debug)]
enum Change {
    Strike,
    Heal,
}

/// All that there is.
pub struct World {
    setup: Setup,
    rng: ChaCha8Rng,
    lock: Lock,
    storage: Storage,
    clients: Vec<Client>,
    changes: Vec<(u64, Change)>,
    events: Vec<Value>,
    /// The grant of the client that was killed.
    crashed: u64,
    /// When the latest write was asked for that was acknowledged.
    written: u64,
    /// When the storage stands still.
    still: (u64, u64),
    /// When the first client's packets to the lock's server are held.
    cut_off: (u64, u64),
    /// When the trouble was over; nothing is done before it came.
    over: Option<u64>,
}

impl World {
    /// A world at its beginning. The second client asks while the first holds.
    pub fn new(setup: Setup, mut rng: ChaCha8Rng) -> Self {
        let clients = (1..=setup.clients)
            .map(|number| Client::new(number, number * 3 * MS + between(&mut rng, 0, 1)))
            .collect();
        let over = (setup.trouble == Trouble::Nothing).then_some(0);
        World {
            setup,
            rng,
            lock: Lock::default(),
            storage: Storage::default(),
            clients,
            changes: Vec::new(),
            events: Vec::new(),
            crashed: 0,
            written: 0,
            still: (0, 0),
            cut_off: (0, 0),
            over,
        }
    }

    /// Runs it to its end.
    pub fn run(mut self) -> File {
        for place in 0..self.clients.len() {
            let at = self.clients[place].reaches;
            self.invoke(place, Call::Acquire, at);
        }
        while let Some(place) = self.next_client() {
            let now = self.clients[place].reaches;
            if self.waits_for_the_storage(place) {
                self.clients[place].reaches = self.still.1;
                continue;
            }
            if self.waits_for_the_lock(place) {
                self.clients[place].reaches = self.cut_off.1;
                continue;
            }
            self.change_servers(now);
            self.reach(place, now);
        }
        self.read_log();
        let mut file = File::new(self.setup.header(), self.events);
        file.sort();
        file
    }

    fn next_client(&self) -> Option<usize> {
        let waiting = (0..self.clients.len()).filter(|&place| !self.clients[place].is_done);
        waiting.min_by_key(|&place| self.clients[place].reaches)
    }

    fn waits_for_the_storage(&self, place: usize) -> bool {
        let Client { calls, reaches, .. } = &self.clients[place];
        let (from, to) = self.still;
        matches!(calls.0, Call::Read | Call::Write) && (from..to).contains(reaches)
    }

    fn waits_for_the_lock(&self, place: usize) -> bool {
        let Client { calls, reaches, .. } = &self.clients[place];
        let (from, to) = self.cut_off;
        let is_of_lock = !matches!(calls.0, Call::Read | Call::Write);
        place == 0 && is_of_lock && (from..to).contains(reaches)
    }

    fn change_servers(&mut self, now: u64) {
        let due: Vec<(u64, Change)> = self
            .changes
            .iter()
            .filter(|c| c.0 <= now)
            .copied()
            .collect();
        self.changes.retain(|change| change.0 > now);
        for (at, change) in due {
            match (self.setup.trouble, change) {
                (Trouble::ClockStep, Change::Strike) => self.lock.ahead = self.setup.step_ms() * MS,
                (Trouble::ClockStep, Change::Heal) => self.lock.ahead = 0,
                (Trouble::Restart, Change::Strike) => {
                    self.lock.forget();
                    self.lock.is_down = true;
                }
                (Trouble::Restart, Change::Heal) => self.lock.is_down = false,
                (Trouble::Crash | Trouble::ClientRestart, Change::Strike) if !self.has_expiry() => {
                    self.lock.release(self.crashed, at);
                }
                _ => {}
            }
        }
    }

    fn has_expiry(&self) -> bool {
        self.setup.kind != Kind::Session
    }

    fn ttl(&self) -> Option<u64> {
        self.has_expiry().then(|| self.setup.ttl())
    }

    fn push(&mut self, t: u64, process: &str, op: u64, kind: &str, f: &str, fields: Value) {
        let mut event = json!({"t": t, "process": process, "op": op, "type": kind, "f": f});
        for (field, value) in fields.as_object().into_iter().flatten() {
            if !value.is_null() {
                event[field] = value.clone();
            }
        }
        self.events.push(event);
    }

    /// The client asks, and the request reaches the server a little later.
    fn invoke(&mut self, place: usize, call: Call, at: u64) {
        let way = self.rng.random_range(MS / 5..MS / 2);
        let client = &mut self.clients[place];
        let op = client.op();
        client.calls = (call, op, at);
        client.reaches = at + way;
        let (process, grant) = (client.process(), client.grant.clone());
        let id = grant.as_ref().map(|grant| grant.op);
        let lease_ms = self.has_expiry().then_some(self.setup.ttl_ms);
        let fields = match call {
            Call::Acquire => json!({"lock": "lock", "ttl_ms": lease_ms, "wait_ms": 0}),
            Call::Extend => {
                json!({"lock": "lock", "grant": id, "ttl_ms": lease_ms.filter(|_| self.rng.random_bool(0.7))})
            }
            Call::Held | Call::Release => json!({"lock": "lock", "grant": id}),
            Call::Read => json!({"grant": id, "document": "document"}),
            Call::Write => json!({
                "grant": id, "document": "document", "value": value_of(op),
                "based_on": grant.as_ref().map(|grant| grant.read).filter(|_| self.setup.tells_bases),
                "token": grant.and_then(|grant| grant.token).filter(|_| self.setup.fenced),
            }),
        };
        self.push(at, &process, op, "invoke", call.f(), fields);
    }

    /// A request reaches the server; its answer comes back a little later.
    fn reach(&mut self, place: usize, now: u64) {
        let at = now + self.rng.random_range(MS / 5..MS / 2);
        match self.clients[place].calls.0 {
            Call::Acquire => self.acquire(place, now, at),
            Call::Extend => self.extend(place, now, at),
            Call::Held => self.held(place, now, at),
            Call::Read => self.read(place, now, at),
            Call::Write => self.write(place, now, at),
            Call::Release => self.release(place, now, at),
        }
    }

    fn complete(&mut self, place: usize, at: u64, kind: &str, fields: Value) {
        let (call, op, _) = self.clients[place].calls;
        let process = self.clients[place].process();
        self.push(at, &process, op, kind, call.f(), fields);
    }

    /// Something that a client cannot rely on goes wrong, but not in its first round.
    fn fails(&mut self, place: usize, chance: f64) -> bool {
        self.rng.random_bool(chance) && self.clients[place].rounds > 0
    }

    fn grant_of(&self, place: usize) -> Grant {
        self.clients[place].grant.clone().expect("it has a grant")
    }

    fn acquire(&mut self, place: usize, now: u64, at: u64) {
        let (_, op, invoked) = self.clients[place].calls;
        let is_lost = self.fails(place, 0.03) && self.has_expiry();
        if self.lock.is_down {
            self.complete(place, at, "fail", json!({"error": "connection-refused"}));
        } else if let Some(token) = self.lock.acquire(op, now, self.ttl()) {
            if !is_lost {
                let token = self.setup.tokens.then_some(token);
                let validity = self.ttl().map(|ttl| invoked + ttl);
                self.complete(
                    place,
                    at,
                    "ok",
                    json!({"token": token, "validity": validity}),
                );
                return self.begin_work(place, op, token, at);
            }
            self.complete(place, at, "info", json!({"error": "timeout"}));
        } else {
            self.complete(place, at, "fail", json!({"error": "busy"}));
        }
        let retry = between(&mut self.rng, 40, 90);
        self.invoke(place, Call::Acquire, at + retry);
    }

    fn begin_work(&mut self, place: usize, op: u64, token: Option<u64>, at: u64) {
        let client = &mut self.clients[place];
        let (process, work) = (client.process(), client.op());
        client.grants += 1;
        client.began = client.calls.2;
        client.extends = 1;
        client.grant = Some(Grant {
            op,
            token,
            work,
            read: 0,
        });
        self.push(
            at + MS / 50,
            &process,
            work,
            "invoke",
            "work",
            json!({"grant": op}),
        );
        self.invoke(place, Call::Read, at + MS / 20);
    }

    fn read(&mut self, place: usize, now: u64, at: u64) {
        let (version, value) = self.storage.read();
        self.clients[place]
            .grant
            .as_mut()
            .expect("it has a grant")
            .read = version;
        self.complete(
            place,
            at,
            "ok",
            json!({"document": "document", "version": version, "value": value}),
        );
        if self.setup.kind == Kind::Renewed && !self.renew(place, now, at) {
            return;
        }
        self.work_on(place, at + MS / 10);
    }

    /// A renewal in the background. Whether the client still has the lock.
    fn renew(&mut self, place: usize, now: u64, at: u64) -> bool {
        let (grant, process) = (self.grant_of(place).op, self.clients[place].process());
        let op = self.clients[place].op();
        if self.lock.extend(grant, now, self.ttl()) {
            let validity = self.ttl().map(|ttl| now + ttl);
            self.push(
                at + MS / 50,
                &process,
                op,
                "info",
                "renewed",
                json!({"grant": grant, "validity": validity}),
            );
            return true;
        }
        self.push(
            at + MS / 50,
            &process,
            op,
            "info",
            "lost",
            json!({"grant": grant, "error": "told"}),
        );
        self.end_round(place, at + MS / 10);
        false
    }

    /// After a read: the client may extend or ask, and then writes.
    fn work_on(&mut self, place: usize, at: u64) {
        let may_extend = self.setup.kind == Kind::Lease && self.clients[place].extends > 0;
        self.clients[place].extends = 0;
        match self.rng.random_range(0..10) {
            0..3 if may_extend => self.invoke(place, Call::Extend, at),
            3 => self.invoke(place, Call::Held, at),
            _ => self.come_to_write(place, at),
        }
    }

    fn extend(&mut self, place: usize, now: u64, at: u64) {
        let (grant, invoked) = (self.grant_of(place).op, self.clients[place].calls.2);
        let (is_unknown, is_refused) = (self.fails(place, 0.2), self.fails(place, 0.1));
        if is_refused || self.lock.is_down {
            self.complete(place, at, "fail", json!({"error": "connection-refused"}));
        } else if is_unknown {
            let reached = self.rng.random_bool(0.5) && self.lock.extend(grant, now, self.ttl());
            self.complete(
                place,
                at,
                "info",
                json!({"error": format!("timeout {reached}")}),
            );
        } else if self.lock.extend(grant, now, self.ttl()) {
            let validity = self.ttl().map(|ttl| invoked + ttl);
            self.complete(place, at, "ok", json!({"validity": validity}));
        } else {
            self.complete(
                place,
                at,
                "fail",
                json!({"error": "no longer held", "lost": true}),
            );
            return self.end_round(place, at + MS / 10);
        }
        self.come_to_write(place, at + MS / 10);
    }

    fn held(&mut self, place: usize, now: u64, at: u64) {
        let held = self.lock.is_held_by(self.grant_of(place).op, now);
        self.complete(place, at, "ok", json!({"held": held}));
        match held {
            true => self.come_to_write(place, at + MS / 10),
            false => self.end_round(place, at + MS / 10),
        }
    }

    /// The work is done, and the trouble comes before the write.
    fn come_to_write(&mut self, place: usize, at: u64) {
        let at = at + between(&mut self.rng, 3, 6);
        let is_struck =
            place == 0 && self.over.is_none() && self.clients[0].grants >= self.setup.nth;
        match is_struck {
            true => self.strike(at),
            false => self.invoke(place, Call::Write, at),
        }
    }

    fn write(&mut self, place: usize, _now: u64, at: u64) {
        let op = self.clients[place].calls.1;
        let token = self.grant_of(place).token.filter(|_| self.setup.fenced);
        let is_unknown = self.fails(place, 0.08);
        if is_unknown && self.rng.random_bool(0.5) {
            self.complete(place, at, "info", json!({"error": "timeout"}));
        } else {
            let version = self.storage.write(op, token, &value_of(op));
            match version {
                _ if is_unknown => self.complete(place, at, "info", json!({"error": "timeout"})),
                Some(version) => {
                    self.written = self.clients[place].calls.2;
                    let told = json!({"document": "document", "version": version});
                    self.complete(place, at, "ok", told);
                }
                None => self.complete(place, at, "fail", json!({"error": "rejected"})),
            }
        }
        self.end_work(place, at + MS / 50);
        self.invoke(place, Call::Release, at + MS / 20);
    }

    fn end_work(&mut self, place: usize, at: u64) {
        let grant = self.grant_of(place);
        let process = self.clients[place].process();
        self.push(
            at,
            &process,
            grant.work,
            "ok",
            "work",
            json!({"grant": grant.op}),
        );
    }

    fn release(&mut self, place: usize, now: u64, at: u64) {
        let grant = self.grant_of(place).op;
        let is_unknown = self.fails(place, 0.04);
        let reaches = !is_unknown || !self.has_expiry() || self.rng.random_bool(0.5);
        let released = reaches && self.lock.release(grant, now);
        match released {
            _ if is_unknown => self.complete(place, at, "info", json!({"error": "timeout"})),
            true => self.complete(place, at, "ok", json!({"grant": grant})),
            false => self.complete(
                place,
                at,
                "fail",
                json!({"error": "no longer held", "lost": true}),
            ),
        }
        self.rest(place, at);
    }

    /// The client knows that it lost the lock, and lets the work be.
    fn end_round(&mut self, place: usize, at: u64) {
        self.end_work(place, at);
        self.rest(place, at);
    }

    fn rest(&mut self, place: usize, at: u64) {
        let rest = between(&mut self.rng, 10, 20);
        let client = &mut self.clients[place];
        client.grant = None;
        client.rounds += 1;
        let enough = client.rounds >= self.setup.rounds;
        let since = client.began.min(self.written);
        if enough && self.over.is_some_and(|over| over < since) {
            client.is_done = true;
            let (process, op) = (client.process(), client.op());
            return self.push(
                at + MS,
                &process,
                op,
                "info",
                "exit",
                json!({"error": self.setup.end}),
            );
        }
        self.invoke(place, Call::Acquire, at + rest);
    }

    /// The storage's log is read at the end.
    fn read_log(&mut self) {
        let start = self.events.iter().map(crate::file::time).max().unwrap_or(0) + 5 * MS;
        let document = json!({"document": "document"});
        let rows = self.storage.log.clone();
        self.push(start, "storage", 5_000_000, "invoke", "log", document);
        for (place, (op, token, value)) in rows.iter().enumerate() {
            let version = place as u64 + 1;
            let row =
                json!({"document": "document", "version": version, "value": value, "token": token});
            self.push(start + version, "storage", *op, "ok", "accepted", row);
        }
        let done = json!({"document": "document", "entries": rows.len()});
        self.push(start + MS, "storage", 5_000_000, "ok", "log", done);
    }
}

fn value_of(op: u64) -> String {
    format!("v{op}")
}
