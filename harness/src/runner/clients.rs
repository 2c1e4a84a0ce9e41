//! A run's clients, from their start to their end, and the ends and stalls of all else that the run stands on.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use containers::agent::Agent;
use containers::agent::protocol::{Command, Signal};
use containers::site::{End, Ended, Ends, Host, Stall};
use histories::{Event, Function, Kind};

use crate::client::{CLIENT, EXIT_OP, process_name};
use crate::exit::{Exit, Unavailable};

/// How long an ended client's notice may take to come.
const NOTICE_WITHIN: Duration = Duration::from_millis(200);

/// How often notices are looked for.
const INTERVAL: Duration = Duration::from_millis(5);

/// One client's process, as its host's agent sees it.
pub struct Client {
    /// The host's name.
    pub host: String,
    /// Whether a process of it is there.
    pub lives: bool,
    life: u32,
    agent: Agent,
}

impl Client {
    fn look(&mut self) -> Result<bool> {
        Ok(!self.agent.look(CLIENT)?.states.is_empty())
    }
}

/// All clients of a run.
pub struct Clients {
    each: Vec<Client>,
    ends: Ends,
    history: mpsc::Sender<Event<'static>>,
    base_ns: u64,
}

impl Clients {
    /// None yet. What ends from now on goes into the history.
    pub fn new(ends: &Ends, history: mpsc::Sender<Event<'static>>, base_ns: u64) -> Clients {
        Clients {
            each: Vec::new(),
            ends: ends.clone(),
            history,
            base_ns,
        }
    }

    /// Starts the client of a host.
    pub fn start(&mut self, host: &Host, command: Command) -> Result<()> {
        let mut agent = host.agent()?;
        agent.start(CLIENT, command)?;
        self.each.push(Client {
            host: host.name.clone(),
            lives: true,
            life: 1,
            agent,
        });
        Ok(())
    }

    /// Takes in what ended since the last call. An end that nobody asked for is an error.
    pub fn notice(&mut self) -> Result<()> {
        self.take_in()?;
        for client in &mut self.each {
            // A client that a fault has killed lives again once that fault heals.
            client.lives = client.lives || client.look()?;
        }
        Ok(())
    }

    /// Whether this is true of each client.
    pub fn all(&self, is_so: impl Fn(&Client) -> bool) -> bool {
        self.each.iter().all(is_so)
    }

    /// How many of them live.
    pub fn living(&self) -> usize {
        self.each.iter().filter(|client| client.lives).count()
    }

    /// Writes what ended or stalled since the last call into the history.
    pub fn take_in(&mut self) -> Result<()> {
        let stalls = self.ends.take_stalls();
        let within_run = |stall: &Stall| stall.at_ns >= self.base_ns;
        for stall in stalls.into_iter().filter(within_run) {
            let mut event = self.event(stall.host, stall.at_ns, Function::Stall);
            event.stalled_ns = Some(stall.stalled_ns);
            self.record(event)?;
        }
        let mut odd = None;
        for end in self.ends.take() {
            let client = self.each.iter_mut().find(|client| client.host == end.host);
            let process = match client {
                Some(client) => {
                    if let Ended::Process { life, .. } = &end.ended {
                        client.life = *life;
                    }
                    client.lives = false;
                    let name = process_name(&end.host, client.life);
                    client.life += 1;
                    name
                }
                None => end.host.clone(),
            };
            // A planned end of a server is told by its fault, and a client's of an earlier run by that run's history.
            let is_of_client = is_of_client(&end);
            if !end.asked || (is_of_client && end.at_ns >= self.base_ns) {
                let mut event = self.event(process, end.at_ns, Function::Exit);
                event.error = Some(told(&end).into());
                self.record(event)?;
            }
            if is_of_client && !is_explained(&end) {
                odd.get_or_insert(end);
            }
        }
        match odd.or_else(|| self.ends.unasked()) {
            Some(end) => Err(ended(&end)),
            None => Ok(()),
        }
    }

