//! Histories for tests, written as one reads a timeline: one event a line.
//!
//! ```text
//! 10 c1 acquire#1
//! 12 c1 acquire#1 ok token=3 validity=310
//! 20 c1 write#2 grant=1 based_on=0 value=a
//! 25 c1 write#2 ok version=1
//! ```
//!
//! The instant in milliseconds, the process, the function with its operation, the type (`invoke` if it is absent), and
//! the fields. Locks are called `l` and documents `d` if the line names no other. Times are in milliseconds too.

use histories::{Event, Function, Header, Kind, Named, Plan, PlannedFault, Until, When, Workload};
use serde_json::{Map, Value, json};

use crate::{Checker, Options, Outcome, Verdict, Witness};

/// A history for a test.
pub(crate) struct Timeline {
    plan: Plan,
    events: Vec<Event<'static>>,
    complete: bool,
}

/// Reads a timeline, whose lines may be in any order: a history without planned faults.
pub(crate) fn timeline(text: &str) -> Timeline {
    let mut events: Vec<_> = text.lines().filter_map(event).collect();
    events.sort_by_key(|event| event.t);
    Timeline {
        plan: plan(),
        events,
        complete: true,
    }
}

impl Timeline {
    /// Plans a fault, to be injected at some point and to heal after a time (0: not at all).
    pub(crate) fn planned(mut self, fault: &str, on: &str, heals_after_ms: u64) -> Timeline {
        let until = Until {
            after_ms: Some(heals_after_ms).filter(|&ms| ms > 0),
            ..Until::default()
        };
        let when = When::Point {
            client: "c1".into(),
            point: "before-write".into(),
            nth_grant: 2,
        };
        self.plan.faults.push(PlannedFault {
            fault: fault.into(),
            on: on.into(),
            when,
            until,
            with: Map::new(),
        });
        self
    }

    /// Makes the last planned fault last until a client completes an operation.
    pub(crate) fn until(mut self, client: &str, f: &str, outcome: &str) -> Timeline {
        let named = Named {
            client: client.into(),
            f: f.into(),
            outcome: outcome.into(),
        };
        self.plan
            .faults
            .last_mut()
            .expect("a fault was planned")
            .until
            .event = Some(named);
        self
    }

    /// Adds more lines.
    pub(crate) fn and(mut self, text: &str) -> Timeline {
        self.events.extend(text.lines().filter_map(event));
        self.events.sort_by_key(|event| event.t);
        self
    }

    /// Its events, ordered by time.
    pub(crate) fn events(&self) -> &[Event<'static>] {
        &self.events
    }

    /// Sets the plan's bound for progress.
    pub(crate) fn bound_ms(mut self, bound_ms: u64) -> Timeline {
        self.plan.progress_bound_ms = bound_ms;
        self
    }

    /// Cuts the history: its footer is gone.
    pub(crate) fn cut(mut self) -> Timeline {
        self.complete = false;
        self
    }

    /// Judges all that the history can speak to.
    pub(crate) fn verdict(&self) -> Verdict {
        self.judge(Options::default())
            .expect("the events of a test can be understood")
    }

    /// Judges what is asked for.
    pub(crate) fn judge(&self, options: Options) -> Result<Verdict, crate::Error> {
        let mut checker = Checker::new(&header(self.plan.clone()), options);
        self.events
            .iter()
            .try_for_each(|event| checker.push(event))?;
        Ok(checker.finish(self.complete))
    }

    /// What is found of one property.
    pub(crate) fn outcome(&self, property: &str) -> Outcome {
        let verdict = self.verdict();
        let found = verdict.property(property);
        found
            .unwrap_or_else(|| panic!("the history speaks to {property}: {verdict:#?}"))
            .outcome
            .clone()
    }

    /// The proof that a property is violated.
    pub(crate) fn witness(&self, property: &str) -> Witness {
        match self.outcome(property) {
            Outcome::Violated { witness } => witness,
            other => panic!("{property} should be violated, and is {other:?}"),
        }
    }

