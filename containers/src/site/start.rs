//! The start of a site: its network, its hosts, their agents, their servers, in this order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bollard::container::LogOutput;
use bollard::errors::Error as Reply;
use bollard::models::NetworkCreateRequest;
use bollard::query_parameters::{InspectContainerOptions, LogsOptionsBuilder};
use futures_util::StreamExt as _;
use futures_util::future::{join_all, try_join_all};
use testcontainers::core::error::ClientError;
use testcontainers::core::{AccessMode, Mount};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{GenericImage, ImageExt as _, TestcontainersError};
use tokio::runtime::Runtime;

use super::bounds::Bounds;
use super::interference::Made;
use super::{CLIENT_STAGE, Ends, FOLDERS, Host, Role, STORAGE, STORAGE_SERVICE, Site, SiteRequest};
use super::{docker_events, real_time, servers};
use crate::agent::{Agent, AgentError};
use crate::bundle::Bundle;
use crate::images::{self, Image};
use crate::owner;
use crate::silence::HURRY;
use crate::{Engine, Error, RuntimeDirectory};

/// Where hosts find the program that is their agent.
const PROGRAM: &str = "/fencepost";

/// Where hosts find the folder of their sockets.
const SOCKETS: &str = "/run/fencepost";

/// Where hosts keep data: a tmpfs, since writing into a container's own layer can be slow.
const DATA: &str = "/data";

/// The largest that a host's data may grow.
const DATA_BYTES: i64 = 1 << 30;

/// How long Docker may take to start a container; a second is usual.
const CONTAINER_WITHIN: Duration = Duration::from_secs(120);

/// How long an agent may take to answer from then on; a tenth of a second is usual.
const AGENT_WITHIN: Duration = Duration::from_secs(30);

/// The pause between two attempts to reach it, and between two looks whether its container still runs.
const AGENT_PAUSE: Duration = Duration::from_millis(5);
const CONTAINER_PAUSE: Duration = Duration::from_millis(500);

/// How long what Docker was asked for may take once nobody waits for it any more.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// The pause between two looks whether the start was given up.
const CANCEL_PAUSE: Duration = Duration::from_millis(20);

/// How much of a container's own log an error tells.
const LOG_LINES: &str = "20";

/// Starts a site, or removes what there was of it.
pub fn start(request: &SiteRequest, cancelled: &AtomicBool) -> Result<Site, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::io("a runtime of its own", source))?;
    let mut watch = Stopwatch::new();
    let directory = RuntimeDirectory::of_run(&request.run)?;
    let folders = make_folders(request)?;
    let ground = Ground::new(request, directory.path(), folders.path());
    let ground = runtime.block_on(unless(cancelled, ground))?;
    watch.lap("images");
    // From here on, whatever ends the start removes what it has made.
    let mut site = Site {
        run: request.run.clone(),
        topology: request.topology,
        hosts: Vec::new(),
        versions: BTreeMap::new(),
        timings: Vec::new(),
        ends: Ends::none(),
        _following: None,
        runtime: Some(directory),
        folders: Some(folders),
        kept: AtomicBool::new(false),
        gone: false,
    };
    match fill(&mut site, request, &runtime, &ground, &mut watch, cancelled) {
        Ok(()) => {
            site.timings = watch.laps;
            Ok(site)
        }
        Err(error) => Err(runtime.block_on(async {
            let error = ground.explained(error).await;
            site.give_up(&ground.engine, error).await
        })),
    }
}

