//! Histories for tests, written as one reads a timeline: one event a line.
//!
//! ```text
//! 10 c1 acquire#1
//! 12 c1 acquire#1 ok token=3 validity=310
//! 20 c1 write#2 grant=1 based_on=0 value=a
//! 25 c1 write#2 ok version=1
//! ```
//!
//! The instant in milliseconds, the process, the function with its operation, the type (if it is absent `invoke`, and of a row of the log `ok`), and
//! the fields. Locks are called `l` and documents `d` if the line names no other. Times are in milliseconds too.

mod completed;

use histories::{
    Clause, Deed, Effect, Event, Expectation, Function, Hazard, Header, Kind, Named, Plan,
    PlannedFault, Promise, Seal, Shows, Until, When, Workload, host_of,
};
use serde_json::{Map, Value, json};

use crate::{Checker, Class, Options, Outcome, Verdict, Witness};

/// A history for a test.
#[derive(Clone)]
pub(crate) struct Timeline {
    plan: Plan,
    contract: Vec<Clause>,
    heartbeat_ms: Option<u64>,
    events: Vec<Event<'static>>,
    seal: Seal,
    /// Whether the plan has the faults that the history has.
    plans_its_faults: bool,
}

/// Reads a timeline, whose lines may be in any order: a history without planned faults.
pub(crate) fn timeline(text: &str) -> Timeline {
    let mut events: Vec<_> = text.lines().filter_map(event).collect();
    events.sort_by_key(|event| event.t);
    Timeline {
        plan: plan(),
        contract: Vec::new(),
        heartbeat_ms: None,
        events,
        seal: Seal::Sealed,
        plans_its_faults: false,
    }
}

