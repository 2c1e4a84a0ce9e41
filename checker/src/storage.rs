//! The order in which the storage accepted writes: known from its answers and its log, not guessed.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use crate::assumptions::{Flaw, Flaws};
use crate::index::Known;
use crate::names::{Map, NONE};
use crate::operations::{LogRow, Record};
use crate::sentences;

/// A write that the storage accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Accepted {
    pub(crate) document: u32,
    pub(crate) version: u64,
    /// A row of the writes.
    pub(crate) write: u32,
}

/// What is known of the writes that a storage accepted.
pub(crate) struct StorageOrder {
    /// By document and version. A write stands here twice only if the storage took it twice.
    pub(crate) accepted: Vec<Accepted>,
    /// By write: whether the log has a row of it, of whichever document.
    pub(crate) logged: Vec<bool>,
    /// By write: the version as which the log of its document has it first.
    logged_as: Vec<Option<u64>>,
    /// By log row: the write, or [`NONE`] if no client began it.
    pub(crate) log_writes: Vec<u32>,
    /// Document and version of the log's rows whose write no client began, as far as the history tells.
    pub(crate) strangers: HashSet<(u32, u64), FixedState>,
    /// The writes of which nothing tells whether they were accepted.
    pub(crate) unsettled: Vec<u32>,
    /// When the last complete reading of the log of all documents began.
    complete: Option<u64>,
    /// The same, of one document.
    complete_of: Map<u32, u64>,
    /// A document whose log was read to its end more than once; [`NONE`] for that of all documents.
    pub(crate) read_again: Option<u32>,
}

/// Notes the readings of the log that ended and have more rows than they say, or fewer.
fn note_partial_logs(record: &Record, flaws: &mut Flaws) {
    let ended = record.log_reads.iter().filter(|read| read.call.ok());
    for read in ended.filter(|read| read.entries != Some(read.rows)) {
        flaws.note(Flaw::PartialLog, || {
            let rows = sentences::count(read.rows, "row");
            let says = match read.entries {
                Some(entries) => format!("says that it has {entries}"),
                None => "does not say how many it has".to_owned(),
            };
            format!(
                "the reading of the storage's log (op {}) told {rows} and {says}",
                read.call.op
            )
        });
    }
}

impl StorageOrder {
    pub(crate) fn new(record: &Record, flaws: &mut Flaws) -> StorageOrder {
        let mut order = StorageOrder {
            accepted: Vec::with_capacity(record.writes.len()),
            logged: vec![false; record.writes.len()],
            logged_as: vec![None; record.writes.len()],
            log_writes: Vec::with_capacity(record.log_rows.len()),
            strangers: HashSet::default(),
            unsettled: Vec::new(),
            complete: None,
            complete_of: Map::default(),
            read_again: None,
        };
        note_partial_logs(record, flaws);
        order.note_complete_logs(record);
        order.accept_told(record);
        order.accept_logged(record, flaws);
        order.put_in_order();
        order.settle(record, flaws);
        order
    }

    /// When the last complete reading of a document's log began: what was accepted before stands in it.
    pub(crate) fn logged_until(&self, document: u32) -> Option<u64> {
        self.complete.max(self.complete_of.get(&document).copied())
    }

    /// The accepted writes in the storage's own order: each as what the log says first, or else as its client was told.
    pub(crate) fn in_its_own_order(&self) -> impl Iterator<Item = Accepted> {
        let accepted = self.accepted.iter().copied();
        accepted.filter(|accepted| {
            self.logged_as[accepted.write as usize]
                .is_none_or(|version| version == accepted.version)
        })
    }

    /// Whether nothing tells as which version a write was accepted, neither the log nor its client.
    pub(crate) fn made_no_known_version(&self, record: &Record, write: u32) -> bool {
        let told = record.writes[write as usize].version;
        told.is_none() && self.logged_as[write as usize].is_none()
    }

    /// Whether any log was read to its end.
    pub(crate) fn log_was_read(&self) -> bool {
        self.complete.is_some() || !self.complete_of.is_empty()
    }

    /// Whether a row of the log would be known for that of a write: not if another operation has its id.
    pub(crate) fn would_log(record: &Record, write: u32) -> bool {
        record.index.get(record.writes[write as usize].call.op) == Known::Write(write)
    }

    /// The accepted writes that made a version of a document: none, one, or more where the storage went wrong.
    pub(crate) fn writers(&self, document: u32, version: u64) -> &[Accepted] {
        let key = |accepted: &Accepted| (accepted.document, accepted.version);
        let start = self
            .accepted
            .partition_point(|accepted| key(accepted) < (document, version));
        let rest = &self.accepted[start..];
        &rest[..rest
            .iter()
            .take_while(|accepted| key(accepted) == (document, version))
            .count()]
    }

    fn note_complete_logs(&mut self, record: &Record) {
        for read in record
            .log_reads
            .iter()
            .filter(|read| read.call.ok() && read.entries == Some(read.rows))
        {
            let again = self.logged_until(read.document).is_some();
            if again || (read.document == NONE && self.log_was_read()) {
                self.read_again = Some(read.document);
            }
            if read.document == NONE {
                self.complete = self.complete.max(Some(read.call.invoked));
            } else {
                self.complete_of.insert(read.document, read.call.invoked);
            }
        }
    }

