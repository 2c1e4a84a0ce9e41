//! What ends grants beside their validity: their releases, the deaths of their processes and of their servers.

use std::sync::Arc;

use crate::faults::Faults;
use crate::operations::{Acquire, Call, Crashes, Deaths, NEVER, Process, Record, Why};

/// Ends the grants that were given back, and those of processes that died or whose story is cut off.
///
/// A process dies at some time between the crash's invocation and its completion. What it was granted before ends at
/// the invocation; what it recorded in between is real, yet nobody knows for how long it lived to hold it.
///
/// A history that is cut is only roughly in order, so that it may lack what one process did before the last event of
/// another: nothing is known of a process from its own last event on.
pub(crate) fn end_grants(record: &mut Record, faults: &Faults, complete: bool) {
    for row in 0..record.releases.len() {
        let release = record.releases[row];
        if !release.is_void() {
            let (at, op) = (release.call.invoked, release.call.op);
            record.end_grant(release.grant, at, op, Why::Released);
        }
    }
    for (number, process) in record.processes.iter_mut().enumerate() {
        let host = histories::host_of(record.names.text(number as u32));
        process.crashes = Crashes::since(process.first_event, faults.deaths_on(host));
    }
    for row in 0..record.acquires.len() {
        let Acquire { call, end, .. } = record.acquires[row];
        let process = &record.processes[call.process as usize];
        let ends = ends_of(process, &call, end.at, complete);
        for (at, op, why) in ends.into_iter().flatten() {
            record.end_grant(row as u32, at, op, why);
        }
        let acquire = &record.acquires[row];
        if acquire.granted() && acquire.end.why == Why::Crashed {
            record.killed.push((row as u32, end.at));
        }
    }
    end_with_their_server(record, faults);
}

/// What else than its client's own doing ends a grant, given when that does.
fn ends_of(
    process: &Process,
    call: &Call,
    ended: u64,
    complete: bool,
) -> [Option<(u64, u64, Why)>; 5] {
    let first = |instants: &[u64]| {
        let later = instants.partition_point(|&instant| instant < call.completed);
        instants.get(later).copied()
    };
    let crash = process.crashes.first_done_since(call.completed);
    let long_ago = first(&process.unclear_since_when).filter(|&told| told <= ended);
    [
        crash.map(|crash| (crash.invoked.max(call.completed), crash.op, Why::Crashed)),
        first(&process.exits).map(|exit| (exit, call.op, Why::Exited)),
        first(&process.unclear).map(|unclear| (unclear, call.op, Why::Unclear)),
        long_ago.map(|_| (0, call.op, Why::Unclear)),
        (!complete).then_some((process.last_event, call.op, Why::CutOff)),
    ]
}

/// A grant without expiry is held on a server, or on a session of one, and ends with it.
fn end_with_their_server(record: &mut Record, faults: &Faults) {
    let deaths = Deaths::new(faults.server_deaths().collect());
    if deaths.all().is_empty() {
        return;
    }
    let deaths = Crashes::since(0, Arc::new(deaths));
    for acquire in &mut record.acquires {
        if acquire.granted() && acquire.validity == NEVER {
            // An acquire that was in flight while its server was killed may have been granted by the server before or by that
            // after.
            let Call {
                invoked, completed, ..
            } = acquire.call;
            let death = deaths.first_done_since(invoked);
            acquire.server_died = death.map_or(NEVER, |death| death.invoked.max(completed));
        }
    }
}
