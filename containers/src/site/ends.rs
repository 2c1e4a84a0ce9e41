//! The ends of what a site's hosts run: of servers, of clients, and of the hosts themselves, and what comes to the same, as
//! where somebody else stops a server; and the stalls of those that run a server.
//!
//! Each host is watched by a thread of its own for as long as the site is there, so that no end falls between two runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use super::Host;
use crate::Error;
use crate::agent::protocol::{Lookout, Notice, Touch};
use crate::agent::{AgentError, Watch, monotonic_ns};

/// How long an agent may be silent, which tells each second that it is there. A watcher waits for it twice: the first time
/// this process may have stood still itself.
const NEWS_WITHIN: Duration = Duration::from_millis(1_500);

/// What it is that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A server or a client.
    Process {
        /// Its agent's name for it.
        name: String,
        /// Which life of it that was, counted from 1.
        life: u32,
    },
    /// The agent, and the whole host with it.
    Host,
    /// Nothing as yet: somebody else laid hands on it, so that the run is no longer the one that was planned.
    Touched,
}

/// Something in a host ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The host.
    pub host: String,
    /// What of it.
    pub ended: Ended,
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// How: `exit 0`, `signal 9`; of a host what was seen of it, or done to it.
    pub how: String,
    /// Whether the agent was asked to end it.
    pub asked: bool,
}

/// A host that runs a server stood still, or its server was starved. Clients notice their stalls themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The host.
    pub host: String,
    /// When it was over, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// How long it lasted.
    pub stalled_ns: u64,
}

/// The ends and stalls of a site's hosts so far. Clones share one record.
#[derive(Clone)]
pub struct Ends(Arc<Shared>);

struct Shared {
    /// Those that were not taken yet.
    fresh: Mutex<Vec<End>>,
    /// Likewise.
    stalls: Mutex<Vec<Stall>>,
    unasked: watch::Sender<Option<End>>,
}

impl Ends {
    /// Watches the agents of these hosts from now on.
    pub(super) fn of(hosts: &[Host]) -> Result<Ends, Error> {
        let ends = Ends::none();
        for host in hosts {
            let (agent, process) = (host.agent()?, host.role.process());
            // Clients notice their own stalls.
            let lookout = match host.service() {
                Some(_) => Lookout::StopsAndStalls,
                None => Lookout::Stops,
            };
            let watch = agent.watch_and_look_out(lookout)?;
            let ends = ends.clone();
            let stands_still = Arc::clone(&host.stands_still);
            thread::Builder::new()
                .name(format!("ends of {}", host.name))
                .spawn(move || ends.follow(watch, process, &stands_still))
                .map_err(|source| Error::io("a thread that watches a host", source))?;
        }
        Ok(ends)
    }

    /// Watches nobody.
    pub(super) fn none() -> Ends {
        Ends(Arc::new(Shared {
            fresh: Mutex::default(),
            stalls: Mutex::default(),
            unasked: watch::Sender::new(None),
        }))
    }

    /// Takes in what one host tells, to its end.
    fn follow(&self, mut watch: Watch, process: &str, stands_still: &AtomicBool) {
        let mut silent = 0;
        loop {
            match watch.next(NEWS_WITHIN) {
                Ok(Some(notice)) => {
                    silent = 0;
                    stands_still.store(false, Ordering::Relaxed);
                    self.note(watch.host(), process, notice);
                }
                Ok(None) => silent += 1,
                Err(error) => return self.add(gone(watch.host(), &error)),
            }
            if silent == 2 {
                stands_still.store(true, Ordering::Relaxed);
                let how = "its agent stands still".to_owned();
                self.add_touched(watch.host().to_owned(), monotonic_ns(), how);
            }
        }
    }

    /// What else runs in a host, such as a fault's own process, is watched by whoever started it.
    fn note(&self, host: &str, watched: &str, notice: Notice) {
        let host = host.to_owned();
        match notice {
            Notice::Ended {
                process,
                life,
                at_ns,
                ended,
                asked,
            } if process == watched => {
                let name = process;
                self.add(End {
                    host,
                    ended: Ended::Process { name, life },
                    at_ns,
                    how: ended,
                    asked,
                });
            }
            Notice::Touched {
                process,
                at_ns,
                touch,
            } if process == watched => {
                let how = match touch {
                    Touch::Stopped => format!("somebody has stopped its {process}"),
                    Touch::Proceeds => format!("somebody has let its {process} go on"),
                    Touch::Alarm(line) => {
                        format!("somebody has laid hands on its {process}, which says {line:?}")
                    }
                };
                self.add_touched(host, at_ns, how);
            }
            Notice::Stalled { at_ns, stalled_ns } => lock(&self.0.stalls).push(Stall {
                host,
                at_ns,
                stalled_ns,
            }),
            Notice::Alive
            | Notice::Ended { .. }
            | Notice::Touched { .. }
            | Notice::Reached { .. } => {}
        }
    }

