//! A site: a topology that runs, with a storage and clients beside it, each in a host of its own.

mod agents;
mod bounds;
mod docker_events;
mod ends;
mod ground;
mod interference;
mod real_time;
mod servers;
mod start;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bollard::errors::Error as Reply;
use bollard::query_parameters::InspectContainerOptions;
use tokio::sync::oneshot;

use crate::agent::Agent;
use crate::services::{Postgres, SERVER, Service};
use crate::topologies::Topology;
use crate::{Engine, Error, RuntimeDirectory, Which, sweep, sweep_blocking};

/// How long Docker is asked what became of a host, and the pause between two questions.
const STATE_WITHIN: Duration = Duration::from_secs(1);
const STATE_PAUSE: Duration = Duration::from_millis(20);

pub use ends::{End, Ended, Ends, Stall};

/// The name under which a client host's agent knows the client.
pub const CLIENT: &str = "client";

/// Where the hosts' folders lie, in the folder for runs.
pub const FOLDERS: &str = ".hosts";

/// The name of the storage's host.
pub const STORAGE: &str = "storage";

/// What the storage's host runs.
pub static STORAGE_SERVICE: &dyn Service = &Postgres;

/// The stage of the Dockerfile that the storage's host is made from.
pub const STORAGE_STAGE: &str = "postgres";

/// The stage of the Dockerfile that clients' hosts are made from.
pub const CLIENT_STAGE: &str = "client";

/// What to start.
#[derive(Clone)]
pub struct SiteRequest {
    /// The run's id.
    pub run: String,
    /// The lock's servers.
    pub topology: &'static Topology,
    /// How many client hosts: `c1` to `cN`.
    pub clients: u32,
    /// Where each host gets a folder of its own ([`Host::folder`]), in [`FOLDERS`]. It is made if it is not there.
    pub out_dir: PathBuf,
    /// The program that is the agent (`<exe> agent --socket PATH`), and `fencepost` to the commands that agents start.
    /// `/proc/self/exe` is this process's own program, even where that has been replaced since it was started.
    pub exe: PathBuf,
}

/// What a host is there for.
#[derive(Clone, Copy)]
pub enum Role {
    /// It runs a server of the lock.
    Server(&'static dyn Service),
    /// It runs the storage.
    Storage(&'static dyn Service),
    /// It runs a client.
    Client,
}

impl Role {
    /// What server such a host runs, if any.
    pub fn service(self) -> Option<&'static dyn Service> {
        match self {
            Role::Server(service) | Role::Storage(service) => Some(service),
            Role::Client => None,
        }
    }

    /// What its agent calls the process that it is there for.
    pub fn process(self) -> &'static str {
        match self {
            Role::Server(_) | Role::Storage(_) => SERVER,
            Role::Client => CLIENT,
        }
    }
}

/// One host of a site.
#[derive(Clone)]
pub struct Host {
    /// Its name: `s1`, `storage`, `c1`.
    pub name: String,
    /// Its address in the site's network.
    pub address: Ipv4Addr,
    /// What it is there for.
    pub role: Role,
    /// The id of its image: `sha256:…`.
    pub image: String,
    /// Its agent's socket.
    pub socket: PathBuf,
    /// The folder that it shares with us, at the same absolute path inside and outside. It sees no other host's.
    pub folder: PathBuf,
    /// The name of its container.
    pub container: String,
    /// Whether its agent was last seen to stand still.
    pub stands_still: Arc<AtomicBool>,
}

impl Host {
    /// A new connection to the host's agent. What is asked over it is given up when the agent is seen to stand still.
    pub fn agent(&self) -> Result<Agent, Error> {
        let agent = Agent::connect(&self.socket)?;
        Ok(agent.unless(Arc::clone(&self.stands_still)))
    }

