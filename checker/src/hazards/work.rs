//! Work that the plan makes about as long as the lease, as a hazard.

use histories::{Hazard, Plan, Role, host_of};

use super::{Window, window};
use crate::contract::about_as_long_as;
use crate::operations::Record;

/// The times in which clients worked, if the plan makes that long. They are shown if nothing contradicts the plan.
pub(super) fn windows(record: &Record, plan: &Plan) -> Vec<Window> {
    if !about_as_long_as(plan.workload.work_ms, plan) {
        return Vec::new();
    }
    let windows = record.works.iter().filter_map(|work| {
        let host = host_of(record.names.text(work.call.process));
        let is_client = Role::of(host) == Some(Role::Client);
        is_client.then(|| Window {
            is_shown: !record.has_short_work,
            ..window(
                Hazard::WorkHeld,
                Some(host),
                work.call.invoked,
                work.call.completed,
            )
        })
    });
    windows.collect()
}
