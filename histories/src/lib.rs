//! What happened: the events of a run, and the file that holds them.
//!
//! A history is a [`Header`], then one [`Event`] a line, then a footer. [`Writer`] writes it as the run goes,
//! [`Reader`] streams it back, plain or `.zst`, complete or as a crash left it.

mod event;
mod header;
mod plan;

pub use event::{Event, Function, Kind, NEMESIS, STORAGE, host_of};
pub use header::{FORMAT_VERSION, Footer, Header};
pub use plan::{Named, Plan, PlannedFault, Until, When, Workload};
