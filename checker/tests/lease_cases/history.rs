//! Small histories of locks, written as one reads a timeline, and what each judge says of them.

use checker::linearizability::{
    self, Gathered, Gathering, Limits, Request, brute_force, linearizable,
};
use checker::linearizability::{Decision, History};
use checker::models::lease_mutex::{LeaseMutex, Operation};
use checker::models::{Model, Setup, kinds};
use checker::{Answer, Checker, Options, Outcome};
use histories::entries::Entries;
use histories::{Event, Seal};
use serde_json::{Map, Value, json};

/// Events as JSON, in the order of their times.
pub struct Told(Vec<Value>);

impl Told {
    /// Reads a timeline: `12 c1 acquire#1 ok validity=310`, times in milliseconds. The order of lines of one instant counts.
    pub fn of(timeline: &str) -> Told {
        let mut events: Vec<Value> = timeline.lines().filter_map(event).collect();
        events.sort_by_key(|event| event["t"].as_u64());
        Told(events)
    }

    /// With two clients more that compete for the lock when all is over, and the ends of all.
    fn completed(&self) -> Told {
        let epilogue = "20000 c4 acquire#900 lock=m
            20001 c4 acquire#900 ok lock=m validity=29000
            20002 c5 acquire#901 lock=m
            20003 c5 acquire#901 fail lock=m error=busy
            20004 c4 release#902 grant=900
            20005 c4 release#902 ok
            20006 c5 acquire#903 lock=m
            20007 c5 acquire#903 ok lock=m validity=29000
            20008 c5 release#904 grant=903
            20009 c5 release#904 ok
            20010 storage log#905
            20011 storage log#905 ok entries=0";
        let mut events = self.0.clone();
        events.extend(Told::of(epilogue).0);
        for process in ["c1", "c1.2", "c2", "c3", "c4", "c5"] {
            let is_there =
                !process.contains('.') || self.0.iter().any(|event| event["process"] == process);
            let is_end = |event: &Value| {
                let kills = event["does"][0]["effect"] != "stops";
                event["process"] == process && event["f"] == "exit"
                    || event["f"] == "inject" && event["on"][0] == process && kills
            };
            if is_there && !events.iter().any(is_end) {
                events.extend(event(&format!("20020 {process} exit#910 info")));
            }
        }
        Told(events)
    }

    /// A header whose plan has the faults that there are.
    fn header(&self) -> Value {
        let mut header = header();
        let is_fault = |event: &&Value| event["f"] == "inject" && event["type"] == "invoke";
        let planned = |event: &Value| {
            json!({
                "fault": event["fault"], "on": event["on"][0], "does": event["does"],
                "when": {"trigger": "time", "after_ms": 0}, "shows": {"seen": {}}, "with": {}, "until": {},
            })
        };
        header["plan"]["faults"] = self.0.iter().filter(is_fault).map(planned).collect();
        header
    }

    pub fn events(&self) -> &[Value] {
        &self.0
    }

    /// Whether anybody was granted the lock.
    pub fn has_grants(&self) -> bool {
        let mut events = self.0.iter();
        events.any(|event| event["f"] == "acquire" && event["type"] == "ok")
    }

    fn text(&self) -> String {
        let mut text = header().to_string();
        for event in &self.0 {
            text += &format!("\n{event}");
        }
        text + &format!("\n{{\"events\":{}}}\n", self.0.len())
    }

    /// What `check --model lease-mutex` says, of the whole or of a stream.
    pub fn by_model(&self, streaming: bool) -> Answer {
        let text = self.text();
        let setup = Setup {
            streaming,
            ..Setup::default()
        };
        let model = kinds().iter().find(|kind| kind.name == "lease-mutex");
        let request = Request { model, setup };
        let open = || Entries::new(text.as_bytes());
        let checked = linearizability::check(open, &request, &Limits::default());
        checked.expect("it can be judged").judgement.outcome
    }

    fn gathered(&self) -> Gathered<LeaseMutex> {
        let text = self.text();
        let mut entries = Entries::new(text.as_bytes())
            .expect("a history")
            .with_holds();
        let mut gathering = Gathering::new(LeaseMutex::new(false), false);
        while let Some(entry) = entries.next().expect("entries") {
            if ["acquire", "extend", "release", "lost", "renewed"].contains(&&*entry.f) {
                gathering.push(&entry).expect("an operation of a lock");
            }
        }
        gathering.finish().expect("operations of a lock")
    }

