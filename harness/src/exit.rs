//! How a call ends: the exit statuses that scripts rely on, and which error leads to which.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use histories::{abridged, visible};
use nix::errno::Errno;

/// The exit status of a call, from the one that yields to all others on. Where several apply, the order is 70, 1, 130,
/// 69, 65, 64, 2, 0: a proven violation is never hidden by something that merely went wrong besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All promises kept.
    Kept,
    /// A check is unknown, a fault has no evidence, or a control was not caught.
    Inconclusive,
    /// The call itself was wrong.
    Usage,
    /// A history can't be read.
    Unreadable,
    /// Docker, a server, the disk or a needed capability is missing.
    Unavailable,
    /// Ctrl-C or SIGTERM, or the terminal is gone.
    Interrupted,
    /// A promise was broken; for `check`: a property is violated.
    Broken,
    /// Our own bug.
    Bug,
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
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// A path that was named, or something under it, can't be looked at.
#[derive(Debug, thiserror::Error)]
#[error("cannot look at {}; make it readable, or leave it out", path.display())]
pub struct Unreadable {
    /// The path.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Something that a run needs is not there, through no fault of ours: a server that does not come up.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// The call was interrupted, and what it had begun is cleared away.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// The status that an error leads to: that the machine lacks something, if it is that; else the first of its causes that
/// says one.
pub fn of_error(error: &anyhow::Error) -> Exit {
    if io_causes(error).any(is_full) || io_causes(error).any(is_out_of_descriptors) {
        return Exit::Unavailable;
    }
    error.chain().find_map(of_cause).unwrap_or(Exit::Bug)
}

/// The errors of the system's among an error's causes.
pub fn io_causes(error: &anyhow::Error) -> impl Iterator<Item = &io::Error> {
    error.chain().filter_map(|cause| cause.downcast_ref())
}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if cause.is::<UsageError>()
        || cause.is::<nemesis::ScenarioError>()
        || matches!(cause.downcast_ref(), Some(checker::CheckError::Setup(_)))
    {
        Some(Exit::Usage)
    } else if cause.is::<Interrupted>() {
        Some(Exit::Interrupted)
    } else if cause.is::<Unreadable>()
        || cause.is::<histories::ReadError>()
        || cause.is::<nemesis::PlanProblems>()
        || cause.is::<checker::CheckError>()
    {
        Some(Exit::Unreadable)
    } else if cause.is::<Unavailable>()
        || cause.is::<containers::Error>()
        || cause.is::<containers::agent::AgentError>()
        || cause.is::<crate::connections::Failure>()
        || cause.downcast_ref().is_some_and(is_of_others)
    {
        Some(Exit::Unavailable)
    } else {
        None
    }
}

/// The longest line of a message, in characters.
const LINE_MAX: usize = 4000;

/// An error as a person is told of it, in lines: what went wrong, and what to do about it.
pub fn told(error: &anyhow::Error) -> Vec<String> {
    let message = in_full(error);
    let says_so_itself = message.contains("ulimit");
    let remedy = remedy(error).filter(|_| !says_so_itself);
    let message = format!("fencepost: {message}");
    let lines = message.lines().chain(remedy);
    lines
        .map(|line| abridged(line, LINE_MAX).into_owned())
        .collect()
}

/// What to do about an error that may not say so itself.
fn remedy(error: &anyhow::Error) -> Option<&'static str> {
    if io_causes(error).any(is_out_of_descriptors) {
        Some("too few file descriptors: raise the limit (`ulimit -n 4096`)")
    } else if of_error(error) == Exit::Bug {
        Some("this looks like a bug of fencepost's own; please report it with the lines above")
    } else {
        None
    }
}

/// An error with its causes, for a person: a cause that the text before it has told already is not told again. Only those
/// have lines of their own that write them themselves: in any other, a newline comes from a name or a file.
fn in_full(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| {
        let has_lines = cause.is::<nemesis::ScenarioError>() || cause.is::<containers::Error>();
        let cause = match cause.to_string() {
            text if has_lines => text,
            text => visible(&text).into_owned(),
        };
        match told.as_str() {
            "" => cause,
            said if said.contains(&cause) => told,
            said => format!("{said}: {cause}"),
        }
    })
}

