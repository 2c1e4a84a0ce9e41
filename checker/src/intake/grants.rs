//! How operations refer to grants, and how they end them.

use histories::{Event, Function, Kind};

use super::{Intake, required};
use crate::assumptions::Flaw;
use crate::error::Error;
use crate::names::NONE;
use crate::operations::{Acquire, Call, Why};

/// Whether a write failed because the storage's fence turned it away.
pub(super) fn is_rejected(event: &Event<'_>) -> bool {
    event.kind == Kind::Fail && event.error.as_deref() == Some("rejected")
}

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
            Some(call) if call.unknown() => "an acquire of unknown outcome",
            Some(_) => "an acquire that failed",
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
        known.unwrap_or_else(|| self.absent_acquire(op, process))
    }

    /// A row for an acquire that the history lacks: writes under it are told from others by it, and no more.
    fn absent_acquire(&mut self, op: u64, process: u32) -> u32 {
        let acquires = &mut self.record.acquires;
        *self.absent.entry(op).or_insert_with(|| {
            let call = Call::begun(op, process, 0);
            acquires.push(Acquire::new(call, NONE));
            acquires.len() as u32 - 1
        })
    }

    /// Ends the grant if the completion of one of its operations told the client that it lost the lock.
    pub(super) fn end_as_told(&mut self, event: &Event<'_>, grant: u32) {
        let why = match (event.f, event.kind) {
            (Function::Extend, Kind::Fail) => Why::NotExtended,
            (Function::Write, _) if is_rejected(event) => Why::Rejected,
            (Function::Held, Kind::Ok) if event.held == Some(false) => Why::NotHeld,
            _ => return,
        };
        self.record.end_grant(grant, event.t, event.op, why);
    }

    /// A flawed event still ends the hold that it speaks of. A release whose invocation is not there may have been
    /// asked for at any time: nothing of that hold is certain.
    pub(super) fn end_all_the_same(&mut self, event: &Event<'_>) {
        let Some(grant) = event.grant.and_then(|op| self.record.acquire_of(op)) else {
            return;
        };
        match (event.f, event.kind) {
            (Function::Release, Kind::Invoke) => {
                self.record
                    .end_grant(grant, event.t, event.op, Why::Released)
            }
            (Function::Release, _) => self.record.end_grant(grant, 0, event.op, Why::Released),
            _ => self.end_as_told(event, grant),
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
}
