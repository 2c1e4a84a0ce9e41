//! Whether something ran where a fault struck.

use std::collections::{BTreeMap, BTreeSet};

use histories::{Role, life_of};

use super::{ByHost, Named};
use crate::faults::{Blow, Faults};
use crate::operations::{Death, Deaths, Process};
use crate::sentences::Clock;

/// A blow, and whose last death before it counts.
struct Struck<'a> {
    blow: Blow<'a>,
    /// The latest process of the host then; none of a server, of which only what killed it tells.
    process: Option<&'a Process>,
    /// From which of the host's deaths on they are that process's.
    first: usize,
    /// The last death before this blow, which is none of its own.
    death: Option<Death>,
}

/// A fault that struck a host on which nothing ran.
pub(super) fn nothing<'a>(by_host: &ByHost<'a>, faults: &'a Faults) -> Option<String> {
    let latest = latest_of_hosts(by_host);
    let mut struck: BTreeMap<&str, Vec<(usize, Struck<'_>)>> = BTreeMap::new();
    for (order, blow) in faults.blows().enumerate() {
        let process = latest.get(blow.host);
        let process = process.and_then(|latest| latest_at(latest, blow.invoked));
        if process.is_some() || Role::of(blow.host) != Some(Role::Client) {
            let of_host = struck.entry(blow.host).or_default();
            of_host.push((
                order,
                Struck {
                    blow,
                    process,
                    first: 0,
                    death: None,
                },
            ));
        }
    }
    let mut found: Option<(usize, String)> = None;
    for (host, mut struck) in struck {
        find_deaths(&mut struck, &faults.deaths_on(host));
        let starts = faults.starts(host);
        let odd = struck.iter().find(|(_, struck)| {
            let (blow, death) = (&struck.blow, &struck.death);
            death.is_some_and(|death| {
                starts.is_none_or(|starts| !starts.follow(&death, blow.completed, blow.op))
            })
        });
        if let Some((order, struck)) = odd
            && found.as_ref().is_none_or(|(first, _)| order < first)
        {
            found = Some((*order, sentence(&struck.blow)));
        }
    }
    found.map(|(_, sentence)| sentence)
}

fn sentence(blow: &Blow<'_>) -> String {
    format!(
        "fault `{}` struck {} at {}, where nothing ran any more",
        blow.fault,
        blow.host,
        Clock::telling(0).at(blow.invoked)
    )
}

/// Of each host: its processes in the order in which they began, each with the one of the highest life so far.
type Latest<'a> = BTreeMap<&'a str, Vec<(u64, Named<'a>)>>;

fn latest_of_hosts<'a>(by_host: &ByHost<'a>) -> Latest<'a> {
    let latest = |processes: &Vec<Named<'a>>| {
        let mut latest: Vec<(u64, Named<'a>)> = Vec::with_capacity(processes.len());
        for &(name, process) in processes {
            let before = latest.last().map(|&(_, before)| before);
            let newer = before.filter(|(before, _)| life_of(before) > life_of(name));
            latest.push((process.first_event, newer.unwrap_or((name, process))));
        }
        latest
    };
    by_host
        .iter()
        .map(|(&host, processes)| (host, latest(processes)))
        .collect()
}

/// The latest process of those that had begun by this instant.
fn latest_at<'a>(latest: &[(u64, Named<'a>)], t: u64) -> Option<&'a Process> {
    let begun = latest.partition_point(|&(began, _)| began <= t);
    let (_, (_, process)) = latest[..begun].last()?;
    Some(process)
}

/// Finds the last death before each blow on a host. A process has the deaths that were asked for since it began: the blows on
/// the latest processes come first, and the deaths that are theirs too are added as it goes back.
fn find_deaths(struck: &mut [(usize, Struck<'_>)], deaths: &Deaths) {
    for (_, struck) in &mut *struck {
        let began = struck.process.map_or(0, |process| process.first_event);
        struck.first = deaths.asked_before(began);
    }
    let mut by_first: Vec<&mut Struck<'_>> = struck.iter_mut().map(|(_, struck)| struck).collect();
    by_first.sort_by_key(|struck| std::cmp::Reverse(struck.first));
    let all = deaths.all();
    let (mut added, mut by_end) = (all.len(), BTreeSet::new());
    for struck in by_first {
        for place in (struck.first..added).rev() {
            by_end.insert((all[place].completed, place));
        }
        added = struck.first;
        let before = by_end.range(..(struck.blow.invoked, 0)).rev();
        let mut before = before.map(|&(_, place)| all[place]);
        let crash = before.find(|death| death.op != struck.blow.op);
        let exit = struck
            .process
            .and_then(|process| exit_before(process, struck.blow.invoked));
        let deaths = exit.into_iter().chain(crash);
        struck.death = deaths.max_by_key(|death| death.completed);
    }
}

/// The last exit of a process before this instant.
fn exit_before(process: &Process, t: u64) -> Option<Death> {
    let before = process.exits.partition_point(|&exit| exit < t);
    let &exit = process.exits[..before].last()?;
    Some(Death {
        op: NONE_OF_THEM,
        invoked: exit,
        completed: exit,
    })
}

/// The operation of a death that no fault caused.
const NONE_OF_THEM: u64 = u64::MAX;
