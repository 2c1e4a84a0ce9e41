//! Writes of unknown outcome: nobody knows for how long such a write was under way, so that it may have landed after its
//! grant was over.

use histories::Hazard;

use super::Window;
use super::on_hosts::OnHosts;
use crate::names::NONE;
use crate::operations::{NEVER, Record};
use crate::properties::IS_ABOUT_LANDING;

/// Those under grants, by grant: from their invocation to their completion.
pub(super) struct UnknownWrites(Vec<(u32, u64, u64)>);

impl UnknownWrites {
    /// None where the property does not depend on when writes land.
    pub(super) fn of(record: &Record, property: &str) -> UnknownWrites {
        if !IS_ABOUT_LANDING.contains(&property) {
            return UnknownWrites(Vec::new());
        }
        let unknown = record
            .writes
            .iter()
            .filter(|write| write.grant != NONE && write.call.unknown());
        let mut writes: Vec<_> = unknown
            .map(|write| (write.grant, write.call.invoked, write.call.completed))
            .collect();
        writes.sort_unstable();
        UnknownWrites(writes)
    }

    /// From when on a grant is left aside because of them: what held such a write up excuses it, and perhaps something did
    /// of which nobody knows.
    pub(super) fn cut(
        &self,
        grant: u32,
        host: &str,
        late: &OnHosts<&Window>,
        excuses: &impl Fn(Hazard, bool) -> bool,
    ) -> u64 {
        let first = self.0.partition_point(|write| write.0 < grant);
        let own = self.0[first..].iter().take_while(|write| write.0 == grant);
        let cuts = own.flat_map(|&(_, invoked, completed)| {
            let perhaps = excuses(Hazard::WriteHeld, false).then_some(invoked);
            let held = late.meeting(host, invoked, completed);
            let held = held.filter(|window| window.hazard == Hazard::WriteHeld);
            let held = held.filter(|window| excuses(window.hazard, window.is_shown));
            held.map(|window| window.from).chain(perhaps)
        });
        cuts.min().unwrap_or(NEVER)
    }
}
