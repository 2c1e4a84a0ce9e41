//! A grant that a client acts under, and what it is told of it meanwhile.

use std::cell::Cell;
use std::future;

use histories::{Function, Kind};

use super::record::{Open, Record, RecordingFailed};
use crate::locks::{Lock, Loss, Renewals};

/// A grant that the client acts under.
#[derive(Debug)]
pub struct Grant {
    /// The operation of its acquire.
    pub op: u64,
    /// Sequence number of this grant within its process, from 1.
    pub nth: u64,
    /// Its fencing token.
    pub(super) token: Option<u64>,
    loss: Loss,
    renewals: Renewals,
    /// The validity that is written down, as [`Renewals`] count it.
    valid_until_ns: Cell<u64>,
    /// The work under way.
    work: Cell<Option<Open>>,
    /// The client knows that it is lost, and has written that down.
    lost: Cell<bool>,
}

/// What a service tells of a grant without being asked.
enum Told {
    Lost { by: String },
    Renewed { valid_until_ns: u64 },
}

impl Grant {
    /// The grant that the lock has just given.
    pub(super) fn new(op: u64, nth: u64, token: Option<u64>, lock: &dyn Lock) -> Grant {
        let renewals = lock.renewals();
        Grant {
            op,
            nth,
            token,
            loss: lock.loss(),
            valid_until_ns: Cell::new(renewals.valid_until_ns()),
            renewals,
            work: Cell::new(None),
            lost: Cell::new(false),
        }
    }

    /// Whether the client knows that it is lost, after taking in what was told by now.
    pub(super) fn is_lost(&self, record: &Record) -> Result<bool, RecordingFailed> {
        if let Some(by) = self.loss.told() {
            self.lose(record, &by)?;
        }
        Ok(self.lost.get())
    }

    /// The client knows that it is lost. What it works at is given up first, since it acts no more from here on.
    pub(super) fn lose(&self, record: &Record, by: &str) -> Result<(), RecordingFailed> {
        if self.lost.replace(true) {
            return Ok(());
        }
        self.end_work(record)?;
        record.remark(Function::Lost, |event| {
            event.grant = Some(self.op);
            event.error = Some(by.to_owned().into());
        })
    }

    /// The work that the lock protects begins.
    pub(super) fn begin_work(&self, record: &Record) -> Result<(), RecordingFailed> {
        let work = record.invoke(Function::Work, |event| event.grant = Some(self.op))?;
        self.work.set(Some(work));
        Ok(())
    }

    /// It ends, done or given up; at the latest when the loss is told.
    pub(super) fn end_work(&self, record: &Record) -> Result<(), RecordingFailed> {
        match self.work.take() {
            Some(work) => record.complete(work, Kind::Ok, |event| event.grant = Some(self.op)),
            None => Ok(()),
        }
    }

    /// Waits until the loss is told, however it was learnt before.
    pub(super) async fn until_lost(&self) {
        if !self.lost.get() {
            self.loss.clone().wait().await;
        }
    }

    /// Waits for whatever the client does, and writes down what is told of the grant at the moment when it is told:
    /// while the client is held at a point, works, or waits for an answer.
    pub(super) async fn minding<T>(
        &self,
        record: &Record,
        doing: impl Future<Output = T>,
    ) -> Result<T, RecordingFailed> {
        tokio::pin!(doing);
        loop {
            tokio::select! {
                biased;
                told = self.told() => self.take_in(record, told)?,
                done = &mut doing => return Ok(done),
            }
        }
    }

    /// The next that is told; nothing after the loss.
    async fn told(&self) -> Told {
        if self.lost.get() {
            return future::pending().await;
        }
        let (mut loss, mut renewals) = (self.loss.clone(), self.renewals.clone());
        tokio::select! {
            biased;
            by = loss.wait() => Told::Lost { by },
            valid_until_ns = renewals.beyond(self.valid_until_ns.get()) => {
                Told::Renewed { valid_until_ns }
            }
        }
    }

    fn take_in(&self, record: &Record, told: Told) -> Result<(), RecordingFailed> {
        match told {
            Told::Lost { by } => self.lose(record, &by),
            Told::Renewed { valid_until_ns } => {
                self.valid_until_ns.set(valid_until_ns);
                record.remark(Function::Renewed, |event| {
                    event.grant = Some(self.op);
                    event.validity = Some(record.since_base(valid_until_ns));
                })
            }
        }
    }
}
