//! The clean-up: finds by its labels what a run or a dead process left, and removes it.

mod find;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bollard::errors::Error as Reply;
use bollard::models::ContainerStateStatusEnum;
use bollard::query_parameters::{
    InspectContainerOptions, RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder,
};
use futures_util::future::join_all;
use serde::Serialize;

use self::find::{Chosen, Things, find};
use crate::docker::on_a_thread_of_its_own;
use crate::replies::words;
use crate::silence::{HURRY, silent_for};
use crate::{Engine, Error, runtime_directory};

/// How often what could not be removed is tried again, and how long is waited in between. A network can only go when
/// Docker has seen its last container go; what is created while a sweep runs is found by the next round.
const ROUNDS: u32 = 20;
const ROUND_PAUSE: Duration = Duration::from_millis(200);

/// How long a container may take to go that somebody else removes.
const GOING_LIMIT: Duration = Duration::from_secs(30);
const GOING_PAUSE: Duration = Duration::from_millis(50);

/// How long a container may be about to start. Docker 20.10 forgets to let go of the network of one that is removed
/// while it starts, and then holds that network until the daemon restarts.
const STARTING_LIMIT: Duration = Duration::from_secs(3);

/// After so many rounds a network that has no containers, and that Docker says is in use, is taken to be held for good.
const ROUNDS_FOR_HELD: u32 = 5;

/// Whose things a sweep removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those of processes that are dead, but for runs that were told to stay ([`crate::RuntimeDirectory::keep`]).
    Dead,
    /// Those of one run, whoever made them.
    Run(String),
    /// Those that this process made.
    Own,
    /// All, those of live runs too.
    All,
}

/// What a sweep removed, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Containers.
    pub containers: Vec<String>,
    /// Networks.
    pub networks: Vec<String>,
    /// Volumes.
    pub volumes: Vec<String>,
    /// Folders outside Docker.
    pub runtime_dirs: Vec<PathBuf>,
    /// Networks that nothing uses any more and that Docker holds all the same, until its daemon restarts.
    pub held_networks: Vec<String>,
}

impl Swept {
    /// Whether nothing was removed.
    pub fn is_empty(&self) -> bool {
        self.containers.is_empty()
            && self.networks.is_empty()
            && self.volumes.is_empty()
            && self.runtime_dirs.is_empty()
    }
}

