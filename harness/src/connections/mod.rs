//! How a client speaks to one server: it connects when first needed, waits no longer than it has to, and tells a request
//! that was certainly not done from one that may have been.

pub mod etcd;
pub mod postgres;
pub mod redis;

use std::time::Duration;

use crate::locks::Answer;

/// How long connecting may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a lock's server may take to answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a request has no answer of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Another has what was asked for, and the server waited as long as it was told to.
    #[error("another has it")]
    Busy,
    /// It was certainly not done: it was never sent, or the server said no.
    #[error("{0}")]
    Refused(String),
    /// It was sent and not answered: it may have been done, or may yet be.
    #[error("{0}")]
    Unknown(String),
}

impl Failure {
    /// It was sent, and no answer came in time.
    pub fn no_answer(within: Duration) -> Failure {
        Failure::Unknown(format!("no answer within {} ms", within.as_millis()))
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Answer {
        match failure {
            Failure::Busy => Answer::Busy,
            Failure::Refused(error) => Answer::Refused { error },
            Failure::Unknown(error) => Answer::Unknown { error },
        }
    }
}
