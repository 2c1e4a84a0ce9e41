//! What a workload is made of: each step is done with the lock or the storage, and written down.

use std::rc::Rc;
use std::time::Duration;

use histories::{Event, Function, Kind};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use tokio::sync::watch;
use tokio::time::sleep;

use super::ClientConfig;
use super::grant::Grant;
use super::record::{Open, Record, RecordingFailed};
use crate::locks::{Answer, Ask, Has, Lock};
use crate::storages::{Policy, Read, Storage, Write, Written};

/// A client at work: its lock, its storage, and the record of what it does with them.
pub struct Client {
    record: Rc<Record>,
    lock: Box<dyn Lock>,
    storage: Box<dyn Storage>,
    has: Has,
    policy: &'static Policy,
    lock_name: String,
    document: String,
    process: String,
    ttl_ms: u64,
    grants: u64,
    workload: histories::Workload,
    random: ChaCha8Rng,
    stop: watch::Receiver<bool>,
}

/// What a client works with.
pub struct Tools {
    /// Where it writes down what it does.
    pub record: Rc<Record>,
    /// Its side of the lock service.
    pub lock: Box<dyn Lock>,
    /// What the lock service has.
    pub has: Has,
    /// Its side of the storage.
    pub storage: Box<dyn Storage>,
    /// How the storage treats a write.
    pub policy: &'static Policy,
    /// What its random choices come from.
    pub random: ChaCha8Rng,
    /// Becomes true when it is to end.
    pub stop: watch::Receiver<bool>,
}

/// A write that waits for the lock's transaction to be committed, which its release does.
#[derive(Debug)]
#[must_use = "only the release completes it"]
pub struct Pending {
    open: Open,
    version: u64,
}

impl Client {
    /// A client of `process`, as the configuration says.
    pub fn new(config: &ClientConfig, process: &str, tools: Tools) -> Client {
        Client {
            record: tools.record,
            lock: tools.lock,
            storage: tools.storage,
            has: tools.has,
            policy: tools.policy,
            lock_name: config.lock.clone(),
            document: config.document.clone(),
            process: process.to_owned(),
            ttl_ms: config.plan.ttl_ms,
            grants: 0,
            workload: config.plan.workload.clone(),
            random: tools.random,
            stop: tools.stop,
        }
    }

    /// What the plan says of the workload.
    pub fn workload(&self) -> &histories::Workload {
        &self.workload
    }

    /// Whether the client was asked to end.
    pub fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Does nothing for half of `longest_ms` up to all of it, or until the client is asked to end.
    pub async fn pause(&mut self, longest_ms: u64) {
        let longest_us = longest_ms * 1000;
        let pause = Duration::from_micros(self.random.random_range(longest_us / 2..=longest_us));
        tokio::select! {
            () = sleep(pause) => {}
            _ = self.stop.wait_for(|stopping| *stopping) => {}
        }
    }

    /// The client is at a named point, and stays as long as a fault keeps it there.
    pub async fn point(&self, point: &'static str, grant: &Grant) -> Result<(), RecordingFailed> {
        let passing = self.record.point(point, grant.op, grant.nth);
        grant.minding(&self.record, passing).await?
    }

    /// Asks for the lock once; a service that can wait is asked to, for as long as a grant would live.
    pub async fn acquire(&mut self) -> Result<Option<Grant>, RecordingFailed> {
        let ask = Ask::Acquire {
            lock: self.lock_name.clone(),
            ttl_ms: self.ttl_ms,
            wait_ms: if self.has.waiting { self.ttl_ms } else { 0 },
        };
        let (open, answer) = self.ask(&ask, None).await?;
        self.complete(open, &answer, None)?;
        let Answer::Granted { token, .. } = answer else {
            return Ok(None);
        };
        self.grants += 1;
        let grant = Grant::new(open.op, self.grants, token, self.lock.as_ref());
        Ok(Some(grant))
    }

    /// Gives the lock back, which also decides a write that is pending in its transaction.
    pub async fn release(
        &mut self,
        grant: &Grant,
        pending: Option<Pending>,
    ) -> Result<(), RecordingFailed> {
        let (open, answer) = self.ask(&Ask::Release, Some(grant)).await?;
        if let Some(Pending { open, version }) = pending {
            let written = match &answer {
                Answer::Released => Written::Accepted { version },
                Answer::Unknown { error } => Written::unknown(error),
                _ => Written::Refused {
                    error: "the lock's transaction was rolled back".to_owned(),
                },
            };
            self.wrote(open, &written)?;
        }
        self.complete(open, &answer, Some(grant))
    }

    /// Begins the work that the lock protects.
    pub fn begin_work(&self, grant: &Grant) -> Result<(), RecordingFailed> {
        grant.begin_work(&self.record)
    }

    /// Ends it, done or given up; it has ended already if the client knows that the lock is lost.
    pub fn end_work(&self, grant: &Grant) -> Result<(), RecordingFailed> {
        grant.end_work(&self.record)
    }

    /// Works for this long, or until the client is told that the lock is lost.
    pub async fn work(&self, grant: &Grant, work_ms: u64) -> Result<(), RecordingFailed> {
        let working = async {
            tokio::select! {
                () = sleep(Duration::from_millis(work_ms)) => {}
                () = grant.until_lost() => {}
            }
        };
        grant.minding(&self.record, working).await
    }

    /// Whether the client knows by now that it lost the lock: it was told, or a write was rejected. It does not look
    /// at the clock: a check of the time left is as stale as any other when the write that follows arrives.
    pub fn has_lost(&self, grant: &Grant) -> Result<bool, RecordingFailed> {
        grant.is_lost(&self.record)
    }

