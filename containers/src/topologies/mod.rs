//! Topologies: which servers a lock service runs on, one file each.

mod etcd;
mod postgres;
mod redis;
mod redlock;

use crate::services::Service;

/// A set of servers that belong together.
pub struct Topology {
    /// Its name, as the command line takes it.
    pub name: &'static str,
    /// What it is, for a list.
    pub summary: &'static str,
    /// Its hosts, `s1` and on, and what each runs.
    pub servers: &'static [(&'static str, &'static dyn Service)],
    /// Whether one of them leads, so that a fault can strike the `leader`.
    pub has_leader: bool,
}

/// All topologies.
pub static TOPOLOGIES: &[&Topology] = &[
    &redis::REDIS,
    &redlock::REDLOCK,
    &postgres::POSTGRES,
    &etcd::ETCD,
];

/// The topology of this name.
pub fn find(name: &str) -> Option<&'static Topology> {
    TOPOLOGIES
        .iter()
        .copied()
        .find(|topology| topology.name == name)
}
