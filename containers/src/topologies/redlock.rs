//! Five Redis servers that know nothing of each other, as Redlock wants them.

use super::Topology;
use crate::services::Redis;

/// Five independent Redis servers.
pub static REDLOCK: Topology = Topology {
    name: "redlock",
    summary: "five independent Redis servers",
    servers: &[
        ("s1", &Redis),
        ("s2", &Redis),
        ("s3", &Redis),
        ("s4", &Redis),
        ("s5", &Redis),
    ],
    has_leader: false,
};
