//! When each grant was held for certain, how long its client believed in it, and which grant is later than which.

use crate::faults::Faults;
use crate::operations::{Acquire, Call, Completion, Extend, NEVER, Process, Record, Why};

/// A time in which a grant was held: from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) lock: u32,
    pub(crate) start: u64,
    /// [`NEVER`] if nothing ends it.
    pub(crate) end: u64,
    /// A row of the acquires.
    pub(crate) grant: u32,
}

/// Grants that were held while another was.
#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    /// How many grants began to be held while another was.
    pub(crate) grants: u64,
    /// The first of them: the hold that was there, and the one that came.
    pub(crate) first: Option<(Interval, Interval)>,
    /// The locks that have none.
    pub(crate) exclusive: Vec<bool>,
}

/// The grants of a history.
pub(crate) struct Grants {
    /// The certain holds, by lock and start. An extension that comes after the validity ran out leaves a gap.
    pub(crate) certain: Vec<Interval>,
    /// The beliefs, likewise; one a grant.
    pub(crate) beliefs: Vec<Interval>,
    /// The conflicts between certain holds.
    pub(crate) conflicts: Conflicts,
    /// By acquire: an instant before which the service cannot have granted it, see [`began`].
    pub(crate) began: Vec<u64>,
}

impl Grants {
    pub(crate) fn new(record: &Record) -> Grants {
        let certain = certain_holds(record);
        let conflicts = conflicts(&certain, record.locks.len());
        let began = began(record, &certain, &conflicts.exclusive);
        Grants {
            certain,
            beliefs: beliefs(record),
            conflicts,
            began,
        }
    }

    /// How many grants were outlived: their clients still acted as the holder when nothing vouched for it any more.
    pub(crate) fn outlived(&self) -> u64 {
        let mut vouched_until = vec![0; self.began.len()];
        for hold in &self.certain {
            let until = &mut vouched_until[hold.grant as usize];
            *until = hold.end.max(*until);
        }
        let outlives = |belief: &&Interval| {
            belief.end != NEVER && belief.end > vouched_until[belief.grant as usize]
        };
        self.beliefs.iter().filter(outlives).count() as u64
    }
}

