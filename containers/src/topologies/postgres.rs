//! One Postgres.

use super::Topology;
use crate::services::Postgres;

/// One Postgres.
pub static POSTGRES: Topology = Topology {
    name: "postgres",
    summary: "one Postgres server",
    servers: &[("s1", &Postgres)],
    has_leader: false,
};
