//! `restart`: SIGKILL to a client or a server, which is started again at once.

use std::time::Duration;

use containers::agent::{Agent, monotonic_ns};
use histories::{Deed, Effect, Expectation, Shows};
use serde_json::{Map, Value, json};

use super::crash::Life;
use super::{Evidence, Fault, FaultError, Lasting, Patience, Strike, Target};
use crate::hands::Hands;
use crate::trigger::Trigger;
use histories::Role;

/// See the module.
pub struct Restart;

impl Fault for Restart {
    fn name(&self) -> &'static str {
        "restart"
    }

    fn summary(&self) -> &'static str {
        "kill a client or a server (SIGKILL) and start it again at once"
    }

    fn does(&self, _with: &Map<String, Value>) -> Vec<Effect> {
        vec![Effect::of(Deed::Restarts)]
    }

    fn shows(&self, _with: &Map<String, Value>) -> Shows {
        super::shows("pid", Expectation::differs_from("pid_before"))
    }

    fn strikes(&self) -> &'static [Role] {
        &[Role::Client, Role::Server, Role::Storage]
    }

    fn lasting(&self) -> Lasting {
        Lasting::Moment
    }

    fn stops_its_client(&self) -> bool {
        true
    }

    fn available(&self, _agent: &mut Agent) -> Result<&'static str, String> {
        Ok("sigkill")
    }

    fn begin(&self, target: &Target, hands: &mut Hands) -> Result<Box<dyn Strike>, FaultError> {
        let life = Life::new(target);
        let pid_before = life.look(hands)?.pid;
        Ok(Box::new(Restarting {
            life,
            pid_before,
            signal_to_gone_us: None,
        }))
    }
}

struct Restarting {
    life: Life,
    pid_before: Option<i32>,
    signal_to_gone_us: Option<u64>,
}

impl Strike for Restarting {
    fn engine(&self) -> &'static str {
        "sigkill"
    }

    fn inject(&mut self, hands: &mut Hands, _trigger: &Trigger) -> Result<u64, FaultError> {
        self.pid_before = self.life.look(hands)?.pid;
        let Some((took_us, gone_ns)) = self.life.kill(hands)? else {
            return Ok(monotonic_ns());
        };
        self.signal_to_gone_us = Some(took_us);
        self.life.start(hands)?;
        Ok(gone_ns)
    }

    fn patience(&self) -> Patience {
        Patience::For(Duration::from_secs(1))
    }

    fn shown(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        let status = self.life.look(hands)?;
        if status.states.is_empty() || status.pid == self.pid_before {
            return Ok(None);
        }
        let mut evidence = Evidence::new();
        evidence.insert("pid_before".to_owned(), json!(self.pid_before));
        evidence.insert("pid".to_owned(), json!(status.pid));
        if let Some(us) = self.signal_to_gone_us {
            evidence.insert("signal_to_gone_us".to_owned(), json!(us));
        }
        Ok(Some(evidence))
    }

    /// It was started again already; only a start that failed is made up for.
    fn heal(&mut self, hands: &mut Hands) -> Result<(), FaultError> {
        self.life.start(hands)
    }

    fn over(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        self.life.is_up(hands)
    }
}
