//! The sweep, on real containers, networks and volumes.

use std::collections::HashMap;
use std::fs;

use bollard::models::{ContainerCreateBody, HostConfig, NetworkCreateRequest, VolumeCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, InspectNetworkOptions,
    StartContainerOptions,
};
use containers::owner::{self, LABEL_OWNER, Owner};
use containers::{
    Engine, RuntimeDirectory, Which, docker_or_skip, engine, images, sweep, sweep_blocking,
};
use uuid::Uuid;

/// One of each thing that a run makes.
struct Run {
    id: String,
    engine: Engine,
    directory: RuntimeDirectory,
}

impl Run {
    /// Makes them: a container that runs, one that was only created, their network, a volume, a runtime directory. They
    /// are marked as kept, as [`RuntimeDirectory::keep`] does it, lest another sweep takes them before the test's own.
    async fn make(engine: &Engine, owner: &str) -> Run {
        let id = Uuid::now_v7().to_string();
        let directory = RuntimeDirectory::of_run(&id).expect("a runtime directory");
        fs::write(directory.path().join("owner"), format!("{owner}\n{id}\n")).expect("an owner");
        fs::write(directory.path().join(KEPT), "").expect("a mark");
        let run = Run {
            id,
            engine: engine.clone(),
            directory,
        };
        let labels = run.labels(owner);
        let network = NetworkCreateRequest {
            name: run.name("network"),
            labels: Some(labels.clone()),
            ..NetworkCreateRequest::default()
        };
        run.engine
            .docker()
            .create_network(network)
            .await
            .expect("a network");
        let volume = VolumeCreateRequest {
            name: Some(run.name("volume")),
            labels: Some(labels.clone()),
            ..VolumeCreateRequest::default()
        };
        run.engine
            .docker()
            .create_volume(volume)
            .await
            .expect("a volume");
        for name in ["running", "created"] {
            run.make_container(name, labels.clone()).await;
        }
        let running = run.name("running");
        let started = run
            .engine
            .docker()
            .start_container(&running, None::<StartContainerOptions>);
        started.await.expect("a container that runs");
        run
    }

    async fn make_container(&self, name: &str, labels: HashMap<String, String>) {
        let image = images::ensure(&self.engine, &["client"], &())
            .await
            .expect("an image");
        let host = HostConfig {
            network_mode: Some(self.name("network")),
            binds: Some(vec![format!("{}:/volume", self.name("volume"))]),
            ..HostConfig::default()
        };
        let body = ContainerCreateBody {
            image: Some(image["client"].id.clone()),
            cmd: Some(vec!["sleep".to_owned(), "infinity".to_owned()]),
            labels: Some(labels),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::default()
            .name(&self.name(name))
            .build();
        self.engine
            .docker()
            .create_container(Some(options), body)
            .await
            .expect("a container");
    }

    fn no_longer_kept(&self) {
        fs::remove_file(self.directory.path().join(KEPT)).expect("a mark");
    }

    fn labels(&self, owner: &str) -> HashMap<String, String> {
        let mut labels = owner::labels(&self.id).expect("labels");
        labels.insert(LABEL_OWNER.to_owned(), owner.to_owned());
        labels
    }

    fn name(&self, what: &str) -> String {
        format!("fencepost-test-{}-{what}", self.id)
    }

    /// Which of them are there.
    async fn there(&self) -> Vec<&'static str> {
        let mut there = Vec::new();
        for name in ["running", "created"] {
            let container = self.name(name);
            let found = self
                .engine
                .docker()
                .inspect_container(&container, None::<InspectContainerOptions>);
            if found.await.is_ok() {
                there.push(name);
            }
        }
        let network = self.name("network");
        if self
            .engine
            .docker()
            .inspect_network(&network, None::<InspectNetworkOptions>)
            .await
            .is_ok()
        {
            there.push("network");
        }
        if self
            .engine
            .docker()
            .inspect_volume(&self.name("volume"))
            .await
            .is_ok()
        {
            there.push("volume");
        }
        if self.directory.path().exists() {
            there.push("directory");
        }
        there
    }
}

/// A test that fails leaves nothing behind either.
impl Drop for Run {
    fn drop(&mut self) {
        if let Err(error) = sweep_blocking(&Which::Run(self.id.clone())) {
            eprintln!("{error}");
        }
    }
}

/// The file that marks a run as kept.
const KEPT: &str = "kept";

const ALL: [&str; 5] = ["running", "created", "network", "volume", "directory"];

fn current() -> String {
    Owner::current().expect("this process").to_string()
}

/// An owner of this boot under this process's id, yet another process: it started one tick earlier.
fn dead() -> String {
    let current = current();
    let mut parts: Vec<String> = current.split(':').map(str::to_owned).collect();
    parts[1] = (parts[1].parse::<u64>().expect("a start time") - 1).to_string();
    parts.join(":")
}

#[tokio::test]
async fn what_the_dead_left_goes_and_what_the_living_own_stays() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    let (of_the_dead, of_the_living) = (
        Run::make(&engine, &dead()).await,
        Run::make(&engine, &current()).await,
    );
    of_the_dead.no_longer_kept();
    of_the_living.no_longer_kept();
    sweep(&engine, &Which::Dead).await.expect("a sweep");
    assert_eq!(of_the_dead.there().await, [""; 0]);
    assert_eq!(of_the_living.there().await, ALL);
}

#[tokio::test]
async fn a_run_that_was_told_to_stay_outlives_its_owner() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    let run = Run::make(&engine, &dead()).await;
    sweep(&engine, &Which::Dead).await.expect("a sweep");
    assert_eq!(run.there().await, ALL);
}

#[tokio::test]
async fn a_run_goes_by_its_id_and_the_sweep_tells_what_it_removed() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    let (run, other) = (
        Run::make(&engine, &current()).await,
        Run::make(&engine, &current()).await,
    );
    let mut swept = sweep(&engine, &Which::Run(run.id.clone()))
        .await
        .expect("a sweep");
    swept.containers.sort();
    assert_eq!(swept.containers, [run.name("created"), run.name("running")]);
    assert_eq!(swept.networks, [run.name("network")]);
    assert_eq!(swept.volumes, [run.name("volume")]);
    assert_eq!(swept.runtime_dirs, [run.directory.path()]);
    assert_eq!(other.there().await, ALL);
    assert!(
        sweep(&engine, &Which::Run(run.id.clone()))
            .await
            .expect("a sweep of nothing")
            .is_empty()
    );
}

#[tokio::test]
async fn several_sweeps_at_once_do_not_trip_over_each_other() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    let run = Run::make(&engine, &current()).await;
    let which = Which::Run(run.id.clone());
    let (one, two, three) = tokio::join!(
        sweep(&engine, &which),
        sweep(&engine, &which),
        sweep(&engine, &which)
    );
    let swept = [one, two, three].map(|swept| swept.expect("a sweep"));
    assert_eq!(run.there().await, [""; 0]);
    let networks: Vec<&String> = swept.iter().flat_map(|swept| &swept.networks).collect();
    assert_eq!(networks, [&run.name("network")], "removed once, told once");
}

#[tokio::test]
async fn a_sweep_can_be_had_where_nothing_can_be_awaited() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    let run = Run::make(&engine, &current()).await;
    sweep_blocking(&Which::Run(run.id.clone())).expect("a sweep");
    assert_eq!(run.there().await, [""; 0]);
}
