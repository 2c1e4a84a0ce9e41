//! Writes down what faults do, in the order of time.

use std::sync::{Mutex, PoisonError};

use histories::{Event, Function, Kind, NEMESIS};

use crate::faults::Evidence;

/// What takes the events.
type Sink = Box<dyn Fn(Event<'static>) + Send + Sync>;

/// Gives events their times, which never go back, and hands them on.
pub(crate) struct Recorder {
    sink: Sink,
    base_ns: u64,
    last: Mutex<u64>,
}

/// What an event says beside its time.
pub(crate) struct Record<'a> {
    pub step: usize,
    pub f: Function,
    pub kind: Kind,
    pub fault: &'a str,
    pub on: &'a str,
    pub engine: Option<&'static str>,
    pub evidence: Option<Evidence>,
    pub error: Option<String>,
}

impl Recorder {
    pub fn new(base_ns: u64, sink: impl Fn(Event<'static>) + Send + Sync + 'static) -> Recorder {
        Recorder {
            sink: Box::new(sink),
            base_ns,
            last: Mutex::new(0),
        }
    }

    /// A time of CLOCK_MONOTONIC as the history counts it, from the run's base.
    pub fn since_base(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.base_ns)
    }

    /// Records an event of `at_ns`, or of the last event's time if that is later.
    pub fn record(&self, at_ns: u64, record: Record<'_>) {
        // The lock is kept while the event is handed on, so that events arrive in the order of their times.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = self.since_base(at_ns).max(*last);
        let op = operation(record.step, record.f);
        let mut event = Event::new(*last, NEMESIS, op, record.kind, record.f);
        event.step = Some(record.step);
        event.fault = Some(record.fault.to_owned().into());
        event.on = Some(vec![record.on.to_owned()]);
        event.engine = record.engine.map(Into::into);
        event.evidence = record.evidence.filter(|evidence| !evidence.is_empty());
        event.error = record.error.map(Into::into);
        (self.sink)(event);
    }
}

/// Each step has two operations, from 1 on: the injection and the healing.
fn operation(step: usize, f: Function) -> u64 {
    let healing = u64::from(f == Function::Heal);
    2 * step as u64 + 1 + healing
}
