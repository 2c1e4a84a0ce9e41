//! One Redis.

use super::Topology;
use crate::services::Redis;

/// One Redis.
pub static REDIS: Topology = Topology {
    name: "redis",
    summary: "one Redis server",
    servers: &[("s1", &Redis)],
    has_leader: false,
};
