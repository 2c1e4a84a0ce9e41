//! Lock histories judged as they come, with memory for what is in flight and not for what is past.

mod leases;

use histories::Kind as EntryKind;
use histories::entries::{Entry, Value};

use self::leases::Leases;
use crate::closed_forms::streaming::{Finding as LockFinding, Locks};
use crate::closed_forms::{Found, Kind};
use crate::linearizability::judge::{Finding, Judge, Judgement, Outcome as Judged, Proof};
use crate::linearizability::{GatheringError, Limits};
use crate::models::locking::{self, Attempt, Owner, Owners, Verb};
use crate::models::{Misfit, Outcome, Setup, Told, Values};
use crate::names::Names;

/// The locks of a history.
pub(crate) struct Stream {
    kind: Kind,
    refusals_count: bool,
    locks: Locks,
    keys: Values,
    owners: Owners,
    processes: Names,
    /// What each process does, by its number.
    in_flight: Vec<Option<InFlight>>,
    leases: Leases,
    /// The time of the latest entry.
    time: u64,
    operations: u64,
    unknown: u64,
    /// Whether operations have numbers; else they are known by the lines in which they begin.
    numbered: bool,
}

#[derive(Clone, Copy)]
struct InFlight {
    asked: Asked,
    lock: u32,
    owner: Owner,
    id: u64,
    line: u64,
    /// The acquire whose grant a lease's request names.
    grant: Option<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Lock(Verb),
    Extend,
}

impl Asked {
    fn of(told: &Told<'_>) -> Result<Asked, Misfit> {
        match told.f {
            "extend" if told.grant.is_some() => Ok(Asked::Extend),
            "extend" | "renew" => Err(Misfit(format!(
                "`{}` is not judged in a stream where it does not name its grant: leave out --stream",
                told.f
            ))),
            _ => Verb::of("lock in a stream", told).map(Asked::Lock),
        }
    }

    /// As our histories call it.
    fn name(self) -> &'static str {
        match self {
            Asked::Lock(verb) => verb.name(),
            Asked::Extend => "extend",
        }
    }
}

impl Stream {
    /// No locks yet.
    pub(crate) fn new(kind: Kind, setup: &Setup) -> Stream {
        Stream {
            kind,
            refusals_count: setup.refusals_count,
            locks: Locks::new(kind),
            keys: Values::default(),
            owners: Owners::default(),
            processes: Names::default(),
            in_flight: Vec::new(),
            leases: Leases::default(),
            time: 0,
            operations: 0,
            unknown: 0,
            numbered: false,
        }
    }

    fn invoke(&mut self, entry: &Entry<'_>, process: u32) -> Result<(), GatheringError> {
        let told = told(entry, process, Outcome::Unknown);
        let asked = Asked::of(&told)?;
        self.numbered |= entry.op.is_some();
        let call = InFlight {
            asked,
            lock: self.keys.number(entry.key.as_ref().unwrap_or(&Value::Nil)),
            owner: self.owners.of(&told),
            id: entry.op.unwrap_or(entry.line),
            line: entry.line,
            grant: entry.grant.filter(|_| self.kind == Kind::Lease),
        };
        let InFlight {
            lock, owner, id, ..
        } = call;
        match (asked, call.grant) {
            (Asked::Lock(Verb::Acquire), _) => self.locks.invoke_acquire(lock, owner, id),
            (Asked::Lock(Verb::Release), None) => self.locks.invoke_release(lock, owner, id),
            (Asked::Lock(Verb::Release), Some(grant)) => {
                self.locks.invoke_release_of(lock, owner, id, grant);
            }
            (Asked::Extend, _) => self.ask_for_more(call, entry.validity),
        }
        let earlier = self.in_flight[process as usize].replace(call);
        match earlier {
            None => Ok(()),
            Some(earlier) => Err(GatheringError::Overlap {
                process: entry.process.to_string(),
                f: entry.f.to_string(),
                line: earlier.line,
            }),
        }
    }

