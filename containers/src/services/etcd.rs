//! etcd, as a cluster of all members of its kind.

use serde_json::Value;

use super::{ASK_TIMEOUT, Member, SERVER, Service, ask, command, odd};
use crate::Error;
use crate::agent::Agent;

/// etcd.
pub struct Etcd;

/// The port on which members speak to each other.
const PEER_PORT: u16 = 2380;

/// How often a leader says that it lives. With [`ELECTION_MS`] it decides the shortest lease: etcd raises a shorter
/// one to 1.5 elections, rounded up to whole seconds.
const HEARTBEAT_MS: u32 = 50;

/// After how long without a leader a member stands for election.
const ELECTION_MS: u32 = 500;

impl Service for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn port(&self) -> u16 {
        2379
    }

    fn start(&self, agent: &mut Agent, me: &Member, all: &[Member]) -> Result<(), Error> {
        let peer = |member: &Member| format!("http://{}:{PEER_PORT}", member.address);
        let client = format!("http://{}:{}", me.address, self.port());
        let cluster: Vec<String> = all
            .iter()
            .filter(|member| member.service.name() == self.name())
            .map(|member| format!("{}={}", member.host, peer(member)))
            .collect();
        let mut server = command(&["etcd"]);
        for (name, value) in [
            ("--name", me.host.to_owned()),
            ("--data-dir", "/data/etcd".to_owned()),
            (
                "--listen-client-urls",
                format!("http://0.0.0.0:{}", self.port()),
            ),
            ("--advertise-client-urls", client),
            ("--listen-peer-urls", format!("http://0.0.0.0:{PEER_PORT}")),
            ("--initial-advertise-peer-urls", peer(me)),
            ("--initial-cluster", cluster.join(",")),
            ("--initial-cluster-state", "new".to_owned()),
            ("--heartbeat-interval", HEARTBEAT_MS.to_string()),
            ("--election-timeout", ELECTION_MS.to_string()),
            ("--log-outputs", "stderr".to_owned()),
        ] {
            server.argv.extend([name.to_owned(), value]);
        }
        agent.start(SERVER, server)?;
        Ok(())
    }

    fn ready(&self, agent: &mut Agent) -> Result<bool, Error> {
        // `endpoint health` proposes a read through the leader, so that it fails without one.
        let ran = agent.run(["etcdctl", "endpoint", "health"], ASK_TIMEOUT)?;
        Ok(ran.code == Some(0))
    }

    fn version(&self, agent: &mut Agent) -> Result<String, Error> {
        let (status, answer) = status(self, agent)?;
        let version = status["version"].as_str().map(str::to_owned);
        version.ok_or_else(|| odd(self, agent, STATUS, &answer))
    }

    /// To the second: etcd tells its time nowhere but in the `Date` of its HTTP answers.
    fn wall_clock_ns(&self, agent: &mut Agent) -> Result<u128, Error> {
        let answer = ask(self, agent, DATE)?;
        answer.parse().map_err(|_| odd(self, agent, DATE, &answer))
    }

    fn leads(&self, agent: &mut Agent) -> Result<bool, Error> {
        let (status, answer) = status(self, agent)?;
        let leader = status["leader"].as_u64();
        let member = status["header"]["member_id"].as_u64();
        match (leader, member) {
            (Some(leader), Some(member)) => Ok(leader == member),
            _ => Err(odd(self, agent, STATUS, &answer)),
        }
    }
}

/// Asks for the server's `Date` and writes it in nanoseconds since 1970. The image has no HTTP client but bash.
const DATE: &[&str] = &[
    "bash",
    "-c",
    "exec 3<>/dev/tcp/127.0.0.1/2379 && printf 'GET /version HTTP/1.0\\r\\n\\r\\n' >&3 \
     && date --date \"$(sed -n 's/^Date: //p' <&3)\" +%s%N",
];

const STATUS: &[&str] = &["etcdctl", "endpoint", "status", "-w", "json"];

/// What the member says of itself, parsed and as it was written.
fn status(service: &Etcd, agent: &mut Agent) -> Result<(Value, String), Error> {
    let answer = ask(service, agent, STATUS)?;
    let parsed: Option<Value> = serde_json::from_str(&answer).ok();
    match parsed.as_ref().and_then(|members| members.get(0)) {
        Some(member) => Ok((member["Status"].clone(), answer)),
        None => Err(odd(service, agent, STATUS, &answer)),
    }
}
