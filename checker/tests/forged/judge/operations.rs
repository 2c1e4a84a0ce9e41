//! Operations: an invocation and its completion.

use serde_json::Value;

use super::history::{History, is_client, number, tells, text};

/// One operation.
#[derive(Clone)]
pub struct Op<'a> {
    /// Its id.
    pub id: u64,
    /// Who did it.
    pub process: &'a str,
    /// What it does.
    pub f: &'a str,
    /// When it was invoked.
    pub start: u64,
    /// When it completed.
    pub end: Option<u64>,
    /// How it completed: `ok`, `fail`, `info`; empty as long as it did not.
    pub kind: &'a str,
    /// The invocation.
    pub invoke: &'a Value,
    /// The completion.
    pub done: Option<&'a Value>,
    /// The places of both in the file.
    pub places: (usize, Option<usize>),
}

impl<'a> Op<'a> {
    /// Whether it is this function.
    pub fn is(&self, f: &str) -> bool {
        self.f == f
    }

    /// Whether it completed `ok`.
    pub fn ok(&self) -> bool {
        self.kind == "ok"
    }

    /// Whether it completed `fail`.
    pub fn failed(&self) -> bool {
        self.kind == "fail"
    }

    /// Whether nobody knows what came of it.
    pub fn unknown(&self) -> bool {
        !self.ok() && !self.failed()
    }

    /// A number that its invocation names.
    pub fn number(&self, field: &str) -> Option<u64> {
        number(self.invoke, field)
    }

    /// A text that its invocation names.
    pub fn text(&self, field: &str) -> Option<&'a str> {
        text(self.invoke, field)
    }

    /// A field of the completion.
    pub fn answer(&self, field: &str) -> &'a Value {
        self.done.map_or(&Value::Null, |done| &done[field])
    }

    /// The acquire under which it was done.
    pub fn grant(&self) -> Option<u64> {
        self.number("grant")
    }

    /// The completion, or else the invocation.
    pub fn last(&self) -> u64 {
        self.end.unwrap_or(self.start)
    }

    /// When it was acknowledged, or else begun.
    pub fn known_at(&self) -> u64 {
        self.end.filter(|_| self.ok()).unwrap_or(self.start)
    }

    /// Whether it failed since the lock was lost.
    pub fn lost(&self) -> bool {
        self.failed() && self.answer("lost") == &Value::Bool(true)
    }
}

/// All operations of a history, and what does not fit.
pub struct Operations<'a> {
    /// In the order of their invocations.
    pub all: Vec<Op<'a>>,
    /// Completions that fit no invocation, and ids used twice.
    pub misfits: Vec<String>,
}

/// Events that complete nothing and are begun by nothing.
pub fn is_remark(event: &Value) -> bool {
    ["lost", "exit", "stall", "renewed", "accepted"].contains(&text(event, "f").unwrap_or_default())
}

impl<'a> Operations<'a> {
    /// Pairs each completion with its invocation.
    pub fn of(history: &'a History) -> Self {
        let mut operations = Operations {
            all: Vec::new(),
            misfits: Vec::new(),
        };
        for (place, event) in history.events.iter().enumerate() {
            if !tells(event) {
                operations
                    .misfits
                    .push(format!("this is not of its type or process: {event}"));
                continue;
            }
            if is_remark(event) {
                continue;
            }
            match text(event, "type") {
                Some("invoke") => operations.begin(place, event),
                _ => operations.complete(place, event),
            }
        }
        operations
    }

    fn begin(&mut self, place: usize, event: &'a Value) {
        let op = invocation(place, event);
        if self.all.iter().any(|other| same_id(other, &op)) {
            self.misfits
                .push(format!("operation {} is invoked twice", op.id));
        }
        self.all.push(op);
    }

    fn complete(&mut self, place: usize, event: &'a Value) {
        let done = invocation(place, event);
        let fitting = self.all.iter_mut().find(|op| {
            same_id(op, &done) && op.process == done.process && op.f == done.f && op.end.is_none()
        });
        let Some(op) = fitting else {
            self.misfits
                .push(format!("a completion of {} fits no invocation", done.id));
            return;
        };
        // Of what the nemesis does the plan says what has to fit.
        if !["inject", "heal"].contains(&op.f)
            && let Some(field) = differing_field(op.invoke, event)
        {
            self.misfits.push(format!(
                "operation {} completes with another {field}",
                op.id
            ));
        }
        op.end = Some(done.start);
        op.kind = text(event, "type").unwrap_or_default();
        op.done = Some(event);
        op.places.1 = Some(place);
    }

    /// Those with this function.
    pub fn with<'s>(&'s self, f: &'s str) -> impl Iterator<Item = &'s Op<'a>> {
        self.all.iter().filter(move |op| op.f == f)
    }

    /// The acquire with this id, by a client.
    pub fn acquire(&self, id: u64) -> Option<&Op<'a>> {
        self.with("acquire").find(|op| op.id == id)
    }

    /// Those of clients.
    pub fn of_clients(&self) -> impl Iterator<Item = &Op<'a>> {
        self.all.iter().filter(|op| is_client(op.process))
    }
}

/// A field that an invocation and its completion name, and not alike.
fn differing_field<'a>(invoke: &'a Value, done: &Value) -> Option<&'a str> {
    let fields = invoke.as_object()?.iter();
    fields
        .filter(|(field, _)| !["t", "type"].contains(&field.as_str()))
        .find(|(field, value)| {
            !value.is_null() && !done[*field].is_null() && done[*field] != **value
        })
        .map(|(field, _)| field.as_str())
}

fn invocation<'a>(place: usize, event: &'a Value) -> Op<'a> {
    Op {
        id: number(event, "op").unwrap_or_default(),
        process: text(event, "process").unwrap_or_default(),
        f: text(event, "f").unwrap_or_default(),
        start: number(event, "t").unwrap_or_default(),
        end: None,
        kind: "",
        invoke: event,
        done: None,
        places: (place, None),
    }
}

/// The nemesis counts its own operations.
fn same_id(one: &Op, other: &Op) -> bool {
    one.id == other.id && (one.process == "nemesis") == (other.process == "nemesis")
}