    fn event(&self, process: String, at_ns: u64, f: Function) -> Event<'static> {
        let at = at_ns.saturating_sub(self.base_ns);
        Event::new(at, process, EXIT_OP, Kind::Info, f)
    }

    fn record(&self, event: Event<'static>) -> Result<()> {
        self.history.send(event).context("the recorder is gone")
    }

    /// Asks all clients to finish their round and end; kills those that do not in time.
    pub fn end(&mut self, within: Duration) -> Result<()> {
        self.notice()?;
        for client in &mut self.each {
            client.lives = client.look()?;
            if client.lives {
                client.agent.signal(CLIENT, Signal::Terminate)?;
            }
        }
        self.await_ends(within)?;
        for client in self.each.iter().filter(|client| client.lives) {
            let (host, seconds) = (&client.host, within.as_secs());
            tracing::warn!("client {host} does not end within {seconds} s and is killed");
        }
        self.kill();
        self.await_ends(NOTICE_WITHIN)
    }

    /// Ends all clients where nothing is to be waited for any more.
    pub fn kill(&mut self) {
        for client in self.each.iter_mut().filter(|client| client.lives) {
            if let Err(error) = client.agent.signal(CLIENT, Signal::Kill) {
                tracing::debug!("client {} is not killed: {error}", client.host);
            }
        }
    }

    fn await_ends(&mut self, within: Duration) -> Result<()> {
        let limit = Instant::now() + within;
        loop {
            self.take_in()?;
            if self.all(|client| !client.lives) || Instant::now() >= limit {
                return Ok(());
            }
            std::thread::sleep(INTERVAL);
        }
    }
}

/// Whether it is a client that ended, and no server or whole host.
fn is_of_client(end: &End) -> bool {
    matches!(&end.ended, Ended::Process { name, .. } if name == CLIENT)
}

/// How something ended, as its history says it: whoever reads that has to tell an end that was asked for from others.
fn told(end: &End) -> String {
    match (end.how.as_str(), end.asked) {
        (how @ "exit 0", true) => how.to_owned(),
        (how @ "exit 0", false) => format!("{how}, unasked"),
        (how, true) => format!("{how}, as asked"),
        (how, false) => how.to_owned(),
    }
}

/// Whether a client ended as those do that are asked to.
fn is_explained(end: &End) -> bool {
    // Asked to end before it listens for that, it ends by the signal itself.
    end.asked && matches!(end.how.as_str(), "exit 0" | "signal 9" | "signal 15")
}

/// The error of an end that nothing in the plan explains, in short.
pub fn ended(end: &End) -> anyhow::Error {
    by_itself(end).unwrap_or_else(|| Unavailable(format!("host {} ended", end.host)).into())
}

/// The error of a client that was not ended from outside. Its exit status says whether it had no room to write down what
/// it did, or somebody told it to end (0); any other end of its own is a mistake of ours.
pub fn by_itself(end: &End) -> Option<anyhow::Error> {
    let (host, how) = (&end.host, &end.how);
    // SIGABRT and SIGSEGV are how a program ends that cannot go on.
    let is_own = (how.starts_with("exit") && how != "exit 0")
        || matches!(how.as_str(), "signal 6" | "signal 11");
    if !is_of_client(end) || !is_own {
        return None;
    }
    let told = format!(
        "client {host} ended by itself ({how}); see logs/{host}/{CLIENT}.log in the run's directory"
    );
    if *how == format!("exit {}", Exit::Unavailable.code()) {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        return Some(anyhow::Error::new(full).context(told));
    }
    Some(anyhow!(told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::of_error;

    fn end(how: &str, asked: bool) -> End {
        End {
            host: "c1".to_owned(),
            ended: Ended::Process {
                name: CLIENT.to_owned(),
                life: 1,
            },
            at_ns: 0,
            how: how.to_owned(),
            asked,
        }
    }

    #[test]
    fn only_the_end_that_was_asked_for_is_explained() {
        for how in ["exit 0", "signal 9", "signal 15"] {
            assert!(is_explained(&end(how, true)) && !is_explained(&end(how, false)));
        }
        assert!(!is_explained(&end("exit 101", true)));
    }

    #[test]
    fn a_client_that_ends_by_itself_is_told_from_one_that_is_killed() {
        let status = |how| by_itself(&end(how, false)).map(|error| of_error(&error));
        assert_eq!(status("exit 101"), Some(Exit::Bug));
        assert_eq!(status("signal 6"), Some(Exit::Bug));
        assert_eq!(status("exit 69"), Some(Exit::Unavailable));
        assert_eq!(status("exit 0"), None, "it was told to end");
        assert_eq!(status("signal 9"), None);
        let server = End {
            ended: Ended::Process {
                name: "server".to_owned(),
                life: 1,
            },
            ..end("exit 1", false)
        };
        assert!(by_itself(&server).is_none());
        assert_eq!(of_error(&ended(&server)), Exit::Unavailable);
    }
}
