//! The hazards of a history as they happened, and which grants each of them touched.
//!
//! A violation is excused only by a hazard that is a limit, had begun by then, and touched one of its witness's grants. So
//! each grant is left aside from the instant on at which such a hazard touched it ([`Cuts`]), and a violation
//! that is found among what is left is excused by nothing.

mod on_hosts;
mod several_servers;
mod waits;

use std::cell::OnceCell;

use histories::{Deed, Effect, Hazard, Plan, Promise, Role, host_of};

use self::on_hosts::OnHosts;
use self::waits::{HeldUp, Lengths, Waits, covered};
use crate::contract::{
    Contract, about_as_long_as, hazards_of, keeps_from_asking, makes_late, undone_by,
};
use crate::faults::{Faults, InForce};
use crate::grants::{Cuts, Grants, acts_under_no_grant};
use crate::names::NONE;
use crate::operations::{HostStall, NEVER, Record, Stall};

/// A time in which a hazard was about.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) hazard: Hazard,
    /// The client's host whose grants it touches; `None` for those of all.
    host: Option<String>,
    pub(crate) from: u64,
    /// [`NEVER`] if it lasts.
    pub(crate) until: u64,
    /// Until when locks may not be granted because of it: a clock that was stepped back lets leases live longer for ever.
    pub(crate) hinders_until: u64,
    pub(crate) is_stall: bool,
    /// Whether it is known to have been about: it was planned, its evidence says so, and nothing contradicts it.
    pub(crate) is_shown: bool,
}

/// A time in which a client could not ask for locks: a fault kept it from that, or it stood still.
pub(crate) struct Disturbance {
    pub(crate) host: String,
    pub(crate) from: u64,
    /// [`NEVER`] if it lasts.
    pub(crate) until: u64,
    pub(crate) is_stall: bool,
}

/// The hazards of a history.
pub(crate) struct Hazards {
    pub(crate) windows: Vec<Window>,
    pub(crate) disturbances: OnHosts<Disturbance>,
    /// Whether clients recorded their stalls, so that one that is not recorded was none.
    stalls_recorded: bool,
    plan: Lengths,
    /// Made when something is violated that they may explain.
    waits: OnceCell<Waits>,
}

/// How much of what touched a grant excuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excuse {
    /// Only what is known not to be promised.
    Limit,
    /// That, and what nobody made a statement about.
    LimitOrUnspecified,
}

impl Hazards {
    pub(crate) fn new(
        record: &Record,
        faults: &Faults,
        plan: &Plan,
        stalls_recorded: bool,
    ) -> Hazards {
        let in_force: Vec<InForce<'_>> = faults.in_force().collect();
        let mut windows: Vec<Window> = in_force.iter().flat_map(of_fault).collect();
        windows.extend(several_servers::windows(&in_force, record));
        let mut disturbances: Vec<Disturbance> = in_force
            .iter()
            .flat_map(|fault| on_clients(fault, plan))
            .collect();
        windows.extend(stalls_of_clients(record, faults));
        windows.extend(stalls_of_hosts(record, faults));
        disturbances.extend(stalled_clients(record));
        windows.extend(ends_by_others(record, faults));
        if about_as_long_as(plan.workload.work_ms, plan) {
            windows.push(window(Hazard::WorkHeld, None, 0, NEVER));
        }
        windows.sort_by_key(|window| window.from);
        Hazards {
            windows,
            disturbances: OnHosts::new(disturbances, |here| {
                (Some(here.host.clone()), here.from, here.until)
            }),
            stalls_recorded,
            plan: Lengths {
                ttl_ns: plan.ttl_ms.saturating_mul(1_000_000),
                work_ns: plan.workload.work_ms.saturating_mul(1_000_000),
            },
            waits: OnceCell::new(),
        }
    }

