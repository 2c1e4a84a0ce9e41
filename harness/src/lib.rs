//! The whole: lock services, storages and workloads, the runner that lets clients use them while things go wrong, the
//! reports, and the command line.

pub mod client;
pub mod connections;
pub mod contract;
pub mod locks;
pub mod storages;
pub mod workloads;
