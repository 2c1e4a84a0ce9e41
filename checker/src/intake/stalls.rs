//! The times in which somebody stood still, or was kept waiting by the storage.

use histories::{Event, NEMESIS, Role, STORAGE, host_of};

use super::Intake;
use crate::assumptions::Flaw;
use crate::operations::HostStall;

/// An event so long after a heartbeat may have been made with it, in nanoseconds.
const WITH_THE_HEARTBEAT_NS: u64 = 5_000_000;

impl Intake {
    pub(super) fn stall(&mut self, event: &Event<'_>) {
        let length = event.stalled_ns.unwrap_or_default();
        let from = event.t.saturating_sub(length);
        match Role::of(host_of(&event.process)).filter(|_| length > 0) {
            Some(role @ (Role::Server | Role::Storage)) => {
                self.record.host_stalls.push(HostStall {
                    host: host_of(&event.process).to_owned(),
                    role,
                    from,
                    until: event.t,
                })
            }
            Some(Role::Client) => {
                let mut hosts = event.on.iter().flatten();
                if hosts.any(|host| host == STORAGE) {
                    self.wait(event, from);
                } else {
                    self.stall_of_client(event, from);
                }
            }
            None if event.process == NEMESIS => {}
            // Who is no client by its name may act like one. What it says of itself, and what took no time, is a sign of
            // life and no more.
            None => self.sign_of_life(event),
        }
    }

    fn sign_of_life(&mut self, event: &Event<'_>) {
        let role = Role::of(host_of(&event.process));
        if !matches!(role, Some(Role::Server | Role::Storage)) {
            self.process(event);
        }
    }

    /// Every event is a sign of life, so that none can fall within a stall, but for one that was made with the heartbeat
    /// before.
    fn stall_of_client(&mut self, event: &Event<'_>, from: u64) {
        let process = self.process(event);
        let state = &mut self.record.processes[process as usize];
        state.stalls.push((from, event.t));
        if state
            .event_before
            .is_some_and(|before| before > from.saturating_add(WITH_THE_HEARTBEAT_NS))
        {
            self.flaws.note(Flaw::Awake, || {
                format!(
                    "{} has events within its stall of op {}",
                    event.process, event.op
                )
            });
        }
    }

    /// At a point the run holds its client, so that what comes of that is no doing of the lock.
    pub(super) fn held_at_point(&mut self, event: &Event<'_>, from: u64) {
        if Role::of(host_of(&event.process)) == Some(Role::Client) && from < event.t {
            let process = self.process(event);
            let state = &mut self.record.processes[process as usize];
            state.stalls.push((from, event.t));
        }
    }

    fn wait(&mut self, event: &Event<'_>, from: u64) {
        let process = self.process(event);
        let state = &mut self.record.processes[process as usize];
        state.waits.push((from, event.t));
        let in_flight = state.storage_op.and_then(|op| self.open.get(&op));
        if in_flight.is_none_or(|open| open.invoked > from) {
            self.flaws.note(Flaw::Awake, || {
                format!(
                    "{} says that the storage kept it waiting (op {}), and was not waiting for it all that time",
                    event.process, event.op
                )
            });
        }
    }
}
