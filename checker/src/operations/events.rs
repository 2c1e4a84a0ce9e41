//! The events that rows of the tables came from, as witnesses show them.

use std::borrow::Cow;

use histories::{Event, Function, Kind, NEMESIS};

use super::{Acquire, Call, Completion, NEVER, Record, Why, Work};
use crate::index::Known;
use crate::names::NONE;

impl Record {
    fn event(&self, call: &Call, t: u64, kind: Kind, f: Function) -> Event<'static> {
        Event::new(t, self.process(call).to_owned(), call.op, kind, f)
    }

    fn both(
        &self,
        call: &Call,
        f: Function,
        fill: impl Fn(&mut Event<'static>),
    ) -> Vec<Event<'static>> {
        let mut events = vec![self.event(call, call.invoked, Kind::Invoke, f)];
        let kind = match call.completion {
            Completion::Pending => None,
            Completion::Ok => Some(Kind::Ok),
            Completion::Fail => Some(Kind::Fail),
            Completion::Info => Some(Kind::Info),
        };
        events.extend(kind.map(|kind| self.event(call, call.completed, kind, f)));
        events.iter_mut().for_each(fill);
        events
    }

    fn grant_op(&self, grant: u32) -> Option<u64> {
        self.acquire(grant).map(|acquire| acquire.call.op)
    }

    /// The events of a grant: it was asked for, given, perhaps extended, and ended.
    pub(crate) fn grant_events(&self, grant: u32) -> Vec<Event<'static>> {
        let Some(acquire) = self
            .acquire(grant)
            .copied()
            .filter(|acquire| acquire.lock != NONE)
        else {
            return Vec::new();
        };
        let lock: Cow<'static, str> = self.locks.text(acquire.lock).to_owned().into();
        let mut events = self.both(&acquire.call, Function::Acquire, |event| {
            event.lock = Some(lock.clone());
            if event.kind == Kind::Ok {
                event.token = acquire.token;
                event.validity = Some(acquire.validity).filter(|&validity| validity != NEVER);
            }
        });
        for extend in self
            .extends
            .iter()
            .filter(|extend| extend.grant == grant && extend.call.ok())
        {
            let mut event = self.event(
                &extend.call,
                extend.call.completed,
                Kind::Ok,
                Function::Extend,
            );
            event.validity = extend.validity;
            event.lock = Some(lock.clone());
            event.grant = Some(acquire.call.op);
            events.push(event);
        }
        events.extend(self.end_event(&acquire, lock));
        events
    }

    /// The invocation of an act under no grant, and its completion.
    pub(crate) fn act_events(&self, op: u64) -> Vec<Event<'static>> {
        let write = self.writes.iter().position(|write| write.call.op == op);
        if let Some(row) = write {
            return self.write_events(row as u32);
        }
        let work = self.works.iter().find(|work| work.call.op == op);
        work.map_or_else(Vec::new, |work| self.work_events(work))
    }

    /// What was done under a grant from an instant on.
    pub(crate) fn acts_under(&self, grant: u32, from: u64) -> Vec<Event<'static>> {
        let since = |call: &Call| call.completed >= from;
        let works = self.works.iter();
        let works = works.filter(|work| work.grant == grant && since(&work.call));
        let mut events: Vec<_> = works.flat_map(|work| self.work_events(work)).collect();
        for (row, write) in self.writes.iter().enumerate() {
            if write.grant == grant && since(&write.call) {
                events.extend(self.write_events(row as u32));
            }
        }
        events
    }

    fn work_events(&self, work: &Work) -> Vec<Event<'static>> {
        self.both(&work.call, Function::Work, |event| {
            event.grant = self.grant_op(work.grant);
        })
    }

    fn end_event(&self, acquire: &Acquire, lock: Cow<'static, str>) -> Option<Event<'static>> {
        if let (Why::Rejected, Known::Write(write)) =
            (acquire.end.why, self.index.get(acquire.end.op))
        {
            return self.write_events(write).pop();
        }
        let (kind, f) = match acquire.end.why {
            Why::StillHolds | Why::Unclear | Why::CutOff => return None,
            Why::Released => (Kind::Invoke, Function::Release),
            Why::Lost => (Kind::Info, Function::Lost),
            Why::NotExtended => (Kind::Fail, Function::Extend),
            Why::Rejected => (Kind::Fail, Function::Write),
            Why::NotHeld => (Kind::Ok, Function::Held),
            Why::Crashed => (Kind::Invoke, Function::Inject),
            Why::Exited => (Kind::Info, Function::Exit),
        };
        let mut event = self.event(&acquire.call, acquire.end.at, kind, f);
        event.op = acquire.end.op;
        match f {
            Function::Exit => {}
            Function::Inject => {
                event.on = Some(vec![histories::host_of(&event.process).to_owned()]);
                event.process = NEMESIS.into();
            }
            _ => {
                event.grant = Some(acquire.call.op);
                event.lock = Some(lock);
            }
        }
        Some(event)
    }

    /// The invocation of a write and its completion.
    pub(crate) fn write_events(&self, write: u32) -> Vec<Event<'static>> {
        let write = &self.writes[write as usize];
        self.both(&write.call, Function::Write, |event| {
            event.document = Some(self.documents.text(write.document).to_owned().into());
            event.grant = self.grant_op(write.grant);
            event.token = write.token;
            event.based_on = write.based_on;
            event.value = self.value(write.value);
            match event.kind {
                Kind::Ok => event.version = write.version,
                Kind::Fail if write.rejected => event.error = Some("rejected".into()),
                _ => {}
            }
        })
    }

    /// The invocation of a read and its completion.
    pub(crate) fn read_events(&self, read: u32) -> Vec<Event<'static>> {
        let read = &self.reads[read as usize];
        self.both(&read.call, Function::Read, |event| {
            event.document = Some(self.documents.text(read.document).to_owned().into());
            event.grant = self.grant_op(read.grant);
            if event.kind == Kind::Ok {
                event.version = read.version;
                event.value = self.value(read.value);
            }
        })
    }

    fn value(&self, value: u32) -> Option<Cow<'static, str>> {
        (value != NONE).then(|| self.values.text(value).to_owned().into())
    }
}
