//! What a history tells of its documents, operation by operation, without any judgement.

use histories::{Event, Function, Kind};

/// One read or write.
#[derive(Clone, Debug)]
pub struct Operation {
    pub op: u64,
    pub f: Function,
    pub invoked: u64,
    pub completed: Option<u64>,
    pub outcome: Option<Kind>,
    pub version: Option<u64>,
    pub based_on: Option<u64>,
    pub value: String,
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

/// All that a history tells.
#[derive(Debug, Default)]
pub struct Told {
    pub operations: Vec<Operation>,
    /// Of the log: operation, version and value.
    pub rows: Vec<(u64, u64, String)>,
    /// When the reading of a log began that gave all its rows.
    pub log_read: Option<u64>,
}

impl Told {
    pub fn of(events: &[Event<'_>]) -> Told {
        let mut told = Told::default();
        for event in events {
            match (event.f, event.kind) {
                (Function::Read | Function::Write, Kind::Invoke) => told.begin(event),
                (Function::Read | Function::Write, _) => told.complete(event),
                (Function::Accepted, _) => {
                    let value = event.value.clone().unwrap_or_default().into_owned();
                    let version = event.version.unwrap_or_default();
                    told.rows.push((event.op, version, value));
                }
                (Function::Log, Kind::Invoke) => told.log_read = Some(event.t),
                (Function::Log, _) if event.entries != Some(told.rows.len() as u64) => {
                    told.log_read = None;
                }
                _ => {}
            }
        }
        told
    }

    fn begin(&mut self, event: &Event<'_>) {
        self.operations.push(Operation {
            op: event.op,
            f: event.f,
            invoked: event.t,
            completed: None,
            outcome: None,
            version: None,
            based_on: event.based_on,
            value: event.value.clone().unwrap_or_default().into_owned(),
        });
    }

    fn complete(&mut self, event: &Event<'_>) {
        let begun = self.operations.iter_mut().find(|one| one.op == event.op);
        let Some(operation) = begun else { return };
        operation.completed = Some(event.t);
        operation.outcome = Some(event.kind);
        if event.kind == Kind::Ok {
            operation.version = event.version;
        }
        if let Some(value) = &event.value {
            operation.value = value.clone().into_owned();
        }
    }

    pub fn of_function(&self, f: Function) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(move |one| one.f == f)
    }
}
