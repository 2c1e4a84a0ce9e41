//! Takes events one by one and makes tables of them.

mod completions;
mod grants;
mod log;
mod stalls;

use histories::{Event, Function, Header, Kind, NEMESIS, Role, STORAGE, host_of};

use crate::assumptions::{Flaw, Flaws};
use crate::error::Error;
use crate::faults::{Gathering, is_work};
use crate::index::Known;
use crate::names::{Map, NONE};
use crate::operations::{
    Acquire, Call, End, Extend, Process, Read, Record, Release, Why, Work, Write,
};

/// An operation in flight.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    pub(crate) f: Function,
    process: u32,
    /// Its row in the table of its function; of `held`, the row of its grant.
    row: u32,
    invoked: u64,
    asked: Asked,
}

/// What an invocation names that no table keeps, and its completion may not name otherwise.
#[derive(Clone, Copy)]
struct Asked {
    ttl_ms: Option<u64>,
    wait_ms: Option<u64>,
    nth: Option<u64>,
    /// One of the record's values; [`NONE`] for none.
    point: u32,
    /// How many locks its process had been granted.
    grants: u64,
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
    pub(crate) faults: Gathering,
    pub(crate) flaws: Flaws,
    pub(crate) open: Map<u64, Open>,
    /// Rows of acquires that the history lacks, by the operation by which others speak of them.
    absent: Map<u64, u32>,
    /// Whether the plan has a lock, so that nothing is done without a grant of it.
    has_lock: bool,
    /// How long the plan's leases live.
    ttl_ms: u64,
}