    /// From when on each grant is left aside when a property is judged.
    pub(crate) fn cuts(
        &self,
        record: &Record,
        grants: &Grants,
        contract: &Contract,
        property: &str,
        excuse: Excuse,
    ) -> Cuts {
        let excuses =
            |hazard, is_shown| excuse.takes(contract.said(property, hazard).promise, is_shown);
        let (late, others): (Vec<&Window>, Vec<&Window>) = self
            .windows
            .iter()
            .partition(|window| makes_late(window.hazard));
        let others = others
            .into_iter()
            .filter(|window| excuses(window.hazard, window.is_shown));
        let (late, others) = (on_hosts(late), on_hosts(others));
        let first_touch = |host: &str, (from, until): (u64, u64)| {
            let first = others.first_meeting(host, from, until);
            first.unwrap_or(NEVER)
        };
        let perhaps = !self.stalls_recorded
            && excuse == Excuse::LimitOrUnspecified
            && contract.said(property, Hazard::ClientStopped).promise != Promise::Promised;
        let cut = |grant: u32| {
            let acquire = &record.acquires[grant as usize];
            let process = &record.processes[acquire.call.process as usize];
            if process.outlives_its_death() {
                return 0;
            }
            let host = host_of(record.names.text(acquire.call.process));
            let mut cut = first_touch(host, grants.lifetime(record, grant));
            if acquire.granted() && grants.was_outlived(grant) {
                cut = cut.min(self.cut_of_late(record, grants, grant, &late, &excuses, perhaps));
            }
            cut
        };
        let of_grants = (0..record.acquires.len() as u32).map(|grant| {
            if record.acquires[grant as usize].lock == NONE {
                NEVER
            } else {
                cut(grant)
            }
        });
        let of_acts = acts_under_no_grant(record).map(|(call, until)| {
            let host = host_of(record.names.text(call.process));
            let undead = record.processes[call.process as usize].outlives_its_death();
            let cut = if undead {
                0
            } else {
                first_touch(host, (call.invoked, until))
            };
            (call.op, cut)
        });
        Cuts::new(of_grants.collect(), of_acts, Some(excuse))
    }

    /// From when on a grant that was outlived is left aside: what held its client up excuses it if that explains it.
    fn cut_of_late(
        &self,
        record: &Record,
        grants: &Grants,
        grant: u32,
        late: &OnHosts<&Window>,
        excuses: &impl Fn(Hazard, bool) -> bool,
        perhaps: bool,
    ) -> u64 {
        let host = host_of(
            record
                .names
                .text(record.acquires[grant as usize].call.process),
        );
        let (from, until) = grants.lifetime(record, grant);
        let lifetime = (from, until.min(record.end));
        let waits = self.waits.get_or_init(|| Waits::of(record));
        let acquire = &record.acquires[grant as usize];
        let mut about = waits.as_work(acquire, grant, lifetime, self.plan);
        for window in late.meeting(host, lifetime.0, lifetime.1) {
            let (start, end) = (window.from.max(lifetime.0), window.until.min(lifetime.1));
            let held = |began, (start, end)| HeldUp {
                hazard: window.hazard,
                is_shown: window.is_shown,
                began,
                start,
                end,
            };
            match window.hazard {
                Hazard::WriteHeld => {
                    let waited = waits.within(grant, start, end);
                    about.extend(waited.map(|wait| held(wait.0, wait)));
                }
                _ => about.push(held(window.from, (start, end))),
            }
        }
        let valid_until = grants.valid_until[grant as usize];
        // How much of the overrun is left unexplained, and how much these explain; nothing, if there are none.
        let explained = |about: &[HeldUp], counts: fn(&HeldUp) -> bool| {
            let held = covered(about, counts);
            let left = lifetime.1.saturating_sub(held).saturating_sub(valid_until);
            let is_enough = about.iter().any(counts) && left <= self.plan.ttl_ns / 5;
            is_enough.then_some((left, held))
        };
        about.sort_unstable_by_key(|held| held.start);
        if explained(&about, |_| true).is_some() {
            // What explains it only together with what is not shown, or less than half of it, does so perhaps.
            let shown = explained(&about, |held| held.is_shown);
            let is_shown = shown.is_some_and(|(left, held)| left <= held);
            let touched = about
                .iter()
                .filter(|held| excuses(held.hazard, is_shown && held.is_shown));
            touched.map(|held| held.began).min().unwrap_or(NEVER)
        } else if perhaps {
            valid_until
        } else {
            NEVER
        }
    }
}

impl Excuse {
    /// Whether what is promised so under a hazard is an excuse.
    pub(crate) fn takes(self, promise: Promise, is_shown: bool) -> bool {
        match promise {
            Promise::NotPromised => is_shown || self == Excuse::LimitOrUnspecified,
            Promise::Unspecified => self == Excuse::LimitOrUnspecified,
            Promise::Promised => false,
        }
    }
}

/// The stalls of clients, and the times in which the storage kept them waiting. What is told of one that the plan does not
/// have, or that goes on after its death, is not shown.
fn stalls_of_clients(record: &Record, faults: &Faults) -> Vec<Window> {
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
    }
    windows
}