impl Timeline {
    /// Plans a fault, to be injected at any time and to heal after a time (0: not at all).
    pub(crate) fn planned(mut self, fault: &str, on: &str, heals_after_ms: u64) -> Timeline {
        let until = Until {
            after_ms: Some(heals_after_ms).filter(|&ms| ms > 0),
            ..Until::default()
        };
        let when = When::Time { after_ms: 0 };
        self.plan.faults.push(PlannedFault {
            fault: fault.into(),
            on: on.into(),
            does: does(fault),
            shows: Shows::from([("seen".to_owned(), Expectation::there())]),
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

    /// Asks of the last planned fault's evidence what it has to say.
    pub(crate) fn shows(mut self, field: &str, expectation: Expectation) -> Timeline {
        let last = self.plan.faults.last_mut().expect("a fault was planned");
        last.shows = Shows::from([(field.to_owned(), expectation)]);
        self
    }

    /// Plans the faults that the history has.
    pub(crate) fn with_its_faults(mut self) -> Timeline {
        self.plans_its_faults = true;
        self
    }

    /// Lets the storage go by tokens.
    pub(crate) fn fenced(mut self) -> Timeline {
        self.plan.write_condition = Some("token".into());
        self
    }

    /// Edits the history after it was closed.
    pub(crate) fn edit(&mut self) {
        self.seal = Seal::Edited;
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

    /// Adds a clause to the contract.
    pub(crate) fn says(mut self, property: &str, promise: Promise, under: &[Hazard]) -> Timeline {
        self.contract.push(Clause {
            property: property.to_owned(),
            promise,
            under: under.to_vec(),
            why: String::new(),
        });
        self
    }

    /// Lets clients record their stalls.
    pub(crate) fn with_heartbeats(mut self) -> Timeline {
        self.heartbeat_ms = Some(5);
        self
    }

    /// Lets nobody record stalls, as in version 1.
    pub(crate) fn without_heartbeats(mut self) -> Timeline {
        self.heartbeat_ms = None;
        self
    }

    /// The class of one property of the history as it stands there.
    pub(crate) fn class(&self, property: &str) -> Class {
        let verdict = self.bare_verdict();
        let found = verdict.property(property);
        found.map(|found| found.class).expect("it is judged")
    }

    /// Sets the plan's bound for progress.
    pub(crate) fn bound_ms(mut self, bound_ms: u64) -> Timeline {
        self.plan.progress_bound_ms = bound_ms;
        self
    }

    /// Cuts the history: its footer is gone.
    pub(crate) fn cut(mut self) -> Timeline {
        self.seal = Seal::Cut;
        self
    }

    /// Plans a lock, so that two clients have to compete for it.
    pub(crate) fn with_a_lock(mut self) -> Timeline {
        self.plan.lock = "redis-token".into();
        self
    }

    /// Judges all that the history can speak to, once it is [completed](Timeline::completed).
    pub(crate) fn verdict(&self) -> Verdict {
        self.completed().bare_verdict()
    }

    /// Judges all that the history can speak to, as it stands there.
    pub(crate) fn bare_verdict(&self) -> Verdict {
        self.judge(Options::default())
            .expect("the events of a test can be understood")
    }

    /// Judges what is asked for, as it stands there.
    pub(crate) fn judge(&self, options: Options) -> Result<Verdict, crate::Error> {
        let header = Header {
            contract: self.contract.clone(),
            heartbeat_ms: self.heartbeat_ms,
            ..header(self.whole_plan())
        };
        let mut checker = Checker::new(&header, options);
        self.events
            .iter()
            .try_for_each(|event| checker.push(event))?;
        Ok(checker.finish(self.seal))
    }

    /// The plan, which has those clients that the history has, and its faults if it shall.
    fn whole_plan(&self) -> Plan {
        let hosts = self.events.iter().map(|event| host_of(&event.process));
        let numbers = hosts.filter_map(|host| host.strip_prefix('c')?.parse().ok());
        let clients = numbers.max().unwrap_or(0);
        let with_its_clients = Timeline {
            plan: Plan {
                clients,
                ..self.plan.clone()
            },
            ..self.clone()
        };
        let begun = |f: Function| {
            let invoked = |event: &&Event<'_>| event.kind == Kind::Invoke;
            let all = self.events.iter().filter(invoked);
            all.filter(move |event| event.f == f && self.plans_its_faults)
        };
        let mut injections: Vec<&Event<'_>> = begun(Function::Inject).collect();
        injections.sort_by_key(|inject| inject.step);
        let planned = injections
            .into_iter()
            .fold(with_its_clients, |history, inject| {
                let heals = begun(Function::Heal).any(|heal| heal.step == inject.step);
                let on = inject.on.as_ref().expect("it strikes a host");
                let fault = inject.fault.as_ref().expect("it has a name");
                history.planned(fault, &on[0], u64::from(heals))
            });
        planned.plan
    }

    /// What is found of one property of the history as it stands there.
    pub(crate) fn outcome(&self, property: &str) -> Outcome {
        outcome_of(&self.bare_verdict(), property)
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

    /// Fails unless a property holds, once the history is [completed](Timeline::completed).
    pub(crate) fn holds(&self, property: &str) {
        let outcome = outcome_of(&self.verdict(), property);
        assert_eq!(outcome, Outcome::Holds, "{property}");
    }

    /// Why nothing tells whether a property holds.
    pub(crate) fn reason(&self, property: &str) -> String {
        match self.outcome(property) {
            Outcome::Unknown { reason } => reason,
            other => panic!("{property} should be unknown, and is {other:?}"),
        }
    }
}

/// What was found of one property.
fn outcome_of(verdict: &Verdict, property: &str) -> Outcome {
    let found = verdict.property(property);
    found
        .unwrap_or_else(|| panic!("the history speaks to {property}: {verdict:#?}"))
        .outcome
        .clone()
}

/// What the faults of tests do.
fn does(fault: &str) -> Vec<Effect> {
    let deed = match fault {
        "pause" => Deed::Stops,
        "crash" => Deed::Kills,
        "restart" => Deed::Restarts,
        "clock-forward" => Deed::ClockForward,
        "clock-back" => Deed::ClockBack,
        "long-work" => Deed::HoldsWork,
        "delay" => Deed::DelaysPackets,
        _ => Deed::Unforeseen,
    };
    vec![Effect::of(deed)]
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
    let unsaid = if f == Function::Accepted {
        "ok"
    } else {
        "invoke"
    };
    let kind: Kind = serde_json::from_value(json!(kind.unwrap_or(unsaid))).expect("a type");
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
        Function::Exit => event.error = Some("exit 0".into()),
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
        "fault" => {
            event.fault = text();
            event.does = Some(does(value));
        }
        "grant" => event.grant = number(),
        "token" => event.token = number(),
        "validity" => {
            event.validity = Some((value.parse::<f64>().expect("milliseconds") * 1e6) as u64)
        }
        "ttl_ms" => event.ttl_ms = number(),
        "lost" => event.lost = Some(value == "true"),
        "stalled_ms" => {
            event.stalled_ns = Some((value.parse::<f64>().expect("milliseconds") * 1e6) as u64)
        }
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
        lock: String::new(),
        topology: "redis".into(),
        storage: "postgres".into(),
        policy: "unfenced".into(),
        write_condition: None,
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
        contract: Vec::new(),
        heartbeat_ms: None,
        servers: Default::default(),
        images: Default::default(),
        machine: Default::default(),
    }
}