/// Whether an error says that there is no room left.
pub fn is_full(error: &io::Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(
        error.kind(),
        StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem
    )
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EMFILE | Errno::ENFILE))
}

/// Whether an error is to be blamed on the machine, or on the other end of a connection, and not on this program.
fn is_of_others(error: &io::Error) -> bool {
    use ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable,
        NetworkDown, NetworkUnreachable, NotConnected, OutOfMemory, PermissionDenied, TimedOut,
        WouldBlock,
    };
    let peer = matches!(
        error.kind(),
        BrokenPipe
            | ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | NetworkDown
            | NetworkUnreachable
            | NotConnected
            | TimedOut
    );
    // A process that may not be started "would block"; a bad disk is an input/output error.
    let machine = matches!(error.kind(), OutOfMemory | PermissionDenied | WouldBlock)
        || error.raw_os_error() == Some(Errno::EIO as i32);
    peer || machine
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::Failure;

    #[test]
    fn the_worst_of_several_wins() {
        let worst_first = [
            Exit::Bug,
            Exit::Broken,
            Exit::Interrupted,
            Exit::Unavailable,
            Exit::Unreadable,
            Exit::Usage,
            Exit::Inconclusive,
            Exit::Kept,
        ];
        assert!(worst_first.is_sorted_by(|worse, better| worse > better));
        let codes = worst_first.map(Exit::code);
        assert_eq!(codes, [70, 1, 130, 69, 65, 64, 2, 0]);
    }

    #[test]
    fn what_servers_and_the_machine_lack_is_not_our_bug() {
        let io = |kind: ErrorKind| anyhow::Error::from(io::Error::from(kind));
        let os = |errno: Errno| anyhow::Error::from(io::Error::from_raw_os_error(errno as i32));
        let refused = Failure::Refused("no connection: Connection refused".into());
        let errors: Vec<anyhow::Error> = vec![
            io(ErrorKind::StorageFull),
            io(ErrorKind::ConnectionRefused),
            io(ErrorKind::ConnectionReset),
            os(Errno::EMFILE),
            os(Errno::ENFILE),
            os(Errno::ENOMEM),
            os(Errno::EHOSTUNREACH),
            os(Errno::EACCES),
            os(Errno::EIO),
            refused.into(),
            Failure::Unknown("no answer within 1000 ms".into()).into(),
            Unavailable("redis on host s1 is not ready".into()).into(),
        ];
        for error in errors {
            let said = format!("{error:#}");
            assert_eq!(
                of_error(&error.context("prepare the lock service")),
                Exit::Unavailable,
                "{said}"
            );
        }
        assert_eq!(of_error(&anyhow::anyhow!("what is this")), Exit::Bug);
        assert_eq!(of_error(&io(ErrorKind::InvalidData)), Exit::Bug);
    }

    #[test]
    fn too_few_file_descriptors_are_named() {
        let error = anyhow::Error::from(histories::ReadError::Io {
            place: histories::Place::default(),
            source: io::Error::from_raw_os_error(Errno::EMFILE as i32),
        });
        assert_eq!(of_error(&error), Exit::Unavailable);
        assert!(remedy(&error).is_some_and(|remedy| remedy.contains("ulimit -n")));
        assert!(remedy(&UsageError("no".into()).into()).is_none());
        assert_eq!(told(&error).len(), 2);
        let with_remedy = error.context("raise the limit (`ulimit -n 4096`)");
        assert_eq!(told(&with_remedy).len(), 1, "it is told once");
    }

    #[test]
    fn a_cause_that_its_error_tells_is_told_once() {
        let gone = || io::Error::other("gone");
        let error = anyhow::Error::from(containers::Error::io("/tmp/x", gone())).context("run");
        assert_eq!(in_full(&error), "run: /tmp/x: gone");
        let error = anyhow::Error::from(gone()).context("write").context("run");
        assert_eq!(in_full(&error), "run: write: gone");
    }
}
