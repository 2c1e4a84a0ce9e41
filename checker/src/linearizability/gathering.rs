//! From a history's entries to the calls of each of its objects.

use histories::Kind;
use histories::entries::{Entry, Value};

use crate::linearizability::{Call, History, NEVER};
use crate::models::{Misfit, Outcome, Recorded, Told, Values};
use crate::names::{Map, NONE, Names};

/// Why entries make no calls.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatheringError {
    /// A process invoked an operation while it had another in flight.
    #[error(
        "process {process} invokes `{f}` and has not returned from line {line} yet: a process does one operation at a time"
    )]
    Overlap {
        /// The process.
        process: String,
        /// What it invoked.
        f: String,
        /// The line of the operation in flight.
        line: u64,
    },
    /// An operation returned that nobody invoked.
    #[error(
        "`{f}` of process {process} returns and is not in flight: it was not invoked, or has returned before, or its time is \
         earlier than that of its invocation"
    )]
    Uninvoked {
        /// The process.
        process: String,
        /// What returned.
        f: String,
    },
    /// An operation returned as another one.
    #[error("process {process} returns `{f}`, and what it invoked in line {line} is `{invoked}`")]
    OtherOperation {
        /// The process.
        process: String,
        /// What returned.
        f: String,
        /// What was invoked.
        invoked: String,
        /// The line of its invocation.
        line: u64,
    },
    /// The model has no such operation.
    #[error(transparent)]
    Misfit(#[from] Misfit),
}

/// Takes entries one by one, and makes calls of them: those of each object apart.
pub struct Gathering<M: Recorded> {
    model: M,
    nil_read_tells_nothing: bool,
    processes: Names,
    functions: Names,
    keys: Values,
    /// The keys by their numbers.
    told_keys: Vec<Value<'static>>,
    /// The operations in flight, by their numbers, or by their processes' where operations have none.
    open: Map<u64, Open>,
    /// The calls of each object, by its key, and by the part of the model.
    objects: Vec<Object<M::Operation>>,
    numbers: Map<(u32, u64), usize>,
    /// What objects may do by themselves: from when on, and which object. Its position is known once all entries are there,
    /// for when a lease ends may be told after it has.
    due: Vec<(u64, usize, Call<M::Operation>)>,
    /// Of each process and object: what its certain operations let that do by itself and may yet be done, as indices of `due`.
    open_due: Map<(u32, usize), Vec<usize>>,
    /// The positions at which an operation without an invocation begins, and no event stands.
    silent: Vec<u32>,
    /// The time at each position, if objects do anything by themselves.
    times: Vec<u64>,
    latest: u64,
    /// Whether operations have numbers, as in our histories: their times count.
    is_timed: bool,
    position: u32,
    operations: u64,
    unknown: u64,
}

/// What entries were gathered to.
pub struct Gathered<M: Recorded> {
    /// The model, which knows the values that were met.
    pub model: M,
    /// The objects, in the order of their first calls.
    pub objects: Vec<Object<M::Operation>>,
    /// How many operations tell anything.
    pub operations: u64,
    /// How many of those nobody knows the outcome of.
    pub unknown: u64,
    pub(super) processes: Names,
    /// The positions at which no event stands, but something that an object may do by itself.
    inserted: Vec<u32>,
}

impl<M: Recorded> Gathered<M> {
    /// How many events are before a position.
    pub fn events_before(&self, position: u32) -> u32 {
        position - self.inserted.partition_point(|at| *at < position) as u32
    }
}

/// The calls of one object.
pub struct Object<O> {
    /// Its key as EDN writes it, where the history has several objects.
    pub key: Option<String>,
    /// Its calls.
    pub history: History<O>,
    calls: Vec<Call<O>>,
}

struct Open {
    line: u64,
    /// How reports call it.
    id: u64,
    invoked: u32,
    process: u32,
    f: u32,
    key: u32,
    input: Value<'static>,
    /// Until when an extension was asked for, if that was told.
    asked: Option<u64>,
    op: Option<u64>,
    grant: Option<u64>,
    /// What the model said when it began.
    begun: u32,
}

impl<M: Recorded> Gathering<M> {
    /// Begins with nothing. `nil_read_tells_nothing`: whether a read of nil is always legal, as it is in Jepsen's histories.
    pub fn new(model: M, nil_read_tells_nothing: bool) -> Self {
        Gathering {
            model,
            nil_read_tells_nothing,
            processes: Names::default(),
            functions: Names::default(),
            keys: Values::default(),
            told_keys: Vec::new(),
            open: Map::default(),
            objects: Vec::new(),
            numbers: Map::default(),
            due: Vec::new(),
            open_due: Map::default(),
            silent: Vec::new(),
            times: Vec::new(),
            latest: 0,
            is_timed: false,
            position: 0,
            operations: 0,
            unknown: 0,
        }
    }

