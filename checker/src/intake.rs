//! Takes events one by one and makes tables of them.

mod grants;

use histories::{Event, Function, Kind, Plan};

use crate::assumptions::{Flaw, Flaws};
use crate::error::Error;
use crate::faults::Faults;
use crate::index::Known;
use crate::names::{Map, NONE};
use crate::operations::{
    Acquire, Call, Completion, Extend, LogRead, LogRow, NEVER, Process, Read, Record, Why, Write,
};

/// An operation in flight.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    pub(crate) f: Function,
    process: u32,
    /// Its row in the table of its function; for operations without a table, the row of their grant.
    row: u32,
    invoked: u64,
}

/// Which of a process's operations exclude each other.
enum Lane {
    Lock,
    Storage,
    Free,
}

fn lane(f: Function) -> Lane {
    match f {
        Function::Acquire | Function::Extend | Function::Release | Function::Held => Lane::Lock,
        Function::Read | Function::Write => Lane::Storage,
        _ => Lane::Free,
    }
}

/// The state of taking in.
pub(crate) struct Intake {
    pub(crate) record: Record,
    pub(crate) faults: Faults,
    pub(crate) flaws: Flaws,
    pub(crate) open: Map<u64, Open>,
    /// Rows of acquires that the history lacks, by the operation by which others speak of them.
    absent: Map<u64, u32>,
}

impl Intake {
    pub(crate) fn new(plan: &Plan) -> Intake {
        Intake {
            record: Record::default(),
            faults: Faults::new(plan),
            flaws: Flaws::default(),
            open: Map::default(),
            absent: Map::default(),
        }
    }

