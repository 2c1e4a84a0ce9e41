//! The times in which somebody stood still, or was kept waiting by the storage.

use histories::{Event, NEMESIS, Role, STORAGE, host_of};

use super::Intake;
use crate::assumptions::Flaw;
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
                let mut hosts = event.on.iter().flatten();
                if hosts.any(|host| host == STORAGE) {
                    self.wait(event, from);
                } else {
                    self.stall_of_client(event, from);
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
            from,
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
    pub(super) fn held_at_point(&mut self, process: u32, from: u64, until: u64) {
        let name = self.record.names.text(process);
        if Role::of(host_of(name)) == Some(Role::Client) && from < until {
            let state = &mut self.record.processes[process as usize];
            state.stalls.push(Stall {
                from,
                until,
                is_contradicted: false,
            });
        }
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
