//! What a history tells, operation by operation, without any judgement.

use histories::{Event, Function, Kind, host_of};

/// One operation.
#[derive(Clone, Debug)]
pub struct Operation {
    pub op: u64,
    pub f: Function,
    pub process: String,
    pub lock: String,
    pub grant: Option<u64>,
    pub invoked: u64,
    pub completed: Option<u64>,
    pub outcome: Option<Kind>,
    pub token: Option<u64>,
    pub validity: Option<u64>,
    pub ttl_ms: Option<u64>,
    pub version: Option<u64>,
    pub based_on: Option<u64>,
    pub value: String,
    pub held: Option<bool>,
    pub rejected: bool,
}

impl Operation {
    pub fn is(&self, f: Function, outcome: Kind) -> bool {
        self.f == f && self.outcome == Some(outcome)
    }

    /// When it had happened for certain.
    pub fn returned(&self) -> u64 {
        match self.outcome {
            Some(Kind::Ok) => self.completed.unwrap_or(u64::MAX),
            _ => u64::MAX,
        }
    }
}

/// A crash of a host.
#[derive(Clone, Debug)]
pub struct Crash {
    pub host: String,
    pub invoked: u64,
    /// When it was done, or never said to be.
    pub completed: Option<u64>,
    pub failed: bool,
}

/// All that a history tells.
#[derive(Debug, Default)]
pub struct Told {
    pub operations: Vec<Operation>,
    pub crashes: Vec<Crash>,
    /// Process and instant.
    pub exits: Vec<(String, u64)>,
    /// Grant and instant.
    pub losses: Vec<(u64, u64)>,
    /// Process and its first instant.
    pub first_seen: Vec<(String, u64)>,
    /// Write, version and value of each row of the log.
    pub rows: Vec<(u64, u64, String)>,
    /// When the log was read, if it is complete.
    pub log_read: Option<u64>,
    pub end: u64,
}

impl Told {
    pub fn of(events: &[Event<'_>]) -> Told {
        let mut told = Told::default();
        let mut log_began = 0;
        for event in events {
            told.end = event.t;
            let process = event.process.to_string();
            if !told.first_seen.iter().any(|(seen, _)| *seen == process) {
                told.first_seen.push((process.clone(), event.t));
            }
            match event.f {
                Function::Inject => told.crash(event),
                Function::Exit => told.exits.push((process, event.t)),
                Function::Lost => told.losses.push((event.grant.unwrap(), event.t)),
                Function::Accepted => {
                    let value = event.value.clone().unwrap_or_default().into_owned();
                    told.rows.push((event.op, event.version.unwrap(), value));
                }
                Function::Log if event.kind == Kind::Invoke => log_began = event.t,
                Function::Log => {
                    told.log_read =
                        (event.entries == Some(told.rows.len() as u64)).then_some(log_began)
                }
                _ if event.kind == Kind::Invoke => told.operations.push(begun(event)),
                _ => told.complete(event),
            }
        }
        told
    }

    fn crash(&mut self, event: &Event<'_>) {
        let host = event.on.as_ref().unwrap()[0].clone();
        if event.kind == Kind::Invoke {
            self.crashes.push(Crash {
                host,
                invoked: event.t,
                completed: None,
                failed: false,
            });
        } else {
            let crash = self
                .crashes
                .iter_mut()
                .rfind(|crash| crash.host == host)
                .unwrap();
            crash.completed = Some(event.t);
            crash.failed = event.kind == Kind::Fail;
        }
    }

    fn complete(&mut self, event: &Event<'_>) {
        let operation = self
            .operations
            .iter_mut()
            .find(|operation| operation.op == event.op)
            .unwrap();
        operation.completed = Some(event.t);
        operation.outcome = Some(event.kind);
        operation.token = event.token;
        operation.validity = event.validity;
        operation.version = event.version;
        operation.held = event.held;
        operation.rejected = event.error.as_deref() == Some("rejected");
        if operation.f == Function::Read {
            operation.value = event.value.clone().unwrap_or_default().into_owned();
        }
    }

    pub fn get(&self, op: u64) -> &Operation {
        self.operations
            .iter()
            .find(|operation| operation.op == op)
            .unwrap()
    }

    pub fn of_function(&self, f: Function) -> impl Iterator<Item = &Operation> {
        self.operations
            .iter()
            .filter(move |operation| operation.f == f)
    }

    pub fn grants(&self) -> Vec<&Operation> {
        self.operations
            .iter()
            .filter(|operation| operation.is(Function::Acquire, Kind::Ok))
            .collect()
    }

    /// The crashes that may have struck a process.
    pub fn crashes_of(&self, process: &str) -> impl Iterator<Item = &Crash> {
        let born = self
            .first_seen
            .iter()
            .find(|(seen, _)| seen == process)
            .unwrap()
            .1;
        let host = host_of(process).to_owned();
        self.crashes
            .iter()
            .filter(move |crash| crash.host == host && !crash.failed && born <= crash.invoked)
    }

    /// When a process exited.
    pub fn exit_of(&self, process: &str) -> Option<u64> {
        self.exits
            .iter()
            .find(|(exited, _)| exited == process)
            .map(|(_, t)| *t)
    }
}

fn begun(event: &Event<'_>) -> Operation {
    Operation {
        op: event.op,
        f: event.f,
        process: event.process.to_string(),
        lock: event.lock.clone().unwrap_or_default().into_owned(),
        grant: event.grant,
        invoked: event.t,
        completed: None,
        outcome: None,
        token: event.token,
        validity: None,
        ttl_ms: event.ttl_ms,
        version: None,
        based_on: event.based_on,
        value: event.value.clone().unwrap_or_default().into_owned(),
        held: None,
        rejected: false,
    }
}