/// Makes all that a site consists of.
fn fill(
    site: &mut Site,
    request: &SiteRequest,
    runtime: &Runtime,
    ground: &Ground,
    watch: &mut Stopwatch,
    cancelled: &AtomicBool,
) -> Result<(), Error> {
    check(cancelled)?;
    runtime.block_on(ground.settled(cancelled, ground.make_network()))?;
    watch.lap("network");
    check(cancelled)?;
    let hosts = planned(request).into_iter();
    // All are awaited, also after one has failed: what Docker was asked for can only be removed when it is there.
    let hosts = join_all(hosts.map(|(name, role)| ground.make_host(name, role)));
    let hosts = async { hosts.await.into_iter().collect::<Result<_, Error>>() };
    site.hosts = runtime.block_on(ground.settled(cancelled, hosts))?;
    watch.lap("containers");
    check(cancelled)?;
    let agents = site.hosts.iter().map(|host| ground.agent_of(host));
    runtime.block_on(unless(cancelled, try_join_all(agents)))?;
    watch.lap("agents");
    check(cancelled)?;
    site.versions = servers::start(&site.hosts, cancelled)?;
    site.ends = Ends::of(&site.hosts)?;
    let following = docker_events::follow(&ground.engine, &ground.network, &site.ends)?;
    site._following = Some(following);
    watch.lap("servers");
    check(cancelled)
}

/// Makes what holds the hosts' folders, in a place of its own beside the runs.
fn make_folders(request: &SiteRequest) -> Result<RuntimeDirectory, Error> {
    let out = &request.out_dir;
    fs::create_dir_all(out).map_err(|source| Error::io(out, source))?;
    let out = fs::canonicalize(out).map_err(|source| Error::io(out, source))?;
    RuntimeDirectory::beside(&out.join(FOLDERS), &request.run)
}

/// Ends a start that nobody waits for any more.
pub fn check(cancelled: &AtomicBool) -> Result<(), Error> {
    match cancelled.load(Ordering::Relaxed) {
        true => Err(Error::Cancelled),
        false => Ok(()),
    }
}

/// The outcome of something that may be left undone in the middle, as soon as nobody waits for it any more.
async fn unless<T>(
    cancelled: &AtomicBool,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        outcome = work => outcome,
        () = given_up(cancelled) => Err(Error::Cancelled),
    }
}

/// Waits until nobody waits for the start any more.
async fn given_up(cancelled: &AtomicBool) {
    while !cancelled.load(Ordering::Relaxed) {
        tokio::time::sleep(CANCEL_PAUSE).await;
    }
}

/// The hosts that a site is to have.
fn planned(request: &SiteRequest) -> Vec<(String, Role)> {
    let servers = request.topology.servers.iter();
    let servers = servers.map(|(name, service)| ((*name).to_owned(), Role::Server(*service)));
    let storage = (STORAGE.to_owned(), Role::Storage(STORAGE_SERVICE));
    let clients = (1..=request.clients).map(|number| (format!("c{number}"), Role::Client));
    servers.chain([storage]).chain(clients).collect()
}

fn stage(role: Role) -> &'static str {
    role.service()
        .map_or(CLIENT_STAGE, |service| service.name())
}

/// What all hosts of a site stand on.
struct Ground {
    engine: Engine,
    images: BTreeMap<String, Image>,
    bundle: Bundle,
    labels: HashMap<String, String>,
    /// The network's name, with which the containers' names begin.
    network: String,
    sockets: PathBuf,
    folders: PathBuf,
    made: Made,
}

impl Ground {
    /// Makes ready all that is no part of Docker but the images.
    async fn new(request: &SiteRequest, directory: &Path, folders: &Path) -> Result<Ground, Error> {
        let engine = crate::engine().await?;
        let stages: BTreeSet<&str> = planned(request)
            .iter()
            .map(|(_, role)| stage(*role))
            .collect();
        let stages: Vec<&str> = stages.into_iter().collect();
        let images = images::ensure(&engine, &stages, &()).await?;
        let sockets = directory.join("hosts");
        fs::create_dir(&sockets).map_err(|source| Error::io(&sockets, source))?;
        let network = directory.file_name().unwrap_or(directory.as_os_str());
        Ok(Ground {
            engine,
            images,
            bundle: Bundle::make(&request.exe, &directory.join("program"))?,
            labels: owner::labels(&request.run)?,
            network: network.to_string_lossy().into_owned(),
            sockets,
            folders: folders.to_path_buf(),
            made: Made::default(),
        })
    }

