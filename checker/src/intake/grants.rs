//! How operations refer to grants, and how they end them.

use histories::{Event, Function, Kind};

use super::{Intake, Open, required};
use crate::assumptions::Flaw;
use crate::error::Error;
use crate::names::NONE;
use crate::operations::{Acquire, Call, Extend, Why};

/// Whose grant it is that an operation has when nobody knows whether there is one.
const UNKNOWN: &str = "an acquire of unknown outcome";

/// Whether a write failed because the storage's fence turned it away.
pub(super) fn is_rejected(event: &Event<'_>) -> bool {
    event.kind == Kind::Fail && event.error.as_deref() == Some("rejected")
}

/// Whose grant it is when there certainly is none.
const FAILED: &str = "an acquire that failed";

impl Intake {
    /// The row of the acquire under whose grant an operation is done.
    ///
    /// An acquire whose outcome its client does not know may be cleaned up after, but no work is done under it.
    pub(super) fn grant(&mut self, event: &Event<'_>, op: u64, process: u32) -> u32 {
        let known = self.record.acquire_of(op);
        let sentence = match known.map(|row| self.record.acquires[row as usize].call) {
            Some(call) if call.process != process => "another process",
            Some(call) if call.ok() => return known.unwrap_or(NONE),
            Some(call)
                if call.unknown()
                    && !matches!(event.f, Function::Read | Function::Write | Function::Work) =>
            {
                return known.unwrap_or(NONE);
            }
            Some(call) if call.unknown() => UNKNOWN,
            Some(_) => FAILED,
            None => "an acquire that is not there",
        };
        self.flaws.note(Flaw::NotGranted, || {
            format!(
                "{}'s op {} ({}) has the grant {op} of {sentence}",
                event.process,
                event.op,
                event.f.name()
            )
        });
        // Acting under an attempt of its own is acting as the holder of that lock, whatever came of it.
        if let Some(own) = known.filter(|_| [UNKNOWN, FAILED].contains(&sentence)) {
            return own;
        }
        self.end_unclear(event, op, event.t);
        self.absent_acquire(op, process)
    }

    /// A row for an acquire that the history lacks, or that is not of its process: writes under it are told from others
    /// by it, and no more.
    fn absent_acquire(&mut self, op: u64, process: u32) -> u32 {
        let acquires = &mut self.record.acquires;
        *self.absent.entry(op).or_insert_with(|| {
            let call = Call::begun(op, process, 0);
            acquires.push(Acquire::new(call, NONE));
            acquires.len() as u32 - 1
        })
    }

    /// What is done under a grant is done to the lock of that grant.
    pub(super) fn check_lock(&mut self, event: &Event<'_>, grant: u32) {
        let asked = matches!(
            event.f,
            Function::Extend | Function::Release | Function::Held
        );
        let Some(named) = event.lock.as_deref().filter(|_| asked) else {
            return;
        };
        let acquire = self.record.acquire(grant);
        let Some(lock) = acquire
            .map(|acquire| acquire.lock)
            .filter(|&lock| lock != NONE)
        else {
            return;
        };
        let own = self.record.locks.text(lock);
        if own != named {
            let sentence = format!(
                "{}'s op {} ({}) names lock `{named}`, and its grant is of lock `{own}`",
                event.process,
                event.op,
                event.f.name()
            );
            self.flaws.note(Flaw::OtherLock, || sentence);
        }
    }

    /// Whoever asks for a lease asks for that of the plan, by which all else goes, and for no longer one afterwards.
    pub(super) fn check_ttl(&mut self, event: &Event<'_>) {
        let planned = self.ttl_ms;
        let is_other = |&ttl_ms: &u64| match event.f {
            Function::Acquire => ttl_ms != planned,
            _ => ttl_ms > planned,
        };
        if let Some(ttl_ms) = event.ttl_ms.filter(is_other) {
            self.flaws.note(Flaw::OtherTtl, || {
                let (process, op) = (&event.process, event.op);
                format!("{process}'s op {op} asks for {ttl_ms} ms, and the plan's leases live {planned} ms")
            });
        }
    }

