//! What all hosts of a site stand on: the network, the images, the program that is their agent; and the hosts' containers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use bollard::errors::Error as Reply;
use bollard::models::NetworkCreateRequest;
use bollard::query_parameters::InspectContainerOptions;
use testcontainers::core::error::ClientError;
use testcontainers::core::{AccessMode, Mount};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{GenericImage, ImageExt as _, TestcontainersError};

use super::bounds::Bounds;
use super::interference::Made;
use super::start::{SETTLED_WITHIN, given_up, planned, stage};
use super::{Host, Role, SiteRequest};
use crate::bundle::Bundle;
use crate::images::{self, Image};
use crate::owner;
use crate::silence::HURRY;
use crate::{Engine, Error};

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

/// What all hosts of a site stand on.
pub(super) struct Ground {
    /// When that was begun, before any container was made.
    pub(super) begun: SystemTime,
    pub(super) engine: Engine,
    images: BTreeMap<String, Image>,
    bundle: Bundle,
    labels: HashMap<String, String>,
    /// The network's name, with which the containers' names begin.
    pub(super) network: String,
    sockets: PathBuf,
    folders: PathBuf,
    made: Made,
}

impl Ground {
    /// Makes ready all that is no part of Docker but the images.
    pub(super) async fn new(
        request: &SiteRequest,
        directory: &Path,
        folders: &Path,
    ) -> Result<Ground, Error> {
        let begun = SystemTime::now();
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
            begun,
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
    pub(super) async fn settled<T>(
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

    pub(super) async fn make_network(&self) -> Result<(), Error> {
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
    pub(super) async fn make_host(&self, name: String, role: Role) -> Result<Host, Error> {
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
            stands_still: Arc::default(),
        })
    }

    /// The same error, with what somebody else did to a container in its place where it follows from that.
    pub(super) async fn explained(&self, error: Error) -> Error {
        self.made.explain(error, self).await
    }

    pub(super) fn container_of(&self, host: &str) -> String {
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
