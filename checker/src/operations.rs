//! The operations of a history as tables: one row an operation, names and values as numbers.

use std::borrow::Cow;

use histories::{Event, Function, Kind, NEMESIS};

use crate::index::{Index, Known};
use crate::names::{NONE, Names};

/// An instant that never comes, or that nobody knows: later than all others.
pub(crate) const NEVER: u64 = u64::MAX;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The history does not say.
    Pending,
    /// It happened.
    Ok,
    /// It did not happen.
    Fail,
    /// Its client does not know.
    Info,
}

/// What all operations have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) op: u64,
    /// In nanoseconds since the run's base, as all instants here.
    pub(crate) invoked: u64,
    /// [`NEVER`] while it is pending.
    pub(crate) completed: u64,
    pub(crate) process: u32,
    pub(crate) completion: Completion,
}

impl Call {
    pub(crate) fn begun(op: u64, process: u32, invoked: u64) -> Call {
        Call {
            op,
            invoked,
            completed: NEVER,
            process,
            completion: Completion::Pending,
        }
    }

    pub(crate) fn complete(&mut self, t: u64, kind: Kind) {
        self.completed = t;
        self.completion = match kind {
            Kind::Ok => Completion::Ok,
            Kind::Fail => Completion::Fail,
            Kind::Info | Kind::Invoke => Completion::Info,
        };
    }

    pub(crate) fn ok(&self) -> bool {
        self.completion == Completion::Ok
    }

    /// It may or may not have happened, as far as its client knows.
    pub(crate) fn unknown(&self) -> bool {
        matches!(self.completion, Completion::Pending | Completion::Info)
    }

    /// When it had returned for certain: [`NEVER`] if it may still happen.
    pub(crate) fn returned(&self) -> u64 {
        if self.ok() { self.completed } else { NEVER }
    }
}

/// How a client stopped to be the holder, and knew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It did not.
    StillHolds,
    /// It asked to give the lock back.
    Released,
    /// It was told.
    Lost,
    /// It asked for more time in vain.
    NotExtended,
    /// Its write was rejected.
    Rejected,
    /// It asked whether it still held the lock, and did not.
    NotHeld,
    /// The nemesis crashed it.
    Crashed,
    /// It ended.
    Exited,
    /// An event that does not fit the others may have told it.
    Unclear,
    /// The history is cut, and what the client did next is not in it.
    CutOff,
}

/// When and why a grant's client stopped to be the holder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) at: u64,
    pub(crate) op: u64,
    pub(crate) why: Why,
}

/// An attempt to get a lock; one that came out ok is a grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acquire {
    pub(crate) call: Call,
    /// [`NONE`] for an acquire that the history lacks and later operations speak of.
    pub(crate) lock: u32,
    pub(crate) token: Option<u64>,
    /// Until when the grant may be relied on; [`NEVER`] where it does not expire.
    pub(crate) validity: u64,
    pub(crate) end: End,
}

impl Acquire {
    pub(crate) fn new(call: Call, lock: u32) -> Acquire {
        let (at, op, why) = (NEVER, 0, Why::StillHolds);
        Acquire {
            call,
            lock,
            token: None,
            validity: NEVER,
            end: End { at, op, why },
        }
    }

    pub(crate) fn granted(&self) -> bool {
        self.call.ok()
    }
}

/// A request for more time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extend {
    pub(crate) call: Call,
    /// A row of the acquires.
    pub(crate) grant: u32,
    pub(crate) validity: Option<u64>,
    pub(crate) ttl_ms: Option<u64>,
}

/// A read of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) call: Call,
    pub(crate) document: u32,
    pub(crate) grant: u32,
    pub(crate) version: Option<u64>,
    pub(crate) value: u32,
}

/// A write of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) call: Call,
    pub(crate) document: u32,
    pub(crate) grant: u32,
    pub(crate) token: Option<u64>,
    pub(crate) based_on: Option<u64>,
    pub(crate) version: Option<u64>,
    pub(crate) value: u32,
    pub(crate) rejected: bool,
}

