//! Hosts without Docker: each an agent in a process of this machine, with a client or a stand-in for a server.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command as Program};
use std::sync::Arc;

use containers::agent::protocol::{Command, Signal};
use containers::agent::{Agent, monotonic_ns};
use containers::services::{Member, SERVER, Service};
use histories::Plan;
use nemesis::faults::FaultError;
use nemesis::{CLIENT, Hosts, rules_for};
use tempfile::TempDir;

use crate::run::{Run, program, wait_until};

/// Two clients and a server.
pub struct Yard {
    folder: TempDir,
    agents: BTreeMap<&'static str, Child>,
}

impl Yard {
    pub fn new() -> Arc<Yard> {
        let folder = tempfile::tempdir().unwrap();
        let start = |host: &'static str| {
            let socket = folder.path().join(format!("{host}.sock"));
            let child = Program::new(program())
                .args(["agent", "--socket"])
                .arg(&socket)
                .spawn()
                .expect("`cargo test` builds it; for one test alone: cargo build -p nemesis --example nemesis_host");
            wait_until("the agent is up", || Agent::connect(&socket).is_ok());
            Agent::connect(&socket)
                .unwrap()
                .log_to(folder.path().join(host).as_path())
                .unwrap();
            (host, child)
        };
        let agents = ["c1", "c2", "s1"].map(start).into();
        let yard = Yard { folder, agents };
        let sleep = Command {
            argv: ["sleep", "1000"].map(str::to_owned).to_vec(),
            ..Command::default()
        };
        yard.to("s1").start(SERVER, sleep).unwrap();
        Arc::new(yard)
    }

    /// A connection to a host's agent.
    pub fn to(&self, host: &str) -> Agent {
        Agent::connect(&self.socket(host)).unwrap()
    }

    /// Ends a host with all that runs in it, as if it had never been.
    pub fn destroy(&self, host: &str) {
        let pid = nix::unistd::Pid::from_raw(self.agents[host].id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        wait_until("the agent is gone", || {
            Agent::connect(&self.socket(host)).is_err()
        });
    }

    /// How the client of a host is, one letter a thread.
    pub fn states(&self, host: &str) -> String {
        self.to(host).look(self.process(host)).unwrap().states
    }

    /// What the client of a host wrote so far.
    pub fn log(&self, host: &str) -> String {
        fs::read_to_string(self.folder.path().join(host).join("client.log")).unwrap_or_default()
    }

    /// Waits until the client of a host has completed another write.
    pub fn wait_for_write(&self, host: &str) {
        let writes = || self.log(host).matches("write").count();
        let before = writes();
        wait_until("the client writes again", || writes() > before);
    }

    fn socket(&self, host: &str) -> PathBuf {
        self.folder.path().join(format!("{host}.sock"))
    }

    /// Arms the rules of a plan and starts the clients, and the nemesis with them.
    pub fn run(self: &Arc<Yard>, plan: &Plan, sabotage: bool) -> Run {
        let base_ns = monotonic_ns();
        for client in ["c1", "c2"] {
            let rules = rules_for(plan, client, sabotage);
            let path = self.folder.path().join(format!("{client}.json"));
            fs::write(&path, serde_json::to_vec(&rules).unwrap()).unwrap();
            let mut agent = self.to(client);
            agent.arm(rules).unwrap();
            let argv = ["fencepost", "client", path.to_str().unwrap()];
            let command = Command {
                argv: argv.map(str::to_owned).to_vec(),
                ..Command::default()
            };
            agent.start(CLIENT, command).unwrap();
        }
        Run::start(plan, self.clone(), base_ns, sabotage)
    }
}

impl Hosts for Yard {
    fn check_answers(&self, _host: &str) -> Result<(), FaultError> {
        Ok(())
    }

    fn agent(&self, host: &str) -> Result<Agent, FaultError> {
        Agent::connect(&self.socket(host)).map_err(|error| FaultError::Host(error.into()))
    }

    fn address(&self, _host: &str) -> Option<Ipv4Addr> {
        Some(Ipv4Addr::LOCALHOST)
    }

    fn servers(&self) -> Vec<String> {
        vec!["s1".to_owned()]
    }

    fn service(&self, host: &str) -> Option<&'static dyn Service> {
        (host == "s1").then_some(&Sleep)
    }

    fn leader(&self) -> Result<String, FaultError> {
        Ok("s1".to_owned())
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        for child in self.agents.values_mut() {
            let pid = nix::unistd::Pid::from_raw(child.id() as i32);
            // One that a test has destroyed is a zombie still, and takes a signal.
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
            let _ = child.wait();
        }
    }
}

/// A server that serves nobody, and is ready while it lives.
struct Sleep;

impl Service for Sleep {
    fn name(&self) -> &'static str {
        "sleep"
    }

    fn port(&self) -> u16 {
        1
    }

    fn start(&self, _: &mut Agent, _: &Member, _: &[Member]) -> Result<(), containers::Error> {
        Ok(())
    }

    fn ready(&self, agent: &mut Agent) -> Result<bool, containers::Error> {
        Ok(!agent.look(SERVER)?.states.is_empty())
    }

    fn version(&self, _: &mut Agent) -> Result<String, containers::Error> {
        Ok("1".to_owned())
    }

    fn wall_clock_ns(&self, _: &mut Agent) -> Result<u128, containers::Error> {
        Ok(0)
    }
}

/// Stops the process of a host for good, which nobody but the test wakes.
pub fn kill(agent: &mut Agent, process: &str) {
    agent.signal(process, Signal::Kill).unwrap();
}