    /// What the search says, without a closed form.
    pub fn by_search(&self) -> Answer {
        let gathered = self.gathered();
        let searched = Searched(&gathered.model);
        let violated = gathered.objects.iter().any(|object| {
            let decision = linearizable(&searched, &object.history, &Limits::default());
            decision != Decision::Linearizable
        });
        answer(violated)
    }

    /// What trying every order says, where that does not take too long.
    pub fn by_brute_force(&self, calls_max: usize) -> Option<Answer> {
        let gathered = self.gathered();
        let objects = &gathered.objects;
        let few = objects
            .iter()
            .all(|object| object.history.len() <= calls_max);
        let is_violated = |history: &History<Operation>| {
            !brute_force::linearizable(&gathered.model, history.calls())
        };
        few.then(|| answer(objects.iter().any(|object| is_violated(&object.history))))
    }

    /// What the property says, and whether all assumptions hold.
    pub fn by_property(&self) -> (Answer, bool) {
        let header = serde_json::from_value(self.header()).expect("a header");
        let mut checker = Checker::new(&header, Options::default());
        for event in &self.completed().0 {
            let text = event.to_string();
            let event: Event<'_> = serde_json::from_str(&text).expect("an event");
            checker.push(&event).expect("an event of a lock");
        }
        let verdict = checker.finish(Seal::Sealed);
        let found = verdict.property("mutual-exclusion").expect("it has grants");
        let answer = match found.outcome {
            Outcome::Holds => Answer::Holds,
            Outcome::Violated { .. } => Answer::Violated,
            _ => Answer::Unknown,
        };
        (answer, verdict.assumptions.is_empty())
    }
}

pub fn answer(violated: bool) -> Answer {
    if violated {
        Answer::Violated
    } else {
        Answer::Holds
    }
}

/// A lease mutex that is searched.
struct Searched<'a>(&'a LeaseMutex);

impl Model for Searched<'_> {
    type State = <LeaseMutex as Model>::State;
    type Operation = Operation;

    fn initial(&self) -> Self::State {
        self.0.initial()
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        self.0.step(state, operation)
    }
}

fn header() -> Value {
    json!({
        "fencepost": 2, "run": "0", "started": "2025-01-01T00:00:00Z", "seed": 1,
        "plan": {
            "scenario": "test", "lock": "redis-token", "topology": "redis", "storage": "postgres",
            "policy": "unfenced", "seed": 1, "clients": 5, "ttl_ms": 30_000, "progress_bound_ms": 1_000_000,
            "limit_ms": 1_000_000,
            "workload": {"name": "document", "work_ms": 1, "rest_ms": 1, "retry_ms": 10, "rounds": 1},
        },
    })
}

fn event(line: &str) -> Option<Value> {
    let mut words = line.split_whitespace();
    let ms = |text: &str| {
        let ms: f64 = text.parse().expect("milliseconds");
        json!((ms * 1e6) as u64)
    };
    let t = ms(words.next()?);
    let process = words.next().expect("a process");
    let (f, op) = words
        .next()
        .expect("what it does")
        .split_once('#')
        .expect("its number");
    let mut words = words.peekable();
    let kind = words
        .next_if(|word| !word.contains('='))
        .unwrap_or("invoke");
    let op: u64 = op.parse().expect("a number");
    let mut event = Map::from_iter([
        ("t".to_owned(), t),
        ("process".to_owned(), json!(process)),
        ("op".to_owned(), json!(op)),
        ("type".to_owned(), json!(kind)),
        ("f".to_owned(), json!(f)),
    ]);
    if f == "acquire" {
        event.insert("lock".to_owned(), json!("l"));
    }
    match (f, kind) {
        ("exit", _) => drop(event.insert("error".to_owned(), json!("exit 0"))),
        ("inject", "ok") => drop(event.insert("evidence".to_owned(), json!({"seen": true}))),
        _ => {}
    }
    for word in words {
        let (field, value) = word.split_once('=').expect("field=value");
        let value = match field {
            "validity" => ms(value),
            "on" => json!([value]),
            "does" => json!([{"effect": value}]),
            "lost" | "held" => json!(value == "true"),
            _ => value
                .parse::<u64>()
                .map_or(json!(value), |number| json!(number)),
        };
        event.insert(field.to_owned(), value);
    }
    Some(Value::Object(event))
}
