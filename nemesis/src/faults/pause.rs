//! `pause`: SIGSTOP to every thread of a client or a server, and SIGCONT when it ends.
//!
//! A client that is paused at a point of its own is stopped by its agent before the client is answered, so that the
//! pause falls exactly there. A pause is no partition: the kernel goes on accepting what is sent to the process.

use std::time::Duration;

use containers::agent::protocol::{Action, Signal, Status};
use containers::agent::{Agent, monotonic_ns};
use histories::{Deed, Effect, Expectation, Shows};
use serde_json::{Map, Value, json};

use super::{Evidence, Fault, FaultError, Lasting, Patience, Strike, Target};
use crate::hands::Hands;
use crate::trigger::Trigger;
use histories::Role;

/// See the module.
pub struct Pause;

impl Fault for Pause {
    fn name(&self) -> &'static str {
        "pause"
    }

    fn summary(&self) -> &'static str {
        "stop a client or a server (SIGSTOP), and let it go on later (SIGCONT)"
    }

    fn does(&self, _with: &Map<String, Value>) -> Vec<Effect> {
        vec![Effect::of(Deed::Stops)]
    }

    fn shows(&self, _with: &Map<String, Value>) -> Shows {
        super::shows("states", Expectation::only('T'))
    }

    fn strikes(&self) -> &'static [Role] {
        &[Role::Client, Role::Server, Role::Storage]
    }

    fn lasting(&self) -> Lasting {
        Lasting::Bounded
    }

    fn stops_its_client(&self) -> bool {
        true
    }

    fn at_own_point(&self) -> Action {
        Action::Stop
    }

    fn available(&self, _agent: &mut Agent) -> Result<&'static str, String> {
        Ok("sigstop")
    }

    fn begin(&self, target: &Target, _hands: &mut Hands) -> Result<Box<dyn Strike>, FaultError> {
        Ok(Box::new(Pausing {
            host: target.host.clone(),
            process: target.process,
            signal_to_stopped_us: None,
        }))
    }
}

struct Pausing {
    host: String,
    process: &'static str,
    /// Known where the signal was ours and not the agent's own.
    signal_to_stopped_us: Option<u64>,
}

impl Pausing {
    fn look(&self, hands: &mut Hands) -> Result<Status, FaultError> {
        hands.observe(&self.host, |agent| agent.look(self.process))
    }
}

impl Strike for Pausing {
    fn engine(&self) -> &'static str {
        "sigstop"
    }

    fn inject(&mut self, hands: &mut Hands, trigger: &Trigger) -> Result<u64, FaultError> {
        if let Trigger::Reached(reached) = trigger
            && reached.client == self.host
            && let Some(stopped_ns) = reached.stopped_ns
        {
            return Ok(stopped_ns);
        }
        let signalled = hands.act(&self.host, |agent| agent.signal(self.process, Signal::Stop))?;
        let Some(signalled) = signalled else {
            return Ok(monotonic_ns());
        };
        let took_ns = signalled.shown_ns.saturating_sub(signalled.sent_ns);
        self.signal_to_stopped_us = Some(took_ns / 1_000);
        Ok(signalled.shown_ns)
    }

    fn patience(&self) -> Patience {
        Patience::For(Duration::from_millis(500))
    }

    fn shown(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        let status = self.look(hands)?;
        let stopped = !status.states.is_empty() && status.states.chars().all(|state| state == 'T');
        if !stopped {
            return Ok(None);
        }
        let mut evidence = Evidence::new();
        evidence.insert("states".to_owned(), json!(status.states));
        evidence.insert("pid".to_owned(), json!(status.pid));
        if let Some(us) = self.signal_to_stopped_us {
            evidence.insert("signal_to_stopped_us".to_owned(), json!(us));
        }
        Ok(Some(evidence))
    }

    fn heal(&mut self, hands: &mut Hands) -> Result<(), FaultError> {
        let signalled = hands.act(&self.host, |agent| {
            agent.signal(self.process, Signal::Continue)
        });
        match signalled {
            Ok(_) => Ok(()),
            // A process that died while it was stopped needs no waking.
            Err(_) if self.look(hands)?.states.is_empty() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn over(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        let status = self.look(hands)?;
        if status.states.contains('T') {
            return Ok(None);
        }
        let mut evidence = Evidence::new();
        match status.ended {
            Some(ended) if status.states.is_empty() => {
                evidence.insert("ended".to_owned(), json!(ended));
            }
            _ => {
                evidence.insert("states".to_owned(), json!(status.states));
            }
        }
        Ok(Some(evidence))
    }
}
