//! The whole: lock services, storages and workloads, the runner that lets clients use them while things go wrong, the
//! reports, and the command line.

pub mod cli;
pub mod client;
pub mod connections;
pub mod contract;
pub mod exit;
mod limits;
pub mod locks;
pub mod report;
pub mod runner;
pub mod storages;
pub mod workloads;
