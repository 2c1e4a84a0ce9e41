//! A run's clients, from their start to their end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use containers::agent::protocol::{Command, Notice, Signal};
use containers::agent::{Agent, Watch};
use containers::site::Host;
use histories::{Event, Function, Kind, Plan};

use super::recorder::Recorder;
use crate::client::{CLIENT, EXIT_OP, process_name};
use crate::exit::Exit;

/// How long an ended client's notice may take to come.
const NOTICE_WITHIN: Duration = Duration::from_millis(200);

/// One client's process, as its host's agent sees it.
pub struct Client {
    /// The host's name.
    pub host: String,
    /// Whether a process of it is there.
    pub lives: bool,
    agent: Agent,
    watch: Watch,
    may_be_killed: bool,
    ending: bool,
}

impl Client {
    /// Starts the client of a host. Whatever it does from now on is noticed.
    pub fn start(host: &Host, command: Command, plan: &Plan) -> Result<Client> {
        let watch = host.agent()?.watch()?;
        let mut agent = host.agent()?;
        agent.start(CLIENT, command)?;
        let may_be_killed = plan.faults.iter().any(|fault| fault.on == host.name);
        Ok(Client {
            host: host.name.clone(),
            lives: true,
            agent,
            watch,
            may_be_killed,
            ending: false,
        })
    }

    /// Takes in what the agent noticed: a client's end goes into the history. An end that nothing in the plan explains
    /// is an error.
    pub fn notice(&mut self, recorder: &Recorder, base_ns: u64) -> Result<()> {
        self.take_notices(recorder, base_ns, Duration::ZERO)?;
        // A client that a fault has killed lives again once that fault heals.
        self.lives = self.lives || !self.agent.look(CLIENT)?.states.is_empty();
        Ok(())
    }

    fn take_notices(&mut self, recorder: &Recorder, base_ns: u64, within: Duration) -> Result<()> {
        while let Some(notice) = self.watch.next(within)? {
            let Notice::Ended {
                process,
                life,
                at_ns,
                ended,
            } = notice
            else {
                continue;
            };
            if process != CLIENT {
                continue;
            }
            let name = process_name(&self.host, life);
            let mut event = Event::new(
                at_ns.saturating_sub(base_ns),
                name,
                EXIT_OP,
                Kind::Info,
                Function::Exit,
            );
            event.error = Some(ended.clone().into());
            recorder
                .sink()
                .send(event)
                .context("the recorder is gone")?;
            self.lives = !self.agent.look(CLIENT)?.states.is_empty();
            let explained = match ended.as_str() {
                // Asked to end before it listens for that, it ends by the signal itself.
                "exit 0" | "signal 15" => self.ending,
                "signal 9" => self.may_be_killed || self.ending,
                _ => false,
            };
            if !explained {
                return Err(self.ended_by_itself(&ended));
            }
        }
        Ok(())
    }

    /// The error of a client that nothing in the plan ended. Its exit status says whether it had no room to write down what
    /// it did.
    fn ended_by_itself(&self, ended: &str) -> anyhow::Error {
        let host = &self.host;
        let told = format!(
            "client {host} ended by itself ({ended}); see logs/{host}/{CLIENT}.log in the run's directory"
        );
        if ended == format!("exit {}", Exit::Unavailable.code()) {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return anyhow::Error::new(full).context(told);
        }
        anyhow!(told)
    }

    /// Asks the client to finish its round and end; kills it if it does not in time.
    pub fn end(&mut self, recorder: &Recorder, base_ns: u64, within: Duration) -> Result<()> {
        self.ending = true;
        self.take_notices(recorder, base_ns, Duration::ZERO)?;
        if self.agent.look(CLIENT)?.states.is_empty() {
            return self.take_notices(recorder, base_ns, Duration::ZERO);
        }
        self.lives = true;
        self.agent.signal(CLIENT, Signal::Terminate)?;
        let limit = Instant::now() + within;
        while self.lives && Instant::now() < limit {
            self.take_notices(recorder, base_ns, Duration::from_millis(10))?;
        }
        if self.lives {
            tracing::warn!(
                "client {} does not end within {} s and is killed",
                self.host,
                within.as_secs()
            );
            self.agent.signal(CLIENT, Signal::Kill)?;
            self.take_notices(recorder, base_ns, NOTICE_WITHIN)?;
        }
        Ok(())
    }
}
