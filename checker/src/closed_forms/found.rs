//! What is found of a lock, and how it is told.

use std::fmt;

/// What is known of a lock so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Violated(Box<Found>),
    Unclear(Unclear),
}

/// The first violation of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The calls that prove it, by the ids they were given, in rising order.
    pub calls: Vec<u64>,
    /// The position of the first event with which the history is no longer linearizable.
    pub position: u32,
    /// What went wrong.
    pub reason: Reason,
}

/// What went wrong, with the ids of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An owner acquired what it held: the two acquires.
    AcquiredAgain(u64, u64),
    /// Two owners held the lock at once: the two acquires.
    HeldTwice(u64, u64),
    /// An acquire of another owner, and an extension or a renewal that came after it nonetheless.
    ExtendedLate(u64, u64),
    /// The release of a lock that its owner did not hold.
    ReleasedUnheld(u64),
    /// A call of another owner that had the lock, and a release that came after it nonetheless.
    ReleasedLate(u64, u64),
    /// Two acquires, each with its token, of which the later does not have the higher.
    TokenFell {
        /// The earlier.
        before: (u64, u64),
        /// The later.
        after: (u64, u64),
    },
    /// A reentry, after the first grant of its hold, with another token.
    TokenChanged(u64, u64),
    /// An acquire that was refused as busy while nobody can have held the lock.
    RefusedFree(u64),
    /// An acquire that took more permits than were left.
    TooMany(u64),
}

impl Reason {
    /// One sentence; calls are written as `describe` does.
    pub fn sentence(&self, describe: impl Fn(u64) -> String) -> String {
        match *self {
            Reason::AcquiredAgain(first, again) => format!(
                "{} succeeded though its owner still held the lock by {}.",
                describe(again),
                describe(first)
            ),
            Reason::HeldTwice(first, second) => format!(
                "{} succeeded though the lock was still held by {}.",
                describe(second),
                describe(first)
            ),
            Reason::ExtendedLate(other, extend) => format!(
                "{} succeeded though {} had been granted the lock meanwhile.",
                describe(extend),
                describe(other)
            ),
            Reason::ReleasedUnheld(release) => format!(
                "{} succeeded though its owner did not hold the lock.",
                describe(release)
            ),
            Reason::ReleasedLate(other, release) => format!(
                "{} succeeded though {} shows that another had the lock meanwhile.",
                describe(release),
                describe(other)
            ),
            Reason::TokenFell {
                before: (before, high),
                after: (after, low),
            } => format!(
                "{} came after {} and got token {low}, which is not above {high}.",
                describe(after),
                describe(before)
            ),
            Reason::TokenChanged(first, again) => format!(
                "{} entered again what {} held, and got another token.",
                describe(again),
                describe(first)
            ),
            Reason::RefusedFree(refused) => format!(
                "{} was refused though nobody can have held the lock.",
                describe(refused)
            ),
            Reason::TooMany(acquire) => format!(
                "{} succeeded though too few permits were left.",
                describe(acquire)
            ),
        }
    }
}

/// Why a closed form does not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// Two requests of one owner overlap.
    OwnerOverlaps,
    /// A request ended that was not in flight.
    NotInvoked,
    /// Two grants each of which may have ended before the other.
    BothTentative,
    /// A grant without a token.
    TokenUnknown,
    /// It is open which of two grants was first.
    OrderUnknown,
    /// An unknown release and an unknown acquire may have interrupted a hold.
    Interrupted,
    /// A refusal that unknown calls may explain.
    RefusalUnclear,
    /// A call of an owner after one of unknown outcome, where holds nest.
    AfterUnknown,
    /// One hold may have ended at the instant at which another began.
    SameInstant,
    /// Owners that are not numbered densely.
    OwnersSparse,
    /// An operation that the closed form does not know.
    OperationUnknown,
}

/// As a fragment.
impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unclear::OwnerOverlaps => "two requests of one owner overlap",
            Unclear::NotInvoked => "a request ended that was not in flight",
            Unclear::BothTentative => "of two grants each may have ended before the other",
            Unclear::TokenUnknown => "a grant has no token",
            Unclear::OrderUnknown => "it is open which of two grants was first",
            Unclear::Interrupted => "requests of unknown outcome may have interrupted a hold",
            Unclear::RefusalUnclear => "requests of unknown outcome may explain a refusal",
            Unclear::AfterUnknown => "an owner goes on after a request of unknown outcome",
            Unclear::SameInstant => "one hold ended at the instant at which another began",
            Unclear::OwnersSparse => "owners are not numbered densely",
            Unclear::OperationUnknown => "an operation is not known to it",
        })
    }
}
