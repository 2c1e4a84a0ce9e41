//! The first and the last line of a history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Plan;

/// The version of the format that this build writes.
pub const FORMAT_VERSION: u32 = 1;

/// Line 1: all that a later build needs to judge the history and to run its plan again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub fencepost: u32,
    /// The run's id, a UUIDv7.
    pub run: String,
    /// When the run started, RFC 3339 in UTC.
    pub started: String,
    /// What the plan and every random choice follow from.
    pub seed: u64,
    /// What was to be done, complete.
    pub plan: Plan,
    /// The version of each server: host to version, as the server itself told it.
    #[serde(default)]
    pub servers: BTreeMap<String, String>,
    /// The image of each host: host to image id.
    #[serde(default)]
    pub images: BTreeMap<String, String>,
    /// Facts of the machine: kernel, processors, Docker's version.
    #[serde(default)]
    pub machine: BTreeMap<String, String>,
}

/// The last line of a history that was written to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// How many events stand between the header and this line.
    pub events: u64,
}
