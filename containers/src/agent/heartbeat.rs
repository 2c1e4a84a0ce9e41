//! Heartbeats: the signs of life by which a process notices that it, or the machine, stood still.

use std::cell::Cell;
use std::time::Duration;

/// How late a heartbeat may come. One that is later was kept from coming.
const LATE: Duration = Duration::from_millis(15);

/// The heartbeats of one process. Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Heartbeat {
    last_ns: Cell<u64>,
}

impl Heartbeat {
    /// How far apart heartbeats are.
    pub const INTERVAL: Duration = Duration::from_millis(5);

    /// The longest that anything takes which is no stall, in nanoseconds.
    pub const LONGEST_NS: u64 = (Heartbeat::INTERVAL.as_nanos() + LATE.as_nanos()) as u64;

    /// The first beat is now.
    pub fn new(now_ns: u64) -> Heartbeat {
        Heartbeat {
            last_ns: Cell::new(now_ns),
        }
    }

    /// Beats; the time since the last beat in nanoseconds, if that is a stall.
    pub fn beat(&self, now_ns: u64) -> Option<u64> {
        let since_ns = now_ns.saturating_sub(self.last_ns.replace(now_ns));
        (since_ns > Heartbeat::LONGEST_NS).then_some(since_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_beat_that_comes_late_tells_of_the_stall_and_the_next_does_not() {
        let heartbeat = Heartbeat::new(100 * MS);
        let beats = [105, 125, 146, 151].map(|at_ms| heartbeat.beat(at_ms * MS));
        assert_eq!(beats, [None, None, Some(21 * MS), None]);
    }
}
