//! The ways in which reads and writes can contradict each other, and how each is told.

use crate::operations::{Call, Record};
use crate::properties::witness;
use crate::sentences::{self, Clock};
use crate::verdict::Witness;

/// A read or a write, by its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read(u32),
    Write(u32),
}

impl Operation {
    pub(super) fn call(self, record: &Record) -> Call {
        match self {
            Operation::Read(row) => record.reads[row as usize].call,
            Operation::Write(row) => record.writes[row as usize].call,
        }
    }

    /// `c1's read (op 7)`, `c1's write (op 12, grant 7)`.
    fn words(self, record: &Record) -> String {
        match self {
            Operation::Read(row) => {
                let call = &record.reads[row as usize].call;
                format!("{}'s read (op {})", record.process(call), call.op)
            }
            Operation::Write(row) => sentences::write(record, &record.writes[row as usize]),
        }
    }

    fn events(self, record: &Record) -> Vec<histories::Event<'static>> {
        match self {
            Operation::Read(row) => record.read_events(row),
            Operation::Write(row) => record.write_events(row),
        }
    }

    fn document(self, record: &Record) -> String {
        let document = match self {
            Operation::Read(row) => record.reads[row as usize].document,
            Operation::Write(row) => record.writes[row as usize].document,
        };
        sentences::document(record, document)
    }
}

/// What cannot be in a linearizable history.
pub(super) enum Contradiction {
    /// Two writes made one version.
    SharedVersion {
        first: u32,
        second: u32,
        version: u64,
    },
    /// One write made two versions.
    TakenTwice { write: u32, first: u64, second: u64 },
    /// A write that was said to have failed was accepted.
    FailedYetAccepted {
        write: u32,
        version: u64,
        logged: bool,
    },
    /// A write was based on a version that was not there before it.
    BasedOnLater { write: u32, version: u64 },
    /// A write made version 0, which is that of an untouched document.
    MadeNothing { write: u32 },
    /// The log lacks an acknowledged write.
    Vanished { write: u32 },
    /// A read returned another value than its version has; without a writer, of version 0.
    OtherValue { read: u32, writer: Option<u32> },
    /// A read returned a version that nobody made.
    Unwritten { read: u32 },
    /// A read returned a write that the log lacks.
    Unlogged { read: u32, writer: u32 },
    /// An operation has a lower version than one that had returned before it was invoked.
    Backwards(Backwards),
}

/// Two operations of which one had returned before the other was invoked, and their versions.
pub(super) struct Backwards {
    pub(super) earlier: Operation,
    pub(super) earlier_version: u64,
    pub(super) later: Operation,
    pub(super) later_version: u64,
}

impl Contradiction {
    /// The operation that makes it a contradiction.
    pub(super) fn operation(&self) -> Operation {
        match *self {
            Contradiction::SharedVersion { second: write, .. }
            | Contradiction::TakenTwice { write, .. }
            | Contradiction::FailedYetAccepted { write, .. }
            | Contradiction::BasedOnLater { write, .. }
            | Contradiction::MadeNothing { write }
            | Contradiction::Vanished { write } => Operation::Write(write),
            Contradiction::OtherValue { read, .. }
            | Contradiction::Unwritten { read }
            | Contradiction::Unlogged { read, .. } => Operation::Read(read),
            Contradiction::Backwards(Backwards { later, .. }) => later,
        }
    }

    /// The operation that it contradicts.
    fn other(&self) -> Option<Operation> {
        match *self {
            Contradiction::SharedVersion { first, .. } => Some(Operation::Write(first)),
            Contradiction::Unlogged { writer, .. } => Some(Operation::Write(writer)),
            Contradiction::OtherValue { writer, .. } => writer.map(Operation::Write),
            Contradiction::Backwards(Backwards { earlier, .. }) => Some(earlier),
            _ => None,
        }
    }
}

/// Tells a contradiction to a person.
pub(super) fn describe(record: &Record, contradiction: &Contradiction) -> Witness {
    let operation = contradiction.operation();
    let sentence = match operation {
        Operation::Write(write) => of_write(record, contradiction, write),
        Operation::Read(read) => of_read(record, contradiction, read),
    };
    let operations: Vec<Operation> = contradiction
        .other()
        .into_iter()
        .chain([operation])
        .collect();
    let ids = operations.iter().map(|operation| operation.call(record).op);
    let events = operations.iter().map(|operation| operation.events(record));
    witness(sentence, ids.collect(), events.collect())
}

