//! Small histories in few words.
//!
//! A line is `milliseconds process op type f field=value…`; `validity`, `stalled` and all times are milliseconds. What an
//! honest record needs beside the case is added: two clients that compete at the beginning, the ends of the
//! clients, and the log of the accepted writes.

use serde_json::{Value, json};

use crate::contracts;
use crate::differences::differences;
use crate::file::{File, time};
use crate::honest::MS;
use crate::judge::{Judgement, judge};

const BEFORE: &str = "
1 c1 901 invoke acquire lock=L ttl_ms=100
2 c1 901 ok acquire validity=101 token=1
3 c2 902 invoke acquire lock=L ttl_ms=100
4 c2 902 fail acquire error=busy
5 c1 903 invoke release lock=L grant=901
6 c1 903 ok release
7 c2 904 invoke acquire lock=L ttl_ms=100
8 c2 904 ok acquire validity=107 token=2
9 c2 905 invoke release lock=L grant=904
10 c2 905 ok release
";

/// A history that is told, and may be changed before it is judged.
pub struct Tale {
    /// The file.
    pub file: File,
}

/// A tale of a lease that the storage does not fence: TTL 100 ms, bound 300 ms. Its times are best from 100 on.
pub fn tale(lines: &str) -> Tale {
    let mut events: Vec<Value> = Vec::new();
    let with_tokens = lines.contains("token=");
    for line in BEFORE.lines().chain(lines.lines()).map(str::trim) {
        if !line.is_empty() {
            events.push(event(line));
        }
    }
    for event in events.iter_mut().take(10).filter(|_| !with_tokens) {
        event.as_object_mut().expect("an event").remove("token");
    }
    end_clients(&mut events);
    read_log(&mut events);
    let mut file = File::new(header(), events);
    file.sort();
    Tale { file }
}

fn header() -> Value {
    json!({
        "fencepost": 2, "run": "r", "started": "2025-11-30T01:20:00Z", "seed": 1, "servers": {}, "images": {},
        "machine": {}, "build": "0.1.0", "heartbeat_ms": 5, "contract": contracts::of_a_lease(false),
        "plan": {
            "scenario": "tale", "lock": "lease", "topology": "one", "storage": "register", "policy": "unfenced",
            "seed": 1, "clients": 2, "ttl_ms": 100, "progress_bound_ms": 300, "limit_ms": 1000, "controls": [],
            "workload": {"name": "document", "work_ms": 5, "rest_ms": 10, "retry_ms": 10, "rounds": 1}, "faults": [],
        },
    })
}

fn event(line: &str) -> Value {
    let mut words = line.split_whitespace();
    let mut word = || words.next().expect("five words");
    let (t, process, op, kind, f) = (word(), word(), word(), word(), word());
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let nanoseconds = |text: &str| (number(text) * MS as f64) as u64;
    let mut event = json!({"t": nanoseconds(t), "process": process, "op": number(op) as u64, "type": kind, "f": f});
    for (field, text) in words.filter_map(|word| word.split_once('=')) {
        match field {
            "validity" => event["validity"] = nanoseconds(text).into(),
            "stalled" => event["stalled_ns"] = nanoseconds(text).into(),
            _ => event[field] = serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        }
    }
    event
}

fn end_clients(events: &mut Vec<Value>) {
    let end = events.iter().map(time).max().unwrap_or(0) + MS;
    let mut processes: Vec<String> = events
        .iter()
        .filter_map(|event| event["process"].as_str())
        .filter(|process| process.starts_with('c'))
        .map(str::to_owned)
        .collect();
    processes.sort();
    processes.dedup();
    for process in processes {
        if !events
            .iter()
            .any(|e| e["f"] == "exit" && e["process"] == process.as_str())
        {
            events
                .push(json!({"t": end, "process": process, "op": 0, "type": "info", "f": "exit", "error": "exit 0"}));
        }
    }
}

fn read_log(events: &mut Vec<Value>) {
    if events.iter().any(|event| event["f"] == "log") {
        return;
    }
    let end = events.iter().map(time).max().unwrap_or(0) + MS;
    let accepted: Vec<Value> = events
        .iter()
        .filter(|event| event["f"] == "write" && event["type"] == "ok")
        .cloned()
        .collect();
    events.push(json!({"t": end, "process": "storage", "op": 800, "type": "invoke", "f": "log"}));
    for (place, done) in accepted.iter().enumerate() {
        let write = events
            .iter()
            .find(|e| e["op"] == done["op"] && e["type"] == "invoke");
        let write = write.expect("an invocation").clone();
        let mut row = json!({
            "t": end + place as u64 + 1, "process": "storage", "op": done["op"], "type": "ok", "f": "accepted",
            "document": write["document"], "version": done["version"], "value": write["value"],
        });
        if !write["token"].is_null() {
            row["token"] = write["token"].clone();
        }
        events.push(row);
    }
    events.push(json!({"t": end + MS, "process": "storage", "op": 800, "type": "ok", "f": "log", "entries": accepted.len()}));
}