    /// What server it runs, if any.
    pub fn service(&self) -> Option<&'static dyn Service> {
        self.role.service()
    }

    /// What Docker says of the end of its container, as the end of a message: `, and its container was removed`. Empty
    /// where there is nothing to tell. With `gone` the container is about to end, and that is waited for.
    pub async fn container_state(&self, engine: &Engine, gone: bool) -> String {
        let limit = Instant::now() + STATE_WITHIN;
        loop {
            let asked = engine
                .docker()
                .inspect_container(&self.container, None::<InspectContainerOptions>);
            let state = match tokio::time::timeout(STATE_WITHIN, asked).await {
                Ok(Ok(found)) => found.state.unwrap_or_default(),
                Ok(Err(Reply::DockerResponseServerError {
                    status_code: 404, ..
                })) => return ", and its container was removed".to_owned(),
                Ok(Err(_)) | Err(_) => return ", and Docker does not say why".to_owned(),
            };
            let ended = state.running == Some(false);
            if gone && !ended && Instant::now() < limit {
                tokio::time::sleep(STATE_PAUSE).await;
                continue;
            }
            let status = state.exit_code.filter(|_| ended);
            let status = status.map(|code| format!(", and its container ended with status {code}"));
            let memory = state.oom_killed.filter(|killed| *killed);
            let memory = memory.map(|_| ", out of memory".to_owned());
            return status.into_iter().chain(memory).collect();
        }
    }
}

/// A topology that runs. Dropping it removes all of it, as [`Site::stop`] does.
pub struct Site {
    /// The run's id.
    pub run: String,
    /// What the lock's servers form.
    pub topology: &'static Topology,
    /// All hosts: servers, the storage, clients.
    pub hosts: Vec<Host>,
    /// The version of each server, as it says itself: host to version.
    pub versions: BTreeMap<String, String>,
    /// How long each part of the start took, in order.
    pub timings: Vec<(&'static str, Duration)>,
    /// The ends of what the hosts run.
    pub ends: Ends,
    /// What tells of those that no agent can tell of.
    _following: Option<docker_events::Following>,
    /// Sockets, and the program that hosts start.
    runtime: Option<RuntimeDirectory>,
    /// What hosts share with us.
    folders: Option<RuntimeDirectory>,
    /// Whether it stays when this is dropped.
    kept: AtomicBool,
    /// Whether all of it is gone.
    gone: bool,
}

impl Site {
    /// Starts everything and waits until every server serves. Images that are not there are built. When the future is
    /// dropped before it is ready, what was started so far is removed before the drop returns.
    ///
    /// # Errors
    /// Whatever Docker says, [`Error::Host`] where an agent does not come up, and [`Error::Service`] where a server does
    /// not, with the end of its log. [`Error::LeftBehind`] where what was started so far could not be removed.
    pub async fn start(request: SiteRequest) -> Result<Site, Error> {
        Site::start_unless(request, std::future::pending()).await
    }

