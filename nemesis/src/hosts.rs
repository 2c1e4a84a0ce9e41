//! Where faults strike: the hosts of a site, as far as the nemesis has to know them.

use std::net::Ipv4Addr;

use containers::agent::Agent;
use containers::services::{SERVER, Service};
use containers::site::Site;

use crate::faults::FaultError;

/// The process of a client in its host, as the host's agent knows it.
pub const CLIENT: &str = "client";

/// The word by which a fault strikes whichever server leads when it is injected.
pub const LEADER: &str = "leader";

/// The word for all servers of the lock service together.
pub const SERVERS: &str = "servers";

/// The word for the host that keeps the document.
pub const STORAGE: &str = "storage";

/// The hosts of a run: the servers `s1` and on, `storage`, and the clients `c1` and on.
pub trait Hosts: Send + Sync {
    /// A new connection to the agent of a host.
    fn agent(&self, host: &str) -> Result<Agent, FaultError>;

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

/// What a host is in a run, told from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It runs a client.
    Client,
    /// It is a server of the lock service.
    Server,
    /// It keeps the document.
    Storage,
}

impl Role {
    /// The role of the host of this name, be there such a host or not; `None` for a name of no host.
    pub fn of(host: &str) -> Option<Role> {
        match host {
            STORAGE => Some(Role::Storage),
            LEADER | SERVERS => Some(Role::Server),
            _ if numbered(host, 'c') => Some(Role::Client),
            _ if numbered(host, 's') => Some(Role::Server),
            _ => None,
        }
    }

    /// The role as a message names its hosts: "clients".
    pub fn plural(self) -> &'static str {
        match self {
            Role::Client => "clients",
            Role::Server => "servers",
            Role::Storage => "the storage",
        }
    }
}

/// Whether a name is the letter and a number from 1 on, as `c12`.
fn numbered(name: &str, letter: char) -> bool {
    name.strip_prefix(letter).is_some_and(|number| {
        !number.starts_with('0')
            && number.len() <= 4
            && number.parse::<u32>().is_ok()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_role_from_the_name() {
        assert_eq!(Role::of("c1"), Some(Role::Client));
        assert_eq!(Role::of("c12"), Some(Role::Client));
        assert_eq!(Role::of("s5"), Some(Role::Server));
        assert_eq!(Role::of("leader"), Some(Role::Server));
        assert_eq!(Role::of("servers"), Some(Role::Server));
        assert_eq!(Role::of("storage"), Some(Role::Storage));
        for odd in ["c0", "c", "c01", "c+1", "c1.2", "x1", "", "c99999"] {
            assert_eq!(Role::of(odd), None, "{odd}");
        }
    }
}
