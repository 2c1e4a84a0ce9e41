//! How operations end: whether a completion fits its invocation, and what it adds to the tables.

use histories::{Event, Function, Kind};

use super::{Intake, Open, grants};
use crate::assumptions::Flaw;
use crate::names::{NONE, Names};
use crate::operations::NEVER;

impl Intake {
    pub(super) fn complete(&mut self, event: &Event<'_>) {
        let process = self.process(event);
        let open = match self.open.remove(&event.op) {
            Some(open) if self.fits(&open, event, process) => open,
            Some(open) => {
                let sentence = || {
                    format!(
                        "the completion of op {} does not fit its invocation",
                        event.op
                    )
                };
                self.flaws.note(Flaw::Mismatch, sentence);
                return self.make_unclear(event, Some(open));
            }
            None => {
                let sentence = || {
                    let (process, f) = (&event.process, event.f.name());
                    format!(
                        "{process} completed op {} ({f}), which was not in flight",
                        event.op
                    )
                };
                self.flaws.note(Flaw::Uninvoked, sentence);
                return self.make_unclear(event, None);
            }
        };
        self.leave_lane(event, process);
        self.check_lock(event, self.grant_of(&open));
        self.faults.saw(&event.process, open.invoked, event);
        if event.f == Function::Point {
            self.faults.left_point(event);
            self.held_at_point(&open, event.t);
        }
        if event.kind == Kind::Ok && matches!(event.f, Function::Acquire | Function::Extend) {
            self.check_validity(event, open.asked.ttl_ms);
        }
        self.outcome(event, open.row);
    }

    /// Whether a completion says nothing else of its operation than the invocation did.
    fn fits(&self, open: &Open, event: &Event<'_>, process: u32) -> bool {
        let record = &self.record;
        let at = open.row as usize;
        let named = |names: &Names, number: u32, told: Option<&str>| {
            told.is_none_or(|told| number == NONE || names.text(number) == told)
        };
        let grant = |grant: u32| {
            let known = record.acquire(grant).map(|acquire| acquire.call.op);
            event.grant.is_none() || known.is_none() || known == event.grant
        };
        let document = event.document.as_deref();
        let same = |asked: Option<u64>, told: Option<u64>| {
            asked.is_none() || told.is_none() || asked == told
        };
        open.f == event.f
            && open.process == process
            && same(open.asked.ttl_ms, event.ttl_ms)
            && same(open.asked.wait_ms, event.wait_ms)
            && same(open.asked.nth, event.nth)
            && named(&record.values, open.asked.point, event.point.as_deref())
            && match event.f {
                Function::Acquire => named(
                    &record.locks,
                    record.acquires[at].lock,
                    event.lock.as_deref(),
                ),
                Function::Read => {
                    let read = &record.reads[at];
                    named(&record.documents, read.document, document) && grant(read.grant)
                }
                Function::Write => {
                    let write = &record.writes[at];
                    named(&record.documents, write.document, document)
                        && named(&record.values, write.value, event.value.as_deref())
                        && grant(write.grant)
                        && same(write.token, event.token)
                        && same(write.based_on, event.based_on)
                }
                Function::Extend => grant(record.extends[at].grant),
                Function::Held | Function::Point => grant(open.row),
                Function::Release => grant(record.releases[at].grant),
                Function::Work => grant(record.works[at].grant),
                _ => true,
            }
    }

    /// The row of the grant of an operation that is done to a lock.
    fn grant_of(&self, open: &Open) -> u32 {
        match open.f {
            Function::Extend => self.record.extends[open.row as usize].grant,
            Function::Release => self.record.releases[open.row as usize].grant,
            _ => open.row,
        }
    }

    fn outcome(&mut self, event: &Event<'_>, row: u32) {
        let at = row as usize;
        let (t, kind) = (event.t, event.kind);
        match event.f {
            Function::Acquire => {
                let acquire = &mut self.record.acquires[at];
                acquire.call.complete(t, kind);
                let is_busy = event.error.as_deref() == Some("busy");
                acquire.refused = kind == Kind::Fail && !is_busy;
                if acquire.granted() {
                    self.record.processes[acquire.call.process as usize].grants += 1;
                    acquire.token = event.token;
                    acquire.validity = event.validity.unwrap_or(NEVER);
                }
            }
            Function::Extend => {
                let extend = &mut self.record.extends[at];
                extend.call.complete(t, kind);
                extend.validity = event.validity.filter(|_| kind == Kind::Ok);
                let grant = extend.grant;
                self.end_as_told(event, grant);
            }
            Function::Read => {
                let value = event.value.as_deref().filter(|_| kind == Kind::Ok);
                let value = value.map_or(NONE, |value| self.record.values.number(value));
                let read = &mut self.record.reads[at];
                read.call.complete(t, kind);
                read.version = event.version.filter(|_| kind == Kind::Ok);
                read.value = value;
                if kind == Kind::Ok && read.version.is_none() {
                    self.flaws.note(Flaw::NoVersion, || {
                        format!("read {} returned no version", event.op)
                    });
                }
            }
            Function::Write => {
                let write = &mut self.record.writes[at];
                write.call.complete(t, kind);
                write.version = event.version.filter(|_| kind == Kind::Ok);
                write.rejected = grants::is_rejected(event);
                let grant = write.grant;
                self.end_as_told(event, grant);
            }
            Function::Release => {
                let release = &mut self.record.releases[at];
                release.call.complete(t, kind);
                release.lost = event.lost == Some(true);
                self.count_unknown(kind);
            }
            Function::Work => {
                self.record.works[at].call.complete(t, kind);
                self.count_unknown(kind);
            }
            Function::Point => {}
            _ => {
                self.count_unknown(kind);
                self.end_as_told(event, row);
            }
        }
    }

    fn count_unknown(&mut self, kind: Kind) {
        self.record.other_unknown += u64::from(kind == Kind::Info);
    }
}
