//! Containers that somebody else ended, paused or cut off while their site was starting, and servers that somebody stopped
//! then: they explain what else fails of the start.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bollard::errors::Error as Reply;
use bollard::models::{ContainerState, ContainerStateStatusEnum};
use bollard::query_parameters::InspectContainerOptions;

use super::docker_events::found_touched;
use super::ground::Ground;
use crate::Error;

/// How long the end of a container may take to be known that has made something else fail, and the pause between two looks.
const KNOWN_WITHIN: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(50);

/// The status of a container whose first process was killed (SIGKILL), which nothing here does.
const KILLED: i64 = 128 + 9;

/// The hosts whose containers were made.
#[derive(Default)]
pub struct Made(Mutex<BTreeSet<String>>);

impl Made {
    /// Notes that the container of a host was made, whatever became of it since.
    pub fn note(&self, host: &str) {
        self.hosts().insert(host.to_owned());
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same error, with what became of a container on this ground in its place where it follows from that.
    pub(super) async fn explain(&self, error: Error, ground: &Ground) -> Error {
        if !may_follow(&error) {
            return error;
        }
        let hosts = self.hosts().clone();
        let limit = Instant::now() + KNOWN_WITHIN;
        loop {
            for host in &hosts {
                if let Some(how) = touched(ground, host).await {
                    return while_starting(host.clone(), &how, format!(" ({error})"));
                }
            }
            if Instant::now() >= limit {
                return error;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Whether the end of a container can be why.
fn may_follow(error: &Error) -> bool {
    matches!(
        error,
        Error::Agent(_)
            | Error::Docker { .. }
            | Error::Host { .. }
            | Error::NoLeader { .. }
            | Error::Service { .. }
    )
}

/// The error of a start in the middle of which somebody did this to a host.
pub(super) fn while_starting(host: String, how: &str, log: String) -> Error {
    Error::HostEnded {
        host,
        how: format!("{how} while it was starting, and nothing of ours did that"),
        log,
    }
}

/// What somebody did to a host's container, if that is plain. One that ends by itself says why in its log.
async fn touched(ground: &Ground, host: &str) -> Option<String> {
    let (docker, container) = (ground.engine.docker(), ground.container_of(host));
    let asked = docker.inspect_container(&container, None::<InspectContainerOptions>);
    match tokio::time::timeout(KNOWN_WITHIN, asked).await.ok()? {
        Ok(found) => was_killed(found.state.as_ref()?)
            .or_else(|| found_touched(&found, &ground.network).map(str::to_owned)),
        Err(Reply::DockerResponseServerError {
            status_code: 404, ..
        }) => Some("its container was removed".to_owned()),
        Err(_) => None,
    }
}

fn was_killed(state: &ContainerState) -> Option<String> {
    let ended = state.status == Some(ContainerStateStatusEnum::EXITED);
    let killed = ended && state.exit_code == Some(KILLED);
    let memory = match state.oom_killed {
        Some(true) => ", out of memory,",
        _ => "",
    };
    killed.then(|| format!("its container was killed{memory}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(status: ContainerStateStatusEnum, exit_code: i64) -> ContainerState {
        ContainerState {
            status: Some(status),
            exit_code: Some(exit_code),
            ..ContainerState::default()
        }
    }

    #[test]
    fn only_a_container_that_was_killed_was_ended_by_somebody() {
        use ContainerStateStatusEnum::{CREATED, EXITED, PAUSED, RUNNING};
        assert!(was_killed(&state(EXITED, KILLED)).is_some());
        let others = [EXITED, CREATED, RUNNING, PAUSED].map(|status| (status, 0));
        for (status, exit_code) in others.into_iter().chain([(EXITED, 1)]) {
            assert_eq!(was_killed(&state(status, exit_code)), None);
        }
    }
}
