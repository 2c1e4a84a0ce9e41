//! What ends grants beside their validity: their releases, the deaths of their processes and of their servers.

use crate::faults::Faults;
use crate::operations::{Acquire, Call, NEVER, Process, Record, Why};

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
    for crash in faults.deaths() {
        for (number, process) in record.processes.iter_mut().enumerate() {
            let host = histories::host_of(record.names.text(number as u32));
            // A process that comes to life after the crash began is the next one on that host.
            if process.first_event <= crash.death.invoked
                && crash.on.iter().any(|name| name == host)
            {
                process.crashes.push(crash.death);
            }
        }
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
    let crashes = process.crashes.iter();
    let crashes = crashes.filter(|crash| call.completed <= crash.completed);
    let crash = crashes.min_by_key(|crash| crash.invoked);
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
    let mut deaths: Vec<_> = faults.server_deaths().collect();
    deaths.sort_unstable_by_key(|death| death.invoked);
    if deaths.is_empty() {
        return;
    }
    for acquire in &mut record.acquires {
        if acquire.granted() && acquire.validity == NEVER {
            // One that was in flight meanwhile may be of the server before or of that after.
            let Call {
                invoked, completed, ..
            } = acquire.call;
            let death = deaths.iter().find(|death| invoked <= death.completed);
            acquire.server_died = death.map_or(NEVER, |death| death.invoked.max(completed));
        }
    }
}
