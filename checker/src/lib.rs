//! What it means: lock and storage properties judged from a history.
//!
//! A [`Checker`] takes the events of a history one by one and gives a [`Verdict`]: for each property of [`properties()`]
//! whether it holds, is violated (with a [`Witness`]), or is unknown (with the reason). It does no IO, knows no clock
//! and draws no random numbers: the same history gives the same verdict for ever.
//!
//! The way of an event: [`Checker::push`] hands it to the intake, which makes tables of operations. Once all are there,
//! the times in which each grant was held are computed from them, the order in which the storage accepted writes, and
//! the times in which faults were in force; the assumptions are checked; and each property is judged on that.

mod assumptions;
mod checker;
pub mod closed_forms;
mod contract;
mod error;
mod faults;
mod grants;
mod hazards;
mod index;
mod intake;
pub mod linearizability;
pub mod models;
mod names;
mod operations;
mod plausible;
mod properties;
mod segment_tree;
mod sentences;
mod storage;
#[cfg(test)]
mod timeline;
mod verdict;

pub use checker::{Checker, Options, check};
pub use error::{CheckError, Error, UnknownProperty};
pub use properties::{Property, properties};
pub use verdict::{
    Answer, Class, Counts, Efficiency, FaultReport, Outcome, PropertyVerdict, Spread, Verdict,
    Witness,
};
