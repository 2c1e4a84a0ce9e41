//! Writes down what faults do.

use histories::{Effect, Event, Function, Kind, NEMESIS};

use crate::faults::Evidence;

/// What takes the events.
type Sink = Box<dyn Fn(Event<'static>) + Send + Sync>;

/// Makes events and hands them on.
pub(crate) struct Recorder {
    sink: Sink,
    base_ns: u64,
}

/// What an event says beside its time.
pub(crate) struct Record<'a> {
    pub step: usize,
    pub f: Function,
    pub kind: Kind,
    pub fault: &'a str,
    pub on: &'a str,
    pub does: &'a [Effect],
    pub engine: Option<&'static str>,
    pub evidence: Option<Evidence>,
    pub error: Option<String>,
}

impl Recorder {
    pub fn new(base_ns: u64, sink: impl Fn(Event<'static>) + Send + Sync + 'static) -> Recorder {
        Recorder {
            sink: Box::new(sink),
            base_ns,
        }
    }

    /// A time of CLOCK_MONOTONIC as the history counts it, from the run's base.
    pub fn since_base(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.base_ns)
    }

    /// Records an event of `at_ns`.
    pub fn record(&self, at_ns: u64, record: Record<'_>) {
        let t = self.since_base(at_ns);
        let op = operation(record.step, record.f);
        let mut event = Event::new(t, NEMESIS, op, record.kind, record.f);
        event.step = Some(record.step);
        event.fault = Some(record.fault.to_owned().into());
        event.on = Some(vec![record.on.to_owned()]);
        event.does = Some(record.does.to_vec());
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