    /// The outcome of something that Docker carries out once it was asked. Where nobody waits for the start any more, it
    /// gets some seconds, so that what comes of it can be removed.
    async fn settled<T>(
        &self,
        cancelled: &AtomicBool,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut work = Box::pin(work);
        let given_up = async {
            given_up(cancelled).await;
            tokio::select! {
                silence = self.engine.silence(HURRY, &()) => silence,
                () = tokio::time::sleep(SETTLED_WITHIN) => Error::Slow {
                    doing: "starting the hosts".to_owned(),
                    waited: SETTLED_WITHIN,
                },
            }
        };
        tokio::select! {
            outcome = &mut work => outcome,
            slow = given_up => {
                // Dropped, it would have testcontainers ask Docker to remove what it has started, and wait for that.
                std::mem::forget(work);
                Err(Error::Cancelled.and_left(slow))
            }
        }
    }

    async fn make_network(&self) -> Result<(), Error> {
        let network = NetworkCreateRequest {
            name: self.network.clone(),
            driver: Some("bridge".to_owned()),
            // Servers let everybody in: nobody from outside the machine may come, and nothing leaves it.
            internal: Some(true),
            labels: Some(self.labels.clone()),
            ..NetworkCreateRequest::default()
        };
        let made = self.engine.docker().create_network(network).await;
        made.map_err(|reply| Error::docker(format!("creating network {}", self.network), reply))?;
        Ok(())
    }

    /// Starts a container with nothing in it but the agent.
    async fn make_host(&self, name: String, role: Role) -> Result<Host, Error> {
        let container = self.container_of(&name);
        let image = self.images.get(stage(role)).ok_or_else(|| Error::Host {
            host: name.clone(),
            reason: format!(
                "has no image: the Dockerfile has no stage `{}`",
                stage(role)
            ),
        })?;
        let (sockets, folder) = (self.sockets.join(&name), self.folders.join(&name));
        for folder in [&sockets, &folder] {
            fs::create_dir(folder).map_err(|source| Error::io(folder, source))?;
        }
        let started = self.request(&name, role, image).start().await;
        if started.is_ok() || is_of_made(&started) {
            self.made.note(&name);
        }
        let started = started.map_err(|error| of_testcontainers(&name, error))?;
        // Dropped, it would remove the container, which goes with all others of its run by their label.
        std::mem::forget(started);
        let address = self.address_of(&name, &container).await?;
        Ok(Host {
            socket: sockets.join(format!("{name}.sock")),
            image: image.id.clone(),
            name,
            address,
            role,
            folder,
            container,
        })
    }

    /// The same error, with the end of a container in its place where somebody else ended one.
    async fn explained(&self, error: Error) -> Error {
        let container_of = |host: &str| self.container_of(host);
        self.made.explain(error, &self.engine, container_of).await
    }

    fn container_of(&self, host: &str) -> String {
        format!("{}-{host}", self.network)
    }

    fn request(
        &self,
        host: &str,
        role: Role,
        image: &Image,
    ) -> testcontainers::ContainerRequest<GenericImage> {
        let folder = self.folders.join(host);
        let bounds = Bounds::of(role);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let socket = format!("{SOCKETS}/{host}.sock");
        let mut argv = self.bundle.argv(PROGRAM);
        argv.extend(["agent", "--socket", &socket].map(str::to_owned));
        let program = Mount::bind_mount(text(self.bundle.folder()), PROGRAM)
            .with_access_mode(AccessMode::ReadOnly);
        GenericImage::new(image.repository.clone(), image.tag.clone())
            .with_entrypoint(&argv[0])
            .with_cmd(&argv[1..])
            .with_container_name(self.container_of(host))
            .with_hostname(host)
            .with_network(&self.network)
            .with_labels(self.labels.clone())
            .with_mount(program)
            .with_mount(Mount::bind_mount(text(&self.sockets.join(host)), SOCKETS))
            .with_mount(Mount::bind_mount(text(&folder), text(&folder)))
            .with_mount(
                Mount::tmpfs_mount(DATA)
                    .with_size_bytes(DATA_BYTES)
                    .with_mode(0o1777),
            )
            .with_host_config_modifier(move |config| {
                config.publish_all_ports = Some(false);
                bounds.put_on(config);
            })
            .with_startup_timeout(CONTAINER_WITHIN)
    }