    /// Takes the next entry, in the order of their times.
    ///
    /// # Errors
    /// When the entry fits no operation in flight, or the model has no such operation.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), GatheringError> {
        self.latest = entry.time.unwrap_or(self.latest);
        self.is_timed |= entry.op.is_some();
        let process = self.processes.number(&entry.process);
        let number = entry.op.unwrap_or(u64::from(process));
        let position = self.next_position();
        if entry.kind == Kind::Invoke {
            let open = self.begin(entry, process, position);
            return match self.open.insert(number, open) {
                None => Ok(()),
                Some(earlier) => Err(GatheringError::Overlap {
                    process: entry.process.to_string(),
                    f: entry.f.to_string(),
                    line: earlier.line,
                }),
            };
        }
        match self.open.remove(&number) {
            Some(open) => self.complete(open, entry, position),
            None if entry.kind == Kind::Info => self.remark(entry, process, position),
            None => Err(GatheringError::Uninvoked {
                process: entry.process.to_string(),
                f: entry.f.to_string(),
            }),
        }
    }

    /// An operation begins.
    fn begin(&mut self, entry: &Entry<'_>, process: u32, invoked: u32) -> Open {
        let mut open = Open {
            line: entry.line,
            id: entry.op.unwrap_or(entry.line),
            invoked,
            process,
            f: self.functions.number(&entry.f),
            key: self.key(entry),
            input: entry.value.clone().into_owned(),
            asked: entry.validity,
            op: entry.op,
            grant: entry.grant,
            begun: 0,
        };
        if M::ACTS_BY_ITSELF {
            let told = told(
                &open,
                (&self.functions, &self.processes, &self.told_keys[..]),
                Outcome::Unknown,
                None,
            );
            open.begun = self.model.begin(&told);
        }
        open
    }

    /// A remark on a grant is an operation of its own; one of a process about nothing that it does says nothing.
    fn remark(
        &mut self,
        entry: &Entry<'_>,
        process: u32,
        position: u32,
    ) -> Result<(), GatheringError> {
        match &*entry.f {
            "lost" => {
                let open = self.begin(entry, process, position);
                self.add(open, Outcome::Unknown, NEVER, Some(entry))
            }
            "renewed" => {
                let open = self.begin(entry, process, position);
                self.silent.push(position);
                let returned = self.next_position();
                self.add(open, Outcome::Done(&entry.value), returned, Some(entry))
            }
            _ => Ok(()),
        }
    }

    /// All that was gathered.
    ///
    /// # Errors
    /// When the model has no such operation as one that never returned.
    pub fn finish(mut self) -> Result<Gathered<M>, GatheringError> {
        let mut open: Vec<Open> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_unstable_by_key(|open| open.invoked);
        for open in open {
            self.add(open, Outcome::Unknown, NEVER, None)?;
        }
        let inserted = self.insert_what_is_due();
        for object in &mut self.objects {
            object.history = History::new(std::mem::take(&mut object.calls));
        }
        self.objects
            .sort_by_key(|object| object.history.calls().first().map(|call| call.invoked));
        Ok(Gathered {
            model: self.model,
            objects: self.objects,
            operations: self.operations,
            unknown: self.unknown,
            processes: self.processes,
            inserted,
        })
    }

    /// The number of an entry's key.
    fn key(&mut self, entry: &Entry<'_>) -> u32 {
        let Some(key) = &entry.key else {
            return NONE;
        };
        let number = self.keys.number(key);
        if number as usize == self.told_keys.len() {
            self.told_keys.push(key.clone().into_owned());
        }
        number
    }

    fn next_position(&mut self) -> u32 {
        if M::ACTS_BY_ITSELF {
            self.times.push(self.latest);
        }
        self.position += 1;
        self.position - 1
    }

    fn complete(
        &mut self,
        open: Open,
        entry: &Entry<'_>,
        position: u32,
    ) -> Result<(), GatheringError> {
        let invoked = self.functions.text(open.f);
        if entry.f != invoked {
            return Err(GatheringError::OtherOperation {
                process: entry.process.to_string(),
                f: entry.f.to_string(),
                invoked: invoked.to_owned(),
                line: open.line,
            });
        }
        let nothing = self.nil_read_tells_nothing && entry.f == "read" && entry.value == Value::Nil;
        let (outcome, returned) = match entry.kind {
            Kind::Ok if nothing => return Ok(()),
            Kind::Ok => (Outcome::Done(&entry.value), position),
            Kind::Fail => (Outcome::refused(entry.error.as_deref()), position),
            Kind::Info | Kind::Invoke => (Outcome::Unknown, NEVER),
        };
        self.add(open, outcome, returned, Some(entry))
    }

    fn add(
        &mut self,
        open: Open,
        outcome: Outcome<'_>,
        returned: u32,
        entry: Option<&Entry<'_>>,
    ) -> Result<(), GatheringError> {
        let names = (&self.functions, &self.processes, &self.told_keys[..]);
        let told = told(&open, names, outcome, entry);
        let Some(operation) = self.model.read(&told)? else {
            return Ok(());
        };
        let (by_itself, allowed_from) = match M::ACTS_BY_ITSELF {
            true => (
                self.model.by_itself(&operation, &told),
                self.model.allows_from(&operation, &told),
            ),
            false => (None, None),
        };
        let certain = returned != NEVER;
        let object = self.object(open.key, self.model.partition(&operation));
        let call = Call {
            operation,
            id: open.id,
            process: open.process,
            invoked: open.invoked,
            returned,
            certain,
        };
        self.operations += 1;
        self.unknown += u64::from(outcome == Outcome::Unknown);
        if let Some(time) = allowed_from {
            self.add_due(time, object, &call, call.operation.clone());
            return Ok(());
        }
        if M::ACTS_BY_ITSELF && certain {
            self.close_due(object, &call);
        }
        if let Some((time, operation)) = by_itself {
            self.add_due(time, object, &call, operation);
        }
        self.objects[object].calls.push(call);
        Ok(())
    }

    /// Adds what an object may do by itself from some time on, after a call that made it possible.
    fn add_due(
        &mut self,
        time: u64,
        object: usize,
        after: &Call<M::Operation>,
        operation: M::Operation,
    ) {
        if after.certain {
            let open = self.open_due.entry((after.process, object)).or_default();
            open.push(self.due.len());
        }
        let call = Call {
            operation,
            returned: NEVER,
            certain: false,
            ..*after
        };
        self.due.push((time, object, call));
    }

    /// Ends what objects can no longer do by themselves once a process has done this.
    fn close_due(&mut self, object: usize, later: &Call<M::Operation>) {
        let (model, due) = (&self.model, &mut self.due);
        let Some(open) = self.open_due.get_mut(&(later.process, object)) else {
            return;
        };
        open.retain(|&index| {
            let call = &mut due[index].2;
            let void = model.is_void_after(&call.operation, &later.operation);
            if void {
                call.returned = later.returned;
            }
            !void
        });
    }

    /// Puts what objects may do by themselves where it begins: before the first event of its time, and not before the
    /// operation that it comes from. All that is behind it moves on.
    fn insert_what_is_due(&mut self) -> Vec<u32> {
        let mut due: Vec<(u32, usize, Call<M::Operation>)> = Vec::with_capacity(self.due.len());
        for (time, object, call) in std::mem::take(&mut self.due) {
            let at = self.times.partition_point(|earlier| *earlier < time) as u32;
            let at = at.max(self.after(&call));
            // What is void before it could be done is never done.
            if at <= call.returned {
                due.push((at, object, call));
            }
        }
        due.sort_by_key(|(at, ..)| *at);
        let moved = |position: u32| match position {
            NEVER => NEVER,
            position => position + due.partition_point(|(at, ..)| *at <= position) as u32,
        };
        let silent = self.silent.iter().map(|&position| moved(position));
        let silent: Vec<u32> = silent.collect();
        let calls = self.objects.iter_mut().flat_map(|object| &mut object.calls);
        for call in calls.filter(|_| !due.is_empty()) {
            (call.invoked, call.returned) = (moved(call.invoked), moved(call.returned));
        }
        let returns: Vec<u32> = due.iter().map(|(.., call)| moved(call.returned)).collect();
        let mut inserted = Vec::with_capacity(due.len());
        for (before, (at, object, call)) in due.into_iter().enumerate() {
            let (invoked, returned) = (at + before as u32, returns[before]);
            self.objects[object].calls.push(Call {
                invoked,
                returned,
                ..call
            });
            inserted.push(invoked);
        }
        inserted.extend(silent);
        inserted.sort_unstable();
        inserted
    }

    /// From where on something may be done because of a call. What ends at an instant at which something else begins ends
    /// first, where the format tells times that count.
    fn after(&self, call: &Call<M::Operation>) -> u32 {
        if !self.is_timed {
            return call.invoked + 1;
        }
        let time = self.times[call.invoked as usize];
        self.times.partition_point(|earlier| *earlier < time) as u32
    }

    fn object(&mut self, key: u32, part: u64) -> usize {
        let next = self.objects.len();
        let number = *self.numbers.entry((key, part)).or_insert(next);
        if number == next {
            self.objects.push(Object {
                key: (key != NONE).then(|| self.keys.text(key).to_owned()),
                history: History::new(Vec::new()),
                calls: Vec::new(),
            });
        }
        number
    }
}

/// What is told of an operation, with the names of functions, of processes and of keys.
fn told<'a>(
    open: &'a Open,
    (functions, processes, keys): (&'a Names, &'a Names, &'a [Value<'static>]),
    outcome: Outcome<'a>,
    entry: Option<&Entry<'_>>,
) -> Told<'a> {
    let validity = entry.and_then(|entry| entry.validity);
    Told {
        f: functions.text(open.f),
        process: (open.process, processes.text(open.process)),
        key: keys.get(open.key as usize),
        input: &open.input,
        outcome,
        token: entry.and_then(|entry| entry.token),
        validity: match outcome {
            Outcome::Unknown => validity.or(open.asked),
            _ => validity,
        },
        op: open.op,
        grant: open.grant,
        begun: open.begun,
    }
}

#[cfg(test)]
mod tests;
