//! Services: the servers that hosts run. One file each; its name is that of its stage in the Dockerfile.
//!
//! A service knows how to start its server in a host of its own and how to ask that server through its own protocol.
//! It knows no locks.

pub mod clock;
pub mod etcd;
pub mod postgres;
pub mod redis;

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::Error;
use crate::agent::Agent;
use crate::agent::protocol::Command;

pub use etcd::Etcd;
pub use postgres::Postgres;
pub use redis::Redis;

/// The name under which a host's agent knows the server.
pub const SERVER: &str = "server";

/// All services.
pub static SERVICES: &[&dyn Service] = &[&Redis, &Postgres, &Etcd];

/// How long a server may take to answer a question about itself.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// One member of a topology: a host with the server that it runs.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// The host's name: `s1`, …, or `storage`.
    pub host: &'a str,
    /// The host's address, the same for all hosts of a site.
    pub address: Ipv4Addr,
    /// What it runs.
    pub service: &'static dyn Service,
}

/// A server that a host can run.
///
/// All members of a topology are started at once: a server that needs another one first (a standby its primary) has
/// to wait for it in [`Service::start`] or to be content with finding it later.
pub trait Service: Sync {
    /// Its name, which is its stage in the Dockerfile.
    fn name(&self) -> &'static str;

    /// The port on which it serves clients.
    fn port(&self) -> u16;

    /// Prepares the host of `me`, which is one of `all`, and starts the server as process [`SERVER`] there. Data lies
    /// in `/data`, a tmpfs. Returns without waiting for the server to be up.
    fn start(&self, agent: &mut Agent, me: &Member, all: &[Member]) -> Result<(), Error>;

    /// Whether the server serves clients now, as it says itself. A server that is down is not ready; an error is what
    /// waiting will not mend.
    fn ready(&self, agent: &mut Agent) -> Result<bool, Error>;

    /// The server's version, as it says itself: `8.0.2`.
    fn version(&self, agent: &mut Agent) -> Result<String, Error>;

    /// The server's own wall clock, asked through its protocol, in nanoseconds since 1970.
    fn wall_clock_ns(&self, agent: &mut Agent) -> Result<u128, Error>;

    /// Whether this member leads its cluster, as it says itself.
    fn leads(&self, agent: &mut Agent) -> Result<bool, Error> {
        Err(Error::Service {
            host: agent.host().to_owned(),
            service: self.name(),
            reason: "has no leader: every server of its kind stands alone".to_owned(),
        })
    }
}

/// Asks a server something by a program in its host; what the program wrote, trimmed. An error if the program fails.
fn ask(service: &dyn Service, agent: &mut Agent, argv: &[&str]) -> Result<String, Error> {
    ask_within(ASK_TIMEOUT, service, agent, argv)
}

/// As [`ask`], for a program that may take longer.
fn ask_within(
    timeout: Duration,
    service: &dyn Service,
    agent: &mut Agent,
    argv: &[&str],
) -> Result<String, Error> {
    let ran = agent.run(argv.iter().copied(), timeout)?;
    match ran.code {
        Some(0) => Ok(ran.stdout.trim().to_owned()),
        _ => Err(Error::Service {
            host: agent.host().to_owned(),
            service: service.name(),
            reason: format!("`{}` failed: {}", argv.join(" "), ran.said()),
        }),
    }
}

/// The error of a server whose answer makes no sense.
fn odd(service: &dyn Service, agent: &Agent, argv: &[&str], answer: &str) -> Error {
    Error::Service {
        host: agent.host().to_owned(),
        service: service.name(),
        reason: format!("`{}` answered {answer:?}", argv.join(" ")),
    }
}

/// A command of a program alone.
fn command(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().map(|argument| (*argument).to_owned()).collect(),
        ..Command::default()
    }
}