    /// Adds the end of a host that somebody else laid hands on.
    pub(super) fn add_touched(&self, host: String, at_ns: u64, how: String) {
        self.add(End {
            host,
            ended: Ended::Touched,
            at_ns,
            how,
            asked: false,
        });
    }

    fn add(&self, end: End) {
        lock(&self.0.fresh).push(end.clone());
        self.0.unasked.send_if_modified(|first| {
            let is_first = first.is_none() && !end.asked;
            if is_first {
                *first = Some(end);
            }
            is_first
        });
    }

    /// The ends since the last call.
    pub fn take(&self) -> Vec<End> {
        std::mem::take(&mut *lock(&self.0.fresh))
    }

    /// The stalls since the last call.
    pub fn take_stalls(&self) -> Vec<Stall> {
        std::mem::take(&mut *lock(&self.0.stalls))
    }

    /// The first end that no agent was asked for. A site that has seen one is of no more use.
    pub fn unasked(&self) -> Option<End> {
        self.0.unasked.borrow().clone()
    }

    /// An error where a host is the first that somebody laid hands on: its agent may be frozen, and never answer.
    ///
    /// # Errors
    /// [`Error::Host`], with what was done to it.
    pub fn check_answers(&self, host: &str) -> Result<(), Error> {
        match self.unasked() {
            Some(end) if end.host == host && end.ended == Ended::Touched => Err(Error::Host {
                host: end.host,
                reason: format!("is not asked for anything any more: {}", end.how),
            }),
            _ => Ok(()),
        }
    }

    /// Waits for an end that no agent was asked for.
    pub async fn await_unasked(&self) -> End {
        let mut first = self.0.unasked.subscribe();
        loop {
            if let Some(end) = first.borrow_and_update().clone() {
                return end;
            }
            // It cannot fail, since the sender lives in `self`.
            let _ = first.changed().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of a host whose agent can no longer be heard.
fn gone(host: &str, error: &AgentError) -> End {
    End {
        host: host.to_owned(),
        ended: Ended::Host,
        at_ns: monotonic_ns(),
        how: match error {
            AgentError::Broken { .. } => "its agent is gone".to_owned(),
            error => format!("its agent cannot be understood: {error}"),
        },
        asked: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(process: &str, asked: bool) -> Notice {
        Notice::Ended {
            process: process.to_owned(),
            life: 1,
            at_ns: 5,
            ended: "signal 9".to_owned(),
            asked,
        }
    }

    #[tokio::test]
    async fn an_end_that_was_asked_for_is_told_and_wakes_nobody() {
        let ends = Ends::none();
        ends.note("s1", "server", ended("server", true));
        assert_eq!(ends.unasked(), None);
        ends.note("s2", "server", ended("server", false));
        ends.note("s3", "server", ended("server", false));
        let hosts: Vec<String> = ends.take().into_iter().map(|end| end.host).collect();
        assert_eq!(hosts, ["s1", "s2", "s3"]);
        assert!(ends.take().is_empty(), "an end is taken once");
        assert_eq!(ends.await_unasked().await.host, "s2", "the first one stays");
    }

    #[test]
    fn the_end_of_a_faults_own_process_is_no_end_of_the_host() {
        let ends = Ends::none();
        ends.note("s1", "server", ended("delay-1", false));
        assert_eq!((ends.take(), ends.unasked()), (Vec::new(), None));
    }

    #[test]
    fn a_server_that_somebody_stopped_is_of_no_more_use() {
        let ends = Ends::none();
        let stopped = |process: &str| Notice::Touched {
            process: process.to_owned(),
            at_ns: 5,
            touch: Touch::Stopped,
        };
        ends.note("s1", "server", stopped("delay-1"));
        assert_eq!(ends.unasked(), None);
        ends.note("s1", "server", stopped("server"));
        let seen = ends.unasked().map(|end| (end.ended, end.how));
        let how = "somebody has stopped its server".to_owned();
        assert_eq!(seen, Some((Ended::Touched, how)));
    }

    #[test]
    fn a_stall_is_no_end_and_is_taken_once() {
        let ends = Ends::none();
        let stalled = Notice::Stalled {
            at_ns: 9,
            stalled_ns: 4,
        };
        ends.note("s1", "server", stalled);
        assert!(ends.take().is_empty());
        let stall = Stall {
            host: "s1".to_owned(),
            at_ns: 9,
            stalled_ns: 4,
        };
        assert_eq!(ends.take_stalls(), [stall]);
        assert!(ends.take_stalls().is_empty());
    }
}
