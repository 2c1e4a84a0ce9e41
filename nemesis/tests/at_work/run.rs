//! A nemesis at work in a test, and what it records.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use histories::{Event, Function, Kind, Plan};
use nemesis::{Hosts, Nemesis};

/// No test waits longer for anything: what takes so long will not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A nemesis at work and what it has recorded.
pub struct Run {
    nemesis: Option<Nemesis>,
    events: Arc<Mutex<Vec<Event<'static>>>>,
}

impl Run {
    /// Sets out to carry out a plan, whose rules are armed.
    pub fn start(plan: &Plan, hosts: Arc<dyn Hosts>, base_ns: u64, sabotage: bool) -> Run {
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&events);
        let tell = move |event| sink.lock().unwrap().push(event);
        let nemesis = Nemesis::start(plan.clone(), hosts, base_ns, tell, sabotage);
        Run {
            nemesis: Some(nemesis),
            events,
        }
    }

    pub fn settled(&self) -> bool {
        self.nemesis.as_ref().unwrap().settled()
    }

    pub fn wait_until_settled(&self) {
        wait_until("the nemesis is settled", || self.settled());
    }

    /// Waits until an event of a step is recorded.
    pub fn wait_for(&self, step: usize, f: Function, completed: bool) {
        wait_until(&format!("{f:?} of step {step} is recorded"), || {
            let events = self.events.lock().unwrap();
            let found = |event: &&Event| {
                (event.step, event.f) == (Some(step), f)
                    && (event.kind != Kind::Invoke) == completed
            };
            events.iter().any(|event| found(&event))
        });
    }

    /// Heals what could keep the clients from ending; what is recorded by then.
    pub fn heal_for_clients_to_end(&self) -> Record {
        self.nemesis.as_ref().unwrap().heal_for_clients_to_end();
        self.record()
    }

    /// Ends it in order; what it recorded.
    pub fn stop(mut self) -> Record {
        self.nemesis.take().unwrap().heal_all_and_stop();
        self.record()
    }

    /// Drops it; what it recorded.
    pub fn abandon(mut self) -> Record {
        drop(self.nemesis.take());
        self.record()
    }

    fn record(&self) -> Record {
        let events = self.events.lock().unwrap().clone();
        Record { events }
    }
}

/// What a nemesis recorded.
pub struct Record {
    pub events: Vec<Event<'static>>,
}

impl Record {
    /// The one event of a step that is the invocation of this function.
    pub fn invoked(&self, step: usize, f: Function) -> &Event<'static> {
        self.one(step, f, false)
    }

    /// The one event of a step that completes this function.
    pub fn completed(&self, step: usize, f: Function) -> &Event<'static> {
        let (invoked, completed) = (self.one(step, f, false), self.one(step, f, true));
        assert_eq!(invoked.op, completed.op);
        completed
    }

    /// Whether anything of this function stands there for a step.
    pub fn has(&self, step: usize, f: Function) -> bool {
        self.events
            .iter()
            .any(|event| (event.step, event.f) == (Some(step), f))
    }

    #[track_caller]
    fn one(&self, step: usize, f: Function, completed: bool) -> &Event<'static> {
        let of_step = |event: &&Event<'static>| {
            (event.step, event.f) == (Some(step), f) && (event.kind != Kind::Invoke) == completed
        };
        let found: Vec<_> = self.events.iter().filter(of_step).collect();
        assert_eq!(found.len(), 1, "{f:?} of step {step} in {:#?}", self.events);
        found[0]
    }
}

/// A figure of an event's evidence.
#[track_caller]
pub fn figure(event: &Event<'_>, name: &str) -> u64 {
    let evidence = event
        .evidence
        .as_ref()
        .unwrap_or_else(|| panic!("no evidence: {event:?}"));
    let number = evidence[name]
        .as_f64()
        .unwrap_or_else(|| panic!("`{name}`: {event:?}"));
    number as u64
}

pub fn wait_until(what: &str, come: impl Fn() -> bool) {
    let start = Instant::now();
    while !come() {
        assert!(
            start.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The example beside this test's own binary.
pub fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let target = own.parent().and_then(Path::parent).unwrap();
    target.join("examples/nemesis_host")
}
