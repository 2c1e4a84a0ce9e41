//! Locks: an owner-aware mutex whose clients wait for it, one with tokens, and one whose grants are leases.

use std::collections::VecDeque;

use histories::Kind;
use histories::entries::{Entry, Value};

use super::{Random, Shape, entry, numbered};

/// What a grant comes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grants {
    /// Nothing.
    Plain,
    /// A token that is higher than all before.
    Fenced,
    /// The instant until which it may be relied on. A holder outlives it now and then, and does not release the lock then.
    Leased,
}

/// For how long a lease may be relied on, in nanoseconds, for each client that there is: a client takes a step every
/// thousand nanoseconds for each.
const LEASE_EACH: u64 = 8_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It waits for the lock.
    Waiting,
    /// It was granted the lock, with this token and until this instant.
    Granted(u64, u64),
    /// It works under the lock.
    Working,
    /// It gives the lock back.
    Releasing,
    /// The lock was given back, or not if its lease was over.
    Released(bool),
}

struct Client {
    process: String,
    stage: Stage,
}

struct World {
    random: Random,
    grants: Grants,
    shape: Shape,
    clients: Vec<Client>,
    /// Those that wait, the first to be granted the lock first.
    waiting: VecDeque<usize>,
    holder: Option<usize>,
    /// Until when the holder may rely on its grant.
    valid_until: u64,
    time: u64,
    begun: u64,
    token: u64,
    processes: u64,
    unknown: u64,
    broken: bool,
}

/// Gives the events of a history to `each`, in order.
pub fn generate(shape: Shape, grants: Grants, each: impl FnMut(&Entry<'_>)) {
    let mut each = numbered(each);
    let client = |number: usize| Client {
        process: number.to_string(),
        stage: Stage::Waiting,
    };
    let mut world = World {
        random: Random(shape.seed),
        grants,
        shape,
        clients: (0..shape.clients).map(client).collect(),
        waiting: VecDeque::new(),
        holder: None,
        valid_until: 0,
        time: 0,
        begun: 0,
        token: 0,
        processes: shape.clients as u64,
        unknown: 0,
        broken: false,
    };
    for client in 0..shape.clients {
        world.begin(client, "acquire", &mut each);
    }
    while world.begun < shape.operations || world.holder.is_some() {
        let client = world.random.below(shape.clients as u64) as usize;
        world.time += 1000;
        world.go_on(client, &mut each);
    }
}

impl World {
    fn begin(&mut self, client: usize, f: &'static str, each: &mut impl FnMut(&Entry<'_>)) {
        self.begun += 1;
        let me = &mut self.clients[client];
        me.stage = match f {
            "acquire" => Stage::Waiting,
            _ => Stage::Releasing,
        };
        if me.stage == Stage::Waiting {
            self.waiting.push_back(client);
        }
        each(&entry(self.time, &me.process, Kind::Invoke, f, Value::Nil));
    }

    /// A client takes its next step, if it can.
    fn go_on(&mut self, client: usize, each: &mut impl FnMut(&Entry<'_>)) {
        let over = self.grants == Grants::Leased && self.time > self.valid_until;
        match self.clients[client].stage {
            Stage::Waiting if self.holder.is_none() || over => self.grant(),
            Stage::Waiting if self.is_to_break() => {
                self.broken = true;
                self.waiting.retain(|waiting| *waiting != client);
                self.token += 1;
                let until = self.time + self.lease();
                self.end_acquire(client, self.token, until, each);
            }
            Stage::Waiting => {}
            Stage::Granted(token, until) => self.end_acquire(client, token, until, each),
            Stage::Working => self.begin(client, "release", each),
            Stage::Releasing => {
                let held = self.holder == Some(client) && !over;
                if held {
                    self.holder = None;
                }
                self.clients[client].stage = Stage::Released(held || self.grants != Grants::Leased);
            }
            Stage::Released(held) => self.end_release(client, held, each),
        }
    }

    /// Grants the lock to the first that waits.
    fn grant(&mut self) {
        let Some(client) = self.waiting.pop_front() else {
            return;
        };
        self.holder = Some(client);
        self.token += 1 + self.random.below(2);
        self.valid_until = self.time + self.lease();
        self.clients[client].stage = Stage::Granted(self.token, self.valid_until);
    }

    fn lease(&self) -> u64 {
        LEASE_EACH * self.clients.len() as u64
    }

    /// Whether this is the place where a client is told that it has the lock, while another one is sure to hold it: it
    /// works, and has yet to begin to give it back.
    fn is_to_break(&self) -> bool {
        let here = self.shape.broken && !self.broken && self.begun >= self.shape.operations / 2;
        let works = |holder: usize| self.clients[holder].stage == Stage::Working;
        let valid = self.grants != Grants::Leased || self.time < self.valid_until;
        here && valid && self.holder.is_some_and(works)
    }

    fn end_acquire(
        &mut self,
        client: usize,
        token: u64,
        until: u64,
        each: &mut impl FnMut(&Entry<'_>),
    ) {
        let value = match self.grants {
            Grants::Plain => Value::Nil,
            Grants::Fenced => Value::Integer(token as i64),
            Grants::Leased => Value::Map(vec![(
                Value::Keyword("validity".into()),
                Value::Integer(until as i64),
            )]),
        };
        let me = &mut self.clients[client];
        me.stage = Stage::Working;
        each(&entry(self.time, &me.process, Kind::Ok, "acquire", value));
    }

    fn end_release(&mut self, client: usize, held: bool, each: &mut impl FnMut(&Entry<'_>)) {
        let due = self.begun * self.shape.unknown / self.shape.operations;
        let unknown = self.unknown < due;
        let kind = match held {
            _ if unknown => Kind::Info,
            true => Kind::Ok,
            false => Kind::Fail,
        };
        let me = &mut self.clients[client];
        each(&entry(self.time, &me.process, kind, "release", Value::Nil));
        if unknown {
            // A process whose operation has an unknown outcome does not come back.
            self.unknown += 1;
            me.process = self.processes.to_string();
            self.processes += 1;
        }
        self.time += 1000;
        self.begin(client, "acquire", each);
    }
}
