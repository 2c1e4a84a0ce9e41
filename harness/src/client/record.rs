//! What a client writes down: one event a line, each in one write(2), so that a kill loses nothing that had happened.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use containers::agent::{Heartbeat, monotonic_ns};
use histories::{Event, Function, Kind, STORAGE};
use tokio::time::sleep;

use super::points::Reach;

/// An event could not be written down, so that the client must not go on.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write down what the client does, to {}: {source}; without that the run says nothing, so the client ends",
    path.display()
)]
pub struct RecordingFailed {
    path: PathBuf,
    source: io::Error,
}

/// An operation that was begun and has to be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The operation.
    pub op: u64,
    /// What it does.
    pub f: Function,
    /// When it was invoked, in nanoseconds since the run's base.
    pub invoked: u64,
}

/// The file of a client's events, and its agent, which hears of some of them.
pub struct Record {
    path: PathBuf,
    file: RefCell<File>,
    process: String,
    base_ns: u64,
    next_op: Cell<u64>,
    heartbeat: Heartbeat,
    reach: Reach,
}

impl Record {
    /// Opens the file for appending; it is made if it is not there.
    ///
    /// # Errors
    /// If it cannot be opened, or not written to.
    pub fn open(
        path: &Path,
        process: &str,
        base_ns: u64,
        first_op: u64,
        reach: Reach,
    ) -> Result<Record, RecordingFailed> {
        let failed = |source| RecordingFailed {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(failed)?;
        end_torn_line(&mut file).map_err(failed)?;
        Ok(Record {
            path: path.to_owned(),
            file: RefCell::new(file),
            process: process.to_owned(),
            base_ns,
            next_op: Cell::new(first_op),
            heartbeat: Heartbeat::new(monotonic_ns()),
            reach,
        })
    }

    /// Writes down that an operation is begun; `fill` sets the fields of its function.
    pub fn invoke(
        &self,
        f: Function,
        fill: impl FnOnce(&mut Event<'static>),
    ) -> Result<Open, RecordingFailed> {
        let mut event = self.event(f, Kind::Invoke, None)?;
        fill(&mut event);
        self.append(&event)?;
        Ok(Open {
            op: event.op,
            f,
            invoked: event.t,
        })
    }

    /// Writes down how an operation ended, and tells the agent if it wants to know.
    pub fn complete(
        &self,
        open: Open,
        kind: Kind,
        fill: impl FnOnce(&mut Event<'static>),
    ) -> Result<(), RecordingFailed> {
        let mut event = self.event(open.f, kind, Some(open.op))?;
        fill(&mut event);
        self.append(&event)?;
        self.reach
            .completed(open.f, kind, self.at(event.t, open.invoked), open.op);
        Ok(())
    }

    /// Writes down something that completes nothing.
    pub fn remark(
        &self,
        f: Function,
        fill: impl FnOnce(&mut Event<'static>),
    ) -> Result<(), RecordingFailed> {
        let mut event = self.event(f, Kind::Info, None)?;
        fill(&mut event);
        self.append(&event)
    }

    /// The storage is about to have answered: writes down if it took long, since what it kept waiting is no fault of the
    /// lock's.
    pub fn storage_answers(&self, open: Open) -> Result<(), RecordingFailed> {
        let waited_ns = monotonic_ns().saturating_sub(self.base_ns + open.invoked);
        if waited_ns < Heartbeat::LONGEST_NS {
            return Ok(());
        }
        self.remark(Function::Stall, |event| {
            event.on = Some(vec![STORAGE.to_owned()]);
            event.stalled_ns = Some(waited_ns);
        })
    }

    /// The client is at a named point of its nth grant. Costs nothing unless a rule waits for it; then that is written
    /// down, and this returns when the agent lets the client go on.
    pub async fn point(
        &self,
        point: &'static str,
        grant: u64,
        nth: u64,
    ) -> Result<(), RecordingFailed> {
        let Some(rule) = self.reach.rule_at(point, nth) else {
            return Ok(());
        };
        let fill = |event: &mut Event<'static>| {
            event.point = Some(point.into());
            event.grant = Some(grant);
            event.nth = Some(nth);
        };
        let open = self.invoke(Function::Point, fill)?;
        let at = self.at(open.invoked, open.invoked);
        self.reach.reached(rule, at, open.op).await;
        self.complete(open, Kind::Ok, fill)
    }

    /// Beats until a stall cannot be written down.
    pub async fn keep_beating(&self) -> RecordingFailed {
        loop {
            sleep(Heartbeat::INTERVAL).await;
            if let Err(failed) = self.beat() {
                return failed;
            }
        }
    }

    /// Gives a sign of life, and writes down for how long there was none if that is too long: the process stood still.
    pub fn beat(&self) -> Result<(), RecordingFailed> {
        self.beat_at(monotonic_ns())
    }

    fn beat_at(&self, now_ns: u64) -> Result<(), RecordingFailed> {
        let Some(stalled_ns) = self.heartbeat.beat(now_ns) else {
            return Ok(());
        };
        let mut stall = self.new_event(now_ns, self.new_op(), Kind::Info, Function::Stall);
        stall.stalled_ns = Some(stalled_ns);
        self.append(&stall)
    }

    /// A time of CLOCK_MONOTONIC as the history counts it, from the run's base.
    pub fn since_base(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.base_ns)
    }

    fn new_op(&self) -> u64 {
        let op = self.next_op.get();
        self.next_op.set(op + 1);
        op
    }

    /// An event of now, of this operation or a new one. A stall that is just over is written down before it, so that none is
    /// missing where the client ends next. The event is a sign of life itself: no stall goes on over it.
    fn event(
        &self,
        f: Function,
        kind: Kind,
        op: Option<u64>,
    ) -> Result<Event<'static>, RecordingFailed> {
        let now_ns = monotonic_ns();
        self.beat_at(now_ns)?;
        let op = op.unwrap_or_else(|| self.new_op());
        Ok(self.new_event(now_ns, op, kind, f))
    }

    fn new_event(&self, at_ns: u64, op: u64, kind: Kind, f: Function) -> Event<'static> {
        Event::new(self.since_base(at_ns), self.process.clone(), op, kind, f)
    }

    /// Times of the run as the agent counts them.
    fn at(&self, reached: u64, invoked: u64) -> Reached {
        Reached {
            reached_ns: self.base_ns + reached,
            invoked_ns: self.base_ns + invoked,
        }
    }

    fn append(&self, event: &Event<'static>) -> Result<(), RecordingFailed> {
        let mut line = serde_json::to_vec(event).map_err(io::Error::other);
        if let Ok(line) = &mut line {
            line.push(b'\n');
        }
        line.and_then(|line| self.file.borrow_mut().write_all(&line))
            .map_err(|source| RecordingFailed {
                path: self.path.clone(),
                source,
            })
    }
}

/// When a client got to what a rule names, in nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// When it got there.
    pub reached_ns: u64,
    /// When the operation was invoked that ended there.
    pub invoked_ns: u64,
}

/// A kill in the middle of a write may leave the beginning of a line; what comes next must not hang on to it.
fn end_torn_line(file: &mut File) -> io::Result<()> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(())
}
