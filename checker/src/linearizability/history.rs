//! What a search works on: calls, and the order in which they began and ended.

/// Stands for the return of a call that never returned, or whose outcome nobody learned.
pub const NEVER: u32 = u32::MAX;

/// One call of an object: an operation, and the time in which it took effect if it did.
///
/// Times are positions in the order of the history's events; no two calls share one. A call takes effect at one instant
/// between `invoked` and `returned`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<O> {
    /// What it did, with the outcome that was seen.
    pub operation: O,
    /// How reports call it: the operation's number, or the line of its invocation.
    pub id: u64,
    /// The number of the process that made it.
    pub process: u32,
    /// Where it began.
    pub invoked: u32,
    /// Where it ended, or [`NEVER`].
    pub returned: u32,
    /// Whether it took effect for certain. One that need not have may be left out, and takes effect, if at all, before `returned`.
    pub certain: bool,
}

/// The calls of one object, in the order in which they began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History<O> {
    calls: Vec<Call<O>>,
}

impl<O> History<O> {
    /// Takes calls in any order.
    ///
    /// # Panics
    /// When two calls begin at one position, a call returns before it began, or one is certain and never returned. That no
    /// call returns where another begins or returns is not looked at.
    pub fn new(mut calls: Vec<Call<O>>) -> History<O> {
        if !calls.is_sorted_by_key(|call| call.invoked) {
            calls.sort_unstable_by_key(|call| call.invoked);
        }
        for call in &calls {
            assert!(
                call.invoked < call.returned,
                "a call returns after it began"
            );
            assert!(
                !call.certain || call.returned != NEVER,
                "what is certain has returned"
            );
        }
        assert!(
            calls.is_sorted_by(|one, next| one.invoked < next.invoked),
            "two calls share a position"
        );
        History { calls }
    }

    /// The calls, in the order in which they began.
    pub fn calls(&self) -> &[Call<O>] {
        &self.calls
    }

    /// How many calls there are.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}
