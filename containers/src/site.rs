//! A site: a topology that runs, with a storage and clients beside it, each in a host of its own.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::Error;
use crate::agent::Agent;
use crate::services::Service;
use crate::topologies::Topology;

/// The name of the storage's host.
pub const STORAGE: &str = "storage";

/// What to start.
pub struct SiteRequest {
    /// The run's id.
    pub run: String,
    /// The lock's servers.
    pub topology: &'static Topology,
    /// How many client hosts: `c1` to `cN`.
    pub clients: u32,
    /// Mounted into every host at the same absolute path, so that a path is the same inside and outside.
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

/// One host of a site.
#[derive(Clone)]
pub struct Host {
    /// Its name: `s1`, `storage`, `c1`.
    pub name: String,
    /// Its address in the site's network.
    pub address: Ipv4Addr,
    /// What it is there for.
    pub role: Role,
    /// The id of its image.
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
        match self.role {
            Role::Server(service) | Role::Storage(service) => Some(service),
            Role::Client => None,
        }
    }
}

/// A topology that runs. Dropping it removes all of it, as [`Site::stop`] does with an error to tell.
pub struct Site {
    /// The run's id.
    pub run: String,
    /// What the lock's servers form.
    pub topology: &'static Topology,
    /// All hosts: servers, the storage, clients.
    pub hosts: Vec<Host>,
    /// How long each part of the start took, in order.
    pub timings: Vec<(&'static str, Duration)>,
}

impl Site {
    /// Starts everything and waits until every server serves.
    pub async fn start(request: SiteRequest) -> Result<Site, Error> {
        let _ = request;
        todo!()
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The hosts of the lock's servers, in the topology's order.
    pub fn servers(&self) -> impl Iterator<Item = &Host> {
        self.hosts
            .iter()
            .filter(|host| matches!(host.role, Role::Server(_)))
    }

    /// The clients' hosts, in order.
    pub fn clients(&self) -> impl Iterator<Item = &Host> {
        self.hosts
            .iter()
            .filter(|host| matches!(host.role, Role::Client))
    }

    /// The storage's host.
    pub fn storage(&self) -> &Host {
        todo!()
    }

    /// The host whose server leads now, as the servers say themselves; all are asked at once.
    pub fn leader(&self) -> Result<&Host, Error> {
        todo!()
    }

    /// The version of each server, as it says itself.
    pub fn versions(&self) -> Result<BTreeMap<String, String>, Error> {
        todo!()
    }

    /// Removes everything.
    pub async fn stop(self) -> Result<(), Error> {
        let _: Arc<()> = Arc::new(());
        todo!()
    }
}
