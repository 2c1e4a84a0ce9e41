//! Containers that somebody else ended or paused while their site was starting: they explain what else fails of the start.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bollard::errors::Error as Reply;
use bollard::models::{ContainerState, ContainerStateStatusEnum};
use bollard::query_parameters::InspectContainerOptions;

use crate::{Engine, Error};

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

    /// The same error, with the end of a container in its place where it follows from that. `container_of` names that of a
    /// host.
    pub async fn explain(
        &self,
        error: Error,
        engine: &Engine,
        container_of: impl Fn(&str) -> String,
    ) -> Error {
        if !may_follow(&error) {
            return error;
        }
        let hosts = self.hosts().clone();
        let limit = Instant::now() + KNOWN_WITHIN;
        loop {
            for host in &hosts {
                if let Some(how) = ended(engine, &container_of(host)).await {
                    return Error::HostEnded {
                        host: host.clone(),
                        how: format!("{how} while it was starting, and nothing of ours did that"),
                        log: format!(" ({error})"),
                    };
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

/// How somebody ended or paused a container, if that is plain. One that ends by itself says why in its log.
async fn ended(engine: &Engine, container: &str) -> Option<String> {
    let asked = engine
        .docker()
        .inspect_container(container, None::<InspectContainerOptions>);
    match tokio::time::timeout(KNOWN_WITHIN, asked).await.ok()? {
        Ok(found) => was_touched(&found.state?),
        Err(Reply::DockerResponseServerError {
            status_code: 404, ..
        }) => Some("its container was removed".to_owned()),
        Err(_) => None,
    }
}

fn was_touched(state: &ContainerState) -> Option<String> {
    if state.paused == Some(true) {
        return Some("its container was paused".to_owned());
    }
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
    fn only_a_container_that_was_killed_or_paused_was_touched_by_somebody() {
        use ContainerStateStatusEnum::{CREATED, EXITED, PAUSED, RUNNING};
        assert!(was_touched(&state(EXITED, KILLED)).is_some());
        let paused = ContainerState {
            paused: Some(true),
            ..state(PAUSED, 0)
        };
        assert!(was_touched(&paused).is_some());
        for (status, exit_code) in [(EXITED, 1), (EXITED, 0), (CREATED, 0), (RUNNING, 0)] {
            assert_eq!(was_touched(&state(status, exit_code)), None);
        }
    }
}
