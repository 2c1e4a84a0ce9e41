//! What struck, what it does, and the hazards that follow.

use serde_json::{Value, json};

use super::history::{FOREVER, History, host_of, is_client, is_server, number, text};
use super::operations::{Op, Operations};
use super::spans::{Span, span};

/// A fault that struck, or may have: an injection that did not fail.
pub struct Strike<'a> {
    /// Its injection.
    pub inject: Op<'a>,
    /// The invocation and the completion of its healing.
    pub healed: Option<(u64, u64)>,
    /// The hosts that it struck.
    pub on: Vec<&'a str>,
    /// What it does.
    pub does: Vec<Value>,
    /// Whether the plan ever heals it.
    pub heals: bool,
}

impl Strike<'_> {
    /// From the injection's invocation to the healing's completion.
    pub fn time(&self) -> Span {
        span(
            self.inject.start,
            self.healed.map_or(FOREVER, |(_, end)| end),
        )
    }

    /// When a hazard that it is is in force: lost state, and a killed server's, stays lost, and so does what nobody foresaw.
    pub fn time_of(&self, hazard: &str) -> Span {
        let lasting = [
            "server-lost",
            "server-restarted",
            "server-emptied",
            "storage-emptied",
            "unforeseen",
        ];
        match lasting.contains(&hazard) {
            true => span(self.inject.start, FOREVER),
            false => self.time(),
        }
    }

    /// When it does anything on one of its hosts: lost state, and a killed server's, stays lost.
    pub fn time_on(&self, host: &str) -> Span {
        let is_lasting = self.does_any(&["loses-state"]) || self.kills() && is_server(host);
        match is_lasting {
            true => span(self.inject.start, FOREVER),
            false => self.time(),
        }
    }

    /// Whether it does one of these.
    pub fn does_any(&self, effects: &[&str]) -> bool {
        let mut names = self.does.iter().filter_map(|does| text(does, "effect"));
        names.any(|name| effects.contains(&name))
    }

    /// Whether it kills.
    pub fn kills(&self) -> bool {
        self.does_any(&["kills", "restarts"])
    }

    /// When it took hold, as its evidence says or else at its completion; `None` if it did not complete `ok`.
    pub fn took_hold(&self) -> Option<u64> {
        took_hold(&self.inject)
    }
}

/// All injections that did not fail, each with its healing.
pub fn strikes<'a>(history: &'a History, ops: &Operations<'a>) -> Vec<Strike<'a>> {
    ops.with("inject")
        .filter(|op| !op.failed())
        .map(|inject| Strike {
            inject: inject.clone(),
            healed: healing(ops, inject).and_then(|heal| Some((heal.start, heal.end?))),
            on: hosts(inject.done.unwrap_or(inject.invoke)),
            does: effects(history, inject.invoke),
            heals: planned_step(history, inject).is_some_and(heals),
        })
        .collect()
}

/// When an injection took hold, within its own time: as its evidence says, or else at its completion.
pub fn took_hold(inject: &Op) -> Option<u64> {
    let done = inject.end.filter(|_| inject.ok())?;
    let told = number(inject.answer("evidence"), "took_hold_ns").unwrap_or(done);
    Some(told.clamp(inject.start, done))
}

/// The heals of its step after it.
pub fn healings<'o, 'a>(
    ops: &'o Operations<'a>,
    inject: &Op<'a>,
) -> impl Iterator<Item = &'o Op<'a>> {
    let (step, start) = (&inject.invoke["step"], inject.start);
    ops.with("heal")
        .filter(move |heal| heal.invoke["step"] == *step && heal.start >= start)
}

/// The first heal of its step after it that completed `ok`.
pub fn healing<'o, 'a>(ops: &'o Operations<'a>, inject: &Op<'a>) -> Option<&'o Op<'a>> {
    healings(ops, inject).find(|heal| heal.ok())
}

/// The planned fault that an injection says to be.
pub fn planned_step<'a>(history: &'a History, inject: &Op) -> Option<&'a Value> {
    let step = number(inject.invoke, "step")?;
    history.planned().get(usize::try_from(step).ok()?)
}

/// The hosts of an inject or heal.
pub fn hosts(event: &Value) -> Vec<&str> {
    let on = event["on"].as_array().map_or(&[][..], Vec::as_slice);
    on.iter().filter_map(Value::as_str).collect()
}

/// Whether a planned fault ends before the run does.
pub fn heals(fault: &Value) -> bool {
    let until = &fault["until"];
    ["after_ms", "event", "at_most_ms"]
        .iter()
        .any(|field| !until[field].is_null())
}

