//! A server's wall clock that can be stepped: libfaketime in the server's process, which reads its offset from a file.
//!
//! The clock of the host itself is never touched, since all containers share it with the machine.

use std::collections::BTreeMap;

use crate::Error;
use crate::agent::Agent;

/// The file that libfaketime reads at each look at the clock: `+30`, `-5`, or a rate such as `+0 x1.5`. To be replaced
/// by an atomic rename only, which [`Agent::put`] does.
pub const OFFSET_FILE: &str = "/run/clock/offset";

/// What [`OFFSET_FILE`] holds while the clock is right.
pub const NO_OFFSET: &str = "+0";

/// The guard stands first: without it a program with jemalloc waits for itself for ever while it starts.
const PRELOAD: &str = "/usr/lib/fencepost/guard.so:/usr/lib/fencepost/libfaketime.so.1";

/// Sets the clock right, before the server starts.
pub(super) fn prepare(agent: &mut Agent) -> Result<(), Error> {
    Ok(agent.put(OFFSET_FILE, NO_OFFSET)?)
}

/// What a server needs in its environment for its wall clock to be steppable. Its monotonic clock stays right.
pub(super) fn environment() -> BTreeMap<String, String> {
    [
        ("LD_PRELOAD", PRELOAD),
        ("FAKETIME_TIMESTAMP_FILE", OFFSET_FILE),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}
