//! What set a fault off.

/// What set a fault off. All times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Its time had come.
    Time {
        /// When it was due.
        due_ns: u64,
    },
    /// A client reached a point or completed an operation.
    Reached(Reached),
}

impl Trigger {
    /// When the trigger came about.
    pub fn at_ns(&self) -> u64 {
        match self {
            Trigger::Time { due_ns } => *due_ns,
            Trigger::Reached(reached) => reached.reached_ns,
        }
    }
}

/// A client reached what a rule names, as its agent told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The client's host.
    pub client: String,
    /// The rule, unique in that host.
    pub rule: u32,
    /// When the client got there.
    pub reached_ns: u64,
    /// When the operation whose completion it is was invoked.
    pub invoked_ns: u64,
    /// When the agent had stopped the client, where the rule says so.
    pub stopped_ns: Option<u64>,
    /// The states of the client's threads then, one letter each.
    pub states: String,
}