/// What a planned or injected fault does. In version 1 the name of the planned one says so, and events do not.
pub fn effects(history: &History, fault: &Value) -> Vec<Value> {
    if history.version() > 1 {
        return fault["does"].as_array().cloned().unwrap_or_default();
    }
    let is_event = !fault["t"].is_null();
    let planned = match number(fault, "step").filter(|_| is_event) {
        Some(step) => history
            .planned()
            .get(step as usize)
            .filter(|planned| planned["fault"] == fault["fault"]),
        None => Some(fault).filter(|_| !is_event),
    };
    planned.map(by_name).unwrap_or_default()
}

/// Whether an event says nothing of what it does, or this. A field that is null says nothing.
pub fn does_the_same(event: &Value, does: &[Value]) -> bool {
    let told = |effects: &[Value]| -> Vec<Value> {
        let mut effects = effects.to_vec();
        for fields in effects.iter_mut().filter_map(Value::as_object_mut) {
            fields.retain(|_, field| !field.is_null());
        }
        effects
    };
    let own = event["does"].as_array();
    event["does"].is_null() || own.is_some_and(|own| told(own) == told(does))
}

/// What the faults of version 1 do.
fn by_name(fault: &Value) -> Vec<Value> {
    let with = &fault["with"];
    match text(fault, "fault") {
        Some("pause") => vec![json!({"effect": "stops"})],
        Some("crash") => vec![json!({"effect": "kills"})],
        Some("restart") => vec![json!({"effect": "restarts"})],
        Some("long-work") => vec![json!({"effect": "holds-work"})],
        Some("delay") => {
            vec![json!({"effect": "delays-packets", "to": with["to"], "each_ms": with["delay_ms"]})]
        }
        Some("clock-step") => match with["step_ms"].as_i64() {
            Some(step) if step > 0 => vec![json!({"effect": "clock-forward"})],
            Some(step) if step < 0 => vec![json!({"effect": "clock-back"})],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The hazards of a fault that does all this on a host; none said is unforeseen.
pub fn hazards_of(does: &[Value], host: &str, heals: bool) -> Vec<&'static str> {
    if does.is_empty() {
        return vec!["unforeseen"];
    }
    does.iter()
        .flat_map(|effect| hazards_of_one(effect, host, heals))
        .collect()
}

fn hazards_of_one(effect: &Value, host: &str, heals: bool) -> Vec<&'static str> {
    let on_client = is_client(host);
    let on_server = is_server(host) || host == "leader";
    let on_storage = host == "storage";
    match text(effect, "effect") {
        Some("stops") if on_client => vec!["client-stopped"],
        Some("stops") if on_server => vec!["server-stopped"],
        Some("stops") if on_storage => vec!["write-held"],
        Some("kills" | "restarts") if on_client => vec!["client-crashed"],
        Some("restarts") if on_server => vec!["server-restarted"],
        Some("kills") if on_server && heals => vec!["server-restarted"],
        Some("kills") if on_server => vec!["server-lost"],
        Some("kills" | "restarts") if on_storage => vec!["storage-crashed"],
        Some("holds-work") if on_client => vec!["work-held"],
        Some("delays-packets") if on_client => delayed(text(effect, "to")),
        Some("delays-packets") if on_server => vec!["server-cut-off"],
        Some("delays-packets") if on_storage => vec!["write-held"],
        Some("clock-forward" | "clock-back") if on_client => Vec::new(),
        Some("clock-forward") if on_server => vec!["server-clock-forward"],
        Some("clock-back") if on_server => vec!["server-clock-back"],
        Some("clock-forward" | "clock-back") if on_storage => vec!["storage-clock"],
        Some("loses-state") if on_server => vec!["server-emptied"],
        Some("loses-state") if on_storage => vec!["storage-emptied"],
        _ => vec!["unforeseen"],
    }
}

/// The hazards of packets that are delayed to this host, or to all.
pub fn delayed(to: Option<&str>) -> Vec<&'static str> {
    match to {
        None => vec!["write-held", "client-cut-off"],
        Some("storage") => vec!["write-held"],
        Some("servers" | "leader") => vec!["client-cut-off"],
        Some(host) if is_server(host) && host_of(host) == host => vec!["client-cut-off"],
        Some(_) => vec!["unforeseen"],
    }
}

/// The hazard of the step by which a step of a server's clock is healed.
pub fn step_back(name: &str) -> Option<&'static str> {
    match name {
        "server-clock-forward" => Some("server-clock-back"),
        "server-clock-back" => Some("server-clock-forward"),
        _ => None,
    }
}