    /// What is told of a lease lasts no longer than the plan's leases live, from when it was told on; and who asked for a
    /// lease is told of one.
    pub(super) fn check_validity(&mut self, event: &Event<'_>, asked_ms: Option<u64>) {
        let ttl_ns = self.ttl_ms.saturating_mul(1_000_000);
        let longest = event.t.saturating_add(ttl_ns);
        let (process, op) = (&event.process, event.op);
        if event.validity.is_some_and(|validity| validity > longest) {
            self.flaws.note(Flaw::LongLease, || {
                format!("the validity of {process}'s op {op} is longer than the plan's leases live")
            });
        }
        if event.validity.is_none() && asked_ms.is_some() {
            self.flaws.note(Flaw::NoValidity, || {
                format!("{process}'s op {op} asked for a lease and was told no validity")
            });
        }
    }

    /// Ends the grant if the completion of one of its operations told the client that it lost the lock.
    pub(super) fn end_as_told(&mut self, event: &Event<'_>, grant: u32) {
        let why = match (event.f, event.kind) {
            (Function::Extend, Kind::Fail) if event.lost == Some(true) => Why::NotExtended,
            (Function::Write, _) if is_rejected(event) => Why::Rejected,
            (Function::Held, Kind::Ok) if event.held == Some(false) => Why::NotHeld,
            _ => return,
        };
        self.record.end_grant(grant, event.t, event.op, why);
    }

    /// A flawed event ends what its process holds, and so does what becomes of the operation in flight whose id it has:
    /// either may have told the client that it lost the lock. A release, or an extension to a shorter time, may have been
    /// in force since it was asked for, and if nobody knows when that was nothing is certain of what was held.
    pub(super) fn make_unclear(&mut self, event: &Event<'_>, open: Option<Open>) {
        let process = self.process(event);
        self.record.processes[process as usize]
            .unclear
            .push(event.t);
        let shortens = matches!(event.f, Function::Release | Function::Extend);
        let long_ago = shortens && event.kind != Kind::Invoke && open.is_none();
        match event.grant {
            Some(op) => self.end_unclear(event, op, if long_ago { 0 } else { event.t }),
            None if long_ago => {
                let process = &mut self.record.processes[process as usize];
                process.unclear_since_when.push(event.t);
            }
            None => {}
        }
        if let Some(Open {
            f,
            process,
            row,
            invoked,
            ..
        }) = open
        {
            self.record.processes[process as usize]
                .unclear
                .push(event.t);
            let grant = match f {
                Function::Extend => self.record.extends[row as usize].grant,
                Function::Release => self.record.releases[row as usize].grant,
                _ => return,
            };
            self.record
                .end_grant(grant, invoked, event.op, Why::Unclear);
        }
    }

    /// Ends the grant of an acquire, if there is one: a flawed event speaks of it.
    pub(super) fn end_unclear(&mut self, event: &Event<'_>, op: u64, at: u64) {
        if let Some(grant) = self.record.acquire_of(op) {
            self.record.end_grant(grant, at, event.op, Why::Unclear);
        }
    }

    pub(super) fn lost(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let op = required(event, "grant", event.grant)?;
        let process = self.process(event);
        let grant = self.grant(event, op, process);
        self.record.end_grant(grant, event.t, event.op, Why::Lost);
        self.faults.saw(&event.process, event.t, event);
        Ok(())
    }

    pub(super) fn renewed(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let op = required(event, "grant", event.grant)?;
        let validity = required(event, "validity", event.validity)?;
        let process = self.process(event);
        let grant = self.grant(event, op, process);
        self.check_validity(event, None);
        let mut call = Call::begun(event.op, process, event.t);
        call.complete(event.t, Kind::Ok);
        self.record.extends.push(Extend {
            call,
            grant,
            validity: Some(validity),
            ttl_ms: None,
            renewed: true,
        });
        Ok(())
    }
}