/// `5 containers, 1 network`.
impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = [
            (self.containers.len(), "container", "containers"),
            (self.networks.len(), "network", "networks"),
            (self.volumes.len(), "volume", "volumes"),
            (
                self.runtime_dirs.len(),
                "runtime directory",
                "runtime directories",
            ),
        ];
        let parts: Vec<String> = counted
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
            .collect();
        f.write_str(if parts.is_empty() { "nothing" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// Removes what is left of some runs: containers, then networks, volumes and runtime directories. What goes by itself or
/// by another hand meanwhile is fine.
///
/// # Errors
/// [`Error::Left`] with what could not be removed and why, after all the rest was; or that Docker cannot be asked.
pub async fn sweep(engine: &Engine, which: &Which) -> Result<Swept, Error> {
    let chosen = Chosen::new(which)?;
    let mut swept = Swept::default();
    for round in 1.. {
        let things = find(engine, &chosen).await?;
        if things.is_empty() {
            break;
        }
        let names = things.names();
        let refused = remove(engine, things, &mut swept).await;
        let held = !refused.is_empty() && refused.iter().all(Refused::is_held_network);
        if round >= ROUNDS_FOR_HELD && held {
            swept.held_networks = refused.into_iter().map(|refused| refused.name).collect();
            break;
        }
        if round == ROUNDS {
            let what: Vec<String> = refused.iter().map(Refused::to_string).collect();
            let what = match what.is_empty() {
                true => format!("Docker does not refuse to remove {names}, and has it still"),
                false => what.join("; "),
            };
            let removed = swept.to_string();
            return Err(Error::Left { what, removed });
        }
        if !refused.is_empty() {
            tokio::time::sleep(ROUND_PAUSE).await;
        }
    }
    for path in runtime_directory::all()
        .into_iter()
        .filter(|found| chosen.directory(found))
        .map(|found| found.path)
    {
        runtime_directory::remove(&path)?;
        swept.runtime_dirs.push(path);
    }
    Ok(swept)
}

/// [`sweep`] for a place that is not async, such as a drop: on a thread of its own, with a connection of its own.
///
/// # Errors
/// Those of [`sweep`] and of [`crate::engine`].
pub fn sweep_blocking(which: &Which) -> Result<Swept, Error> {
    on_a_thread_of_its_own(async { sweep(&crate::engine().await?, which).await })
}

/// Removes all that this process made, for when it is about to end in a hurry.
///
/// # Errors
/// [`Error::LeftBehind`] where Docker cannot be asked for it; what Docker would not remove.
pub fn sweep_own_blocking() -> Result<Swept, Error> {
    let swept = on_a_thread_of_its_own(async {
        let engine = tokio::time::timeout(HURRY, crate::engine()).await;
        let engine = engine.unwrap_or_else(|_| Err(silent_for(HURRY)))?;
        engine.in_a_hurry(sweep(&engine, &Which::Own)).await
    });
    swept.map_err(|left| Error::Cancelled.and_left(left))
}

/// What Docker refused to remove.
struct Refused {
    kind: &'static str,
    name: String,
    why: String,
}

impl Refused {
    fn is_held_network(&self) -> bool {
        self.kind == "network" && self.why.contains("has active endpoints")
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.kind, self.name, self.why)
    }
}

/// Removes all containers, then all networks and volumes at once; gives what was refused, and why.
async fn remove(engine: &Engine, things: Things, swept: &mut Swept) -> Vec<Refused> {
    let mut refused = Vec::new();
    let mut note = |kind: &'static str,
                    name: String,
                    result: Result<bool, Reply>,
                    removed: &mut Vec<String>| match result {
        Ok(true) => removed.push(name),
        Ok(false) => {}
        Err(reply) => refused.push(Refused {
            kind,
            name,
            why: words(&reply),
        }),
    };
    // One that was made and never started stays so; it is removed when the time is over.
    let starting = things.containers.iter().map(|(id, _)| started(engine, id));
    let _ = tokio::time::timeout(STARTING_LIMIT, join_all(starting)).await;
    // One after another: Docker 20.10 was seen to miscount the ends of a network whose containers went all at once.
    for (id, name) in things.containers {
        let result = remove_container(engine, &id).await;
        note("container", name, result, &mut swept.containers);
    }
    let networks = things
        .networks
        .into_iter()
        .map(async |(id, name)| (name, engine.docker().remove_network(&id).await));
    for (name, result) in join_all(networks).await {
        note("network", name, or_gone(result), &mut swept.networks);
    }
    let volumes = things.volumes.into_iter().map(async |name| {
        let options = RemoveVolumeOptionsBuilder::default().force(true).build();
        let result = engine.docker().remove_volume(&name, Some(options)).await;
        (name, result)
    });
    for (name, result) in join_all(volumes).await {
        note("volume", name, or_gone(result), &mut swept.volumes);
    }
    refused
}

/// Whether it was this that removed it: that it is gone already is no error.
fn or_gone(result: Result<(), Reply>) -> Result<bool, Reply> {
    match result {
        Ok(()) => Ok(true),
        Err(Reply::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(false),
        Err(reply) => Err(reply),
    }
}

async fn remove_container(engine: &Engine, id: &str) -> Result<bool, Reply> {
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    match engine.docker().remove_container(id, Some(options)).await {
        // "removal of container … is already in progress"
        Err(Reply::DockerResponseServerError {
            status_code: 409, ..
        }) => {
            // One that does not go in time is met again by the next round.
            let _ = tokio::time::timeout(GOING_LIMIT, gone(engine, id)).await;
            Ok(false)
        }
        result => or_gone(result),
    }
}

/// Waits until a container is no longer about to start.
async fn started(engine: &Engine, id: &str) {
    let options = None::<InspectContainerOptions>;
    while let Ok(found) = engine.docker().inspect_container(id, options.clone()).await
        && found.state.and_then(|state| state.status) == Some(ContainerStateStatusEnum::CREATED)
    {
        tokio::time::sleep(GOING_PAUSE).await;
    }
}

/// Waits until a container is gone that somebody else removes.
async fn gone(engine: &Engine, id: &str) {
    while engine
        .docker()
        .inspect_container(id, None::<InspectContainerOptions>)
        .await
        .is_ok()
    {
        tokio::time::sleep(GOING_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_already_is_no_error() {
        let answer = |status_code| {
            Err(Reply::DockerResponseServerError {
                status_code,
                message: String::new(),
            })
        };
        assert!(matches!(or_gone(answer(404)), Ok(false)));
        assert!(or_gone(answer(403)).is_err());
        assert!(matches!(or_gone(Ok(())), Ok(true)));
    }

    #[test]
    fn it_is_told_in_words() {
        assert_eq!(Swept::default().to_string(), "nothing");
        let swept = Swept {
            containers: vec!["a".to_owned(), "b".to_owned()],
            networks: vec!["n".to_owned()],
            volumes: Vec::new(),
            runtime_dirs: vec![PathBuf::from("/tmp/fencepost-a")],
            ..Swept::default()
        };
        assert_eq!(
            swept.to_string(),
            "2 containers, 1 network, 1 runtime directory"
        );
    }
}
