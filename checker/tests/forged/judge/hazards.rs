//! The hazards in force: of what struck, of stalls, and of work that takes long.

use serde_json::{Value, json};

use super::Facts;
use super::assumptions::fits::{contradicts, is_of_this_run_and_alive, works_as_planned};
use super::faults::{Strike, hazards_of, step_back};
use super::history::{FOREVER, History, host_of, is_client, is_server, number, text};
use super::lives::{ends_by_others, events_of, kills, processes};
use super::operations::Op;
use super::shown::{is_shown, is_work};
use super::spans::{Span, common, span};

/// A hazard in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Hazard {
    /// Its name in contracts.
    pub name: &'static str,
    /// The host on which it is; `None` for all clients.
    pub host: Option<String>,
    /// When it is in force.
    pub time: Span,
    /// When it is in force for `progress`.
    pub until_healed: Span,
    /// Whether it is a recorded stall, and no fault.
    pub is_stall: bool,
    /// Whether it is shown; what is not touches only perhaps.
    pub is_shown: bool,
}

/// Clients' and storage's hazards that explain why a belief went on.
pub const HOLDS_UP: [&str; 3] = ["client-stopped", "work-held", "write-held"];

/// All hazards in force: of faults, of the healing of clocks, of stalls, of several servers, and of work as long as the
/// lease.
pub fn in_force(facts: &Facts) -> Vec<Hazard> {
    let mut all = Vec::new();
    for strike in &facts.strikes {
        let is_shown = is_shown(facts, strike);
        for host in &strike.on {
            let first = all.len();
            hazards_of_strike(strike, host, is_shown, &mut all);
            if let Some(acts) = acts_again(facts, strike, host).filter(|_| is_shown) {
                all[first..]
                    .iter_mut()
                    .filter(|hazard| ["client-stopped", "work-held"].contains(&hazard.name))
                    .for_each(|hazard| hazard.time.to = hazard.time.to.min(acts));
            }
        }
    }
    all.extend(stalls(facts));
    all.extend(held_at_points(facts));
    all.extend(
        processes(facts.history)
            .into_iter()
            .filter_map(|process| silent_until_killed(facts, process)),
    );
    all.extend(of_several_servers(facts));
    all.extend(
        ends_by_others(facts.history, &facts.strikes)
            .into_iter()
            .filter_map(end_by_others),
    );
    if work_is_long(facts.history) {
        all.extend(long_work(facts));
    }
    all
}

/// When a client that a fault kept from something did that again, once its healing began.
fn acts_again(facts: &Facts, strike: &Strike, host: &str) -> Option<u64> {
    let (healed, _) = strike.healed?;
    let stops = strike.does_any(&["stops"]);
    let is_deed = |event: &&Value| text(event, "f") != Some("exit") && (stops || is_work(event));
    let here = facts
        .history
        .events
        .iter()
        .filter(|event| text(event, "process").is_some_and(|process| host_of(process) == host));
    (is_client(host) && strike.does_any(&["stops", "holds-work"]))
        .then(|| {
            here.filter(is_deed)
                .filter_map(|event| number(event, "t"))
                .filter(|t| *t > healed)
                .min()
        })
        .flatten()
}

fn hazards_of_strike(strike: &Strike, host: &str, is_shown: bool, all: &mut Vec<Hazard>) {
    let mut push = |name, time, until_healed| {
        all.push(Hazard {
            name,
            host: Some(host.to_owned()),
            time,
            until_healed,
            is_stall: false,
            is_shown,
        });
    };
    for name in hazards_of(&strike.does, host, strike.heals) {
        push(name, strike.time_of(name), strike.time());
        if let (Some(other), Some((start, end))) = (step_back(name), strike.healed) {
            push(other, span(start, end), span(start, end));
        }
        // It was never to be healed, and was all the same.
        if let ("server-lost", Some((start, end))) = (name, strike.healed) {
            push("server-restarted", span(start, FOREVER), span(start, end));
        }
    }
}

/// The work of clients, which the plan makes long.
fn long_work<'f>(facts: &'f Facts) -> impl Iterator<Item = Hazard> + 'f {
    let works = facts
        .ops
        .with("work")
        .filter(|work| is_client(work.process));
    works.map(|work| {
        let time = span(work.start, work.end.unwrap_or(FOREVER));
        Hazard {
            name: "work-held",
            host: Some(host_of(work.process).to_owned()),
            time,
            until_healed: time,
            is_stall: false,
            is_shown: works_as_planned(facts),
        }
    })
}

/// A client that was killed may have stood still from its last event on.
fn silent_until_killed(facts: &Facts, process: &str) -> Option<Hazard> {
    let (exits, deeds): (Vec<&Value>, Vec<&Value>) =
        events_of(facts.history, process).partition(|event| text(event, "f") == Some("exit"));
    let last = deeds.iter().filter_map(|event| number(event, "t")).max()?;
    let ends = exits
        .iter()
        .filter(|exit| text(exit, "error") != Some("exit 0"))
        .filter_map(|exit| number(exit, "t"));
    let struck = facts
        .strikes
        .iter()
        .filter(|strike| kills(facts.history, strike, process))
        .map(|strike| strike.inject.end.unwrap_or(FOREVER));
    let time = span(last, ends.chain(struck).min()?);
    (is_client(process) && last < time.to).then(|| Hazard {
        name: "client-stopped",
        host: Some(host_of(process).to_owned()),
        time,
        until_healed: time,
        is_stall: true,
        is_shown: false,
    })
}

