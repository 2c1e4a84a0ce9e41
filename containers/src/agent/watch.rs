//! A watch: a connection over which an agent tells what happens in its host, as it happens.

use std::time::Duration;

use super::connection::AgentError;
use super::lines::Lines;
use super::protocol::Notice;

/// A connection that carries a host's notices.
#[derive(Debug)]
pub struct Watch {
    host: String,
    lines: Lines,
}

impl Watch {
    /// `lines` are those of an agent that was asked to tell.
    pub(super) fn new(host: String, lines: Lines) -> Watch {
        Watch { host, lines }
    }

    /// The name of the host that this watches.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The next notice; `None` when none came within `timeout`. Nothing is lost by a time-out.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Notice>, AgentError> {
        let line = self
            .lines
            .next(Some(timeout))
            .map_err(|source| AgentError::Broken {
                host: self.host.clone(),
                request: "watch".to_owned(),
                source,
            })?;
        line.map(|line| {
            serde_json::from_str(&line).map_err(|_| AgentError::Unexpected {
                host: self.host.clone(),
                request: "watch".to_owned(),
                answer: line,
            })
        })
        .transpose()
    }
}
