//! The storage's log: its readings, and its rows.

use histories::{Event, Kind};

use super::{Intake, required};
use crate::assumptions::Flaw;
use crate::error::Error;
use crate::names::NONE;
use crate::operations::{Call, Completion, LogRead, LogRow};

impl Intake {
    pub(super) fn log(&mut self, event: &Event<'_>) {
        let reads = &mut self.record.log_reads;
        let begun = reads
            .iter_mut()
            .rfind(|read| read.call.op == event.op && read.call.completion == Completion::Pending);
        match begun {
            Some(read) if event.kind != Kind::Invoke => {
                read.call.complete(event.t, event.kind);
                read.entries = event.entries;
                let asked = Some(read.document).filter(|document| *document != NONE);
                let asked = asked.map(|document| self.record.documents.text(document));
                if let (Some(asked), Some(told)) = (asked, event.document.as_deref())
                    && asked != told
                {
                    self.flaws.note(Flaw::Mismatch, || {
                        format!(
                            "the storage's log of `{asked}` ended as that of `{told}` (op {})",
                            event.op
                        )
                    });
                }
            }
            _ if event.kind == Kind::Invoke => {
                let document = event
                    .document
                    .as_deref()
                    .map_or(NONE, |name| self.record.documents.number(name));
                let call = Call::begun(event.op, NONE, event.t);
                self.record.log_reads.push(LogRead {
                    call,
                    document,
                    entries: None,
                    rows: 0,
                });
            }
            _ => {
                let sentence = || {
                    format!(
                        "the reading of the storage's log (op {}) ended without having begun",
                        event.op
                    )
                };
                self.flaws.note(Flaw::Uninvoked, sentence);
            }
        }
    }

    pub(super) fn accepted(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let document = self.document(event)?;
        let version = required(event, "version", event.version)?;
        let value = event
            .value
            .as_deref()
            .map_or(NONE, |value| self.record.values.number(value));
        self.record.log_rows.push(LogRow {
            t: event.t,
            op: event.op,
            document,
            version,
            value,
            token: event.token,
        });
        let open = self.record.log_reads.last_mut();
        let open = open.filter(|read| read.call.completion == Completion::Pending);
        match open.filter(|read| [NONE, document].contains(&read.document)) {
            Some(read) => read.rows += 1,
            None => self.flaws.note(Flaw::OutsideLog, || {
                format!(
                    "op {} is told as accepted outside a reading of its document's log",
                    event.op
                )
            }),
        }
        Ok(())
    }
}