impl Intake {
    pub(crate) fn new(header: &Header) -> Intake {
        Intake {
            record: Record::default(),
            faults: Gathering::new(header),
            flaws: Flaws::default(),
            open: Map::default(),
            absent: Map::default(),
            has_lock: !header.plan.lock.is_empty(),
            ttl_ms: header.plan.ttl_ms,
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
        if let Some(why) = untold(event) {
            self.leave_aside(event, why);
            return Ok(());
        }
        match event.f {
            Function::Inject | Function::Heal => self.faults.push(event),
            Function::Log => {
                self.log(event);
                Ok(())
            }
            Function::Accepted => self.accepted(event),
            Function::Lost => self.lost(event),
            Function::Renewed => self.renewed(event),
            Function::Stall => {
                self.stall(event);
                Ok(())
            }
            Function::Exit => {
                self.exit(event);
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
            self.record.processes.push(Process::seen_at(event.t));
        }
        let state = &mut self.record.processes[process as usize];
        state.saw_event(event.t);
        if event.f != Function::Exit {
            state.last_deed = event.t;
            if is_work(event.f) && self.faults.wait_at_points() {
                state.worked.push(event.t);
            }
            self.faults.client_acts(state.first_event, event);
        }
        process
    }

    /// Leaves an event aside that cannot be what it says it is. What it may have told its client ends a hold.
    fn leave_aside(&mut self, event: &Event<'_>, why: &str) {
        self.flaws.note(Flaw::Untold, || {
            let (process, f, kind) = (&event.process, event.f.name(), event.kind.name());
            format!(
                "{process} has a `{f}` of type `{kind}` (op {}), {why}",
                event.op
            )
        });
        if let Some(grant) = event.grant {
            self.end_unclear(event, grant, event.t);
        }
    }

    fn exit(&mut self, event: &Event<'_>) {
        let how = event.error.as_deref().unwrap_or_default().to_owned();
        let role = Role::of(host_of(&event.process));
        if !matches!(role, Some(Role::Server | Role::Storage)) {
            let process = self.process(event);
            let state = &mut self.record.processes[process as usize];
            state.exits.push(event.t);
            if how != "exit 0" {
                state.killed.get_or_insert(event.t);
            }
            if how != "exit 0" && !how.ends_with(AS_ASKED) {
                state.odd_exit.get_or_insert((event.t, how));
            }
        } else {
            let exit = (event.process.to_string(), event.t, how);
            self.record.host_exits.push(exit);
        }
    }

    fn begin(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let process = self.process(event);
        self.record.operations += u64::from(event.f != Function::Point);
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
        let asked = self.asked(event, process);
        self.check_ttl(event);
        if event.f == Function::Point {
            self.faults.saw_point(event);
        }
        self.index(event, row);
        self.take_lane(event, process);
        self.open.insert(
            event.op,
            Open {
                f: event.f,
                process,
                row,
                invoked: event.t,
                asked,
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

    fn asked(&mut self, event: &Event<'_>, process: u32) -> Asked {
        let point = event.point.as_deref();
        Asked {
            ttl_ms: event.ttl_ms,
            wait_ms: event.wait_ms,
            nth: event.nth,
            point: point.map_or(NONE, |point| self.record.values.number(point)),
            grants: self.record.processes[process as usize].grants,
        }
    }

    /// Adds an operation to the table of its function.
    fn row_of(&mut self, event: &Event<'_>, call: Call) -> Result<u32, Error> {
        let grant = self.grant_named(event, call.process)?;
        self.check_lock(event, grant);
        let row = match event.f {
            Function::Acquire => self.acquire(event, call)?,
            Function::Extend => {
                self.record.extends.push(Extend {
                    call,
                    grant,
                    validity: None,
                    ttl_ms: event.ttl_ms,
                    renewed: false,
                });
                self.record.extends.len() - 1
            }
            Function::Read => self.read(event, call, grant)?,
            Function::Write => self.write(event, call, grant)?,
            Function::Release => {
                let lost = false;
                self.record.releases.push(Release { call, grant, lost });
                self.record.releases.len() - 1
            }
            Function::Work => {
                self.record.works.push(Work { call, grant });
                self.record.works.len() - 1
            }
            _ => grant as usize,
        };
        Ok(row as u32)
    }

    /// The row of the acquire that an operation names; [`NONE`] where it names none, which is a flaw where it has to.
    fn grant_named(&mut self, event: &Event<'_>, process: u32) -> Result<u32, Error> {
        let op = match event.f {
            Function::Extend | Function::Release => Some(required(event, "grant", event.grant)?),
            _ => event.grant,
        };
        if let Some(op) = op {
            return Ok(self.grant(event, op, process));
        }
        let acts = matches!(event.f, Function::Read | Function::Write | Function::Work);
        if acts && self.has_lock {
            self.flaws.note(Flaw::NotGranted, || {
                let (process, f) = (&event.process, event.f.name());
                format!("{process}'s op {} ({f}) has no grant", event.op)
            });
        }
        Ok(NONE)
    }

    fn read(&mut self, event: &Event<'_>, call: Call, grant: u32) -> Result<usize, Error> {
        let document = self.document(event)?;
        self.record.reads.push(Read {
            call,
            document,
            grant,
            version: None,
            value: NONE,
        });
        Ok(self.record.reads.len() - 1)
    }

    fn write(&mut self, event: &Event<'_>, call: Call, grant: u32) -> Result<usize, Error> {
        let document = self.document(event)?;
        let value = event.value.as_deref();
        let value = value.map_or(NONE, |value| self.record.values.number(value));
        self.record.writes.push(Write {
            call,
            document,
            grant,
            token: event.token,
            based_on: event.based_on,
            version: None,
            value,
            rejected: false,
            unread: false,
        });
        Ok(self.record.writes.len() - 1)
    }

    fn acquire(&mut self, event: &Event<'_>, call: Call) -> Result<usize, Error> {
        let name = required(event, "lock", event.lock.as_deref())?;
        let lock = self.record.locks.number(name);
        let mut acquire = Acquire::new(call, lock);
        // What was done under it before it was asked for may have ended it.
        if self.absent.contains_key(&event.op) {
            acquire.end = End {
                at: event.t,
                op: event.op,
                why: Why::Unclear,
            };
        }
        self.record.acquires.push(acquire);
        Ok(self.record.acquires.len() - 1)
    }

    fn document(&mut self, event: &Event<'_>) -> Result<u32, Error> {
        let name = required(event, "document", event.document.as_deref())?;
        Ok(self.record.documents.number(name))
    }
}

/// How the end of a client is told that the run itself has killed.
const AS_ASKED: &str = ", as asked";

/// Why an event cannot be what it says it is, if it cannot: remarks complete nothing, the storage alone tells its log, and
/// the nemesis alone its faults.
fn untold(event: &Event<'_>) -> Option<&'static str> {
    let remark = match event.f {
        Function::Lost | Function::Renewed | Function::Stall | Function::Exit => Some(Kind::Info),
        Function::Accepted => Some(Kind::Ok),
        _ => None,
    };
    let told_by = match event.f {
        Function::Log | Function::Accepted => Some((STORAGE, "which the storage alone tells")),
        Function::Inject | Function::Heal => Some((NEMESIS, "which the nemesis alone tells")),
        _ => None,
    };
    if let Some((_, why)) = told_by.filter(|(process, _)| event.process != *process) {
        return Some(why);
    }
    remark
        .is_some_and(|kind| event.kind != kind)
        .then_some("which is not its type")
}

/// A field without which nobody knows what the event means.
fn required<T>(event: &Event<'_>, field: &'static str, value: Option<T>) -> Result<T, Error> {
    value.ok_or(Error::Missing {
        op: event.op,
        f: event.f,
        field,
    })
}