    fn complete(&mut self, call: InFlight, entry: &Entry<'_>) -> Result<(), GatheringError> {
        let outcome = match entry.kind {
            EntryKind::Ok => Outcome::Done(&entry.value),
            EntryKind::Fail => Outcome::refused(entry.error.as_deref()),
            EntryKind::Info | EntryKind::Invoke => Outcome::Unknown,
        };
        let told = told(entry, 0, outcome);
        if Asked::of(&told)? != call.asked {
            return Err(GatheringError::OtherOperation {
                process: entry.process.to_string(),
                f: entry.f.to_string(),
                invoked: call.asked.name().to_owned(),
                line: call.line,
            });
        }
        let attempt = match call.asked {
            Asked::Lock(verb) => verb.attempt(&told, self.refusals_count),
            Asked::Extend if matches!(outcome, Outcome::Refused(_)) => Attempt::Nothing,
            Asked::Extend => Attempt::Granted,
        };
        let unknown = outcome == Outcome::Unknown;
        self.operations += u64::from(attempt != Attempt::Nothing);
        self.unknown += u64::from(unknown);
        let InFlight { lock, owner, .. } = call;
        match (call.asked, attempt) {
            (Asked::Lock(Verb::Acquire), Attempt::Nothing) => {
                self.locks.acquire_failed(lock, owner)
            }
            (Asked::Lock(Verb::Acquire), Attempt::Busy) => self.locks.busy(lock, owner),
            (Asked::Lock(Verb::Acquire), Attempt::Granted) if self.kind == Kind::Lease => {
                self.leased(call, &told)?;
            }
            (Asked::Lock(Verb::Acquire), Attempt::Granted) if unknown => {
                self.locks.acquire_unknown(lock, owner);
            }
            (Asked::Lock(Verb::Acquire), Attempt::Granted) => {
                let token = match self.kind {
                    Kind::Fenced => locking::token(&told)?,
                    Kind::OwnerAware | Kind::Lease => None,
                };
                self.locks.acquired(lock, owner, token);
            }
            (Asked::Lock(Verb::Release), Attempt::Granted) if unknown || call.grant.is_some() => {
                self.locks.release_unknown(lock, owner);
            }
            (Asked::Lock(Verb::Release), Attempt::Granted) => self.locks.released(lock, owner),
            (Asked::Lock(Verb::Release), Attempt::Nothing | Attempt::Busy) => {
                self.locks.release_failed(lock, owner);
            }
            (Asked::Extend, _) => self.extended(call, &told)?,
        }
        Ok(())
    }

    fn proof(&self, found: &Found) -> Proof {
        let name = |id: u64| match self.numbered {
            true => format!("operation {id}"),
            false => format!("the operation that begins in line {id}"),
        };
        Proof {
            sentence: found.reason.sentence(name),
            operations: found.calls.clone(),
            calls: Vec::new(),
            linearizable_events: found.position,
        }
    }

    fn finding(&self, lock: u32) -> Option<Finding> {
        let outcome = match self.locks.finding(lock) {
            LockFinding::Linearizable => return None,
            LockFinding::Violated(found) => Judged::Violated {
                witness: self.proof(found),
            },
            LockFinding::Unclear(why) => Judged::Unknown {
                reason: format!(
                    "{why}: the stream cannot tell, and a check of the whole history can"
                ),
            },
        };
        let key = self.keys.text(lock);
        let key = (key != "nil").then(|| key.to_owned());
        Some(Finding { key, outcome })
    }
}

impl Judge for Stream {
    fn push(&mut self, entry: &Entry<'_>) -> Result<(), GatheringError> {
        if let Some(time) = entry.time {
            self.time = time;
            self.let_leases_end(time);
            if entry.op.is_some() {
                self.locks.at(time);
            }
        }
        let process = self.processes.number(&entry.process);
        if matches!(&*entry.f, "lost" | "renewed") {
            self.remark(entry, process);
            return Ok(());
        }
        if self.in_flight.len() <= process as usize {
            self.in_flight.resize(process as usize + 1, None);
        }
        if entry.kind == EntryKind::Invoke {
            return self.invoke(entry, process);
        }
        match self.in_flight[process as usize].take() {
            Some(call) => self.complete(call, entry)?,
            None if entry.kind == EntryKind::Info => {}
            None => {
                return Err(GatheringError::Uninvoked {
                    process: entry.process.to_string(),
                    f: entry.f.to_string(),
                });
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _limits: &Limits<'_>) -> Result<Judgement, GatheringError> {
        let extends = |call: &&InFlight| call.asked == Asked::Extend;
        for call in self.in_flight.iter().flatten().filter(extends) {
            self.locks.extend_unknown(call.lock, call.owner);
        }
        let locks = self.keys.len() as u32;
        let findings: Vec<Finding> = (0..locks).filter_map(|lock| self.finding(lock)).collect();
        let never_ended = self.in_flight.iter().flatten().count() as u64;
        Ok(Judgement::new(
            self.operations + never_ended,
            self.unknown + never_ended,
            u64::from(locks),
            findings,
        ))
    }
}

/// What an entry tells.
fn told<'a>(entry: &'a Entry<'_>, process: u32, outcome: Outcome<'a>) -> Told<'a> {
    Told {
        f: &entry.f,
        key: None,
        process: (process, &entry.process),
        input: &entry.value,
        outcome,
        token: entry.token,
        validity: entry.validity,
        op: entry.op,
        grant: entry.grant,
        begun: 0,
    }
}
