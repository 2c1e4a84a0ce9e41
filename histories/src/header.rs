//! The first and the last line of a history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Clause, Plan};

/// The version of the format that this build writes.
pub const FORMAT_VERSION: u32 = 2;

/// Line 1: all that a later build needs to judge the history and to run its plan again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub fencepost: u32,
    /// The run's id, a UUIDv7: letters, digits and `-`, 64 at most.
    pub run: String,
    /// When the run started, RFC 3339 in UTC.
    pub started: String,
    /// The seed of the plan and of every random choice.
    pub seed: u64,
    /// What was to be done, complete.
    pub plan: Plan,
    /// What lock service and policy promise together. Version 1 has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contract: Vec<Clause>,
    /// How far apart the heartbeats of clients and of servers' hosts are, in milliseconds: one that comes late is recorded as a stall. Absent where
    /// stalls are not recorded, as in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// How many events stand between the header and this line.
    pub events: u64,
    /// The SHA-256 of every byte before this line, in hexadecimal digits. Version 1 has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}
