//! Stalls as hazards: the times in which clients and servers say that they stood still, and in which the run held a client
//! at a point.

use histories::{Deed, Effect, Hazard, Role, host_of};

use super::{Disturbance, Window, disturbance, stall};
use crate::contract::hazards_of;
use crate::faults::Faults;
use crate::operations::{HostStall, Process, Record, Stall};

/// The stalls of clients, and the times in which the storage kept them waiting. A stall is not shown if its client is not in
/// the plan, or has events after its death.
pub(super) fn of_clients(record: &Record, faults: &Faults) -> Vec<Window> {
    let mut windows = Vec::new();
    for (number, process) in record.processes.iter().enumerate() {
        let name = record.names.text(number as u32);
        let is_known =
            faults.knows_process(name, process.first_event) && !process.outlives_its_death();
        let mut told = |hazard, stalls: &[Stall]| {
            windows.extend(stalls.iter().map(|told| Window {
                is_shown: is_known && !told.is_contradicted,
                ..stall(hazard, Some(host_of(name)), told.from, told.until)
            }));
        };
        told(Hazard::ClientStopped, &process.stalls);
        told(Hazard::WriteHeld, &process.waits);
        windows.extend(untold(host_of(name), process));
    }
    windows
}

/// A client that was killed may have stood still before, and could not say so.
fn untold(host: &str, process: &Process) -> Option<Window> {
    let is_client = Role::of(host) == Some(Role::Client);
    let (from, until) = process.silent_until_killed().filter(|_| is_client)?;
    Some(Window {
        is_shown: false,
        ..stall(Hazard::ClientStopped, Some(host), from, until)
    })
}

/// The stalls of servers and of the storage. Who answers meanwhile does not stand still.
pub(super) fn of_hosts(record: &Record, faults: &Faults) -> Vec<Window> {
    let of_one = |stood: &HostStall| {
        let hazards = hazards_of(&Effect::of(Deed::Stops), Some(stood.role), true);
        let (from, until) = (stood.from, stood.until);
        let is_shown = faults.knows(&stood.host) && !faults.answered_within(stood);
        hazards.into_iter().map(move |hazard| Window {
            is_shown,
            ..stall(hazard, None, from, until)
        })
    };
    record.host_stalls.iter().flat_map(of_one).collect()
}

/// Who stands still can't ask for locks.
pub(super) fn disturbances(record: &Record) -> Vec<Disturbance> {
    let processes = record.processes.iter().enumerate();
    let of_process = processes.flat_map(|(number, process)| {
        let host = host_of(record.names.text(number as u32));
        process.stalls.iter().map(|told| Disturbance {
            is_stall: true,
            ..disturbance(host, told.from, told.until)
        })
    });
    of_process.collect()
}
