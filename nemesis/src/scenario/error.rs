//! What can be wrong with a scenario.

use std::fmt;
use std::io;
use std::path::PathBuf;

use histories::{abridged, visible};

/// Why a scenario cannot be had or cannot be run so.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// No scenario has this name.
    #[error(
        "no scenario is called `{}`, and it is no path of a `.toml` file; {instead}",
        visible(name)
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The name that was probably meant, or all there are.
        instead: String,
    },
    /// The file cannot be read.
    #[error("cannot read the scenario {}", visible(&path.to_string_lossy()))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is wrong, here and there.
    #[error("{}", lines(problems))]
    Invalid {
        /// All that is wrong, in the order of the file; never empty.
        problems: Vec<Problem>,
    },
    /// The scenario makes no sense on this topology.
    #[error("scenario `{scenario}` does not run on topology `{topology}`: {reason}")]
    NotHere {
        /// The scenario.
        scenario: String,
        /// The topology.
        topology: String,
        /// Why not.
        reason: String,
    },
    /// A length of the scenario comes out wrong with the TTL that the lock service needs.
    #[error(
        "{}: {reason} with the TTL of {ttl_ms} ms that `{lock}` needs",
        visible(place)
    )]
    Lengths {
        /// Where: `file:line:column`.
        place: String,
        /// What is wrong.
        reason: String,
        /// The TTL.
        ttl_ms: u64,
        /// The lock service.
        lock: String,
    },
}

/// One thing that is wrong with a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What was found, what is allowed, and the nearest right name.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem {
            file,
            line,
            column,
            message,
        } = self;
        let (file, message) = (visible(file), visible(message));
        let message = abridged(&message, MESSAGE_MAX);
        write!(formatter, "{file}:{line}:{column}: {message}")
    }
}

/// The longest message, in characters: it may quote what a file says.
pub(crate) const MESSAGE_MAX: usize = 400;

/// The most problems that a message tells one by one.
const TOLD_MAX: usize = 100;

fn lines(problems: &[Problem]) -> String {
    let told = problems.iter().take(TOLD_MAX).map(Problem::to_string);
    let more = problems.len().saturating_sub(TOLD_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    let lines: Vec<String> = told.chain(more).collect();
    lines.join("\n")
}
