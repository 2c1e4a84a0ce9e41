//! Registers: of a few values with compare-and-set, or with values that are all unlike.

use histories::Kind;
use histories::entries::{Entry, Value};

use super::{Random, Shape, entry, numbered};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One of so many values, and operations are reads, writes and compare-and-sets.
    Few(u64),
    /// A value that was never written before, and operations are reads and writes.
    Unique,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Write(i64),
    Cas(i64, i64),
}

/// How far a client's operation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Invoked,
    /// It took effect, and this is what came of it.
    Done(Option<i64>),
}

struct Client {
    process: String,
    operation: Operation,
    invoked: u64,
    stage: Stage,
}

/// A write that is over, or that may happen yet.
#[derive(Clone, Copy)]
struct Past {
    value: i64,
    invoked: u64,
    returned: u64,
}

struct World {
    random: Random,
    values: Values,
    shape: Shape,
    clients: Vec<Client>,
    state: i64,
    time: u64,
    begun: u64,
    written: i64,
    processes: u64,
    past: Vec<Past>,
    unknown: u64,
    broken: bool,
}

/// Gives the events of a history to `each`, in order. The register is nil at first, which is what −1 stands for.
pub fn generate(shape: Shape, values: Values, each: impl FnMut(&Entry<'_>)) {
    let mut each = numbered(each);
    let client = |number: usize| Client {
        process: number.to_string(),
        operation: Operation::Read,
        invoked: 0,
        stage: Stage::Invoked,
    };
    let mut world = World {
        random: Random(shape.seed),
        values,
        shape,
        clients: (0..shape.clients).map(client).collect(),
        state: -1,
        time: 0,
        begun: 0,
        written: 0,
        processes: shape.clients as u64,
        past: Vec::new(),
        unknown: 0,
        broken: false,
    };
    for client in 0..shape.clients {
        world.begin(client, &mut each);
    }
    while !world.clients.is_empty() {
        let client = world.random.below(world.clients.len() as u64) as usize;
        world.time += 1000;
        match world.clients[client].stage {
            Stage::Invoked => world.take_effect(client),
            Stage::Done(outcome) => {
                world.end(client, outcome, &mut each);
                world.time += 1000;
                if world.begun < shape.operations {
                    world.begin(client, &mut each);
                } else {
                    world.clients.swap_remove(client);
                }
            }
        }
    }
}

impl World {
    fn begin(&mut self, client: usize, each: &mut impl FnMut(&Entry<'_>)) {
        self.begun += 1;
        let operation = match (self.values, self.random.below(3)) {
            (_, 0) => Operation::Read,
            (Values::Unique, _) => {
                self.written += 1;
                Operation::Write(self.written)
            }
            (Values::Few(values), 1) => Operation::Write(self.random.below(values) as i64),
            (Values::Few(values), _) => Operation::Cas(
                self.random.below(values) as i64,
                self.random.below(values) as i64,
            ),
        };
        let me = &mut self.clients[client];
        (me.operation, me.invoked, me.stage) = (operation, self.time, Stage::Invoked);
        each(&entry(
            self.time,
            &me.process,
            Kind::Invoke,
            name(operation),
            input(operation),
        ));
    }

    fn take_effect(&mut self, client: usize) {
        let me = &mut self.clients[client];
        let mut outcome = Some(self.state);
        match me.operation {
            Operation::Read => {}
            Operation::Write(value) => self.state = value,
            Operation::Cas(from, to) if self.state == from => self.state = to,
            Operation::Cas(..) => outcome = None,
        }
        me.stage = Stage::Done(outcome);
    }

    fn end(&mut self, client: usize, outcome: Option<i64>, each: &mut impl FnMut(&Entry<'_>)) {
        let unknown = self.is_unknown(client);
        let spoilt = self.spoilt(client);
        let me = &mut self.clients[client];
        let kind = match outcome {
            _ if unknown => Kind::Info,
            Some(_) => Kind::Ok,
            None => Kind::Fail,
        };
        let value = match (me.operation, spoilt.or(outcome)) {
            (Operation::Read, Some(value)) if kind == Kind::Ok => value_of(value),
            (operation, _) => input(operation),
        };
        each(&entry(
            self.time,
            &me.process,
            kind,
            name(me.operation),
            value,
        ));
        let written = match me.operation {
            Operation::Write(value) | Operation::Cas(_, value) => Some(value),
            Operation::Read => None,
        };
        if let (Some(value), Kind::Ok) = (written, kind) {
            let (invoked, returned) = (me.invoked, self.time);
            self.past.push(Past {
                value,
                invoked,
                returned,
            });
        }
        if unknown {
            // A process whose operation has an unknown outcome does not come back.
            me.process = self.processes.to_string();
            self.processes += 1;
        }
    }

    /// Whether nobody learns what came of a client's operation: spread evenly over those that may change the register.
    fn is_unknown(&mut self, client: usize) -> bool {
        let due = self.begun * self.shape.unknown / self.shape.operations;
        let unknown = self.unknown < due && self.clients[client].operation != Operation::Read;
        self.unknown += u64::from(unknown);
        unknown
    }

    /// What a read is made to return so that the history is broken, if this is the place.
    fn spoilt(&mut self, client: usize) -> Option<i64> {
        let me = &self.clients[client];
        let here = self.shape.broken && !self.broken && self.begun >= self.shape.operations / 2;
        if !here || me.operation != Operation::Read {
            return None;
        }
        let impossible = |value: &i64| {
            let writes = |operation: Operation| match operation {
                Operation::Write(to) | Operation::Cas(_, to) => to == *value,
                Operation::Read => false,
            };
            if self.clients.iter().any(|other| writes(other.operation)) {
                return false;
            }
            // The last write of the value was over before another began which was over before this read began.
            let over = self
                .past
                .iter()
                .rev()
                .find(|past| past.value == *value)
                .map_or(0, |past| past.returned);
            let hidden = |past: &Past| {
                past.value != *value && past.invoked > over && past.returned < me.invoked
            };
            over > 0 && self.past.iter().rev().any(hidden)
        };
        let spoilt = match self.values {
            Values::Few(values) => (0..values as i64).find(impossible),
            Values::Unique => self
                .past
                .iter()
                .rev()
                .map(|past| past.value)
                .find(impossible),
        };
        self.broken = spoilt.is_some();
        spoilt
    }
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write(_) => "write",
        Operation::Cas(..) => "cas",
    }
}

fn input(operation: Operation) -> Value<'static> {
    match operation {
        Operation::Read => Value::Nil,
        Operation::Write(value) => value_of(value),
        Operation::Cas(from, to) => Value::List(vec![value_of(from), value_of(to)]),
    }
}

fn value_of(value: i64) -> Value<'static> {
    if value < 0 {
        Value::Nil
    } else {
        Value::Integer(value)
    }
}
