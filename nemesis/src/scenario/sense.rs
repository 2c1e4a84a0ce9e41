//! Whether a fault makes sense: with its trigger, beside other faults, on a topology.

use std::ops::Range;

use containers::services::Postgres;
use containers::topologies::Topology;

use super::fault::Surroundings;
use super::table::{Found, Problems};
use super::{Given, WantedFault, WantedWhen};
use crate::hosts::{LEADER, Role, SERVERS, STORAGE};

/// Complains about a fault whose trigger it cannot have.
pub(super) fn check_trigger(fault: &Found<WantedFault>, problems: &Problems<'_>) {
    let wanted = &fault.value;
    let own_point =
        matches!(&wanted.when, WantedWhen::Point { client, .. } if *client == wanted.on);
    if wanted.fault.holds_its_client() && !own_point {
        let message = format!(
            "`{}` of `{on}` is held at a point of `{on}`: write `when = {{ client = \"{on}\", point = \"…\" }}`",
            wanted.fault.name(),
            on = wanted.on
        );
        problems.add(&fault.at, message);
    }
}

/// Complains about a fault that makes no sense on a topology that the scenario names, or on any where it names none.
pub(super) fn check_topologies(
    fault: &Found<WantedFault>,
    at: &Range<usize>,
    surroundings: &Surroundings,
    problems: &Problems<'_>,
) {
    let reasons: Vec<(&str, String)> = surroundings
        .topologies
        .iter()
        .filter_map(|topology| Some((topology.name, not_here(&fault.value, topology)?)))
        .collect();
    let everywhere = reasons.len() == surroundings.topologies.len();
    if let Some((topology, reason)) = reasons.first()
        && (everywhere || !surroundings.all_topologies)
    {
        problems.add(at, format!("on topology `{topology}` {reason}"));
    }
}

/// Why a fault makes no sense on a topology.
pub(super) fn not_here(fault: &WantedFault, topology: &Topology) -> Option<String> {
    let others = fault.with.iter().filter_map(|(_, given)| match given {
        Given::Host(host) => Some(host.as_str()),
        Given::Length(_) | Given::Port(_) => None,
    });
    std::iter::once(fault.on.as_str())
        .chain(others)
        .find_map(|host| lacks(topology, host))
        .or_else(|| unsuitable(fault, topology))
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

fn unsuitable(fault: &WantedFault, topology: &Topology) -> Option<String> {
    let struck = topology
        .servers
        .iter()
        .filter(|(server, _)| fault.on == LEADER || fault.on == *server)
        .map(|(_, service)| *service);
    let mut struck: Vec<_> = struck.collect();
    if fault.on == STORAGE {
        struck.push(&Postgres);
    }
    struck
        .into_iter()
        .find_map(|service| fault.fault.suits(service).err())
}

/// Complains about faults that cannot go together.
pub(super) fn check_together(faults: &[Found<WantedFault>], problems: &Problems<'_>) {
    let stops = |fault: &WantedFault| {
        let own = matches!(&fault.when, WantedWhen::Point { client, .. } if *client == fault.on);
        own && fault.fault.stops_its_client()
    };
    for (index, second) in faults.iter().enumerate() {
        let first = faults[..index].iter().find(|first| {
            stops(&first.value) && stops(&second.value) && first.value.when == second.value.when
        });
        if let Some(first) = first {
            let message = format!(
                "`{}` and `{}` both stop `{}` at this point",
                first.value.fault.name(),
                second.value.fault.name(),
                second.value.on
            );
            problems.add(&second.at, message);
        }
    }
}
