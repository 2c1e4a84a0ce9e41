//! `long-work`: a client's work takes long. It is held at a point of its own, alive, and its clocks go on.
//!
//! Unlike a pause this stops no thread: the client waits at the point for its agent's answer. What shows it is that the
//! agent still owes the answer when the fault ends, and that the client has completed nothing meanwhile, though its
//! completions are listened for.

use containers::agent::{Agent, monotonic_ns};
use histories::{Deed, Effect, Expectation, Shows};
use serde_json::{Map, Value, json};

use super::{Evidence, Fault, FaultError, Lasting, Patience, Strike, Target};
use crate::hands::Hands;
use crate::hosts::CLIENT;
use crate::trigger::{Reached, Trigger};
use histories::Role;

/// See the module.
pub struct LongWork;

impl Fault for LongWork {
    fn name(&self) -> &'static str {
        "long-work"
    }

    fn summary(&self) -> &'static str {
        "hold a client at one of its points, alive, as if its work took long"
    }

    fn does(&self, _with: &Map<String, Value>) -> Vec<Effect> {
        vec![Effect::of(Deed::HoldsWork)]
    }

    fn shows(&self, _with: &Map<String, Value>) -> Shows {
        super::shows("completed_meanwhile", Expectation::equals(0))
    }

    fn strikes(&self) -> &'static [Role] {
        &[Role::Client]
    }

    fn lasting(&self) -> Lasting {
        Lasting::Bounded
    }

    fn stops_its_client(&self) -> bool {
        true
    }

    fn holds_its_client(&self) -> bool {
        true
    }

    fn listens(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("acquire", "ok"),
            ("read", "ok"),
            ("write", "ok"),
            ("write", "fail"),
            ("write", "info"),
            ("release", "ok"),
            ("release", "fail"),
            ("release", "info"),
        ]
    }

    fn available(&self, _agent: &mut Agent) -> Result<&'static str, String> {
        Ok("hold")
    }

    fn begin(&self, target: &Target, _hands: &mut Hands) -> Result<Box<dyn Strike>, FaultError> {
        Ok(Box::new(Holding {
            host: target.host.clone(),
            reached: None,
        }))
    }
}

struct Holding {
    host: String,
    reached: Option<Reached>,
}

impl Strike for Holding {
    fn engine(&self) -> &'static str {
        "hold"
    }

    /// The agent holds the client already, and the engine lets it go when this fault heals.
    fn inject(&mut self, _hands: &mut Hands, trigger: &Trigger) -> Result<u64, FaultError> {
        match trigger {
            Trigger::Reached(reached) if reached.client == self.host => {
                self.reached = Some(reached.clone());
                Ok(reached.reached_ns)
            }
            _ => Err(FaultError::Plan(format!(
                "`long-work` of `{}` has to wait for a point of `{}`",
                self.host, self.host
            ))),
        }
    }

    fn patience(&self) -> Patience {
        Patience::ToItsEnd
    }

    fn shown(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        let Some(reached) = &self.reached else {
            return Ok(None);
        };
        if hands.let_go_ns(&self.host, reached.rule).is_some() {
            return Ok(None);
        }
        let held = hands.observe(&self.host, |agent| agent.held())?;
        let now_ns = monotonic_ns();
        let meanwhile = hands.completed(&self.host, reached.reached_ns, now_ns);
        if !held.contains(&reached.rule) || !meanwhile.is_empty() {
            return Ok(None);
        }
        let status = hands.observe(&self.host, |agent| agent.look(CLIENT))?;
        let mut evidence = Evidence::new();
        let held_us = now_ns.saturating_sub(reached.reached_ns) / 1_000;
        evidence.insert("held_us".to_owned(), json!(held_us));
        evidence.insert("completed_meanwhile".to_owned(), json!(meanwhile.len()));
        evidence.insert("states".to_owned(), json!(status.states));
        Ok(Some(evidence))
    }

    fn heal(&mut self, _hands: &mut Hands) -> Result<(), FaultError> {
        Ok(())
    }

    fn over(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        let Some(reached) = &self.reached else {
            return Ok(None);
        };
        Ok(hands.let_go_ns(&self.host, reached.rule).map(|let_go_ns| {
            let mut evidence = Evidence::new();
            let held_us = let_go_ns.saturating_sub(reached.reached_ns) / 1_000;
            evidence.insert("held_us".to_owned(), json!(held_us));
            evidence
        }))
    }
}
