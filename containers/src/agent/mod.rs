//! The agent: PID 1 of every host, spoken to over a Unix socket, so that no network fault and no slow Docker call ever
//! touches the control path.
//!
//! [`protocol`] is what crosses the socket, [`serve()`] the agent itself, [`Agent`] the connection to one. The rest of
//! the modules are what the agent is made of: blocking threads over the standard library and `nix`, so that it is small
//! and nothing in it waits for anything else.

mod alarm;
mod board;
mod connection;
mod files;
mod heartbeat;
mod lines;
mod lookout;
mod output;
mod priority;
mod proc;
mod processes;
pub mod protocol;
mod run;
mod serve;
mod session;
mod signals;
mod spawn;
mod watch;

use std::sync::{Mutex, MutexGuard};

use nix::time::{ClockId, clock_gettime};

pub use connection::{Agent, AgentError, Ran, Signalled, Started};
pub use heartbeat::Heartbeat;
pub use serve::serve;
pub use session::ALIVE_EVERY;
pub use watch::Watch;

/// Names an agent's socket to every process that the agent starts.
pub const ENV_AGENT: &str = "FENCEPOST_AGENT";

/// Tells every process that an agent starts the how-manieth of its name it is in this host, counted from 1.
pub const ENV_LIFE: &str = "FENCEPOST_LIFE";

/// The machine's monotonic clock now, in nanoseconds: one clock for all processes and containers of a machine.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .expect("every Linux has this clock, and the result has a valid address");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The stack of the agent's threads: they call nothing deep, and there may be many of them.
const STACK: usize = 256 * 1024;

/// Locks, whatever became of a thread that held the lock: the agent's data are consistent between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
