//! Who there is in a run.

use containers::topologies::Topology;

use crate::words::instead;
use histories::{LEADER, Role, STORAGE};

/// The clients of a run and the hosts of its topology, or of any topology that it may have.
pub(crate) struct Cast {
    clients: Vec<String>,
    /// All that a fault can strike, and the clients among them.
    hosts: Vec<String>,
}

impl Cast {
    pub fn new(clients: u32, topologies: &[&Topology]) -> Cast {
        let clients: Vec<String> = (1..=clients).map(|number| format!("c{number}")).collect();
        let mut hosts = clients.clone();
        for (server, _) in topologies.iter().flat_map(|topology| topology.servers) {
            if !hosts.iter().any(|host| host == server) {
                hosts.push((*server).to_owned());
            }
        }
        if topologies.iter().any(|topology| topology.has_leader) {
            hosts.push(LEADER.to_owned());
        }
        hosts.push(STORAGE.to_owned());
        Cast { clients, hosts }
    }

    /// The role of a host that is there.
    pub fn host(&self, host: &str) -> Result<Role, String> {
        let role = Role::of(host);
        if role == Some(Role::Client) {
            return self.client(host).map(|()| Role::Client);
        }
        let there = self.hosts.iter().any(|there| there == host);
        let unknown = |kind| format!("unknown {kind} `{host}`; {}", instead(host, &self.hosts));
        match role {
            Some(role) if there => Ok(role),
            Some(_) => Err(unknown("server")),
            None => Err(unknown("host")),
        }
    }

    /// Whether a client is there.
    pub fn client(&self, client: &str) -> Result<(), String> {
        if self.clients.iter().any(|there| there == client) {
            return Ok(());
        }
        let count = self.clients.len();
        Err(format!(
            "unknown client `{client}` of {count} (`clients = {count}`); {}",
            instead(client, &self.clients)
        ))
    }
}