/// Who ends something on a host may do more there, of which no contract speaks.
fn end_by_others(exit: &Value) -> Option<Hazard> {
    let time = span(number(exit, "t")?, FOREVER);
    Some(Hazard {
        name: "unforeseen",
        host: Some(host_of(text(exit, "process")?).to_owned()),
        time,
        until_healed: time,
        is_stall: false,
        is_shown: true,
    })
}

/// The run holds clients at points: that is a stall of theirs.
pub fn held_at_points(facts: &Facts) -> Vec<Hazard> {
    facts
        .ops
        .with("point")
        .filter(|point| is_client(point.process))
        .filter_map(|point| {
            let time = span(point.start, point.end?);
            Some(Hazard {
                name: "client-stopped",
                host: Some(host_of(point.process).to_owned()),
                time,
                until_healed: time,
                is_stall: true,
                is_shown: is_of_this_run_and_alive(facts, point.process)
                    && is_waited_for(facts.history, point)
                    && is_of_its_grant(facts, point)
                    && !works_within(facts.history, point.process, time),
            })
        })
        .collect()
}

/// Whether a planned fault strikes when this client is at this point.
fn is_waited_for(history: &History, point: &Op) -> bool {
    history.planned().iter().any(|fault| {
        let when = &fault["when"];
        when["trigger"] == "point"
            && text(when, "client") == Some(host_of(point.process))
            && text(when, "point") == point.text("point")
            && number(when, "nth_grant") == point.number("nth")
    })
}

/// Whether its process had been granted so many locks when it came there.
fn is_of_its_grant(facts: &Facts, point: &Op) -> bool {
    let granted = facts.ops.with("acquire").filter(|acquire| {
        acquire.process == point.process && acquire.ok() && acquire.places.1 < Some(point.places.0)
    });
    point.number("nth") == Some(granted.count() as u64)
}

fn works_within(history: &History, process: &str, time: Span) -> bool {
    events_of(history, process)
        .filter(|event| is_work(event))
        .filter_map(|event| number(event, "t"))
        .any(|t| time.from < t && t < time.to)
}

/// All recorded stalls.
pub fn stalls<'f>(facts: &'f Facts) -> impl Iterator<Item = Hazard> + 'f {
    let recorded = facts.history.remarks_of("stall");
    recorded.filter_map(|event| stall(facts, event))
}

/// Whether a client says that the storage kept it waiting.
pub fn is_on_the_storage(stall: &Value) -> bool {
    stall["on"] == json!(["storage"])
}

/// The hazard that a recorded stall is. It is shown unless the record contradicts it.
fn stall(facts: &Facts, event: &Value) -> Option<Hazard> {
    let host = host_of(text(event, "process")?);
    let stops = match is_on_the_storage(event) && is_client(host) {
        true => vec!["write-held"],
        false => hazards_of(&[json!({"effect": "stops"})], host, true),
    };
    if is_client(host) && !event["on"].is_null() && !is_on_the_storage(event) {
        return None;
    }
    let end = number(event, "t")?;
    let length = number(event, "stalled_ns")?;
    let mut time = span(end.saturating_sub(length), end);
    if is_client(host) && !is_on_the_storage(event) && length > 0 {
        // Whoever did something stood still from then on.
        let done = events_of(facts.history, text(event, "process")?);
        let before = done
            .filter_map(|event| number(event, "t"))
            .filter(|t| *t < end);
        time.from = time.from.max(before.max().unwrap_or(0));
    }
    Some(Hazard {
        name: stops.into_iter().find(|name| *name != "unforeseen")?,
        host: Some(host.to_owned()),
        time,
        until_healed: time,
        is_stall: true,
        is_shown: !contradicts(facts, event),
    })
}

/// What is in force on two servers at once is foreseen by no contract.
fn of_several_servers(facts: &Facts) -> Vec<Hazard> {
    let all = of_each_server(facts);
    let mut both = Vec::new();
    for (place, one) in all.iter().enumerate() {
        for other in all[place + 1..]
            .iter()
            .filter(|other| other.host != one.host)
        {
            both.extend(of_two_servers(one, other));
        }
    }
    both
}

fn of_two_servers(one: &Hazard, other: &Hazard) -> Option<Hazard> {
    let time = *common(&[one.time], &[other.time]).first()?;
    let until_healed = common(&[one.until_healed], &[other.until_healed]);
    Some(Hazard {
        name: "unforeseen",
        host: one.host.clone(),
        time,
        until_healed: until_healed.first().copied().unwrap_or(span(0, 0)),
        is_stall: one.is_stall || other.is_stall,
        is_shown: one.is_shown && other.is_shown,
    })
}

/// Each fault on each of the lock's servers, and each stall of one, whatever it does there.
fn of_each_server(facts: &Facts) -> Vec<Hazard> {
    let mut all: Vec<Hazard> = stalls(facts).collect();
    for strike in &facts.strikes {
        let is_shown = is_shown(facts, strike);
        all.extend(strike.on.iter().map(|host| Hazard {
            name: "unforeseen",
            host: Some((*host).to_owned()),
            time: strike.time_on(host),
            until_healed: strike.time(),
            is_stall: false,
            is_shown,
        }));
    }
    all.retain(|hazard| hazard.host.as_deref().is_some_and(is_server));
    all
}

/// Whether the plan makes work about as long as the lease.
pub fn work_is_long(history: &History) -> bool {
    is_about_as_long_as_the_lease(history, planned_work(history))
}

/// How long the plan makes work, in nanoseconds.
pub fn planned_work(history: &History) -> u64 {
    number(&history.plan()["workload"], "work_ms")
        .unwrap_or(0)
        .saturating_mul(1_000_000)
}

/// Whether this is four fifths of the TTL or more.
pub fn is_about_as_long_as_the_lease(history: &History, work: u64) -> bool {
    work.saturating_mul(5) >= 4 * history.ttl()
}
