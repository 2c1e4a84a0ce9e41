//! Hazards of several of the lock's servers at once, of which no clause speaks.

use histories::{Hazard, Role};

use super::of_faults::is_for_good;
use super::waits::merge;
use super::{Window, stall, window};
use crate::faults::InForce;
use crate::operations::{NEVER, Record};

/// A time, on a host.
type OnHost<'a> = (&'a str, u64, u64);

/// When two servers or more were struck at the same time; apart from that, when as many were struck or stood still.
pub(super) fn windows(in_force: &[InForce<'_>], record: &Record) -> Vec<Window> {
    let (mut struck, mut hindered) = (Vec::new(), Vec::new());
    for fault in in_force {
        for (host, _) in fault
            .roles()
            .filter(|(_, role)| *role == Some(Role::Server))
        {
            let mut does = fault.does.iter();
            let is_for_good = does.any(|effect| is_for_good(effect, Some(Role::Server)));
            let until = if is_for_good { NEVER } else { fault.until };
            struck.push((host, fault.from, until));
            hindered.push((host, fault.from, fault.until));
        }
    }
    let stalls = record.host_stalls.iter();
    let stalls = stalls.filter(|stall| stall.role == Role::Server);
    let stood: Vec<OnHost<'_>> = stalls
        .map(|stall| (stall.host.as_str(), stall.from, stall.until))
        .collect();
    let of_several = |from, until| window(Hazard::Unforeseen, None, from, until);
    let mut windows: Vec<Window> = Vec::new();
    windows.extend(at_once(&struck).into_iter().map(|(from, until)| Window {
        hinders_until: from,
        ..of_several(from, until)
    }));
    windows.extend(at_once(&hindered).into_iter().map(|(from, until)| Window {
        hinders_until: until,
        ..of_several(from, from)
    }));
    if !stood.is_empty() {
        struck.extend(&stood);
        hindered.extend(stood);
        let of_stall = |from, until| stall(Hazard::Unforeseen, None, from, until);
        windows.extend(at_once(&struck).into_iter().map(|(from, until)| Window {
            hinders_until: from,
            ..of_stall(from, until)
        }));
        windows.extend(at_once(&hindered).into_iter().map(|(from, until)| Window {
            hinders_until: until,
            ..of_stall(from, from)
        }));
    }
    windows
}

/// The times in which two hosts or more have one of these.
fn at_once(times: &[OnHost<'_>]) -> Vec<(u64, u64)> {
    let lasting = times.iter().filter(|(_, from, until)| from < until);
    let mut apart: Vec<OnHost<'_>> = lasting.copied().collect();
    merge(&mut apart);
    // One that ends at an instant at which another begins does not meet it.
    let mut edges: Vec<(u64, bool)> = Vec::new();
    for (_, from, until) in apart {
        edges.extend([(from, true), (until, false)]);
    }
    edges.sort_unstable();
    let (mut hosts, mut since) = (0u32, 0);
    let mut found = Vec::new();
    for (at, begins) in edges {
        if begins {
            hosts += 1;
            if hosts == 2 {
                since = at;
            }
        } else {
            if hosts == 2 && since < at {
                found.push((since, at));
            }
            hosts -= 1;
        }
    }
    found
}
