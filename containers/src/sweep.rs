//! The clean-up: finds by its labels what a run or a dead process left, and removes it.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bollard::errors::Error as Reply;
use bollard::models::ContainerStateStatusEnum;
use bollard::query_parameters::{
    InspectContainerOptions, ListContainersOptionsBuilder, ListNetworksOptionsBuilder,
    ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder,
};
use futures_util::future::{join_all, try_join3};
use serde::Serialize;

use crate::docker::on_a_thread_of_its_own;
use crate::error::words;
use crate::owner::{LABEL, LABEL_OWNER, LABEL_RUN, Owner};
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
        let refused = remove(engine, things, &mut swept).await;
        if round >= ROUNDS_FOR_HELD && refused.iter().all(Refused::is_held_network) {
            swept.held_networks = refused.into_iter().map(|refused| refused.name).collect();
            break;
        }
        if round == ROUNDS && !refused.is_empty() {
            let what: Vec<String> = refused.iter().map(Refused::to_string).collect();
            return Err(Error::Left {
                what: what.join("; "),
                removed: swept.to_string(),
            });
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

/// Removes all that this process made, for when it is about to end in a hurry; what goes wrong is logged.
pub fn sweep_own_blocking() {
    if let Err(error) = sweep_blocking(&Which::Own) {
        tracing::error!("not all was cleaned up, `fencepost clean` will: {error}");
    }
}

/// [`Which`], made ready to be asked.
struct Chosen<'a> {
    which: &'a Which,
    current: String,
}

impl Chosen<'_> {
    fn new(which: &Which) -> Result<Chosen<'_>, Error> {
        Ok(Chosen {
            which,
            current: Owner::current()?.to_string(),
        })
    }

    fn labels(&self, labels: &HashMap<String, String>) -> bool {
        let text = |label| labels.get(label).map(String::as_str);
        self.owned(text(LABEL_OWNER), text(LABEL_RUN))
    }

    fn directory(&self, found: &runtime_directory::Found) -> bool {
        match &found.owner {
            Some(owner) => self.owned(Some(owner), Some(&found.run)),
            None => matches!(self.which, Which::Dead | Which::All) && found.abandoned,
        }
    }

    fn owned(&self, owner: Option<&str>, run: Option<&str>) -> bool {
        match self.which {
            Which::Dead => {
                let dead = owner
                    .and_then(Owner::parse)
                    .is_some_and(|owner| !owner.is_alive());
                dead && !run.is_some_and(runtime_directory::is_kept)
            }
            Which::Run(wanted) => run == Some(wanted),
            Which::Own => owner == Some(&self.current),
            // What somebody else starts from one of our images has the images' label, and no owner.
            Which::All => owner.is_some(),
        }
    }
}

/// What is there to be removed.
#[derive(Default)]
struct Things {
    /// Ids and names.
    containers: Vec<(String, String)>,
    /// Ids and names.
    networks: Vec<(String, String)>,
    /// Names.
    volumes: Vec<String>,
}

impl Things {
    fn is_empty(&self) -> bool {
        self.containers.is_empty() && self.networks.is_empty() && self.volumes.is_empty()
    }
}

async fn find(engine: &Engine, chosen: &Chosen<'_>) -> Result<Things, Error> {
    let (containers, networks, volumes) = try_join3(
        containers(engine, chosen),
        networks(engine, chosen),
        volumes(engine, chosen),
    )
    .await?;
    Ok(Things {
        containers,
        networks,
        volumes,
    })
}

fn ours() -> HashMap<&'static str, Vec<&'static str>> {
    HashMap::from([("label", vec![LABEL])])
}

async fn containers(engine: &Engine, chosen: &Chosen<'_>) -> Result<Vec<(String, String)>, Error> {
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&ours())
        .build();
    let mut attempt = 0;
    let found = loop {
        attempt += 1;
        match engine.docker().list_containers(Some(options.clone())).await {
            Ok(found) => break found,
            // Engines have failed to list containers while one of them was going.
            Err(Reply::DockerResponseServerError {
                status_code: 404, ..
            }) if attempt < ROUNDS => {}
            Err(reply) => return Err(Error::docker("listing containers", reply)),
        }
    };
    let found = found.into_iter().filter(|one| {
        one.labels
            .as_ref()
            .is_some_and(|labels| chosen.labels(labels))
    });
    Ok(found
        .filter_map(|one| {
            let id = one.id?;
            let name = one
                .names
                .and_then(|names| names.into_iter().next())
                .unwrap_or_else(|| id.clone());
            Some((id, name.trim_start_matches('/').to_owned()))
        })
        .collect())
}

async fn networks(engine: &Engine, chosen: &Chosen<'_>) -> Result<Vec<(String, String)>, Error> {
    let options = ListNetworksOptionsBuilder::default()
        .filters(&ours())
        .build();
    let found = engine.docker().list_networks(Some(options)).await;
    let found = found
        .map_err(|reply| Error::docker("listing networks", reply))?
        .into_iter();
    let found = found.filter(|one| {
        one.labels
            .as_ref()
            .is_some_and(|labels| chosen.labels(labels))
    });
    Ok(found
        .filter_map(|one| Some((one.id?, one.name.unwrap_or_default())))
        .collect())
}

async fn volumes(engine: &Engine, chosen: &Chosen<'_>) -> Result<Vec<String>, Error> {
    let options = ListVolumesOptionsBuilder::default()
        .filters(&ours())
        .build();
    let found = engine.docker().list_volumes(Some(options)).await;
    let found = found
        .map_err(|reply| Error::docker("listing volumes", reply))?
        .volumes
        .unwrap_or_default();
    Ok(found
        .into_iter()
        .filter(|one| chosen.labels(&one.labels))
        .map(|one| one.name)
        .collect())
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
    // One that was made and never started stays so; it is removed when the time is over.
    let _ = tokio::time::timeout(STARTING_LIMIT, started(engine, id)).await;
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

    const DEAD: &str = "1:1:another-boot:1";

    fn chooses(which: &Which, owner: Option<&str>, run: Option<&str>) -> bool {
        Chosen::new(which).expect("this process").owned(owner, run)
    }

    #[test]
    fn the_dead_are_chosen_and_the_living_spared() {
        let current = Owner::current().expect("this process").to_string();
        assert!(chooses(&Which::Dead, Some(DEAD), Some("a")));
        assert!(!chooses(&Which::Dead, Some(&current), Some("a")));
        assert!(
            !chooses(&Which::Dead, None, Some("a")),
            "what names no owner may belong to a live one"
        );
        assert!(!chooses(&Which::Dead, Some("who knows"), Some("a")));
    }

    #[test]
    fn a_run_is_chosen_by_its_id_alone() {
        let run = Which::Run("a".to_owned());
        assert!(chooses(&run, Some(DEAD), Some("a")));
        assert!(!chooses(&run, Some(DEAD), Some("b")));
        assert!(!chooses(&run, Some(DEAD), None));
    }

    #[test]
    fn one_s_own_are_those_with_one_s_own_name() {
        let current = Owner::current().expect("this process").to_string();
        assert!(chooses(&Which::Own, Some(&current), Some("a")));
        assert!(!chooses(&Which::Own, Some(DEAD), Some("a")));
        assert!(!chooses(&Which::Own, None, None));
    }

    #[test]
    fn all_is_all_that_has_an_owner() {
        let current = Owner::current().expect("this process").to_string();
        assert!(chooses(&Which::All, Some(&current), Some("a")));
        assert!(chooses(&Which::All, Some(DEAD), None));
        assert!(!chooses(&Which::All, None, None));
    }

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
