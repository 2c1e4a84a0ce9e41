//! What can go wrong with a history's file, where, and what to do then.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::header::FORMAT_VERSION;
use crate::line::LONGEST_LINE;
use crate::visible::abridged;

/// The most that is told of what is wrong with a line, in characters: it may quote what stands there.
const LONGEST_MESSAGE: usize = 400;

/// Where in which file: prints as `history.jsonl:3:17`, and as `line 3, column 17` where no path is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file; absent for a stream.
    pub path: Option<PathBuf>,
    /// The line, counted from 1, the header's being 1; 0 where the whole file is meant.
    pub line: u64,
    /// The byte in the line at which reading stopped, counted from 1: that of the mistake, or the last one of the value
    /// that is wrong. 0 where the whole line is meant.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line, self.column);
        match (&self.path, line, column) {
            (Some(path), 0, _) => write!(f, "{}", path.display()),
            (Some(path), _, 0) => write!(f, "{}:{line}", path.display()),
            (Some(path), _, _) => write!(f, "{}:{line}:{column}", path.display()),
            (None, 0, _) => f.write_str("the history"),
            (None, _, 0) => write!(f, "line {line}"),
            (None, _, _) => write!(f, "line {line}, column {column}"),
        }
    }
}

/// Why a history cannot be read.
///
/// A file that merely ends too early is no error: see [`Ending::Truncated`](crate::Ending::Truncated).
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("cannot read {place}{}", reading_remedy(source.kind()))]
    Io {
        /// Where.
        place: Place,
        /// Why.
        source: io::Error,
    },
    /// There is not one byte.
    #[error(
        "{place} is empty: whoever was to write it stopped before its header, and there is nothing to read"
    )]
    Empty {
        /// The file.
        place: Place,
    },
    /// It is something else.
    #[error(
        "{place} is not a fencepost history: {why}; give the `history.jsonl` or `history.jsonl.zst` of a run directory"
    )]
    Foreign {
        /// The file.
        place: Place,
        /// What shows it.
        why: String,
    },
    /// It is of none of the formats that histories have.
    #[error(
        "{place} is not a history: {why}; give fencepost's `history.jsonl`, Jepsen's `history.edn`, or one of Porcupine's logs"
    )]
    Unknown {
        /// The file.
        place: Place,
        /// What shows it.
        why: String,
    },
    /// A later build wrote it, in a format that this one does not know.
    #[error(
        "{place} has format version {version}, and fencepost {} reads up to {FORMAT_VERSION}: use {}",
        env!("CARGO_PKG_VERSION"),
        needed_build(build.as_deref())
    )]
    Newer {
        /// The file.
        place: Place,
        /// The version of its format.
        version: u64,
        /// The build that wrote it, where the header says so.
        build: Option<String>,
    },
    /// The file ends within its header.
    #[error(
        "{place} ends within its header, and without it no event can be understood: take another copy of the file"
    )]
    HeaderCut {
        /// The file, or the compressed stream in it.
        place: Place,
    },
    /// A line is not what it should be: no JSON, a field missing or of a wrong type, an unknown `f` or `type`.
    #[error(
        "{place}: {}; the line is damaged or was edited: correct it, or take another copy of the file",
        abridged(message, LONGEST_MESSAGE)
    )]
    Broken {
        /// Where.
        place: Place,
        /// What is wrong.
        message: String,
    },
    /// A line is not UTF-8.
    #[error("{place}: not UTF-8; the line is damaged: take another copy of the file")]
    NotUtf8 {
        /// The first wrong byte.
        place: Place,
    },
    /// A line is longer than any event can be.
    #[error(
        "{place}: longer than {LONGEST_LINE} bytes, as no line of a history is; it is damaged: take another copy of the file"
    )]
    TooLong {
        /// The line.
        place: Place,
    },
    /// The compressed stream is damaged (a cut one is no error).
    #[error("{place}: the compressed stream is damaged; take another copy of the file")]
    Damaged {
        /// The first line that cannot be had.
        place: Place,
        /// What zstd says.
        source: io::Error,
    },
    /// The footer and the lines do not agree.
    #[error(
        "{place}: the footer counts {counted} events, and there are {found}; \
         lines were lost or added: take another copy of the file, or delete the footer to read it as a truncated one"
    )]
    Miscounted {
        /// The footer.
        place: Place,
        /// The events that it counts.
        counted: u64,
        /// The events that stand before it.
        found: u64,
    },
    /// Something follows the footer.
    #[error(
        "{place}: there is more after the footer, which ends a history; were two files joined? give each by itself"
    )]
    AfterFooter {
        /// The first line after the footer.
        place: Place,
    },
}

impl ReadError {
    /// Where it went wrong.
    pub fn place(&self) -> &Place {
        match self {
            Self::Io { place, .. }
            | Self::Empty { place }
            | Self::Foreign { place, .. }
            | Self::Unknown { place, .. }
            | Self::Newer { place, .. }
            | Self::HeaderCut { place }
            | Self::Broken { place, .. }
            | Self::NotUtf8 { place }
            | Self::TooLong { place }
            | Self::Damaged { place, .. }
            | Self::Miscounted { place, .. }
            | Self::AfterFooter { place } => place,
        }
    }
}

fn reading_remedy(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => " (check the path)",
        ErrorKind::PermissionDenied => " (make it readable for you)",
        ErrorKind::IsADirectory => " (name the file in it)",
        _ => "",
    }
}

fn needed_build(build: Option<&str>) -> String {
    match build {
        Some(build) => format!("fencepost {build}, which wrote it, or a later one"),
        None => "a build that reads that version".to_owned(),
    }
}

/// Why a history cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The operating system refused.
    #[error("cannot write {}{}", shown(path.as_deref()), writing_remedy(source.kind()))]
    Io {
        /// The file; absent for a stream.
        path: Option<PathBuf>,
        /// Why.
        source: io::Error,
    },
    /// The event is longer than a line may be; nothing of it was written, and the writer goes on.
    #[error(
        "cannot write {}: operation {op} makes a line of {bytes} bytes, and {LONGEST_LINE} is the most; shorten its texts",
        shown(path.as_deref())
    )]
    TooLong {
        /// The file; absent for a stream.
        path: Option<PathBuf>,
        /// The event's operation; 0 for the header.
        op: u64,
        /// The length of its line.
        bytes: usize,
    },
    /// An earlier write failed within a line, so that no other may follow it.
    #[error(
        "cannot write {}: an earlier write failed; what was flushed before that can be read",
        shown(path.as_deref())
    )]
    GivenUp {
        /// The file; absent for a stream.
        path: Option<PathBuf>,
    },
}

fn shown(path: Option<&Path>) -> String {
    path.map_or_else(
        || "the history".to_owned(),
        |path| path.display().to_string(),
    )
}

fn writing_remedy(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            " (free some space there, or write to another place)"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            " (write to a place that you may write to)"
        }
        ErrorKind::NotFound => " (make its folder first)",
        _ => "",
    }
}

/// Why a history cannot be sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// What there is cannot be read.
    #[error("the history cannot be sealed")]
    Read(#[from] ReadError),
    /// The sealed one cannot be written.
    #[error("the history cannot be sealed")]
    Write(#[from] WriteError),
}