    fn accept_told(&mut self, record: &Record) {
        for (row, write) in record.writes.iter().enumerate() {
            if let Some(version) = write.version {
                self.accepted.push(Accepted {
                    document: write.document,
                    version,
                    write: row as u32,
                });
            }
        }
    }

    fn accept_logged(&mut self, record: &Record, flaws: &mut Flaws) {
        for row in &record.log_rows {
            let write = match record.index.get(row.op) {
                Known::Write(write) => write,
                _ => NONE,
            };
            self.log_writes.push(write);
            if write == NONE {
                self.strangers.insert((row.document, row.version));
                let document = record.documents.text(row.document);
                flaws.note(Flaw::Stranger, || {
                    format!("the storage's log has op {} as version {} of `{document}`, which no client began", row.op, row.version)
                });
            } else {
                let twice = std::mem::replace(&mut self.logged[write as usize], true);
                note_other_in_log(record, row, write, twice, flaws);
                // Which document that row is of nobody knows.
                if row.document != record.writes[write as usize].document {
                    continue;
                }
                self.logged_as[write as usize].get_or_insert(row.version);
                self.accepted.push(Accepted {
                    document: row.document,
                    version: row.version,
                    write,
                });
            }
        }
    }

    fn put_in_order(&mut self) {
        self.accepted.sort_unstable();
        self.accepted.dedup();
    }

    /// Sorts out the writes of which neither a reply nor a row of the log says as which version they were accepted. A
    /// complete log says that they were not. A read may have returned the value of one: it was then, whatever the reply
    /// and the log say.
    fn settle(&mut self, record: &Record, flaws: &mut Flaws) {
        let mut open = Vec::new();
        for (row, write) in record.writes.iter().enumerate() {
            if self.made_no_known_version(record, row as u32) {
                open.push(row as u32);
            }
            if write.call.ok() && write.version.is_none() {
                flaws.note(Flaw::NoVersion, || {
                    format!(
                        "write {} was accepted and returned no version",
                        write.call.op
                    )
                });
            }
        }
        if open.is_empty() {
            return;
        }
        let found = self.seen_by_reads(record, &open);
        let mut settled: Vec<u32> = found.iter().map(|accepted| accepted.write).collect();
        settled.sort_unstable();
        open.retain(|&row| {
            let write = &record.writes[row as usize];
            let logged_until = self.logged_until(write.document);
            let told = !write.call.unknown() || logged_until >= Some(write.call.invoked);
            !told && settled.binary_search(&row).is_err()
        });
        self.unsettled = open;
        self.accepted.extend(found);
        self.put_in_order();
    }

    /// Whether a write is known to have made a version with a value.
    fn made(&self, document: u32, version: u64, value: u32, record: &Record) -> bool {
        let writers = self.writers(document, version).iter();
        let mut values = writers.map(|accepted| record.writes[accepted.write as usize].value);
        values.any(|written| written == value || written == NONE)
    }

    /// The writes of no known version whose value a read returned, as versions that no other write of it made.
    fn seen_by_reads(&self, record: &Record, open: &[u32]) -> Vec<Accepted> {
        // A value that two of them share settles neither.
        let mut candidates: Map<(u32, u32), u32> = Map::default();
        for &row in open {
            let write = &record.writes[row as usize];
            if write.value != NONE {
                candidates
                    .entry((write.document, write.value))
                    .and_modify(|row| *row = NONE)
                    .or_insert(row);
            }
        }
        let mut found = Vec::new();
        for read in record.reads.iter().filter(|read| read.call.ok()) {
            let write = candidates
                .get(&(read.document, read.value))
                .copied()
                .filter(|&write| write != NONE);
            if let (Some(write), Some(version)) = (write, read.version)
                && version > 0
                && !self.made(read.document, version, read.value, record)
                && record.writes[write as usize].call.invoked <= read.call.completed
            {
                found.push(Accepted {
                    document: read.document,
                    version,
                    write,
                });
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Notes a row of the log that its write contradicts: one of the two records is wrong.
fn note_other_in_log(record: &Record, row: &LogRow, write: u32, twice: bool, flaws: &mut Flaws) {
    let sent = &record.writes[write as usize];
    let of_write = || sentences::write(record, sent);
    let other_value = sent.value != NONE && row.value != sent.value;
    if other_value || row.document != sent.document || row.token != sent.token {
        flaws.note(Flaw::OtherInLog, || {
            let of_write = of_write();
            format!(
                "the storage's log has another value, token or document for {of_write} than it sent"
            )
        });
    }
    if twice {
        flaws.note(Flaw::TwiceInLog, || {
            format!("the storage's log has {} twice", of_write())
        });
    }
    if row.t < sent.call.invoked {
        flaws.note(Flaw::Foreseen, || {
            format!("the storage's log has {} before it began", of_write())
        });
    }
}