/// One row of the storage's log of accepted writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRow {
    pub(crate) op: u64,
    pub(crate) document: u32,
    pub(crate) version: u64,
    pub(crate) value: u32,
}

/// One reading of that log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRead {
    pub(crate) call: Call,
    /// [`NONE`] for the log of all documents.
    pub(crate) document: u32,
    pub(crate) entries: Option<u64>,
    pub(crate) rows: u64,
}

/// A crash that ends a process at some time from its invocation to its completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) op: u64,
    pub(crate) invoked: u64,
    /// [`NEVER`] if nobody says that it is done.
    pub(crate) completed: u64,
}

/// A process of a client, in one of its lives.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) first_event: u64,
    pub(crate) last_event: u64,
    /// When it ended, in order; a name that is used again ends again.
    pub(crate) exits: Vec<u64>,
    /// What crashed it; known when all events are.
    pub(crate) crashes: Vec<Death>,
    /// When it had events that do not fit the others, in order: what they told it is not known.
    pub(crate) unclear: Vec<u64>,
    /// Likewise, when releases and extensions ended of which nobody knows when they were asked for.
    pub(crate) unclear_since_when: Vec<u64>,
    /// Its lock operation in flight.
    pub(crate) lock_op: Option<u64>,
    /// Its storage operation in flight.
    pub(crate) storage_op: Option<u64>,
}

/// All that clients and storage did.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) names: Names,
    pub(crate) processes: Vec<Process>,
    pub(crate) locks: Names,
    pub(crate) documents: Names,
    pub(crate) values: Names,
    pub(crate) acquires: Vec<Acquire>,
    pub(crate) index: Index,
    pub(crate) extends: Vec<Extend>,
    pub(crate) reads: Vec<Read>,
    pub(crate) writes: Vec<Write>,
    pub(crate) log_rows: Vec<LogRow>,
    pub(crate) log_reads: Vec<LogRead>,
    /// How many operations clients began.
    pub(crate) operations: u64,
    /// How many of those that have no table here ended unknown: release, held, work.
    pub(crate) other_unknown: u64,
    pub(crate) first_point: Option<u64>,
    /// How many events there are.
    pub(crate) events: u64,
    /// When the last event happened.
    pub(crate) end: u64,
}

impl Record {
    /// Notes that the client of a grant stopped to be the holder; the first time counts.
    pub(crate) fn end_grant(&mut self, grant: u32, at: u64, op: u64, why: Why) {
        if let Some(acquire) = self.acquires.get_mut(grant as usize)
            && at < acquire.end.at
        {
            acquire.end = End { at, op, why };
        }
    }

    /// The row of an acquire.
    pub(crate) fn acquire_of(&self, op: u64) -> Option<u32> {
        match self.index.get(op) {
            Known::Acquire(row) => Some(row),
            _ => None,
        }
    }

    /// Whether an operation of this id was begun.
    pub(crate) fn has(&self, op: u64) -> bool {
        self.index.get(op) != Known::Unused
    }

    /// The acquire that a row means, if it means one.
    pub(crate) fn acquire(&self, grant: u32) -> Option<&Acquire> {
        self.acquires.get(grant as usize)
    }

    pub(crate) fn process(&self, call: &Call) -> &str {
        self.names.text(call.process)
    }

