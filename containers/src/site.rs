//! A site: a topology that runs, with a storage and clients beside it, each in a host of its own.

mod real_time;
mod servers;
mod start;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::agent::Agent;
use crate::services::{Postgres, Service};
use crate::topologies::Topology;
use crate::{Error, RuntimeDirectory, Which, sweep, sweep_blocking};

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
    /// Mounted into every host at the same absolute path, so that a path is the same inside and outside. It is made if it
    /// is not there.
    pub out_dir: PathBuf,
    /// The program that is the agent (`<exe> agent --socket PATH`), and `fencepost` to the commands that agents start.
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
}

impl Host {
    /// A new connection to the host's agent.
    pub fn agent(&self) -> Result<Agent, Error> {
        Ok(Agent::connect(&self.socket)?)
    }

    /// What server it runs, if any.
    pub fn service(&self) -> Option<&'static dyn Service> {
        self.role.service()
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
    /// Sockets, and the program that hosts start.
    runtime: Option<RuntimeDirectory>,
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
    /// not, with the end of its log.
    pub async fn start(request: SiteRequest) -> Result<Site, Error> {
        let (answer, started) = oneshot::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&cancelled);
        // A thread of its own, since what Docker was asked to make it makes, whether or not anybody still waits for
        // that: it can only be removed when it is there.
        let thread = thread::spawn(move || {
            // Where nobody waits any more the site comes back, and goes by being dropped.
            drop(answer.send(start::start(&request, &asked)));
        });
        let _starting = Starting {
            cancelled,
            thread: Some(thread),
        };
        match started.await {
            Ok(started) => started,
            Err(_) => Err(Error::Host {
                host: "any".to_owned(),
                reason: "the start of the hosts panicked: this is a bug of ours".to_owned(),
            }),
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
    /// What Docker would not remove, though it was tried twice.
    pub async fn stop(mut self) -> Result<(), Error> {
        let engine = crate::engine().await?;
        sweep(&engine, &Which::Run(self.run.clone())).await?;
        self.gone = true;
        Ok(())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let ended = match (self.kept.load(Ordering::Relaxed), self.gone) {
            (true, _) => self.runtime.take().map_or(Ok(()), RuntimeDirectory::keep),
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

impl Drop for Starting {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in it has been written to standard error, and its site was dropped.
            let _ = thread.join();
        }
    }
}
