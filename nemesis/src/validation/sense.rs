//! Whether a fault makes sense: on its host, with its trigger and its end, beside other faults, on a topology.

use std::collections::HashMap;

use containers::services::Postgres;
use containers::topologies::Topology;
use histories::{PlannedFault, When};

use super::Cast;
use crate::faults::{Fault, Lasting, Takes};
use histories::{LEADER, Role, SERVERS, STORAGE};

/// A fault without its lengths of time: what a scenario and a plan say alike.
pub(crate) struct Sketch<'a> {
    pub fault: &'static dyn Fault,
    /// The host that it strikes.
    pub on: &'a str,
    /// The client, the point and the grant that it waits for, where those are its trigger.
    pub point: Option<(&'a str, &'a str, u64)>,
    /// The other hosts that it names.
    pub others: Vec<&'a str>,
}

impl<'a> Sketch<'a> {
    pub fn of_planned(fault: &'static dyn Fault, planned: &'a PlannedFault) -> Sketch<'a> {
        let hosts = fault
            .parameters()
            .iter()
            .filter(|parameter| parameter.takes == Takes::Host);
        Sketch {
            fault,
            on: &planned.on,
            point: match &planned.when {
                When::Point {
                    client,
                    point,
                    nth_grant,
                } => Some((client, point, *nth_grant)),
                When::Time { .. } | When::Event(_) => None,
            },
            others: hosts
                .filter_map(|host| planned.with.get(host.name)?.as_str())
                .collect(),
        }
    }

    fn waits_at_its_own_point(&self) -> bool {
        self.point.is_some_and(|(client, ..)| client == self.on)
    }

    /// Whether it has the trigger that it must have.
    pub fn trigger(&self) -> Result<(), String> {
        if !self.fault.holds_its_client() || self.waits_at_its_own_point() {
            return Ok(());
        }
        Err(format!(
            "`{}` of `{on}` is held at a point of `{on}`: write `when = {{ client = \"{on}\", point = \"…\" }}`",
            self.fault.name(),
            on = self.on
        ))
    }

    /// Why it makes no sense on a topology.
    pub fn not_here(&self, topology: &Topology) -> Option<String> {
        std::iter::once(self.on)
            .chain(self.others.iter().copied())
            .find_map(|host| lacks(topology, host))
            .or_else(|| self.unsuitable(topology))
    }

    fn unsuitable(&self, topology: &Topology) -> Option<String> {
        let struck = topology
            .servers
            .iter()
            .filter(|(server, _)| self.on == LEADER || self.on == *server)
            .map(|(_, service)| *service);
        let mut struck: Vec<_> = struck.collect();
        if self.on == STORAGE {
            struck.push(&Postgres);
        }
        struck
            .into_iter()
            .find_map(|service| self.fault.suits(service).err())
    }
}

/// Whether a time comes before the run has to be over.
pub(crate) fn comes_in_time(after_ms: u64, limit_ms: u64) -> Result<(), String> {
    (after_ms < limit_ms).then_some(()).ok_or_else(|| {
        format!("after {after_ms} ms it never strikes: the run is over after {limit_ms} ms at the latest (`limit`)")
    })
}

/// Whether a fault strikes hosts like the one that it is on.
pub(crate) fn strikes(fault: &dyn Fault, on: &str, role: Role) -> Result<(), String> {
    if fault.strikes().contains(&role) {
        return Ok(());
    }
    let strikes: Vec<&str> = fault.strikes().iter().map(|role| role.plural()).collect();
    Err(format!(
        "`{}` strikes {}, not `{on}`",
        fault.name(),
        strikes.join(" and ")
    ))
}

/// Whether a fault has an `until` just where it needs or may have one.
pub(crate) fn end(fault: &dyn Fault, has_until: bool) -> Result<(), String> {
    let name = fault.name();
    match fault.lasting() {
        Lasting::Moment if has_until => Err(format!(
            "a `{name}` is over as soon as it has happened: it takes no `until`"
        )),
        Lasting::Bounded if !has_until => Err(format!("a `{name}` must end before the run can")),
        _ => Ok(()),
    }
}

/// Whether the client that an `until` waits for can complete anything under the fault.
pub(crate) fn waits_for(fault: &dyn Fault, on: &str, client: &str) -> Result<(), String> {
    if !fault.stops_its_client() || on != client {
        return Ok(());
    }
    Err(format!(
        "`{}` keeps `{client}` from completing anything: wait for another client",
        fault.name()
    ))
}

/// Whether a parameter names a host, or all servers, beside the host that the fault is on.
pub(crate) fn other_host(
    cast: &Cast,
    parameter: &str,
    host: &str,
    on: Option<&str>,
) -> Result<(), String> {
    if host == SERVERS {
        return Ok(());
    }
    cast.host(host)?;
    if host == LEADER {
        return Err(format!(
            "`{parameter}` must be one host for the whole run, not `{LEADER}`"
        ));
    }
    if on == Some(host) {
        return Err(format!("`{parameter}` must be another host than `on`"));
    }
    Ok(())
}

fn lacks(topology: &Topology, host: &str) -> Option<String> {
    let there = match host {
        LEADER => topology.has_leader,
        SERVERS => true,
        _ if Role::of(host) == Some(Role::Server) => {
            topology.servers.iter().any(|(server, _)| *server == host)
        }
        _ => true,
    };
    (!there).then(|| format!("there is no `{host}`"))
}

/// The faults that stop a client at a point at which an earlier one stops it already: their numbers, and what is wrong.
pub(crate) fn stopped_twice<'a>(
    sketches: impl IntoIterator<Item = Sketch<'a>>,
) -> Vec<(usize, String)> {
    let mut stopped = HashMap::new();
    let mut twice = Vec::new();
    for (index, sketch) in sketches.into_iter().enumerate() {
        if !sketch.fault.stops_its_client() || !sketch.waits_at_its_own_point() {
            continue;
        }
        let name = sketch.fault.name();
        let first = *stopped.entry(sketch.point).or_insert((index, name));
        if first.0 != index {
            let on = sketch.on;
            let message = format!("`{}` and `{name}` both stop `{on}` at this point", first.1);
            twice.push((index, message));
        }
    }
    twice
}
