//! When processes died, and when others were started in their place.

use super::Facts;
use super::faults::{Strike, healings};
use super::history::{FOREVER, History, host_of, is_server, number, text};
use super::operations::Op;
use super::spans::{Span, span};

/// The deaths of a process: at some time from `from` to `to`.
pub fn deaths(history: &History, strikes: &[Strike], process: &str) -> Vec<Span> {
    let mut deaths: Vec<Span> = history
        .remarks_of("exit")
        .filter(|event| text(event, "process") == Some(process))
        .filter_map(|event| number(event, "t"))
        .map(|t| span(t, t))
        .collect();
    deaths.extend(
        strikes
            .iter()
            .filter(|strike| kills(history, strike, process))
            .map(|strike| span(strike.inject.start, strike.inject.end.unwrap_or(FOREVER))),
    );
    deaths
}

/// Whether a fault killed this process, and no earlier or later one of its host.
pub fn kills(history: &History, strike: &Strike, process: &str) -> bool {
    strike.kills()
        && strike.on.contains(&host_of(process))
        && began(history, process).is_some_and(|first| first <= strike.inject.start)
}

/// Whether a fault of the plan that kills struck this process.
pub fn is_killed_as_planned(history: &History, strikes: &[Strike], process: &str) -> bool {
    strikes
        .iter()
        .any(|strike| is_planned(history, strike) && kills(history, strike, process))
}

fn is_planned(history: &History, strike: &Strike) -> bool {
    number(strike.inject.invoke, "step")
        .is_some_and(|step| (step as usize) < history.planned().len())
}

/// The exits that somebody else brought about: of a client that neither ended well nor was asked to, and of any server, each
/// unless a fault of the plan that kills explains it.
pub fn ends_by_others<'a>(history: &'a History, strikes: &[Strike]) -> Vec<&'a serde_json::Value> {
    history
        .remarks_of("exit")
        .filter(|exit| {
            let process = text(exit, "process").unwrap_or_default();
            match is_server(process) || host_of(process) == "storage" {
                true => !is_explained(history, strikes, exit),
                false => {
                    let how = text(exit, "error").unwrap_or_default();
                    let is_well = how == "exit 0" || how.ends_with(", as asked");
                    !is_well && !is_killed_as_planned(history, strikes, process)
                }
            }
        })
        .collect()
}

/// Whether a fault of the plan that kills was in force on a server's host when it ended.
fn is_explained(history: &History, strikes: &[Strike], exit: &serde_json::Value) -> bool {
    let host = host_of(text(exit, "process").unwrap_or_default());
    let t = number(exit, "t").unwrap_or_default();
    strikes.iter().any(|strike| {
        let time = strike.time();
        is_planned(history, strike)
            && strike.kills()
            && strike.on.contains(&host)
            && (time.from..=time.to).contains(&t)
    })
}

/// The time of a process's first event.
pub fn began(history: &History, process: &str) -> Option<u64> {
    let times = events_of(history, process).filter_map(|event| number(event, "t"));
    times.min()
}

/// All events of a process.
pub fn events_of<'a>(
    history: &'a History,
    process: &str,
) -> impl Iterator<Item = &'a serde_json::Value> {
    let process = process.to_owned();
    history
        .events
        .iter()
        .filter(move |event| text(event, "process") == Some(&process))
}

/// The processes that have events, each once.
pub fn processes(history: &History) -> Vec<&str> {
    let mut processes: Vec<&str> = history
        .events
        .iter()
        .filter_map(|event| text(event, "process"))
        .collect();
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// Whether a process has events after one of its deaths. An exit tells of a death and is none.
pub fn goes_on_after_death(history: &History, strikes: &[Strike], process: &str) -> bool {
    let deaths = deaths(history, strikes, process);
    !deaths.is_empty()
        && events_of(history, process)
            .filter(|event| text(event, "f") != Some("exit"))
            .filter_map(|event| number(event, "t"))
            .any(|t| deaths.iter().any(|death| t > death.to))
}

/// That something which had died is started again, or may be.
pub struct Start {
    /// When that was asked for.
    pub asked: u64,
    /// Whether it was certainly done.
    pub is_certain: bool,
    /// The injection of the fault that it belongs to.
    pub inject: u64,
}

/// All starts on a host, by when they were asked for: healings of faults that kill, and faults that restart.
pub fn starts(facts: &Facts, host: &str) -> Vec<Start> {
    let mut starts = Vec::new();
    for strike in facts
        .strikes
        .iter()
        .filter(|strike| strike.on.contains(&host))
    {
        let start = |op: &Op| Start {
            asked: op.start,
            is_certain: op.ok(),
            inject: strike.inject.id,
        };
        if strike.does_any(&["kills"]) {
            let heals = healings(&facts.ops, &strike.inject).filter(|heal| !heal.failed());
            starts.extend(heals.map(start));
        }
        if strike.does_any(&["restarts"]) {
            starts.push(start(&strike.inject));
        }
    }
    starts.sort_by_key(|start| start.asked);
    starts
}

/// Which life a process is.
pub fn life(process: &str) -> Option<u64> {
    match process.split_once('.') {
        None => Some(1),
        Some((_, life)) => {
            let number: u64 = life.parse().ok()?;
            (number > 1 && number.to_string() == life).then_some(number)
        }
    }
}
