//! Waiting for the agents of hosts whose containers have just been started.

use std::path::Path;
use std::time::{Duration, Instant};

use bollard::container::LogOutput;
use bollard::query_parameters::{InspectContainerOptions, LogsOptionsBuilder};
use futures_util::StreamExt as _;

use super::ground::Ground;
use super::{Host, real_time};
use crate::Error;
use crate::agent::{Agent, AgentError};

/// How long an agent may take to answer from then on; a tenth of a second is usual.
const AGENT_WITHIN: Duration = Duration::from_secs(30);

/// How long it may take to answer one attempt to reach it: a container that is paused meanwhile is to be noticed.
const GREETED_WITHIN: Duration = Duration::from_secs(2);

/// The pause between two attempts to reach it, and between two looks whether its container still runs.
const AGENT_PAUSE: Duration = Duration::from_millis(5);
const CONTAINER_PAUSE: Duration = Duration::from_millis(500);

/// How much of a container's own log an error tells.
const LOG_LINES: &str = "20";

impl Ground {
    /// Waits until the host's agent answers.
    pub(super) async fn agent_of(&self, host: &Host) -> Result<(), Error> {
        let deadline = Instant::now() + AGENT_WITHIN;
        let mut look_at_container = Instant::now() + CONTAINER_PAUSE;
        loop {
            match greet(&host.socket) {
                Ok(scheduling) => {
                    tracing::debug!(
                        "host {}: the agent is up, scheduled {scheduling}",
                        host.name
                    );
                    return Ok(());
                }
                Err(error) if Instant::now() >= deadline => {
                    let told = error.to_string();
                    let told = told.trim_start_matches(&format!("host {}: ", host.name));
                    let what = format!("does not come up: {told}");
                    return Err(self.gone(&host.name, &what).await);
                }
                Err(_) => tokio::time::sleep(AGENT_PAUSE).await,
            }
            if Instant::now() >= look_at_container {
                self.check_runs(&host.name).await?;
                look_at_container = Instant::now() + CONTAINER_PAUSE;
            }
        }
    }

    async fn check_runs(&self, host: &str) -> Result<(), Error> {
        let container = self.container_of(host);
        let found = self
            .engine
            .docker()
            .inspect_container(&container, None::<InspectContainerOptions>);
        let found = found
            .await
            .map_err(|reply| Error::docker(format!("looking at {container}"), reply))?;
        let state = found.state.unwrap_or_default();
        match (state.running, state.paused) {
            (Some(false), _) => Err(self.gone(host, "its agent has ended").await),
            (_, Some(true)) => Err(self.gone(host, "its container is paused").await),
            _ => Ok(()),
        }
    }

    /// The error of a host that is of no use, with what its container wrote.
    pub(super) async fn gone(&self, host: &str, what: &str) -> Error {
        let options = LogsOptionsBuilder::new()
            .stdout(true)
            .stderr(true)
            .tail(LOG_LINES)
            .build();
        let container = self.container_of(host);
        let log = self.engine.docker().logs(&container, Some(options));
        let lines: Vec<String> = log
            .filter_map(async |line| line.ok().map(|line: LogOutput| line.to_string()))
            .collect()
            .await;
        let wrote = match lines.concat().trim_end() {
            "" => "; its container wrote nothing".to_owned(),
            lines => format!("; its container wrote:\n{lines}"),
        };
        Error::Host {
            host: host.to_owned(),
            reason: what.to_owned() + &wrote,
        }
    }
}

/// Asks an agent whether it is there, and lets it have real time if it has none; how it is scheduled.
fn greet(socket: &Path) -> Result<String, AgentError> {
    let mut agent = Agent::connect(socket)?;
    let scheduling = agent.hello(GREETED_WITHIN)?;
    let moved = !scheduling.starts_with("rr") && agent.pid().is_some_and(real_time::allow);
    if !moved {
        return Ok(scheduling);
    }
    // Each connection has a thread of its own, and only a new one asks anew.
    Agent::connect(socket)?.hello(GREETED_WITHIN)
}
