//! Scenarios: what clients do and what goes wrong meanwhile, as a person writes it down in a TOML file.
//!
//! A scenario names no lock service. [`Scenario::resolve`] makes a [`Plan`](histories::Plan) of it for one lock service
//! on one topology, in which nothing is left open.

mod built_in;
mod error;
mod fault;
mod length;
mod place;
mod reader;
mod resolve;
mod table;

use std::path::Path;

use crate::faults::{Fault, Parameter};
use crate::validation::sense::Sketch;
use crate::words::instead;

pub use built_in::{BuiltIn, scenarios};
pub(crate) use error::MESSAGE_MAX;
pub use error::{Problem, ScenarioError};
pub use length::Length;
pub use resolve::Choice;

/// The longest scenario file that is read, in bytes: 1 MiB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A scenario that was read and found to make sense.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: that of its file, without `.toml`.
    pub name: String,
    /// The file it was read from, as messages name it.
    pub file: String,
    /// What happens in it, in one sentence.
    pub summary: String,
    /// The claims that it can show.
    pub claims: Vec<String>,
    /// The properties whose violation it is there to show where they are not promised.
    pub controls: Vec<String>,
    /// The topologies that it is for; empty for all on which its faults make sense.
    pub topologies: Vec<String>,
    /// How many clients there are.
    pub clients: u32,
    /// The TTL that it asks for, in milliseconds; a lock service's own minimum may raise it.
    pub ttl_ms: u64,
    /// How long a wanted lock may stay ungranted after the last heal or a holder's crash.
    pub progress_bound: Length,
    /// The longest that the run may take.
    pub limit: Length,
    /// What the clients do.
    pub workload: WantedWorkload,
    /// What goes wrong.
    pub faults: Vec<WantedFault>,
}

/// What the clients do, as a scenario says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedWorkload {
    /// Its name.
    pub name: String,
    /// How long the work under the lock takes.
    pub work: Length,
    /// The longest pause between two rounds of a client.
    pub rest: Length,
    /// The longest wait before a busy lock is asked for again.
    pub retry: Length,
    /// How many rounds each client completes before the first fault and after the last.
    pub rounds: u64,
}

/// One fault, as a scenario says it.
#[derive(Clone)]
pub struct WantedFault {
    /// The fault.
    pub fault: &'static dyn Fault,
    /// Where it stands in the file: line and column.
    pub place: (usize, usize),
    /// The host that it strikes.
    pub on: String,
    /// What it waits for.
    pub when: WantedWhen,
    /// How long it lasts.
    pub until: WantedUntil,
    /// Whether it is only for locks that their holder keeps alive in the background.
    pub only_kept_alive: bool,
    /// Its parameters, those that were given.
    pub with: Vec<(Parameter, Given)>,
}

impl std::fmt::Debug for WantedFault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("WantedFault")
            .field("fault", &self.fault.name())
            .field("on", &self.on)
            .field("when", &self.when)
            .field("until", &self.until)
            .field("with", &self.with)
            .finish_non_exhaustive()
    }
}

impl WantedFault {
    /// What of it is not a length of time.
    pub(crate) fn sketch(&self) -> Sketch<'_> {
        let hosts = self.with.iter().filter_map(|(_, given)| match given {
            Given::Host(host) => Some(host.as_str()),
            Given::Length(_) | Given::Port(_) => None,
        });
        Sketch {
            fault: self.fault,
            on: &self.on,
            point: match &self.when {
                WantedWhen::Point {
                    client,
                    point,
                    grant,
                } => Some((client, point, *grant)),
                WantedWhen::After(_) | WantedWhen::Event(_) => None,
            },
            others: hosts.collect(),
        }
    }
}

/// A trigger, as a scenario says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedWhen {
    /// This long after the clients started.
    After(Length),
    /// A client reaches a named point of its nth grant, counted from 1.
    Point {
        /// The client.
        client: String,
        /// The point.
        point: String,
        /// The grant.
        grant: u64,
    },
    /// A client completes an operation, after every earlier fault was injected.
    Event(WantedEvent),
}

/// A completion of a client, as a scenario says it: `{ client = "c2", write = "ok" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedEvent {
    /// The client.
    pub client: String,
    /// The function.
    pub f: String,
    /// The outcome.
    pub outcome: String,
}

/// How long a fault lasts, as a scenario says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedUntil {
    /// At least this long.
    pub lasts: Option<Length>,
    /// At least until this happened after the fault was in place.
    pub event: Option<WantedEvent>,
    /// Likewise, where the lock can pass to another client while its holder does nothing: where it expires.
    pub takeover: Option<WantedEvent>,
    /// Never longer than this.
    pub at_most: Option<Length>,
}

/// The value of a parameter, as a scenario gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// A length of time, or a step of a clock.
    Length(Length),
    /// A host.
    Host(String),
    /// A TCP port.
    Port(u16),
}

impl Scenario {
    /// Reads the text of a scenario called `name`; `file` names it in messages.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Scenario, ScenarioError> {
        reader::read(name, file, text)
    }
}

/// Reads a scenario: a built-in one by its name, or a file of one's own by its path, which ends in `.toml` or has a `/`
/// in it.
pub fn load(name_or_path: &str) -> Result<Scenario, ScenarioError> {
    if name_or_path.ends_with(".toml") || name_or_path.contains('/') {
        let path = Path::new(name_or_path);
        let text = histories::read_small(path, FILE_BYTES_MAX).map_err(|source| {
            ScenarioError::Unreadable {
                path: path.to_path_buf(),
                source,
            }
        })?;
        let name = path.file_stem().unwrap_or(path.as_os_str());
        return reader::read(&name.to_string_lossy(), name_or_path, &text);
    }
    match scenarios()
        .iter()
        .find(|built_in| built_in.name == name_or_path)
    {
        Some(built_in) => built_in.read(),
        None => {
            let names: Vec<&str> = scenarios().iter().map(|built_in| built_in.name).collect();
            Err(ScenarioError::Unknown {
                name: name_or_path.to_owned(),
                instead: instead(name_or_path, &names),
            })
        }
    }
}
