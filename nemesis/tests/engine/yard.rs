//! Hosts without Docker: each an agent in a process of this machine, with a client or a stand-in for a server.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use containers::agent::protocol::{Command, Signal};
use containers::agent::{Agent, monotonic_ns};
use containers::services::{Member, SERVER, Service};
use histories::{Event, Function, Kind, Plan};
use nemesis::faults::FaultError;
use nemesis::{CLIENT, Hosts, Nemesis, rules_for};
use tempfile::TempDir;

/// No test waits longer for anything: what takes so long will not come.
const PATIENCE: Duration = Duration::from_secs(30);

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
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&events);
        let nemesis = Nemesis::start(
            plan.clone(),
            self.clone(),
            base_ns,
            move |event| sink.lock().unwrap().push(event),
            sabotage,
        );
        Run {
            nemesis: Some(nemesis),
            events,
        }
    }
}

impl Hosts for Yard {
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

/// A nemesis at work and what it has recorded.
pub struct Run {
    nemesis: Option<Nemesis>,
    events: Arc<Mutex<Vec<Event<'static>>>>,
}

impl Run {
    pub fn settled(&self) -> bool {
        self.nemesis.as_ref().unwrap().settled()
    }

    pub fn wait_until_settled(&self) {
        wait_until("the nemesis is settled", || self.settled());
    }

    /// Waits until an event of a step is recorded.
    pub fn wait_for(&self, step: usize, f: Function, completed: bool) {
        wait_until(&format!("{f:?} of step {step} is recorded"), || {
            let events = self.events.lock().unwrap();
            let found = |event: &&Event| {
                (event.step, event.f) == (Some(step), f)
                    && (event.kind != Kind::Invoke) == completed
            };
            events.iter().any(|event| found(&event))
        });
    }

    /// Ends it in order; what it recorded.
    pub fn stop(mut self) -> Record {
        self.nemesis.take().unwrap().heal_all_and_stop();
        self.record()
    }

    /// Drops it; what it recorded.
    pub fn abandon(mut self) -> Record {
        drop(self.nemesis.take());
        self.record()
    }

    fn record(&self) -> Record {
        let events = self.events.lock().unwrap().clone();
        assert!(events.is_sorted_by_key(|event| event.t), "{events:#?}");
        Record { events }
    }
}

/// What a nemesis recorded.
pub struct Record {
    pub events: Vec<Event<'static>>,
}

impl Record {
    /// The one event of a step that is the invocation of this function.
    pub fn invoked(&self, step: usize, f: Function) -> &Event<'static> {
        self.one(step, f, false)
    }

    /// The one event of a step that completes this function.
    pub fn completed(&self, step: usize, f: Function) -> &Event<'static> {
        let (invoked, completed) = (self.one(step, f, false), self.one(step, f, true));
        assert_eq!(invoked.op, completed.op);
        completed
    }

    /// Whether anything of this function stands there for a step.
    pub fn has(&self, step: usize, f: Function) -> bool {
        self.events
            .iter()
            .any(|event| (event.step, event.f) == (Some(step), f))
    }

    #[track_caller]
    fn one(&self, step: usize, f: Function, completed: bool) -> &Event<'static> {
        let of_step = |event: &&Event<'static>| {
            (event.step, event.f) == (Some(step), f) && (event.kind != Kind::Invoke) == completed
        };
        let found: Vec<_> = self.events.iter().filter(of_step).collect();
        assert_eq!(found.len(), 1, "{f:?} of step {step} in {:#?}", self.events);
        found[0]
    }
}

/// A figure of an event's evidence.
#[track_caller]
pub fn figure(event: &Event<'_>, name: &str) -> u64 {
    let evidence = event
        .evidence
        .as_ref()
        .unwrap_or_else(|| panic!("no evidence: {event:?}"));
    let number = evidence[name]
        .as_f64()
        .unwrap_or_else(|| panic!("`{name}`: {event:?}"));
    number as u64
}

pub fn wait_until(what: &str, come: impl Fn() -> bool) {
    let start = Instant::now();
    while !come() {
        assert!(
            start.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The example beside this test's own binary.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let target = own.parent().and_then(Path::parent).unwrap();
    target.join("examples/nemesis_host")
}

/// Stops the process of a host for good, which nobody but the test wakes.
pub fn kill(agent: &mut Agent, process: &str) {
    agent.signal(process, Signal::Kill).unwrap();
}
