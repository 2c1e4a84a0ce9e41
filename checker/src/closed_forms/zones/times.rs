//! The order of invocations and returns, without the gaps.

use crate::linearizability::{History, NEVER};

/// The rank of the instant at which the initial value was there: before all else.
pub(super) const BEGINNING: u32 = 1;

/// The rank of the first return.
const FIRST: u32 = BEGINNING + 1;

/// Which calls were over before which others began, and no more than that. A call `x` was over before `y` began exactly
/// if `ranks[x] <= before[y]`.
pub(super) struct Times {
    /// By call: the rank of its return among the returns, or [`NEVER`].
    pub(super) ranks: Vec<u32>,
    /// By call: the rank of the last return before its invocation.
    pub(super) before: Vec<u32>,
    /// The calls that returned, in the order of their returns.
    pub(super) returns: Vec<u32>,
}

impl Times {
    pub(super) fn of<O>(history: &History<O>) -> Times {
        let calls = history.calls();
        let mut sorted: Vec<u64> = (0_u64..)
            .zip(calls)
            .filter(|(_, call)| call.returned != NEVER)
            .map(|(at, call)| u64::from(call.returned) << 32 | at)
            .collect();
        sorted.sort_unstable();
        let returns: Vec<u32> = sorted.iter().map(|&packed| packed as u32).collect();
        let mut ranks = vec![NEVER; calls.len()];
        for (rank, &call) in (FIRST..).zip(&returns) {
            ranks[call as usize] = rank;
        }
        let mut passed = sorted.iter().map(|packed| (packed >> 32) as u32).peekable();
        let mut last = BEGINNING;
        let before = calls
            .iter()
            .map(|call| {
                while passed
                    .next_if(|&returned| returned < call.invoked)
                    .is_some()
                {
                    last += 1;
                }
                last
            })
            .collect();
        Times {
            ranks,
            before,
            returns,
        }
    }

    /// One more than the highest rank.
    pub(super) fn end(&self) -> usize {
        self.returns.len() + FIRST as usize
    }

    /// The call whose return has a rank; `None` for the beginning.
    pub(super) fn returned_at(&self, rank: u32) -> Option<u32> {
        let at = rank.checked_sub(FIRST)?;
        Some(self.returns[at as usize])
    }
}
