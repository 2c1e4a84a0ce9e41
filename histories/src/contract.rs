//! The contract as a history's header carries it: what is promised, under which hazards.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a property is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Its violation is a broken promise.
    Promised,
    /// Its violation is a known limit.
    NotPromised,
    /// Nobody says.
    Unspecified,
}

impl fmt::Display for Promise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Promise::Promised => "promised",
            Promise::NotPromised => "not-promised",
            Promise::Unspecified => "unspecified",
        })
    }
}

/// What can go wrong, as contracts see it. Faults are many, and hazards are few: which one a fault is follows from what
/// it does and from the host that it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hazard {
    /// The absence of all others.
    Nothing,
    /// A client's process stands still: it was paused, or the machine stalled it.
    ClientStopped,
    /// A client's process is killed.
    ClientCrashed,
    /// What a client and the lock's servers send each other is held up.
    ClientCutOff,
    /// The work under the lock takes about as long as the lease lives, or longer, in a client that is alive.
    WorkHeld,
    /// What is sent to the storage arrives late, or the storage stands still.
    WriteHeld,
    /// One of the lock's servers stands still.
    ServerStopped,
    /// What one of the lock's servers sends is held up.
    ServerCutOff,
    /// One of the lock's servers is killed and started again with what it had on disk.
    ServerRestarted,
    /// One of the lock's servers is killed and stays down.
    ServerLost,
    /// One of the lock's servers loses what it had on disk.
    ServerEmptied,
    /// The wall clock of one of the lock's servers is stepped forward.
    ServerClockForward,
    /// The wall clock of one of the lock's servers is stepped back.
    ServerClockBack,
    /// The storage's server is killed.
    StorageCrashed,
    /// The wall clock of the storage's server is stepped.
    StorageClock,
    /// The storage's server loses what it had on disk.
    StorageEmptied,
    /// Something that this build knows no word for. No contract says anything about it.
    #[serde(other)]
    Unforeseen,
}

/// One statement of a contract. What no clause states is unspecified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clause {
    /// The property.
    pub property: String,
    /// Whether it is promised.
    pub promise: Promise,
    /// Under which hazards.
    pub under: Vec<Hazard>,
    /// Why, in half a sentence; of a promise that is not made, the limit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}
