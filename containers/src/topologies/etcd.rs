//! Three etcd members, of which one leads.

use super::Topology;
use crate::services::Etcd;

/// Three etcd members.
pub static ETCD: Topology = Topology {
    name: "etcd",
    summary: "three etcd members",
    servers: &[("s1", &Etcd), ("s2", &Etcd), ("s3", &Etcd)],
    has_leader: true,
};