fn of_write(record: &Record, contradiction: &Contradiction, write: u32) -> String {
    let name = Operation::Write(write).words(record);
    let document = Operation::Write(write).document(record);
    let write = &record.writes[write as usize];
    match contradiction {
        Contradiction::SharedVersion { first, version, .. } => {
            let first = Operation::Write(*first).words(record);
            format!("{name} and {first} both made version {version} of {document}")
        }
        Contradiction::TakenTwice { first, second, .. } => format!(
            "the storage accepted {name} twice, as version {first} and as version {second} of {document}"
        ),
        Contradiction::FailedYetAccepted {
            version, logged, ..
        } => {
            let by = if *logged {
                "the storage's log has it"
            } else {
                "a read returned it"
            };
            format!("{name} was told that it failed, yet {by} as version {version} of {document}")
        }
        Contradiction::BasedOnLater { version, .. } => format!(
            "{name} was based on version {} of {document} and made version {version}, which is not after it",
            write.based_on.unwrap_or_default(),
        ),
        Contradiction::MadeNothing { .. } => format!(
            "{name} was accepted as version 0 of {document}, which is that of an untouched document"
        ),
        Contradiction::Backwards(pair) => backwards(record, pair),
        _ => format!(
            "an acknowledged write vanished: {name} was accepted at {}, and the storage's log of {document} lacks it",
            Clock::telling(u64::MAX).at(write.call.completed)
        ),
    }
}

fn of_read(record: &Record, contradiction: &Contradiction, read: u32) -> String {
    let name = Operation::Read(read).words(record);
    let document = Operation::Read(read).document(record);
    let version = record.reads[read as usize].version.unwrap_or_default();
    match contradiction {
        Contradiction::Unlogged { writer, .. } => {
            let writer = Operation::Write(*writer).words(record);
            format!(
                "{name} returned version {version} of {document}, {writer}, and the storage's log lacks it"
            )
        }
        Contradiction::OtherValue { writer, .. } => other_value(record, read, *writer),
        Contradiction::Backwards(pair) => backwards(record, pair),
        _ => format!("{name} returned version {version} of {document}, which no write made"),
    }
}

fn other_value(record: &Record, read: u32, writer: Option<u32>) -> String {
    let name = Operation::Read(read).words(record);
    let document = Operation::Read(read).document(record);
    let read = &record.reads[read as usize];
    let value = record.values.text(read.value);
    let version = read.version.unwrap_or_default();
    match writer.map(|writer| {
        (
            Operation::Write(writer),
            record.writes[writer as usize].value,
        )
    }) {
        Some((writer, written)) => format!(
            "{name} returned version {version} of {document} as `{value}`, while {} had written it as `{}`",
            writer.words(record),
            record.values.text(written)
        ),
        None => format!(
            "{name} returned version 0 of {document} as `{value}`, though nobody had written to it"
        ),
    }
}

fn backwards(record: &Record, pair: &Backwards) -> String {
    let &Backwards {
        earlier,
        earlier_version: seen,
        later,
        later_version: made,
    } = pair;
    let (first, second) = (earlier.words(record), later.words(record));
    let document = later.document(record);
    let (returned, invoked) = (earlier.call(record).completed, later.call(record).invoked);
    let clock = Clock::telling(invoked - returned);
    let (by, from) = (clock.at(returned), clock.at(invoked));
    let did = match earlier {
        Operation::Read(_) => "returned",
        Operation::Write(_) => "made",
    };
    match (earlier, later) {
        (_, Operation::Read(_)) => format!(
            "a read went back in time: {second}, begun at {from}, returned version {made} of {document}, \
             though {first} had {did} version {seen} by {by}"
        ),
        (Operation::Read(_), Operation::Write(_)) if seen == made => format!(
            "{first} returned version {seen} of {document} at {by}, before {second}, which made it, began at {from}"
        ),
        (_, Operation::Write(_)) => format!(
            "{second}, begun at {from}, made version {made} of {document}, though {first} had {did} version {seen} by {by}"
        ),
    }
}
