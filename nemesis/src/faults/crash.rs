//! `crash`: SIGKILL to a client or a server, which stays down until its `until` has come; then it is started again.
//!
//! The host keeps its address and its other faults, as a machine does whose process dies. Where a scenario names no
//! `until`, a client stays down for good, and a server is started again when the run ends, for the next run to find it.

use std::time::Duration;

use containers::agent::protocol::{Signal, Status};
use containers::agent::{Agent, monotonic_ns};
use histories::{Deed, Effect, Expectation, Shows};
use serde_json::{Map, Value, json};

use super::{Evidence, Fault, FaultError, Lasting, Patience, Strike, Target, Why};
use crate::hands::Hands;
use crate::hosts::CLIENT;
use crate::trigger::Trigger;
use histories::Role;

/// See the module.
pub struct Crash;

impl Fault for Crash {
    fn name(&self) -> &'static str {
        "crash"
    }

    fn summary(&self) -> &'static str {
        "kill a client or a server (SIGKILL), and start it again later"
    }

    fn does(&self, _with: &Map<String, Value>) -> Vec<Effect> {
        vec![Effect::of(Deed::Kills)]
    }

    fn shows(&self, _with: &Map<String, Value>) -> Shows {
        super::shows("ended", Expectation::there())
    }

    fn strikes(&self) -> &'static [Role] {
        &[Role::Client, Role::Server, Role::Storage]
    }

    fn lasting(&self) -> Lasting {
        Lasting::Open
    }

    fn stops_its_client(&self) -> bool {
        true
    }

    fn available(&self, _agent: &mut Agent) -> Result<&'static str, String> {
        Ok("sigkill")
    }

    fn begin(&self, target: &Target, _hands: &mut Hands) -> Result<Box<dyn Strike>, FaultError> {
        Ok(Box::new(Crashing {
            life: Life::new(target),
            signal_to_gone_us: None,
        }))
    }
}

struct Crashing {
    life: Life,
    signal_to_gone_us: Option<u64>,
}

impl Strike for Crashing {
    fn engine(&self) -> &'static str {
        "sigkill"
    }

    fn inject(&mut self, hands: &mut Hands, _trigger: &Trigger) -> Result<u64, FaultError> {
        let Some((took_us, gone_ns)) = self.life.kill(hands)? else {
            return Ok(monotonic_ns());
        };
        self.signal_to_gone_us = Some(took_us);
        Ok(gone_ns)
    }

    fn patience(&self) -> Patience {
        Patience::For(Duration::from_millis(500))
    }

    fn shown(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        let status = self.life.look(hands)?;
        let ended = status.ended.filter(|_| status.states.is_empty());
        Ok(ended.map(|ended| {
            let mut evidence = Evidence::new();
            evidence.insert("ended".to_owned(), json!(ended));
            evidence.insert("pid".to_owned(), json!(status.pid));
            if let Some(us) = self.signal_to_gone_us {
                evidence.insert("signal_to_gone_us".to_owned(), json!(us));
            }
            evidence
        }))
    }

    fn heals(&self, why: Why) -> bool {
        why == Why::Planned || self.life.process != CLIENT
    }

    fn heal(&mut self, hands: &mut Hands) -> Result<(), FaultError> {
        self.life.start(hands)
    }

    fn over(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        self.life.is_up(hands)
    }
}

/// A process that is killed and started again.
pub(super) struct Life {
    host: String,
    process: &'static str,
    /// The process id that was killed.
    killed: Option<i32>,
}

impl Life {
    pub fn new(target: &Target) -> Life {
        Life {
            host: target.host.clone(),
            process: target.process,
            killed: None,
        }
    }

    pub fn look(&self, hands: &mut Hands) -> Result<Status, FaultError> {
        hands.observe(&self.host, |agent| agent.look(self.process))
    }

    /// Kills it: how long it took to go, in microseconds, and when it was gone; `None` with tied hands.
    pub fn kill(&mut self, hands: &mut Hands) -> Result<Option<(u64, u64)>, FaultError> {
        let before = self.look(hands)?;
        if before.states.is_empty() {
            let how = before.ended.unwrap_or_else(|| "just now".to_owned());
            let reason = format!(
                "nothing to kill: `{}` in {} has ended ({how})",
                self.process, self.host
            );
            return Err(FaultError::Unavailable(reason));
        }
        let signalled = hands.act(&self.host, |agent| agent.signal(self.process, Signal::Kill))?;
        Ok(signalled.map(|signalled| {
            self.killed = before.pid;
            let took_ns = signalled.shown_ns.saturating_sub(signalled.sent_ns);
            (took_ns / 1_000, signalled.shown_ns)
        }))
    }

    /// Starts it again, unless it runs.
    pub fn start(&self, hands: &mut Hands) -> Result<(), FaultError> {
        if self.look(hands)?.states.is_empty() {
            hands.act(&self.host, |agent| agent.restart(self.process))?;
        }
        Ok(())
    }

    /// The evidence that it is up: another process id than the killed one, and a server answers for itself.
    pub fn is_up(&self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        let status = self.look(hands)?;
        if status.states.is_empty() || status.pid == self.killed {
            return Ok(None);
        }
        let service = hands.hosts().service(&self.host);
        if let Some(service) = service
            && !hands.observe(&self.host, |agent| service.ready(agent))?
        {
            return Ok(None);
        }
        let mut evidence = Evidence::new();
        evidence.insert("pid".to_owned(), json!(status.pid));
        evidence.insert("states".to_owned(), json!(status.states));
        if service.is_some() {
            evidence.insert("serves".to_owned(), json!(true));
        }
        Ok(Some(evidence))
    }
}
