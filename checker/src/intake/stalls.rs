//! The times in which somebody stood still, or was kept waiting by the storage.

use histories::{Event, NEMESIS, Role, STORAGE, host_of};

use super::{Intake, Open};
use crate::assumptions::Flaw;
use crate::names::NONE;
use crate::operations::{HostStall, Stall};

/// An event so long after a heartbeat may have been made with it, in nanoseconds.
const WITH_THE_HEARTBEAT_NS: u64 = 5_000_000;

impl Intake {
    pub(super) fn stall(&mut self, event: &Event<'_>) {
        let length = event.stalled_ns.unwrap_or_default();
        let from = event.t.saturating_sub(length);
        let lasted = length > 0;
        match Role::of(host_of(&event.process)) {
            Some(role @ (Role::Server | Role::Storage)) => {
                self.record.host_stalls.extend(lasted.then(|| HostStall {
                    host: host_of(&event.process).to_owned(),
                    role,
                    from,
                    until: event.t,
                }));
            }
            Some(Role::Client) if lasted => {
                match event.on.as_deref() {
                    None => self.stall_of_client(event, from),
                    Some([host]) if host == STORAGE => self.wait(event, from),
                    // Nothing else keeps a client waiting.
                    Some(_) => drop(self.process(event)),
                }
            }
            None if event.process == NEMESIS => {}
            // A process that is no client by its name may act like one. What it says of itself is a sign of life and no
            // more, and so is a stall of no length.
            Some(Role::Client) | None => {
                self.process(event);
            }
        }
    }

    /// Every event is a sign of life, so that none can fall within a stall, but for one that was made with the heartbeat
    /// before.
    fn stall_of_client(&mut self, event: &Event<'_>, from: u64) {
        let process = self.process(event);
        let state = &mut self.record.processes[process as usize];
        let is_contradicted = state
            .event_before
            .is_some_and(|before| before > from.saturating_add(WITH_THE_HEARTBEAT_NS));
        state.stalls.push(Stall {
            from: from.max(state.event_before.unwrap_or(0)),
            until: event.t,
            is_contradicted,
        });
        if is_contradicted {
            self.flaws.note(Flaw::Awake, || {
                format!(
                    "{} has events within its stall of op {}",
                    event.process, event.op
                )
            });
        }
    }

    /// At a point the run holds its client, so that what comes of that is no doing of the lock.
    /// It holds nobody where no planned fault waits, nor who goes on with work; nor is a grant any other than it is.
    pub(super) fn held_at_point(&mut self, open: &Open, until: u64) {
        let (process, from) = (open.process, open.invoked);
        let host = host_of(self.record.names.text(process));
        if Role::of(host) != Some(Role::Client) || from >= until {
            return;
        }
        let point = Some(open.asked.point).filter(|point| *point != NONE);
        let place = point.zip(open.asked.nth.filter(|nth| *nth == open.asked.grants));
        let is_planned = place.is_some_and(|(point, nth)| {
            let point = self.record.values.text(point);
            self.faults.waits_at(host, point, nth)
        });
        let state = &mut self.record.processes[process as usize];
        let next = state.worked.partition_point(|&at| at <= from);
        let works = state.worked.get(next).is_some_and(|&at| at < until);
        state.stalls.push(Stall {
            from,
            until,
            is_contradicted: works || !is_planned,
        });
    }

    fn wait(&mut self, event: &Event<'_>, from: u64) {
        let process = self.process(event);
        let state = &mut self.record.processes[process as usize];
        let in_flight = state.storage_op.and_then(|op| self.open.get(&op));
        let is_contradicted = in_flight.is_none_or(|open| open.invoked > from);
        state.waits.push(Stall {
            from,
            until: event.t,
            is_contradicted,
        });
        if is_contradicted {
            self.flaws.note(Flaw::Awake, || {
                format!(
                    "{} says that the storage kept it waiting (op {}), and was not waiting for it all that time",
                    event.process, event.op
                )
            });
        }
    }
}