    fn event(&self, call: &Call, t: u64, kind: Kind, f: Function) -> Event<'static> {
        Event::new(t, self.process(call).to_owned(), call.op, kind, f)
    }

    fn both(
        &self,
        call: &Call,
        f: Function,
        fill: impl Fn(&mut Event<'static>),
    ) -> Vec<Event<'static>> {
        let mut events = vec![self.event(call, call.invoked, Kind::Invoke, f)];
        let kind = match call.completion {
            Completion::Pending => None,
            Completion::Ok => Some(Kind::Ok),
            Completion::Fail => Some(Kind::Fail),
            Completion::Info => Some(Kind::Info),
        };
        events.extend(kind.map(|kind| self.event(call, call.completed, kind, f)));
        events.iter_mut().for_each(fill);
        events
    }

    fn grant_op(&self, grant: u32) -> Option<u64> {
        self.acquire(grant).map(|acquire| acquire.call.op)
    }

    /// The events of a grant: it was asked for, given, perhaps extended, and ended.
    pub(crate) fn grant_events(&self, grant: u32) -> Vec<Event<'static>> {
        let Some(acquire) = self
            .acquire(grant)
            .copied()
            .filter(|acquire| acquire.lock != NONE)
        else {
            return Vec::new();
        };
        let lock: Cow<'static, str> = self.locks.text(acquire.lock).to_owned().into();
        let mut events = self.both(&acquire.call, Function::Acquire, |event| {
            event.lock = Some(lock.clone());
            if event.kind == Kind::Ok {
                event.token = acquire.token;
                event.validity = Some(acquire.validity).filter(|&validity| validity != NEVER);
            }
        });
        for extend in self
            .extends
            .iter()
            .filter(|extend| extend.grant == grant && extend.call.ok())
        {
            let mut event = self.event(
                &extend.call,
                extend.call.completed,
                Kind::Ok,
                Function::Extend,
            );
            event.validity = extend.validity;
            event.lock = Some(lock.clone());
            event.grant = Some(acquire.call.op);
            events.push(event);
        }
        events.extend(self.end_event(&acquire, lock));
        events
    }

    fn end_event(&self, acquire: &Acquire, lock: Cow<'static, str>) -> Option<Event<'static>> {
        let (kind, f) = match acquire.end.why {
            Why::StillHolds | Why::Unclear | Why::CutOff => return None,
            Why::Released => (Kind::Invoke, Function::Release),
            Why::Lost => (Kind::Info, Function::Lost),
            Why::NotExtended => (Kind::Fail, Function::Extend),
            Why::Rejected => (Kind::Fail, Function::Write),
            Why::NotHeld => (Kind::Ok, Function::Held),
            Why::Crashed => (Kind::Invoke, Function::Inject),
            Why::Exited => (Kind::Info, Function::Exit),
        };
        let mut event = self.event(&acquire.call, acquire.end.at, kind, f);
        event.op = acquire.end.op;
        match f {
            Function::Exit => {}
            Function::Inject => {
                event.on = Some(vec![histories::host_of(&event.process).to_owned()]);
                event.process = NEMESIS.into();
            }
            _ => {
                event.grant = Some(acquire.call.op);
                event.lock = Some(lock);
            }
        }
        Some(event)
    }

    /// The invocation of a write and its completion.
    pub(crate) fn write_events(&self, write: u32) -> Vec<Event<'static>> {
        let write = &self.writes[write as usize];
        self.both(&write.call, Function::Write, |event| {
            event.document = Some(self.documents.text(write.document).to_owned().into());
            event.grant = self.grant_op(write.grant);
            event.token = write.token;
            event.based_on = write.based_on;
            event.value = self.value(write.value);
            match event.kind {
                Kind::Ok => event.version = write.version,
                Kind::Fail if write.rejected => event.error = Some("rejected".into()),
                _ => {}
            }
        })
    }

    /// The invocation of a read and its completion.
    pub(crate) fn read_events(&self, read: u32) -> Vec<Event<'static>> {
        let read = &self.reads[read as usize];
        self.both(&read.call, Function::Read, |event| {
            event.document = Some(self.documents.text(read.document).to_owned().into());
            event.grant = self.grant_op(read.grant);
            if event.kind == Kind::Ok {
                event.version = read.version;
                event.value = self.value(read.value);
            }
        })
    }

    fn value(&self, value: u32) -> Option<Cow<'static, str>> {
        (value != NONE).then(|| self.values.text(value).to_owned().into())
    }
}
