//! The workloads: what clients do with a lock and a storage. One file each; a new one is that file and a line in
//! [`WORKLOADS`].

mod document;

use async_trait::async_trait;

use crate::client::{Client, RecordingFailed};

/// All workloads, in the order in which they are shown.
pub static WORKLOADS: &[&dyn Workload] = &[&document::Document];

/// The workload of that name.
pub fn workload(name: &str) -> Option<&'static dyn Workload> {
    WORKLOADS
        .iter()
        .copied()
        .find(|workload| workload.name() == name)
}

/// What a client does, round after round.
#[async_trait(?Send)]
pub trait Workload: Sync {
    /// Its name, as in the plan.
    fn name(&self) -> &'static str;

    /// What it does, in half a line.
    fn summary(&self) -> &'static str;

    /// The named points that it passes, in their order.
    fn points(&self) -> &'static [&'static str];

    /// One round: one grant and what is done under it, or one attempt that did not get the lock.
    async fn round(&self, client: &mut Client) -> Result<(), RecordingFailed>;
}
