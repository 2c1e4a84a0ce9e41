//! The hazards of a history as they happened, and which grants each of them touched.
//!
//! A violation is excused only by a hazard that is a limit, had begun by then, and touched one of its witness's grants. So
//! each grant is left aside from the instant on at which such a hazard touched it ([`Cuts`]), and a violation
//! that is found among what is left is excused by nothing.

mod of_faults;
mod on_hosts;
mod several_servers;
mod stalls;
mod unknown_writes;
mod waits;
mod work;

use std::cell::OnceCell;

use histories::{Hazard, Plan, Promise, host_of};

use self::on_hosts::OnHosts;
use self::unknown_writes::UnknownWrites;
use self::waits::{HeldUp, Lengths, Waits, covered};
use crate::contract::{Contract, makes_late};
use crate::faults::{Faults, InForce};
use crate::grants::{Cuts, Grants, acts_under_no_grant};
use crate::names::NONE;
use crate::operations::{NEVER, Record};

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
        let mut windows: Vec<Window> = in_force.iter().flat_map(of_faults::windows).collect();
        windows.extend(several_servers::windows(&in_force, record));
        let mut disturbances: Vec<Disturbance> = in_force
            .iter()
            .flat_map(|fault| of_faults::disturbances(fault, plan))
            .collect();
        windows.extend(stalls::of_clients(record, faults));
        windows.extend(stalls::of_hosts(record, faults));
        disturbances.extend(stalls::disturbances(record));
        windows.extend(ends_by_others(record, faults));
        windows.extend(work::windows(record, plan));
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
        let unknown = UnknownWrites::of(record, property);
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
            if acquire.granted() {
                cut = cut.min(unknown.cut(grant, host, &late, &excuses));
            }
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
        if !waits.may_explain(grant) {
            return NEVER;
        }
        let acquire = &record.acquires[grant as usize];
        let mut about = waits.as_work(acquire, grant, lifetime, self.plan);
        for window in late.meeting(host, lifetime.0, lifetime.1) {
            about.extend(held_up_by(window, waits, grant, lifetime));
        }
        let valid_until = grants.relied_on_until(grant);
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

/// How long a hazard held up the client of a grant: only who reads or writes waits for the storage.
fn held_up_by(window: &Window, waits: &Waits, grant: u32, lifetime: (u64, u64)) -> Vec<HeldUp> {
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
            waited.map(|wait| held(wait.0, wait)).collect()
        }
        _ => vec![held(window.from, (start, end))],
    }
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

#[cfg(test)]
mod tests;