    /// Takes the next event.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Result<(), Error> {
        // A row is an u32, and so is the row of an acquire that is only spoken of.
        let limit = NONE / 2;
        if self.record.events >= u64::from(limit) {
            return Err(Error::TooLong { limit });
        }
        if event.t < self.record.end {
            return Err(Error::OutOfOrder {
                op: event.op,
                t: event.t,
                before: self.record.end,
            });
        }
        self.record.events += 1;
        self.record.end = event.t;
        match event.f {
            Function::Inject | Function::Heal => self.faults.push(event),
            Function::Log => {
                self.log(event);
                Ok(())
            }
            Function::Accepted => self.accepted(event),
            Function::Lost => self.lost(event),
            Function::Exit => {
                let process = self.process(event);
                self.record.processes[process as usize].exits.push(event.t);
                Ok(())
            }
            _ if event.kind == Kind::Invoke => self.begin(event),
            _ => {
                self.complete(event);
                Ok(())
            }
        }
    }

    fn process(&mut self, event: &Event<'_>) -> u32 {
        let process = self.record.names.number(&event.process);
        if process as usize == self.record.processes.len() {
            self.record.processes.push(Process {
                first_event: event.t,
                last_event: event.t,
                exits: Vec::new(),
                crashes: Vec::new(),
                unclear: Vec::new(),
                unclear_since_when: Vec::new(),
                lock_op: None,
                storage_op: None,
            });
        }
        self.record.processes[process as usize].last_event = event.t;
        process
    }

    fn begin(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let process = self.process(event);
        if event.f == Function::Point {
            self.record.first_point.get_or_insert(event.t);
        } else {
            self.record.operations += 1;
        }
        if self.record.has(event.op) {
            self.flaws.note(Flaw::Duplicate, || {
                format!("two operations have the id {}", event.op)
            });
            // Whose completion comes next, which write the log means by it, and which grant others mean, nobody knows.
            let open = self.open.remove(&event.op);
            self.make_unclear(event, open);
            self.end_unclear(event, event.op, event.t);
            self.record.index.set(event.op, Known::Other);
            return Ok(());
        }
        let row = self.row_of(event, Call::begun(event.op, process, event.t))?;
        self.index(event, row);
        self.take_lane(event, process);
        self.open.insert(
            event.op,
            Open {
                f: event.f,
                process,
                row,
                invoked: event.t,
            },
        );
        Ok(())
    }

    fn index(&mut self, event: &Event<'_>, row: u32) {
        let known = match event.f {
            Function::Acquire => Known::Acquire(row),
            Function::Write => Known::Write(row),
            _ => Known::Other,
        };
        self.record.index.set(event.op, known);
    }

    fn take_lane(&mut self, event: &Event<'_>, process: u32) {
        let state = &mut self.record.processes[process as usize];
        let before = match lane(event.f) {
            Lane::Lock => state.lock_op.replace(event.op),
            Lane::Storage => state.storage_op.replace(event.op),
            Lane::Free => None,
        };
        if let Some(before) = before {
            let sentence = || {
                format!(
                    "{} began op {} ({}) while its op {before} was in flight",
                    event.process,
                    event.op,
                    event.f.name()
                )
            };
            self.flaws.note(Flaw::Overlap, sentence);
        }
    }

    fn leave_lane(&mut self, event: &Event<'_>, process: u32) {
        let state = &mut self.record.processes[process as usize];
        let in_flight = match lane(event.f) {
            Lane::Lock => &mut state.lock_op,
            Lane::Storage => &mut state.storage_op,
            Lane::Free => return,
        };
        if *in_flight == Some(event.op) {
            *in_flight = None;
        }
    }

    /// Adds an operation to the table of its function.
    fn row_of(&mut self, event: &Event<'_>, call: Call) -> Result<u32, Error> {
        let grant = match (event.f, event.grant) {
            (Function::Extend | Function::Release, grant) => {
                let op = required(event, "grant", grant)?;
                self.grant(event, op, call.process)
            }
            (_, Some(op)) => self.grant(event, op, call.process),
            (_, None) => NONE,
        };
        let row = match event.f {
            Function::Acquire => self.acquire(event, call)?,
            Function::Extend => {
                self.record.extends.push(Extend {
                    call,
                    grant,
                    validity: None,
                    ttl_ms: event.ttl_ms,
                });
                self.record.extends.len() - 1
            }
            Function::Read => {
                let document = self.document(event)?;
                self.record.reads.push(Read {
                    call,
                    document,
                    grant,
                    version: None,
                    value: NONE,
                });
                self.record.reads.len() - 1
            }
            Function::Write => {
                let document = self.document(event)?;
                let value = event
                    .value
                    .as_deref()
                    .map_or(NONE, |value| self.record.values.number(value));
                let (token, based_on) = (event.token, event.based_on);
                let write = Write {
                    call,
                    document,
                    grant,
                    token,
                    based_on,
                    version: None,
                    value,
                    rejected: false,
                };
                self.record.writes.push(write);
                self.record.writes.len() - 1
            }
            Function::Release => {
                self.record
                    .end_grant(grant, event.t, event.op, Why::Released);
                grant as usize
            }
            _ => grant as usize,
        };
        Ok(row as u32)
    }

    fn acquire(&mut self, event: &Event<'_>, call: Call) -> Result<usize, Error> {
        let name = required(event, "lock", event.lock.as_deref())?;
        let lock = self.record.locks.number(name);
        self.record.acquires.push(Acquire::new(call, lock));
        Ok(self.record.acquires.len() - 1)
    }

    fn document(&mut self, event: &Event<'_>) -> Result<u32, Error> {
        let name = required(event, "document", event.document.as_deref())?;
        Ok(self.record.documents.number(name))
    }

    fn complete(&mut self, event: &Event<'_>) {
        let process = self.process(event);
        let open = match self.open.remove(&event.op) {
            Some(open) if open.f == event.f && open.process == process => open,
            Some(open) => {
                let sentence = || {
                    format!(
                        "the completion of op {} does not fit its invocation",
                        event.op
                    )
                };
                self.flaws.note(Flaw::Mismatch, sentence);
                return self.make_unclear(event, Some(open));
            }
            None => {
                let sentence = || {
                    let (process, f) = (&event.process, event.f.name());
                    format!(
                        "{process} completed op {} ({f}), which was not in flight",
                        event.op
                    )
                };
                self.flaws.note(Flaw::Uninvoked, sentence);
                return self.make_unclear(event, None);
            }
        };
        self.leave_lane(event, process);
        self.faults.saw(&event.process, open.invoked, event);
        self.outcome(event, open.row);
    }

    fn outcome(&mut self, event: &Event<'_>, row: u32) {
        let at = row as usize;
        let (t, kind) = (event.t, event.kind);
        match event.f {
            Function::Acquire => {
                let acquire = &mut self.record.acquires[at];
                acquire.call.complete(t, kind);
                if acquire.granted() {
                    acquire.token = event.token;
                    acquire.validity = event.validity.unwrap_or(NEVER);
                }
            }
            Function::Extend => {
                let extend = &mut self.record.extends[at];
                extend.call.complete(t, kind);
                extend.validity = event.validity.filter(|_| kind == Kind::Ok);
                let grant = extend.grant;
                self.end_as_told(event, grant);
            }
            Function::Read => {
                let value = event.value.as_deref().filter(|_| kind == Kind::Ok);
                let value = value.map_or(NONE, |value| self.record.values.number(value));
                let read = &mut self.record.reads[at];
                read.call.complete(t, kind);
                read.version = event.version.filter(|_| kind == Kind::Ok);
                read.value = value;
                if kind == Kind::Ok && read.version.is_none() {
                    self.flaws.note(Flaw::NoVersion, || {
                        format!("read {} returned no version", event.op)
                    });
                }
            }
            Function::Write => {
                let write = &mut self.record.writes[at];
                write.call.complete(t, kind);
                write.version = event.version.filter(|_| kind == Kind::Ok);
                write.rejected = grants::is_rejected(event);
                let grant = write.grant;
                self.end_as_told(event, grant);
            }
            _ => {
                self.record.other_unknown +=
                    u64::from(kind == Kind::Info && event.f != Function::Point);
                self.end_as_told(event, row);
            }
        }
    }

    fn log(&mut self, event: &Event<'_>) {
        let reads = &mut self.record.log_reads;
        let begun = reads
            .iter_mut()
            .rfind(|read| read.call.op == event.op && read.call.completion == Completion::Pending);
        match begun {
            Some(read) if event.kind != Kind::Invoke => {
                read.call.complete(event.t, event.kind);
                read.entries = event.entries;
            }
            _ if event.kind == Kind::Invoke => {
                let document = event
                    .document
                    .as_deref()
                    .map_or(NONE, |name| self.record.documents.number(name));
                let call = Call::begun(event.op, NONE, event.t);
                self.record.log_reads.push(LogRead {
                    call,
                    document,
                    entries: None,
                    rows: 0,
                });
            }
            _ => {
                let sentence = || {
                    format!(
                        "the reading of the storage's log (op {}) ended without having begun",
                        event.op
                    )
                };
                self.flaws.note(Flaw::Uninvoked, sentence);
            }
        }
    }

    fn accepted(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let document = self.document(event)?;
        let version = required(event, "version", event.version)?;
        let value = event
            .value
            .as_deref()
            .map_or(NONE, |value| self.record.values.number(value));
        self.record.log_rows.push(LogRow {
            op: event.op,
            document,
            version,
            value,
        });
        if let Some(read) = self.record.log_reads.last_mut() {
            read.rows += u64::from(read.call.completion == Completion::Pending);
        }
        Ok(())
    }
}

/// A field without which nobody knows what the event means.
fn required<T>(event: &Event<'_>, field: &'static str, value: Option<T>) -> Result<T, Error> {
    value.ok_or(Error::Missing {
        op: event.op,
        f: event.f,
        field,
    })
}
