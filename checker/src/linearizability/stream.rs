//! Lock histories judged as they come, with memory for what is in flight and not for what is past.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use histories::Kind as EntryKind;
use histories::entries::{Entry, Value};

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
    /// When leases end: the time, the lock, the owner and the acquire.
    clock: BinaryHeap<Reverse<(u64, u32, Owner, u64)>>,
    /// The time of the latest entry.
    time: u64,
    operations: u64,
    unknown: u64,
    /// Whether operations have numbers; else they are known by the lines in which they begin.
    numbered: bool,
}

#[derive(Clone, Copy)]
struct InFlight {
    verb: Verb,
    lock: u32,
    owner: Owner,
    id: u64,
    line: u64,
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
            clock: BinaryHeap::new(),
            time: 0,
            operations: 0,
            unknown: 0,
            numbered: false,
        }
    }

    fn invoke(&mut self, entry: &Entry<'_>, process: u32) -> Result<(), GatheringError> {
        let told = Told {
            f: &entry.f,
            key: None,
            process: (process, &entry.process),
            input: &entry.value,
            outcome: Outcome::Unknown,
            token: None,
            validity: None,
        };
        if matches!(told.f, "extend" | "renew") {
            let why = format!("`{}` is not judged in a stream: leave out --stream", told.f);
            return Err(Misfit(why).into());
        }
        let verb = Verb::of("lock in a stream", &told)?;
        self.numbered |= entry.op.is_some();
        let call = InFlight {
            verb,
            lock: self.keys.number(entry.key.as_ref().unwrap_or(&Value::Nil)),
            owner: self.owners.of(&told),
            id: entry.op.unwrap_or(entry.line),
            line: entry.line,
        };
        match verb {
            Verb::Acquire => self.locks.invoke_acquire(call.lock, call.owner, call.id),
            Verb::Release => self.locks.invoke_release(call.lock, call.owner, call.id),
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
        let told = Told {
            f: &entry.f,
            key: None,
            process: (0, &entry.process),
            input: &Value::Nil,
            outcome,
            token: entry.token,
            validity: entry.validity,
        };
        if Verb::of("lock in a stream", &told)? != call.verb {
            return Err(GatheringError::OtherOperation {
                process: entry.process.to_string(),
                f: entry.f.to_string(),
                invoked: call.verb.name().to_owned(),
                line: call.line,
            });
        }
        let attempt = call.verb.attempt(&told, self.refusals_count);
        let unknown = outcome == Outcome::Unknown;
        self.operations += u64::from(attempt != Attempt::Nothing);
        self.unknown += u64::from(unknown);
        let InFlight { lock, owner, .. } = call;
        match (call.verb, attempt) {
            (Verb::Acquire, Attempt::Nothing) => self.locks.acquire_failed(lock, owner),
            (Verb::Acquire, Attempt::Busy) => self.locks.busy(lock, owner),
            (Verb::Acquire, Attempt::Granted) if self.kind == Kind::Lease => {
                self.leased(call, &told)?;
            }
            (Verb::Acquire, Attempt::Granted) if unknown => self.locks.acquire_unknown(lock, owner),
            (Verb::Acquire, Attempt::Granted) => {
                let token = match self.kind {
                    Kind::Fenced => locking::token(&told)?,
                    Kind::OwnerAware | Kind::Lease => None,
                };
                self.locks.acquired(lock, owner, token);
            }
            (Verb::Release, Attempt::Granted) if unknown => self.locks.release_unknown(lock, owner),
            (Verb::Release, Attempt::Granted) => self.locks.released(lock, owner),
            (Verb::Release, Attempt::Nothing | Attempt::Busy) => {
                self.locks.release_failed(lock, owner)
            }
        }
        Ok(())
    }

    /// A lease was granted, or may have been. Of one that was over before it was told, nobody remembers whether the lock
    /// was free when it was over; it counts as one of unknown outcome.
    fn leased(&mut self, call: InFlight, told: &Told<'_>) -> Result<(), GatheringError> {
        let InFlight {
            lock, owner, id, ..
        } = call;
        let validity = locking::validity(told)?;
        if told.outcome == Outcome::Unknown || validity.is_some_and(|until| until <= self.time) {
            self.locks.acquire_unknown(lock, owner);
            self.locks.validity_over(lock, owner, id);
            return Ok(());
        }
        self.locks.acquired(lock, owner, None);
        if let Some(until) = validity {
            self.clock.push(Reverse((until, lock, owner, id)));
        }
        Ok(())
    }

    /// Lets leases end whose validity is over at a time.
    fn let_leases_end(&mut self, time: u64) {
        while let Some(&Reverse((until, lock, owner, acquire))) = self.clock.peek()
            && until <= time
        {
            self.clock.pop();
            self.locks.validity_over(lock, owner, acquire);
        }
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
        }
        let process = self.processes.number(&entry.process);
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

    fn finish(self: Box<Self>, _limits: &Limits<'_>) -> Result<Judgement, GatheringError> {
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
