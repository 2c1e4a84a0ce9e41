//! Whether each process that the plan has is there, in one life after the other, from its beginning to its end.

mod struck;

use std::collections::{BTreeMap, HashSet};

use histories::{host_of, life_of};

use crate::faults::{Faults, Starts};
use crate::operations::{NEVER, Process, Record};
use crate::sentences::Clock;

/// A client's process, with its name.
type Named<'a> = (&'a str, &'a Process);

/// Processes by their hosts, in the order in which they began.
type ByHost<'a> = BTreeMap<&'a str, Vec<Named<'a>>>;

fn by_host<'a>(processes: &[Named<'a>]) -> ByHost<'a> {
    let mut by_host: ByHost<'a> = BTreeMap::new();
    for &(name, process) in processes {
        by_host
            .entry(host_of(name))
            .or_default()
            .push((name, process));
    }
    by_host
}

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
    let by_host = by_host(&processes);
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
        (1..=clients).find_map(|number| other_lives(&by_host, faults, &format!("c{number}"))),
        struck::nothing(&by_host, faults),
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
    let gone = process.crashes.first_done();
    let killed = gone.is_some_and(|gone| process.exits.iter().any(|&exit| exit > gone));
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
fn other_lives(by_host: &ByHost<'_>, faults: &Faults, client: &str) -> Option<String> {
    let here = by_host.get(client)?.iter();
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
    let certain = starts.map_or(0, Starts::certain);
    let again = last as usize - 1;
    if again < certain {
        return Some(format!(
            "{client} was started again {}, and did so {}: what it did then is missing",
            times(certain),
            times(again)
        ));
    }
    let of_itself = |(&life, process): (&u32, &&Process)| {
        let name = format!("{client}.{life}");
        let is_odd = life > 1 && !faults.knows_process(&name, process.first_event);
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
