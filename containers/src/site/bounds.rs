//! What a host may take and do, so that one that runs wild harms neither the machine nor the other hosts.

use bollard::models::HostConfig;

use super::Role;

/// Memory of a host that runs a server: its data lie in memory (a tmpfs of 1 GiB), and as much again is for the server.
const SERVER_BYTES: i64 = 2 << 30;

/// Memory of a client's host: a client takes 30 MB, its agent 10.
const CLIENT_BYTES: i64 = 512 << 20;

/// Processes and threads of a server's host. Postgres starts a process for each connection, the agent a thread for each of
/// its own; a hundred together are usual.
const SERVER_TASKS: i64 = 2_048;

/// Processes and threads of a client's host; twenty are usual.
const CLIENT_TASKS: i64 = 512;

/// What root may do in every host: give what its agent writes to whoever started the run, and append to files of that user
/// (CHOWN, DAC_OVERRIDE); faults of the network (NET_ADMIN); an agent that runs first, so that a pause takes hold at once
/// (SYS_NICE).
const EVERY: &[&str] = &["CHOWN", "DAC_OVERRIDE", "NET_ADMIN", "SYS_NICE"];

/// What it may do besides where a server runs as a user of its own: copy a data directory with that user's modes (FOWNER),
/// become that user (SETUID, SETGID), and signal to what belongs to it (KILL).
const OF_SERVERS: &[&str] = &["FOWNER", "SETUID", "SETGID", "KILL"];

/// The bounds of one host.
pub struct Bounds {
    memory: i64,
    tasks: i64,
    capabilities: Vec<String>,
}

impl Bounds {
    /// Those of a host of this role.
    pub fn of(role: Role) -> Bounds {
        let (memory, tasks, more): (_, _, &[&str]) = match role {
            Role::Server(_) | Role::Storage(_) => (SERVER_BYTES, SERVER_TASKS, OF_SERVERS),
            Role::Client => (CLIENT_BYTES, CLIENT_TASKS, &[]),
        };
        let capabilities = EVERY.iter().chain(more).map(|name| (*name).to_owned());
        Bounds {
            memory,
            tasks,
            capabilities: capabilities.collect(),
        }
    }

    /// Makes Docker hold a container to them.
    pub fn put_on(&self, config: &mut HostConfig) {
        config.memory = Some(self.memory);
        config.pids_limit = Some(self.tasks);
        config.cap_drop = Some(vec!["ALL".to_owned()]);
        config.cap_add = Some(self.capabilities.clone());
        config.security_opt = Some(vec!["no-new-privileges".to_owned()]);
    }
}
