//! The hands of a fault: with them it acts on hosts, and looks at them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use containers::agent::Agent;

use crate::board::Board;
use crate::faults::FaultError;
use crate::hosts::Hosts;
use crate::trigger::Reached;

/// How a strike acts and looks, over connections of its own.
///
/// With tied hands (sabotage) nothing is done, while looking goes on as ever.
pub struct Hands {
    hosts: Arc<dyn Hosts>,
    board: Arc<Board>,
    agents: HashMap<String, Agent>,
    tied: bool,
    acted: bool,
}

impl Hands {
    pub(crate) fn new(hosts: Arc<dyn Hosts>, board: Arc<Board>, tied: bool) -> Hands {
        Hands {
            hosts,
            board,
            agents: HashMap::new(),
            tied,
            acted: false,
        }
    }

    /// Does something to a host; `None` if the hands are tied, and nothing was done.
    pub fn act<T, E: Into<containers::Error>>(
        &mut self,
        host: &str,
        what: impl FnOnce(&mut Agent) -> Result<T, E>,
    ) -> Result<Option<T>, FaultError> {
        if self.tied {
            return Ok(None);
        }
        self.acted = true;
        self.ask(host, what).map(Some)
    }

    /// Looks at a host.
    pub fn observe<T, E: Into<containers::Error>>(
        &mut self,
        host: &str,
        what: impl FnOnce(&mut Agent) -> Result<T, E>,
    ) -> Result<T, FaultError> {
        self.ask(host, what)
    }

    /// Finds out what a host can do.
    pub(crate) fn look<T>(
        &mut self,
        host: &str,
        what: impl FnOnce(&mut Agent) -> T,
    ) -> Result<T, FaultError> {
        Ok(what(self.agent(host)?))
    }

    /// The hosts of the run.
    pub fn hosts(&self) -> &dyn Hosts {
        self.hosts.as_ref()
    }

    /// What a client completed from `from_ns` to `to_ns`, of all that rules listen for.
    pub fn completed(&self, client: &str, from_ns: u64, to_ns: u64) -> Vec<Reached> {
        self.board.completed(client, from_ns, to_ns)
    }

    /// When a client was let go from a point; `None` while it is held there.
    pub fn let_go_ns(&self, client: &str, rule: u32) -> Option<u64> {
        self.board.let_go_ns(client, rule)
    }

    /// Whether anything was ever tried with these hands.
    pub(crate) fn acted(&self) -> bool {
        self.acted
    }

    /// Opens a connection ahead of its use.
    pub(crate) fn reach_for(&mut self, host: &str) -> Result<(), FaultError> {
        self.agent(host).map(|_| ())
    }

    fn ask<T, E: Into<containers::Error>>(
        &mut self,
        host: &str,
        what: impl FnOnce(&mut Agent) -> Result<T, E>,
    ) -> Result<T, FaultError> {
        let answer = what(self.agent(host)?);
        // After an error the connection may be of no more use: the next request opens another.
        answer.map_err(|error| {
            self.agents.remove(host);
            FaultError::Host(error.into())
        })
    }

    fn agent(&mut self, host: &str) -> Result<&mut Agent, FaultError> {
        self.hosts.check_answers(host)?;
        match self.agents.entry(host.to_owned()) {
            Entry::Occupied(agent) => Ok(agent.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(self.hosts.agent(host)?)),
        }
    }
}