    /// Fails unless a property is not violated; whether it holds depends on the rest of the history.
    pub(crate) fn spares(&self, property: &str) {
        if let Outcome::Violated { witness } = self.outcome(property) {
            panic!("{property} should not be violated: {}", witness.sentence);
        }
    }

    /// Fails unless a property holds.
    pub(crate) fn holds(&self, property: &str) {
        assert_eq!(self.outcome(property), Outcome::Holds, "{property}");
    }

    /// Why nothing tells whether a property holds.
    pub(crate) fn reason(&self, property: &str) -> String {
        match self.outcome(property) {
            Outcome::Unknown { reason } => reason,
            other => panic!("{property} should be unknown, and is {other:?}"),
        }
    }
}

fn event(line: &str) -> Option<Event<'static>> {
    let mut words = line.split_whitespace();
    let ms: f64 = words
        .next()?
        .parse()
        .expect("a line begins with its instant");
    let process = words.next().expect("then its process").to_owned();
    let (f, op) = words
        .next()
        .and_then(|word| word.split_once('#'))
        .expect("then its function#operation");
    let f: Function = serde_json::from_value(json!(f)).expect("a function");
    let mut words = words.peekable();
    let kind = words.next_if(|word| !word.contains('='));
    let kind: Kind = serde_json::from_value(json!(kind.unwrap_or("invoke"))).expect("a type");
    let mut event = Event::new(
        (ms * 1e6) as u64,
        process,
        op.parse().expect("a number"),
        kind,
        f,
    );
    match f {
        Function::Acquire => event.lock = Some("l".into()),
        Function::Read | Function::Write | Function::Accepted => event.document = Some("d".into()),
        Function::Inject | Function::Heal if kind == Kind::Ok => {
            event.evidence = Some(Map::from_iter([("seen".to_owned(), Value::Bool(true))]));
        }
        _ => {}
    }
    words.for_each(|word| set(&mut event, word));
    Some(event)
}

fn set(event: &mut Event<'static>, word: &str) {
    let (field, value) = word.split_once('=').expect("field=value");
    let number = || {
        Some(
            value
                .parse()
                .unwrap_or_else(|_| panic!("a number in {word}")),
        )
    };
    let text = || Some(value.to_owned().into());
    match field {
        "lock" => event.lock = text(),
        "document" => event.document = text(),
        "value" => event.value = text(),
        "error" => event.error = text(),
        "fault" => event.fault = text(),
        "grant" => event.grant = number(),
        "token" => event.token = number(),
        "validity" => {
            event.validity = Some((value.parse::<f64>().expect("milliseconds") * 1e6) as u64)
        }
        "ttl_ms" => event.ttl_ms = number(),
        "version" => event.version = number(),
        "based_on" => event.based_on = number(),
        "entries" => event.entries = number(),
        "step" => event.step = Some(value.parse().expect("a number")),
        "on" => event.on = Some(vec![value.to_owned()]),
        "held" => event.held = Some(value == "true"),
        "evidence" => event.evidence = None,
        "took_hold_ns" => {
            let evidence = event.evidence.get_or_insert_default();
            evidence.insert(field.to_owned(), json!(number()));
        }
        _ => panic!("no field {field}"),
    }
}

pub(crate) fn plan() -> Plan {
    Plan {
        scenario: "test".into(),
        lock: "redis-token".into(),
        topology: "redis".into(),
        storage: "postgres".into(),
        policy: "unfenced".into(),
        seed: 1,
        clients: 3,
        ttl_ms: 300,
        progress_bound_ms: 1000,
        limit_ms: 10_000,
        controls: Vec::new(),
        workload: Workload {
            name: "document".into(),
            work_ms: 1,
            rest_ms: 1,
            retry_ms: 10,
            rounds: 1,
        },
        faults: Vec::new(),
    }
}

pub(crate) fn header(plan: Plan) -> Header {
    Header {
        fencepost: histories::FORMAT_VERSION,
        run: "0".into(),
        started: "2025-01-01T00:00:00Z".into(),
        seed: plan.seed,
        plan,
        servers: Default::default(),
        images: Default::default(),
        machine: Default::default(),
    }
}