    async fn address_of(&self, host: &str, container: &str) -> Result<Ipv4Addr, Error> {
        let found = self
            .engine
            .docker()
            .inspect_container(container, None::<InspectContainerOptions>);
        let found = found
            .await
            .map_err(|reply| Error::docker(format!("looking at {container}"), reply))?;
        let networks = found
            .network_settings
            .and_then(|settings| settings.networks);
        let address = networks.and_then(|mut networks| networks.remove(&self.network)?.ip_address);
        let parsed = address.as_deref().unwrap_or_default().parse();
        match parsed {
            Ok(address) => Ok(address),
            Err(_) => Err(self.gone(host, "has no address in its network").await),
        }
    }

    /// Waits until the host's agent answers.
    async fn agent_of(&self, host: &Host) -> Result<(), Error> {
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
        match found.state.and_then(|state| state.running) {
            Some(false) => Err(self.gone(host, "its agent has ended").await),
            _ => Ok(()),
        }
    }

    /// The error of a host that is of no use, with what its container wrote.
    async fn gone(&self, host: &str, what: &str) -> Error {
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
    let scheduling = agent.hello()?;
    let moved = !scheduling.starts_with("rr") && agent.pid().is_some_and(real_time::allow);
    if !moved {
        return Ok(scheduling);
    }
    // Each connection has a thread of its own, and only a new one asks anew.
    Agent::connect(socket)?.hello()
}

/// Whether a container was made that could not be started, or looked at, as somebody had removed it or was about to.
fn is_of_made<T>(started: &Result<T, TestcontainersError>) -> bool {
    let reply = match started {
        Err(TestcontainersError::Client(
            ClientError::StartContainer(reply) | ClientError::InspectContainer(reply),
        )) => reply,
        _ => return false,
    };
    match reply {
        Reply::DockerResponseServerError {
            status_code,
            message,
        } => *status_code == 404 || message.contains("marked for removal"),
        _ => false,
    }
}

/// Docker's own words, out of what is wrapped around them.
fn of_testcontainers(host: &str, error: TestcontainersError) -> Error {
    let doing = format!("starting host {host}");
    match error {
        TestcontainersError::Client(
            ClientError::Init(reply)
            | ClientError::CreateContainer(reply)
            | ClientError::StartContainer(reply)
            | ClientError::InspectContainer(reply)
            | ClientError::PullImage { err: reply, .. }
            | ClientError::CreateNetwork(reply)
            | ClientError::ListNetworks(reply)
            | ClientError::InspectNetwork(reply),
        ) => Error::docker(doing, reply),
        TestcontainersError::WaitContainer(_) => Error::Slow {
            doing,
            waited: CONTAINER_WITHIN,
        },
        other => Error::Host {
            host: host.to_owned(),
            reason: format!("does not start: {other}"),
        },
    }
}

/// How long each part of something took.
struct Stopwatch {
    since: Instant,
    laps: Vec<(&'static str, Duration)>,
}

impl Stopwatch {
    fn new() -> Stopwatch {
        Stopwatch {
            since: Instant::now(),
            laps: Vec::new(),
        }
    }

    fn lap(&mut self, what: &'static str) {
        self.laps.push((what, self.since.elapsed()));
        self.since = Instant::now();
    }
}