    /// The same, unless `given_up` comes with a reason before. What Docker was asked for by then is waited for some seconds,
    /// so that it can be removed.
    ///
    /// # Errors
    /// Those of [`Site::start`], and the reason.
    pub async fn start_unless(
        request: SiteRequest,
        given_up: impl Future<Output = Error>,
    ) -> Result<Site, Error> {
        let (starting, mut started) = Starting::begin(request)?;
        let reason = tokio::select! {
            started = &mut started => return outcome(started),
            reason = given_up => reason,
        };
        starting.cancelled.store(true, Ordering::Relaxed);
        match outcome(started.await) {
            Err(Error::Cancelled) => Err(reason),
            Err(left) if left.leaves_something() => Err(reason.and_left(left)),
            other => other,
        }
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The hosts of the lock's servers, in the topology's order.
    pub fn servers(&self) -> impl Iterator<Item = &Host> {
        let mut hosts = self.hosts.iter();
        std::iter::from_fn(move || hosts.find(|host| matches!(host.role, Role::Server(_))))
    }

    /// The clients' hosts, in order.
    pub fn clients(&self) -> impl Iterator<Item = &Host> {
        let mut hosts = self.hosts.iter();
        std::iter::from_fn(move || hosts.find(|host| matches!(host.role, Role::Client)))
    }

    /// The storage's host.
    pub fn storage(&self) -> &Host {
        self.host(STORAGE)
            .expect("a site is made with a storage, and its hosts never change")
    }

    /// The host whose server leads now, as the servers say themselves. All are asked at once, and the first that says so
    /// is believed, as one that is paused or cut off would keep the others waiting.
    ///
    /// # Errors
    /// [`Error::Service`] if none says so, with what each said.
    pub fn leader(&self) -> Result<&Host, Error> {
        let servers: Vec<Host> = self.servers().cloned().collect();
        let leader = servers::leader(&servers)?;
        self.host(&leader).ok_or(Error::Host {
            host: leader,
            reason: "is no host of this site".to_owned(),
        })
    }

    /// Leaves everything running when this is dropped, and after the end of this process, until all is swept.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::LeftBehind`] where Docker cannot be asked any more; else what Docker would not remove.
    pub async fn stop(self) -> Result<(), Error> {
        self.stop_unless(std::future::pending()).await
    }

    /// The same, unless `given_up` comes with a reason before.
    ///
    /// # Errors
    /// Those of [`Site::stop`]; [`Error::LeftBehind`] with the reason.
    pub async fn stop_unless(mut self, given_up: impl Future<Output = Error>) -> Result<(), Error> {
        // The drop would only meet the same, and tell it a second time.
        self.gone = true;
        let run = Which::Run(self.run.clone());
        let removed = tokio::select! {
            removed = async { sweep(&crate::engine().await?, &run).await } => removed,
            reason = given_up => Err(reason),
        };
        removed
            .map(drop)
            .map_err(|left| Error::Cancelled.and_left(left))
    }

    /// Removes what there is of a site whose start failed; the error, with what became of that.
    async fn give_up(mut self, engine: &Engine, met: Error) -> Error {
        self.gone = true;
        let run = Which::Run(self.run.clone());
        let removal = sweep(engine, &run);
        let removed = match met {
            Error::Cancelled | Error::LeftBehind { .. } => engine.in_a_hurry(removal).await,
            _ => engine.unless_silent(&(), removal).await,
        };
        match removed {
            Ok(_) => met,
            Err(left) => met.and_left(left),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let ended = match (self.kept.load(Ordering::Relaxed), self.gone) {
            (true, _) => {
                let directories = [self.runtime.take(), self.folders.take()];
                let mut kept = directories.into_iter().flatten();
                kept.try_for_each(RuntimeDirectory::keep)
            }
            (false, true) => Ok(()),
            (false, false) => sweep_blocking(&Which::Run(self.run.clone())).map(drop),
        };
        if let Err(error) = ended {
            tracing::warn!("the end of run {}: {error}", self.run);
        }
    }
}

/// A start that goes on in its thread. Dropping it ends that: it waits for what was begun, which the thread then removes.
struct Starting {
    cancelled: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

type Started = Result<Site, Error>;

impl Starting {
    /// Begins it on a thread of its own, since what Docker was asked to make it makes, whether or not anybody still waits
    /// for that: it can only be removed when it is there.
    fn begin(request: SiteRequest) -> Result<(Starting, oneshot::Receiver<Started>), Error> {
        let (answer, started) = oneshot::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&cancelled);
        let thread = thread::Builder::new().spawn(move || {
            // Where nobody waits any more the site comes back, and goes by being dropped.
            drop(answer.send(start::start(&request, &asked)));
        });
        let thread = thread.map_err(|source| Error::thread("starting the hosts", source))?;
        let starting = Starting {
            cancelled,
            thread: Some(thread),
        };
        Ok((starting, started))
    }
}

fn outcome(started: Result<Started, oneshot::error::RecvError>) -> Started {
    started.unwrap_or_else(|_| {
        Err(Error::Host {
            host: "any".to_owned(),
            reason: "the start of the hosts panicked: this is a bug of ours".to_owned(),
        })
    })
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in it has been written to standard error, and its site was dropped.
            let _ = thread.join();
        }
    }
}