/// The stalls of servers and of the storage. Who answers meanwhile does not stand still.
fn stalls_of_hosts(record: &Record, faults: &Faults) -> Vec<Window> {
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

fn stalled_clients(record: &Record) -> Vec<Disturbance> {
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

/// Who ends something on a host may do more there, of which no contract speaks.
fn ends_by_others(record: &Record, faults: &Faults) -> Vec<Window> {
    let of_hosts = record
        .host_exits
        .iter()
        .filter(|(host, at, _)| !faults.explains_death(host, *at))
        .map(|(_, at, _)| window(Hazard::Unforeseen, None, *at, NEVER));
    let processes = record.processes.iter().enumerate();
    let of_clients = processes.filter_map(|(number, process)| {
        let host = host_of(record.names.text(number as u32));
        let (at, _) = faults.end_by_others(host, process)?;
        Some(window(Hazard::Unforeseen, Some(host), at, NEVER))
    });
    of_hosts.chain(of_clients).collect()
}

/// Windows by the hosts whose grants they touch.
fn on_hosts<'a>(windows: impl IntoIterator<Item = &'a Window>) -> OnHosts<&'a Window> {
    OnHosts::new(windows, |window| {
        (window.host.clone(), window.from, window.until)
    })
}

fn window(hazard: Hazard, host: Option<&str>, from: u64, until: u64) -> Window {
    Window {
        hazard,
        host: host.map(str::to_owned),
        from,
        until,
        hinders_until: until,
        is_stall: false,
        is_shown: true,
    }
}

fn stall(hazard: Hazard, host: Option<&str>, from: u64, until: u64) -> Window {
    Window {
        is_stall: true,
        ..window(hazard, host, from, until)
    }
}

fn disturbance(host: &str, from: u64, until: u64) -> Disturbance {
    Disturbance {
        host: host.to_owned(),
        from,
        until,
        is_stall: false,
    }
}

/// The clients' hosts that a fault disturbs.
fn on_clients(fault: &InForce<'_>, plan: &Plan) -> Vec<Disturbance> {
    if !fault
        .does
        .iter()
        .any(|effect| keeps_from_asking(effect, plan))
    {
        return Vec::new();
    }
    let clients = fault
        .roles()
        .filter(|(_, role)| *role == Some(Role::Client));
    clients
        .map(|(host, _)| disturbance(host, fault.from, fault.until))
        .collect()
}

/// The windows of one fault.
fn of_fault(fault: &InForce<'_>) -> Vec<Window> {
    let mut windows = Vec::new();
    for (host, role) in fault.roles() {
        for effect in &fault.does {
            let own = Some(host).filter(|_| role == Some(Role::Client));
            for hazard in hazards_of(effect, role, !fault.stays) {
                windows.push(of_effect(fault, effect, role, hazard, own));
            }
            windows.extend(of_healing(fault, effect, role));
            windows.extend(of_start_after_all(fault, effect, role));
        }
    }
    windows
}

fn of_effect(
    fault: &InForce<'_>,
    effect: &Effect,
    role: Option<Role>,
    hazard: Hazard,
    host: Option<&str>,
) -> Window {
    let until = if is_for_good(effect, role) || hazard == Hazard::Unforeseen {
        NEVER
    } else {
        fault.until
    };
    let hinders_until = match effect.effect {
        Deed::ClockBack => NEVER,
        _ => fault.until,
    };
    Window {
        hinders_until,
        is_shown: fault.is_shown,
        ..window(hazard, host, fault.from, until)
    }
}

/// Whether what an effect takes is gone for good: what a server forgot concerns all that it grants afterwards.
fn is_for_good(effect: &Effect, role: Option<Role>) -> bool {
    effect.effect == Deed::LosesState || (effect.is_deadly() && role == Some(Role::Server))
}

/// Healing a step of a clock is a step the other way.
fn of_healing(fault: &InForce<'_>, effect: &Effect, role: Option<Role>) -> Vec<Window> {
    let (Some(back), Some(from)) = (undone_by(effect), fault.heals_from) else {
        return Vec::new();
    };
    let hinders_until = match back.effect {
        Deed::ClockBack => NEVER,
        _ => fault.until,
    };
    hazards_of(&back, role, true)
        .into_iter()
        .map(|hazard| Window {
            hinders_until,
            is_shown: fault.is_shown,
            ..window(hazard, None, from, fault.until)
        })
        .collect()
}

/// A server that nothing was to start again is lost until that happens all the same: then it was restarted.
fn of_start_after_all(fault: &InForce<'_>, effect: &Effect, role: Option<Role>) -> Option<Window> {
    let from = fault.heals_from.filter(|_| fault.stays)?;
    let was_lost = hazards_of(effect, role, false).contains(&Hazard::ServerLost);
    was_lost.then(|| Window {
        hinders_until: fault.until,
        is_shown: fault.is_shown,
        ..window(Hazard::ServerRestarted, None, from, NEVER)
    })
}

#[cfg(test)]
mod tests;