    /// Reads the document; its version and value, if it could be read.
    pub async fn read(&mut self, grant: &Grant) -> Result<Option<(u64, String)>, RecordingFailed> {
        let fill = |event: &mut Event<'static>| {
            event.document = Some(self.document.clone().into());
            event.grant = Some(grant.op);
        };
        let open = self.record.invoke(Function::Read, fill)?;
        let reading = self.storage.read(self.lock.session(), &self.document);
        let reading = grant.minding(&self.record, reading).await?;
        self.record.storage_answers(open)?;
        match reading {
            Read::Is { version, value } => {
                self.record.complete(open, Kind::Ok, |event| {
                    fill(event);
                    event.version = Some(version);
                    event.value = Some(value.clone().into());
                })?;
                Ok(Some((version, value)))
            }
            Read::Failed { error } => {
                self.record.complete(open, Kind::Info, |event| {
                    fill(event);
                    event.error = Some(error.into());
                })?;
                Ok(None)
            }
        }
    }

    /// Writes a value that nobody else ever writes, computed from the version that was read. Answers with the write if it
    /// waits for the release.
    pub async fn write(
        &mut self,
        grant: &Grant,
        based_on: u64,
    ) -> Result<Option<Pending>, RecordingFailed> {
        let token = grant.token.filter(|_| self.policy.needs_token());
        let mut value = String::new();
        let open = self.record.invoke(Function::Write, |event| {
            value = format!("{}-{}", self.process, event.op);
            event.document = Some(self.document.clone().into());
            event.grant = Some(grant.op);
            event.value = Some(value.clone().into());
            event.based_on = Some(based_on);
            event.token = token;
        })?;
        let write = Write {
            document: &self.document,
            value: &value,
            op: open.op,
            token,
        };
        let writing = self.storage.write(self.lock.session(), &write);
        let written = grant.minding(&self.record, writing).await?;
        self.record.storage_answers(open)?;
        if let Written::AtCommit { version } = written {
            return Ok(Some(Pending { open, version }));
        }
        self.wrote(open, &written)?;
        if written == Written::Rejected {
            grant.lose(&self.record, "the storage rejected its write")?;
        }
        Ok(None)
    }

    fn wrote(&self, open: Open, written: &Written) -> Result<(), RecordingFailed> {
        let (kind, version, error) = match written {
            Written::Accepted { version } => (Kind::Ok, Some(*version), None),
            Written::Rejected => (Kind::Fail, None, Some("rejected")),
            Written::Refused { error } => (Kind::Fail, None, Some(error.as_str())),
            Written::Unknown { error } => (Kind::Info, None, Some(error.as_str())),
            Written::AtCommit { .. } => return Ok(()),
        };
        self.record.complete(open, kind, |event| {
            event.document = Some(self.document.clone().into());
            event.version = version;
            event.error = error.map(|error| error.to_owned().into());
        })
    }

    /// Asks the lock service, and writes down that it was asked; what came of it is for [`Client::complete`].
    pub(super) async fn ask(
        &mut self,
        ask: &Ask,
        grant: Option<&Grant>,
    ) -> Result<(Open, Answer), RecordingFailed> {
        let lock = &self.lock_name;
        let has = self.has;
        let open = self.record.invoke(function(ask), |event| {
            event.lock = Some(lock.clone().into());
            event.grant = grant.map(|grant| grant.op);
            if let Ask::Acquire { ttl_ms, .. } | Ask::Extend { ttl_ms } = ask {
                event.ttl_ms = has.expiry.then_some(*ttl_ms);
            }
            if let Ask::Acquire { wait_ms, .. } = ask {
                event.wait_ms = has.waiting.then_some(*wait_ms);
            }
        })?;
        let asking = self.lock.ask(ask);
        let answer = match grant {
            // What is told of a grant that is being given back no longer matters.
            Some(grant) if *ask != Ask::Release => grant.minding(&self.record, asking).await?,
            _ => asking.await,
        };
        Ok((open, answer))
    }

    /// Writes down what the lock service answered. Its validity counts from the ask, which was written down just before.
    pub(super) fn complete(
        &self,
        open: Open,
        answer: &Answer,
        grant: Option<&Grant>,
    ) -> Result<(), RecordingFailed> {
        let asked_held = open.f == Function::Held;
        let (kind, error) = match answer {
            Answer::Granted { .. } | Answer::Released => (Kind::Ok, None),
            Answer::Lost { .. } if asked_held => (Kind::Ok, None),
            Answer::Busy => (Kind::Fail, Some("busy")),
            Answer::Lost { error } | Answer::Refused { error } => {
                (Kind::Fail, Some(error.as_str()))
            }
            Answer::Unknown { error } => (Kind::Info, Some(error.as_str())),
        };
        self.record.complete(open, kind, |event| {
            event.grant = grant.map(|grant| grant.op);
            event.error = error.map(|error| error.to_owned().into());
            if kind == Kind::Fail && matches!(answer, Answer::Lost { .. }) {
                event.lost = Some(true);
            }
            if let Answer::Granted {
                token,
                valid_for_ns,
            } = answer
            {
                event.token = *token;
                event.validity = valid_for_ns.map(|valid_for_ns| open.invoked + valid_for_ns);
            }
            if asked_held && kind == Kind::Ok {
                event.held = Some(matches!(answer, Answer::Granted { .. }));
            }
        })
    }
}

fn function(ask: &Ask) -> Function {
    match ask {
        Ask::Acquire { .. } => Function::Acquire,
        Ask::Extend { .. } => Function::Extend,
        Ask::Release => Function::Release,
        Ask::Held => Function::Held,
    }
}
