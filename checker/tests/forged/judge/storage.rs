//! What the storage accepted, and in which order.

use std::collections::BTreeSet;

use serde_json::Value;

use super::history::{History, number, tells, text};
use super::operations::{Op, Operations};

/// A row of the storage's log.
pub struct Row<'a> {
    /// The event.
    pub event: &'a Value,
    /// Its place in the file.
    pub place: usize,
}

impl Row<'_> {
    /// Whether it is of this document.
    pub fn is_of(&self, document: &str) -> bool {
        text(self.event, "document").unwrap_or_default() == document
    }
}

/// The rows of the storage's log.
fn rows(history: &History) -> Vec<Row<'_>> {
    history
        .events
        .iter()
        .enumerate()
        .filter(|(_, event)| text(event, "f") == Some("accepted") && tells(event))
        .map(|(place, event)| Row { event, place })
        .collect()
}

/// The document of a write or read.
pub fn document<'a>(op: &Op<'a>) -> &'a str {
    op.text("document").unwrap_or_default()
}

/// Every write, with the version that it made where it was accepted.
pub struct Write<'a> {
    /// The operation.
    pub op: Op<'a>,
    /// The version, by the log or else by its completion.
    pub version: Option<u64>,
    /// All versions that its completion and the log tell of it.
    pub versions: BTreeSet<u64>,
}

impl Write<'_> {
    /// Whether it made this version, by the log or by its completion.
    fn made(&self, version: u64) -> bool {
        self.versions.contains(&version)
    }
}

/// All writes of clients. The log counts before a completion: it is the storage's own order.
fn writes<'a>(ops: &Operations<'a>, rows: &[Row<'a>]) -> Vec<Write<'a>> {
    ops.with("write")
        .map(|op| {
            let own = rows
                .iter()
                .filter(|row| number(row.event, "op") == Some(op.id) && row.is_of(document(op)));
            let logged: Vec<u64> = own.filter_map(|row| number(row.event, "version")).collect();
            let told = op.answer("version").as_u64().filter(|_| op.ok());
            Write {
                op: op.clone(),
                version: logged.first().copied().or(told),
                versions: logged.into_iter().chain(told).collect(),
            }
        })
        .collect()
}

/// A write of which neither its answer nor the log tells the version was accepted as that with which a read returned its
/// value, if no other can be meant.
fn with_those_that_reads_saw<'a>(
    ops: &Operations<'a>,
    mut writes: Vec<Write<'a>>,
) -> Vec<Write<'a>> {
    let seen: Vec<Option<u64>> = writes
        .iter()
        .map(|write| seen(ops, &writes, write))
        .collect();
    for (write, seen) in writes.iter_mut().zip(seen) {
        write.version = write.version.or(seen);
        write.versions.extend(seen);
    }
    writes
}

fn seen(ops: &Operations, writes: &[Write], write: &Write) -> Option<u64> {
    let is_doubtful = |one: &Write| one.version.is_none();
    let value = write.op.text("value").filter(|_| is_doubtful(write))?;
    let same = |op: &Op| document(op) == document(&write.op);
    let alike = writes
        .iter()
        .filter(|one| is_doubtful(one) && same(&one.op) && one.op.text("value") == Some(value));
    if alike.count() > 1 {
        return None;
    }
    let is_known = |version: u64| {
        writes.iter().any(|one| {
            one.made(version)
                && same(&one.op)
                && [None, Some(value)].contains(&one.op.text("value"))
        })
    };
    ops.with("read")
        .filter(|read| read.ok() && same(read) && read.last() >= write.op.start)
        .filter(|read| read.answer("value").as_str() == Some(value))
        .filter_map(|read| read.answer("version").as_u64())
        .find(|&version| version > 0 && !is_known(version))
}

/// Whether a log was read to its end: as many rows as it says.
pub fn is_complete(log: &Op, rows: &[Row]) -> bool {
    let entries = log.answer("entries").as_u64();
    log.ok() && entries == Some(rows_of(log, rows).len() as u64)
}

/// The rows that a log gave.
fn rows_of<'r, 'a>(log: &Op, rows: &'r [Row<'a>]) -> Vec<&'r Row<'a>> {
    let (from, to) = (log.places.0, log.places.1.unwrap_or(usize::MAX));
    rows.iter()
        .filter(|row| (from..to).contains(&row.place) && covers(log, text(row.event, "document")))
        .collect()
}

/// Whether a log is of this document; one that names none is of all.
pub fn covers(log: &Op, document: Option<&str>) -> bool {
    log.text("document")
        .is_none_or(|name| name == document.unwrap_or_default())
}

/// What the judge knows of the storage.
pub struct Storage<'a> {
    /// The rows of its log.
    pub rows: Vec<Row<'a>>,
    /// The writes.
    pub writes: Vec<Write<'a>>,
    /// The logs that were read to their end.
    pub logs: Vec<Op<'a>>,
}

impl<'a> Storage<'a> {
    /// Reads it out of a history.
    pub fn of(history: &'a History, ops: &Operations<'a>) -> Self {
        let rows = rows(history);
        let known = writes(ops, &rows);
        Storage {
            writes: with_those_that_reads_saw(ops, known),
            logs: ops
                .with("log")
                .filter(|log| is_complete(log, &rows))
                .cloned()
                .collect(),
            rows,
        }
    }

    /// Whether a complete log that was read later tells of this write.
    pub fn is_settled(&self, write: &Op) -> bool {
        self.logs
            .iter()
            .any(|log| covers(log, Some(document(write))) && log.start >= write.known_at())
    }

    /// Whether nobody knows if a write was accepted, or as which version.
    pub fn is_open(&self, write: &Write) -> bool {
        let may_be = write.op.ok() || write.op.unknown() && !self.is_settled(&write.op);
        write.version.is_none() && may_be
    }

    /// Whether the client of a write can have read the version that it is based on.
    pub fn can_be_based(&self, ops: &Operations, write: &Op) -> bool {
        write
            .number("based_on")
            .is_none_or(|base| self.existed(write, base) && self.its_grant_read(ops, write, base))
    }

    fn existed(&self, by: &Op, version: u64) -> bool {
        let written = self.writes.iter().any(|other| {
            (other.made(version) || self.is_open(other))
                && document(&other.op) == document(by)
                && other.op.id != by.id
                && other.op.start <= by.start
        });
        version == 0 || written || self.rows_without_a_write(document(by)).contains(&version)
    }

    /// The versions that the log has by writes that no client began.
    pub fn rows_without_a_write(&self, document: &str) -> Vec<u64> {
        self.rows
            .iter()
            .filter(|row| row.is_of(document))
            .filter(|row| {
                let op = number(row.event, "op");
                !self.writes.iter().any(|write| Some(write.op.id) == op)
            })
            .filter_map(|row| number(row.event, "version"))
            .collect()
    }

    /// Where the same grant read the document before, the version is one that it read or wrote.
    fn its_grant_read(&self, ops: &Operations, by: &Op, version: u64) -> bool {
        let same = |op: &Op| {
            op.grant().is_some()
                && op.grant() == by.grant()
                && op.process == by.process
                && document(op) == document(by)
        };
        let mut reads = ops
            .with("read")
            .filter(|read| read.ok() && same(read) && read.last() <= by.start)
            .filter_map(|read| read.answer("version").as_u64())
            .peekable();
        reads.peek().is_none()
            || reads.any(|read| read == version)
            || ops.with("write").any(|other| {
                let is_told = other.answer("version").as_u64() == Some(version);
                same(other) && other.ok() && other.last() <= by.start && is_told
            })
    }
}
