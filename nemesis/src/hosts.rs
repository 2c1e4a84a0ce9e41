//! Where faults strike: the hosts of a site, as far as the nemesis has to know them.

use std::net::Ipv4Addr;

use containers::agent::Agent;
use containers::services::{SERVER, Service};
pub use containers::site::CLIENT;
use containers::site::Site;

use crate::faults::FaultError;

/// The hosts of a run: the servers `s1` and on, `storage`, and the clients `c1` and on.
pub trait Hosts: Send + Sync {
    /// A new connection to the agent of a host.
    fn agent(&self, host: &str) -> Result<Agent, FaultError>;

    /// An error where the agent of a host would not answer, for it is known that somebody keeps it from that.
    fn check_answers(&self, host: &str) -> Result<(), FaultError>;

    /// The address of a host; `None` if there is no such host.
    fn address(&self, host: &str) -> Option<Ipv4Addr>;

    /// The hosts of the lock service's servers.
    fn servers(&self) -> Vec<String>;

    /// The service that a host runs; `None` for a client.
    fn service(&self, host: &str) -> Option<&'static dyn Service>;

    /// The server that leads now, found by its own protocol.
    fn leader(&self) -> Result<String, FaultError>;

    /// The process that a fault of a host strikes: its server or its client.
    fn process(&self, host: &str) -> &'static str {
        match self.service(host) {
            Some(_) => SERVER,
            None => CLIENT,
        }
    }
}

impl Hosts for Site {
    fn agent(&self, host: &str) -> Result<Agent, FaultError> {
        match self.host(host) {
            Some(host) => Ok(host.agent()?),
            None => Err(FaultError::Plan(format!("no host is called `{host}`"))),
        }
    }

    fn check_answers(&self, host: &str) -> Result<(), FaultError> {
        Ok(self.ends.check_answers(host)?)
    }

    fn address(&self, host: &str) -> Option<Ipv4Addr> {
        self.host(host).map(|host| host.address)
    }

    fn servers(&self) -> Vec<String> {
        Site::servers(self).map(|host| host.name.clone()).collect()
    }

    fn service(&self, host: &str) -> Option<&'static dyn Service> {
        self.host(host)?.service()
    }

    fn leader(&self) -> Result<String, FaultError> {
        Ok(Site::leader(self)?.name.clone())
    }
}