/// Ends the grants of processes that crashed or exited, or whose story is cut off.
///
/// A process dies at some time between the crash's invocation and its completion. What it was granted before ends at
/// the invocation; what it recorded in between is real, yet nobody knows for how long it lived to hold it.
///
/// A history that is cut is only roughly in order, so that it may lack what one process did before the last event of
/// another: nothing is known of a process from its own last event on.
pub(crate) fn end_with_their_processes(record: &mut Record, faults: &Faults, complete: bool) {
    for crash in faults.crashes() {
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
    }
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

/// Until when a process waits for the answer to an acquire: the answer, its own end, or that of the history.
pub(crate) fn waits_until(record: &Record, call: &Call) -> u64 {
    if call.completed != NEVER {
        return call.completed;
    }
    let process = &record.processes[call.process as usize];
    let crashes = process
        .crashes
        .iter()
        .filter(|crash| call.invoked <= crash.completed);
    let exits = process
        .exits
        .iter()
        .copied()
        .filter(|&exit| exit >= call.invoked);
    crashes
        .map(|crash| crash.invoked.max(call.invoked))
        .chain(exits)
        .min()
        .unwrap_or(record.end)
}

fn certain_holds(record: &Record) -> Vec<Interval> {
    let mut extends: Vec<u32> = (0..record.extends.len() as u32).collect();
    extends.sort_unstable_by_key(|&row| (record.extends[row as usize].grant, row));
    let mut extends = extends
        .into_iter()
        .map(|row| &record.extends[row as usize])
        .peekable();
    let mut holds = Vec::with_capacity(record.acquires.len() / 2);
    let mut own = Vec::new();
    for (grant, acquire) in record.acquires.iter().enumerate() {
        let grant = grant as u32;
        own.clear();
        while let Some(extend) = extends.next_if(|extend| extend.grant <= grant) {
            own.push(extend);
        }
        if acquire.granted() {
            push_certain(&mut holds, grant, acquire, &own);
        }
    }
    holds.sort_unstable();
    holds
}

/// Adds the certain holds of one grant.
///
/// An extension counts from its return on. One that shortens the validity may have been in force since it was asked for.
fn push_certain(holds: &mut Vec<Interval>, grant: u32, acquire: &Acquire, extends: &[&Extend]) {
    let mut push = |start: u64, until: u64| {
        let end = until.min(acquire.end.at);
        if start < end {
            holds.push(Interval {
                lock: acquire.lock,
                start,
                end,
                grant,
            });
        }
    };
    let (mut start, mut until) = (acquire.call.completed, acquire.validity);
    for Extend {
        call,
        validity,
        ttl_ms,
        ..
    } in extends
    {
        match call.completion {
            Completion::Ok => {
                let extended = validity.unwrap_or(until);
                let before = if extended < until {
                    extended.max(call.invoked)
                } else {
                    until
                };
                if before < call.completed {
                    push(start, before);
                    start = call.completed;
                    until = extended;
                } else {
                    until = extended.max(call.completed);
                }
            }
            // It may have replaced the time that was left by the time that was asked for.
            Completion::Info | Completion::Pending => {
                let asked = ttl_ms.map_or(NEVER, |ttl_ms| {
                    call.invoked
                        .saturating_add(ttl_ms.saturating_mul(1_000_000))
                });
                until = until.min(asked);
            }
            Completion::Fail => {}
        }
    }
    push(start, until);
}

fn beliefs(record: &Record) -> Vec<Interval> {
    let granted = record
        .acquires
        .iter()
        .enumerate()
        .filter(|(_, acquire)| acquire.granted());
    let mut beliefs: Vec<Interval> = granted
        .map(|(grant, acquire)| Interval {
            lock: acquire.lock,
            start: acquire.call.completed,
            end: acquire.end.at,
            grant: grant as u32,
        })
        .filter(|belief| belief.start < belief.end)
        .collect();
    beliefs.sort_unstable();
    beliefs
}

/// Finds the grants that began to be held while another was, in one sweep over holds ordered by lock and start.
///
/// It is enough to remember, of the holds so far, the one that ends last: if a hold overlaps any of them it overlaps
/// that one. Holds of one grant never overlap each other, so that this one is another grant's.
pub(crate) fn conflicts(holds: &[Interval], locks: usize) -> Conflicts {
    let mut conflicts = Conflicts {
        exclusive: vec![true; locks],
        ..Conflicts::default()
    };
    let mut caught: Vec<u32> = Vec::new();
    let mut longest: Option<Interval> = None;
    for hold in holds {
        match longest.filter(|longest| longest.lock == hold.lock) {
            Some(held) if hold.start < held.end => {
                caught.push(hold.grant);
                conflicts.exclusive[hold.lock as usize] = false;
                if conflicts
                    .first
                    .is_none_or(|(_, first)| hold.start < first.start)
                {
                    conflicts.first = Some((held, *hold));
                }
                if hold.end > held.end {
                    longest = Some(*hold);
                }
            }
            _ => longest = Some(*hold),
        }
    }
    caught.sort_unstable();
    caught.dedup();
    conflicts.grants = caught.len() as u64;
    conflicts
}

/// By acquire: an instant before which the service cannot have granted it, unless the lock had two holders.
///
/// That is its invocation; yet a service that waits may be asked long before it grants. Take a grant h that is held for
/// certain when its acquire returns, at `h.ok`, and a certain hold [a, b) of another grant with b <= `h.ok`. Once
/// granted, h stays granted at least until `h.ok`. Had the service granted it before b, then from max(a, the grant of h)
/// up to b both would have been held: a double holder. So h began at b or later, for the last such b.
///
/// Where the certain holds of a lock do overlap its exclusion is refuted, and the invocation is all that is known. The
/// same goes for a grant whose validity was over when its acquire returned: nobody knows how long it was held.
fn began(record: &Record, certain: &[Interval], exclusive: &[bool]) -> Vec<u64> {
    let mut began: Vec<u64> = record
        .acquires
        .iter()
        .map(|acquire| acquire.call.invoked)
        .collect();
    for pair in certain.windows(2) {
        let [before, hold] = [pair[0], pair[1]];
        let returned = record.acquires[hold.grant as usize].call.completed;
        if before.lock == hold.lock && exclusive[hold.lock as usize] && hold.start == returned {
            let began = &mut began[hold.grant as usize];
            *began = before.end.max(*began);
        }
    }
    began
}
