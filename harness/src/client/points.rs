//! What a client reaches that its agent waits for: named points, and the completion of operations.

use std::cell::RefCell;
use std::path::PathBuf;

use containers::agent::Agent;
use containers::agent::AgentError;
use containers::agent::protocol::{Action, At, Rule};
use histories::{Function, Kind};
use tokio::task;

use super::record::Reached;

/// The rules of a client, and the agent that it tells when it reaches one.
pub struct Reach {
    rules: Vec<Rule>,
    socket: Option<PathBuf>,
    /// Open from the start where there is a rule, so that the first pause begins as fast as the others.
    agent: RefCell<Option<Agent>>,
}

impl Reach {
    /// The agent listens at `socket`; without one, nothing is ever told.
    pub fn new(rules: Vec<Rule>, socket: Option<PathBuf>) -> Reach {
        let reach = Reach {
            rules,
            socket,
            agent: RefCell::new(None),
        };
        if !reach.rules.is_empty()
            && let Err(error) = reach.with_agent(|_| Ok(()))
        {
            tracing::error!("no rule will be noticed: {error}");
        }
        reach
    }

    /// The rule that waits for this point of the nth grant.
    pub fn rule_at(&self, point: &str, nth: u64) -> Option<&Rule> {
        self.rules.iter().find(|rule| match &rule.at {
            At::Point {
                point: at,
                nth_grant,
            } => at == point && *nth_grant == nth,
            At::Event { .. } => false,
        })
    }

    /// Tells the agent that the client is where a rule waits for it, and returns when it may go on.
    ///
    /// Where the agent is to stop the client, all of it waits: nothing may be sent or heard between the point and the
    /// stop, nor between the resumption and the next step. Where the agent only holds it, its background tasks go on,
    /// since it is a client that lives, and whose work just takes long.
    pub async fn reached(&self, rule: &Rule, at: Reached, op: u64) {
        let number = rule.rule;
        let told = match (rule.action, &self.socket) {
            (Action::Hold, Some(socket)) => {
                let socket = socket.clone();
                let held = task::spawn_blocking(move || {
                    let mut agent = Agent::connect(&socket)?;
                    agent.reached(number, at.reached_ns, at.invoked_ns, op)
                });
                held.await.unwrap_or(Ok(()))
            }
            _ => self.tell(number, at, op),
        };
        if let Err(error) = told {
            tracing::error!("rule {number} was not noticed: {error}");
        }
    }

    /// Tells the agent of a completed operation wherever a rule names it.
    pub fn completed(&self, f: Function, kind: Kind, at: Reached, op: u64) {
        for rule in &self.rules {
            if let At::Event { f: wanted, outcome } = &rule.at
                && *wanted == name(f)
                && *outcome == name(kind)
                && let Err(error) = self.tell(rule.rule, at, op)
            {
                tracing::error!("rule {} was not noticed: {error}", rule.rule);
            }
        }
    }

    fn tell(&self, rule: u32, at: Reached, op: u64) -> Result<(), AgentError> {
        self.with_agent(|agent| agent.reached(rule, at.reached_ns, at.invoked_ns, op))
    }

    /// Over the open connection, or a new one.
    fn with_agent(
        &self,
        ask: impl FnOnce(&mut Agent) -> Result<(), AgentError>,
    ) -> Result<(), AgentError> {
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        let open = self.agent.borrow_mut().take();
        let mut agent = match open {
            Some(agent) => agent,
            None => Agent::connect(socket)?,
        };
        ask(&mut agent)?;
        self.agent.replace(Some(agent));
        Ok(())
    }
}

/// The name of a function or of a completion, as it stands in the history.
fn name(word: impl serde::Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
