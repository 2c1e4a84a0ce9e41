//! How a call ends: the exit statuses that scripts rely on, and which error leads to which.

use std::fmt;

/// The exit status of a call. Where several apply, the earliest in the order 70, 1, 2, 0 wins: a proven violation is
/// never hidden by something merely unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All promises kept.
    Kept,
    /// A check is unknown, a fault has no evidence, or a control was not caught.
    Inconclusive,
    /// A promise was broken; for `check`: a property is violated.
    Broken,
    /// Our own bug.
    Bug,
    /// The call itself was wrong.
    Usage,
    /// A history can't be read.
    Unreadable,
    /// Docker, the disk or a needed capability is missing.
    Unavailable,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Exit::Kept => 0,
            Exit::Broken => 1,
            Exit::Inconclusive => 2,
            Exit::Usage => 64,
            Exit::Unreadable => 65,
            Exit::Unavailable => 69,
            Exit::Bug => 70,
            Exit::Interrupted => 130,
        }
    }
}

/// The call itself was wrong: a name that doesn't exist, two things that don't go together.
#[derive(Debug)]
pub struct UsageError(pub String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// The call was interrupted, and what it had begun is cleared away.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// The status that an error leads to: the first of its causes that says one.
pub fn of_error(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if cause.is::<UsageError>() || cause.is::<nemesis::ScenarioError>() {
            return Exit::Usage;
        }
        if matches!(cause.downcast_ref(), Some(checker::CheckError::Setup(_))) {
            return Exit::Usage;
        }
        if cause.is::<Interrupted>() {
            return Exit::Interrupted;
        }
        if cause.is::<histories::ReadError>() || cause.is::<checker::CheckError>() {
            return Exit::Unreadable;
        }
        if cause.is::<containers::Error>() {
            return Exit::Unavailable;
        }
        if let Some(io) = cause.downcast_ref::<std::io::Error>()
            && is_full(io)
        {
            return Exit::Unavailable;
        }
    }
    Exit::Bug
}

/// Whether an error says that there is no room left.
pub fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(
        error.kind(),
        StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_wins() {
        assert_eq!(Exit::Kept.max(Exit::Inconclusive), Exit::Inconclusive);
        assert_eq!(Exit::Inconclusive.max(Exit::Broken), Exit::Broken);
        assert_eq!(Exit::Broken.max(Exit::Bug), Exit::Bug);
    }

    #[test]
    fn a_full_disk_is_not_our_bug() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert_eq!(
            of_error(&anyhow::Error::from(full).context("history")),
            Exit::Unavailable
        );
    }
}
