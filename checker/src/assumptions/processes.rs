//! Whether each process that the plan has is there, in one life after the other, from its beginning to its end.

use std::collections::{BTreeMap, HashSet};

use histories::{host_of, life_of};

use crate::faults::{Blow, Faults};
use crate::operations::{Death, NEVER, Process, Record};
use crate::sentences::Clock;

/// A client's process, with its name.
type Named<'a> = (&'a str, &'a Process);

/// The first end of a host, and the first of a client, that nobody planned or asked for.
pub(super) fn ended_by_others(record: &Record, faults: &Faults) -> Vec<String> {
    let processes = named(record);
    let of_client = first(&processes, |process| ended_client(*process, faults));
    let of_host = ended_host(record, faults);
    of_host.into_iter().chain(of_client).collect()
}

/// What else is wrong with the ends and the lives of processes: the first of each kind.
pub(super) fn failures(record: &Record, faults: &Faults, clients: u32) -> Vec<String> {
    let processes = named(record);
    [
        record
            .host_stalls
            .iter()
            .find(|stall| !faults.knows(&stall.host))
            .map(|stall| format!("{} stood still, and is no host of this run", stall.host)),
        first(&processes, |(name, _)| {
            let is_planned = faults.knows(host_of(name)) && life_of(name).is_some();
            (!is_planned).then(|| format!("{name} is no client of the plan, which has {clients}"))
        }),
        first(&processes, |(name, process)| {
            process
                .outlives_its_death()
                .then(|| format!("{name} has events after its death"))
        }),
        first(&processes, |&process| ended_twice(process)),
        first(&processes, |&process| endless(process, faults)),
        absent(&processes, clients),
        (1..=clients).find_map(|number| other_lives(&processes, faults, &format!("c{number}"))),
        faults
            .blows()
            .find_map(|blow| struck_nothing(&processes, faults, &blow)),
        begun_too_early(&processes),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn named(record: &Record) -> Vec<Named<'_>> {
    let processes = record.processes.iter().enumerate();
    processes
        .map(|(number, process)| (record.names.text(number as u32), process))
        .collect()
}

fn first(
    processes: &[Named<'_>],
    failure: impl Fn(&Named<'_>) -> Option<String>,
) -> Option<String> {
    processes.iter().find_map(failure)
}

fn ended_host(record: &Record, faults: &Faults) -> Option<String> {
    let mut exits = record.host_exits.iter();
    let (host, at, how) = exits.find(|(host, at, _)| !faults.explains_death(host, *at))?;
    let at = Clock::telling(0).at(*at);
    Some(format!(
        "host {host} ended at {at}, which no fault planned: {how}"
    ))
}

/// A process ends once, and one that was killed is gone when that is shown.
fn ended_twice((name, process): Named<'_>) -> Option<String> {
    if process.exits.len() > 1 {
        return Some(format!("{name} ended twice"));
    }
    let gone = |death: &Death| process.exits.iter().any(|&exit| exit > death.completed);
    let killed = process.crashes.iter().any(gone);
    killed.then(|| format!("{name} ended after it had been killed"))
}

fn endless((name, process): Named<'_>, faults: &Faults) -> Option<String> {
    let killed = !process.crashes.is_empty() && faults.killed(host_of(name));
    let ended = !process.exits.is_empty() || killed;
    (!ended).then(|| format!("{name} has no end: what it did last may be missing"))
}

/// An end that the run did not ask for, and no fault explains.
fn ended_client((name, process): Named<'_>, faults: &Faults) -> Option<String> {
    let (at, how) = faults.end_by_others(host_of(name), process)?;
    let how = match how {
        "" => "it does not say how",
        how => how,
    };
    let at = Clock::telling(0).at(at);
    Some(format!(
        "{name} ended at {at}, which nobody planned or asked for: {how}"
    ))
}

/// Lives of a client that are not there, or for which nothing started it again.
fn other_lives(processes: &[Named<'_>], faults: &Faults, client: &str) -> Option<String> {
    let here = processes.iter().filter(|(name, _)| host_of(name) == client);
    let lives: BTreeMap<u32, &Process> = here
        .filter_map(|(name, process)| Some((life_of(name)?, *process)))
        .collect();
    let starts = faults.starts(client);
    let (&last, _) = lives.last_key_value()?;
    let missing = (1..last).find(|life| !lives.contains_key(life));
    if let Some(life) = missing {
        return Some(format!(
            "life {life} of {client} is missing, which came before its life {last}"
        ));
    }
    let certain = starts.iter().filter(|start| start.is_certain).count();
    let again = last as usize - 1;
    if again < certain {
        return Some(format!(
            "{client} was started again {}, and did so {}: what it did then is missing",
            times(certain),
            times(again)
        ));
    }
    let of_itself = |(&life, process): (&u32, &&Process)| {
        let start = starts.get((life as usize).checked_sub(2)?);
        let is_odd = start.is_none_or(|start| process.first_event < start.asked);
        is_odd.then(|| format!("life {life} of {client} began, and nothing had started it"))
    };
    lives.iter().find_map(of_itself)
}

fn times(count: usize) -> String {
    match count {
        0 => "not at all".to_owned(),
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// A fault that struck a host on which nothing ran.
fn struck_nothing(processes: &[Named<'_>], faults: &Faults, blow: &Blow<'_>) -> Option<String> {
    let death = match latest(processes, blow) {
        Some(process) => died_before(process, blow),
        None => faults.died_before(blow),
    }?;
    let starts = faults.starts(blow.host).into_iter();
    let mut others = starts.filter(|start| start.of != blow.op && start.asked <= blow.completed);
    // What restarts is asked for before the death that it causes.
    let runs = others.any(|start| start.of == death.op || death.completed <= start.asked);
    (!runs).then(|| {
        format!(
            "fault `{}` struck {} at {}, where nothing ran any more",
            blow.fault,
            blow.host,
            Clock::telling(0).at(blow.invoked)
        )
    })
}

/// The process of a client's host that began last before it was struck.
fn latest<'a>(processes: &[Named<'a>], blow: &Blow<'_>) -> Option<&'a Process> {
    let here = processes.iter().filter(|(name, process)| {
        host_of(name) == blow.host && process.first_event <= blow.invoked
    });
    here.max_by_key(|(name, _)| life_of(name))
        .map(|(_, process)| *process)
}

/// The last death of a process for certain before this blow, which is none of its deaths.
fn died_before(process: &Process, blow: &Blow<'_>) -> Option<Death> {
    let exits = process.exits.iter().map(|&exit| Death {
        op: NONE_OF_THEM,
        invoked: exit,
        completed: exit,
    });
    let crashes = process.crashes.iter().copied();
    let deaths = exits.chain(crashes.filter(|crash| crash.op != blow.op));
    deaths
        .filter(|death| death.completed < blow.invoked)
        .max_by_key(|death| death.completed)
}

/// The operation of a death that no fault caused.
const NONE_OF_THEM: u64 = u64::MAX;

/// A client of the plan of which there is no trace: what it did is missing.
fn absent(processes: &[Named<'_>], clients: u32) -> Option<String> {
    let there: HashSet<&str> = processes.iter().map(|(name, _)| host_of(name)).collect();
    let mut planned = (1..=clients).map(|number| format!("c{number}"));
    let absent = planned.find(|host| !there.contains(host.as_str()))?;
    Some(format!(
        "{absent} did nothing and has no end, though the plan has {clients} clients"
    ))
}

/// A next life on a host that began before those before it had died.
fn begun_too_early(processes: &[Named<'_>]) -> Option<String> {
    let mut lives: BTreeMap<(&str, u32), Named<'_>> = BTreeMap::new();
    for &(name, process) in processes {
        lives.insert((host_of(name), life_of(name)?), (name, process));
    }
    let (mut host_before, mut dead_at) = ("", 0);
    for ((host, _), (name, process)) in lives {
        if host != host_before {
            (host_before, dead_at) = (host, 0);
        }
        if process.first_event < dead_at {
            return Some(format!("{name} began before the life before it had died"));
        }
        dead_at = dead_at.max(process.first_death().unwrap_or(NEVER));
    }
    None
}
