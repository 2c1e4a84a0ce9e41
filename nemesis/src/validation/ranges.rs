//! The ranges of all numbers of a plan. Lengths of time are in milliseconds.

use std::ops::RangeInclusive;

/// The longest length of time that makes sense in a run: one hour.
pub const LONGEST_MS: u64 = 60 * 60 * 1000;

/// How many clients there are.
pub const CLIENTS: RangeInclusive<u64> = 1..=64;
/// The TTL.
pub const TTL_MS: RangeInclusive<u64> = 1..=LONGEST_MS;
/// How long an ungranted lock is tolerated.
pub const PROGRESS_BOUND_MS: RangeInclusive<u64> = 1..=LONGEST_MS;
/// The longest that a run may take.
pub const LIMIT_MS: RangeInclusive<u64> = 1_000..=LONGEST_MS;
/// How long the work under the lock takes.
pub const WORK_MS: RangeInclusive<u64> = 0..=LONGEST_MS;
/// The pause between two rounds.
pub const REST_MS: RangeInclusive<u64> = 0..=LONGEST_MS;
/// The wait before a busy lock is asked for again; without any, a client would ask all the time.
pub const RETRY_MS: RangeInclusive<u64> = 1..=LONGEST_MS;
/// The rounds that each client has to complete.
pub const ROUNDS: RangeInclusive<u64> = 1..=100_000;
/// The time of a trigger.
pub const AFTER_MS: RangeInclusive<u64> = 0..=LONGEST_MS;
/// The grant at whose point a fault strikes.
pub const GRANT: RangeInclusive<u64> = 1..=1_000_000;
/// How long a fault lasts, and may last.
pub const LASTS_MS: RangeInclusive<u64> = 1..=LONGEST_MS;
/// A parameter that is a length of time.
pub const PARAMETER_MS: RangeInclusive<u64> = 1..=LONGEST_MS;
/// A TCP port.
pub const PORT: RangeInclusive<u64> = 1..=u16::MAX as u64;