impl Tale {
    /// Plans a fault that lasts 10 ms and injects it from one millisecond to another.
    pub fn fault(mut self, on: &str, effect: &str, from: u64, to: u64) -> Self {
        let step = self.file.header["plan"]["faults"]
            .as_array()
            .map_or(0, Vec::len);
        let does = json!([{"effect": effect}]);
        let fault = json!({
            "fault": effect, "on": on, "when": {"trigger": "time", "after_ms": from}, "until": {"after_ms": 10},
            "does": does, "shows": {"states": {"only": "T"}},
        });
        self.file.header["plan"]["faults"]
            .as_array_mut()
            .expect("a list")
            .push(fault);
        for (place, (t, f)) in [(from, "inject"), (to, "heal")].into_iter().enumerate() {
            let op = 10 * step + place;
            let mut event = json!({
                "t": t * MS, "process": "nemesis", "op": op, "type": "invoke", "f": f, "step": step, "fault": effect,
                "on": [on], "engine": "none", "does": does,
            });
            self.file.events.push(event.clone());
            event["t"] = (t * MS + MS / 2).into();
            event["type"] = "ok".into();
            event["evidence"] = json!({"states": "T"});
            self.file.events.push(event);
        }
        self.file.sort();
        self
    }

    /// Changes the header.
    pub fn header(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.file.header);
        self
    }

    /// Changes the events that this is true of.
    pub fn events(mut self, fits: impl Fn(&Value) -> bool, change: impl Fn(&mut Value)) -> Self {
        self.file
            .events
            .iter_mut()
            .filter(|event| fits(event))
            .for_each(change);
        self.file.sort();
        self
    }

    /// Adds an event.
    pub fn and(mut self, event: Value) -> Self {
        self.file.events.push(event);
        self.file.sort();
        self
    }

    /// Lets its faults strike the server.
    pub fn on_a_server(self) -> Self {
        self.header(|header| header["plan"]["faults"][0]["on"] = "s1".into())
            .events(|e| e["process"] == "nemesis", |e| e["on"] = json!(["s1"]))
    }

    /// Judges it, and sees that the checker says the same.
    pub fn judged(&self) -> Judgement {
        let text = self.file.text();
        assert_eq!(differences(&text), Vec::<String>::new(), "{text}");
        judge(&text).expect("it can be read")
    }

    /// Outcome and class of one property.
    pub fn says(&self, property: &str) -> (&'static str, &'static str) {
        let judgement = self.judged();
        let class = judgement.class(property).unwrap_or("open");
        (judgement.outcome(property), class)
    }

    /// The outcome of one property.
    pub fn outcome(&self, property: &str) -> &'static str {
        self.judged().outcome(property)
    }

    /// Fails unless an assumption failed that begins so.
    pub fn assert_fails(&self, reason: &str) {
        let assumptions = self.judged().assumptions;
        let said = assumptions
            .iter()
            .any(|failure| failure.starts_with(reason));
        assert!(said, "no {reason:?} in {assumptions:?}");
    }

    /// Fails if an assumption failed that begins so.
    pub fn assert_lacks(&self, reason: &str) {
        let assumptions = self.judged().assumptions;
        let said = assumptions
            .iter()
            .any(|failure| failure.starts_with(reason));
        assert!(!said, "{assumptions:?}");
    }

    /// Fails if an assumption failed.
    pub fn assert_whole(&self) {
        assert_eq!(self.judged().assumptions, Vec::<String>::new());
    }
}

/// `c1` works until long after its lease, while `c2` has the lock, and neither is told of it.
pub fn outlived(told: &str) -> Tale {
    tale(&format!(
        "101 c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity=201
         103 c1 2 invoke work grant=1
         210 c2 20 invoke acquire lock=L ttl_ms=100
         211 c2 20 ok acquire validity=310
         400 c1 2 ok work
         401 c1 3 invoke release lock=L grant=1
         402 c1 3 fail release lost=true
         300 c2 21 invoke release lock=L grant=20
         301 c2 21 ok release
         {told}"
    ))
}

/// A run with a pause of `c1` that is as it should be.
pub fn paused() -> Tale {
    let tale = tale(
        "500 c1 1 invoke acquire lock=L ttl_ms=100
         501 c1 1 ok acquire validity=600
         502 c1 2 invoke read grant=1 document=D
         503 c1 2 ok read document=D version=0 value=
         504 c1 3 invoke write grant=1 document=D value=x based_on=0
         505 c1 3 ok write document=D version=1
         506 c1 4 invoke release lock=L grant=1
         507 c1 4 ok release",
    );
    tale.fault("c1", "stops", 400, 420)
}

/// The same with something changed in the events of this function.
pub fn changed(f: &str, change: impl Fn(&mut Value)) -> Tale {
    paused().events(|event| event["f"] == f, change)
}

/// The same without these events.
pub fn without(fits: impl Fn(&Value) -> bool) -> Tale {
    let mut tale = paused();
    tale.file.events.retain(|event| !fits(event));
    tale
}

/// The same with something changed in its planned fault.
pub fn planned(change: impl Fn(&mut Value)) -> Tale {
    paused().header(|header| change(&mut header["plan"]["faults"][0]))
}
