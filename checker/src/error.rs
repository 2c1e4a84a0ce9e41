//! What makes a history impossible to judge.

use histories::{Function, Place, ReadError};

use crate::linearizability::GatheringError;

/// Why an event cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A history is ordered by time.
    #[error("op {op} has an event at {t} ns after one at {before} ns: order the events by `t`")]
    OutOfOrder {
        /// Its operation.
        op: u64,
        /// When it happened.
        t: u64,
        /// When the event before it happened.
        before: u64,
    },
    /// Without this field nobody knows what the event means.
    #[error("an event of `{}` (op {op}) has no `{field}`: add the field", .f.name())]
    Missing {
        /// Its operation.
        op: u64,
        /// What the operation does.
        f: Function,
        /// The field.
        field: &'static str,
    },
    /// There are more events than the checker can number.
    #[error("the history has more than {limit} events: check it in parts")]
    TooLong {
        /// How many events it may have.
        limit: u32,
    },
}

/// Why a history cannot be judged: where, and, as its source, what is wrong there.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Nobody can tell what an event means.
    #[error("line {line}: {source}")]
    Event {
        /// Its line in the history, counted from 1, the header's being 1.
        line: u64,
        /// Why not.
        source: Error,
    },
    /// An entry fits no operation of the model.
    #[error("{place}")]
    Entry {
        /// Where it stands.
        place: Place,
        /// Why not.
        source: GatheringError,
    },
    /// No model is named, and none is plain.
    #[error(
        "{place}: no model has just these operations: {functions}; name the model to judge it by"
    )]
    NoModel {
        /// The history.
        place: Place,
        /// The operations that were seen.
        functions: String,
    },
    /// The model cannot do with its setup.
    #[error("{0}")]
    Setup(String),
}

/// A property of this name does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no property `{name}`: choose from {}",
    crate::properties::list()
)]
pub struct UnknownProperty {
    /// The name.
    pub name: String,
}
