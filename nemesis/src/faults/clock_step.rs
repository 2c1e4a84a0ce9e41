//! `clock-step`: the wall clock of a server jumps, and jumps back when the fault ends.
//!
//! The server runs under libfaketime, which reads the offset from a file. Its monotonic clock, the host's clock and all
//! other processes stay as they are. The server itself shows the step: asked for the time through its own protocol, it
//! is off by that much from the machine's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use containers::agent::{Agent, monotonic_ns};
use containers::services::Service;
use containers::services::clock::{NO_OFFSET, OFFSET_FILE};
use histories::{Deed, Effect, Expectation, Shows};
use serde_json::{Map, Value, json};

use super::{Evidence, Fault, FaultError, Lasting, Parameter, Patience, Strike, Takes, Target};
use crate::hands::Hands;
use crate::trigger::Trigger;
use histories::Role;

/// The services whose servers follow libfaketime: those that are neither Go nor static.
const FOLLOWERS: [&str; 2] = ["redis", "postgres"];

/// How far from the asked step the measured one may be, beside the time that the measuring took.
const TOLERANCE_NS: i128 = 5_000_000;

/// The parameter that says how far the clock jumps, as the plan has it.
const STEP: &str = "step_ms";

/// See the module.
pub struct ClockStep;

impl Fault for ClockStep {
    fn name(&self) -> &'static str {
        "clock-step"
    }

    fn summary(&self) -> &'static str {
        "step the wall clock of a server forwards or back"
    }

    fn does(&self, with: &Map<String, Value>) -> Vec<Effect> {
        let back = with
            .get(STEP)
            .and_then(Value::as_i64)
            .is_some_and(|step_ms| step_ms < 0);
        vec![Effect::of(if back {
            Deed::ClockBack
        } else {
            Deed::ClockForward
        })]
    }

    fn shows(&self, with: &Map<String, Value>) -> Shows {
        let step_ms = with.get(STEP).and_then(Value::as_f64).unwrap_or_default();
        let near = Expectation::near(step_ms, step_ms.abs() / 2.0);
        super::shows("measured_step_ms", near)
    }

    fn strikes(&self) -> &'static [Role] {
        &[Role::Server, Role::Storage]
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "step",
            takes: Takes::Step,
            needed: true,
            summary: "how far the clock jumps, like `step = \"+30s\"` or `step = \"-2 ttl\"`",
        }]
    }

    fn lasting(&self) -> Lasting {
        Lasting::Open
    }

    /// A clock that is set right jumps again, the other way.
    fn healing_disturbs_clients(&self) -> bool {
        true
    }

    fn suits(&self, service: &dyn Service) -> Result<(), String> {
        if FOLLOWERS.contains(&service.name()) {
            return Ok(());
        }
        Err(format!(
            "the clock of {} cannot be stepped: it does not follow libfaketime",
            service.name()
        ))
    }

    fn available(&self, agent: &mut Agent) -> Result<&'static str, String> {
        let library = "/usr/lib/fencepost/libfaketime.so.1";
        let ran = agent.run(["test", "-e", library], Duration::from_secs(5));
        match ran {
            Ok(ran) if ran.code == Some(0) => Ok("libfaketime"),
            Ok(_) => Err(format!("no {library} in {}", agent.host())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn begin(&self, target: &Target, hands: &mut Hands) -> Result<Box<dyn Strike>, FaultError> {
        let step_ms = target.number(STEP)?.ok_or_else(|| target.lacks(STEP))?;
        let service = hands.hosts().service(&target.host);
        let service = service.ok_or_else(|| {
            FaultError::Plan(format!(
                "`clock-step` strikes servers, and {} is none",
                target.host
            ))
        })?;
        self.suits(service).map_err(FaultError::Unavailable)?;
        let before = Offset::measure(hands, &target.host, service)?;
        Ok(Box::new(Stepping {
            host: target.host.clone(),
            service,
            step_ms,
            before,
        }))
    }
}

struct Stepping {
    host: String,
    service: &'static dyn Service,
    step_ms: i64,
    before: Offset,
}

impl Stepping {
    /// The evidence that the clock is now off by `step_ns` from where it was at first; `None` while it is not.
    fn stepped(&self, hands: &mut Hands, step_ns: i128) -> Result<Option<Evidence>, FaultError> {
        let now = Offset::measure(hands, &self.host, self.service)?;
        let measured_ns = now.ns - self.before.ns;
        let uncertain_ns = now.uncertain_ns + self.before.uncertain_ns;
        let bound_ns = uncertain_ns + TOLERANCE_NS;
        // Where the measuring took so long that a step and none look alike, it shows nothing.
        let tells = 2 * bound_ns < i128::from(self.step_ms.abs()) * 1_000_000;
        if !tells || (measured_ns - step_ns).abs() > bound_ns {
            return Ok(None);
        }
        let mut evidence = Evidence::new();
        evidence.insert("offset_before_ms".to_owned(), json!(ms(self.before.ns)));
        evidence.insert("offset_ms".to_owned(), json!(ms(now.ns)));
        evidence.insert("measured_step_ms".to_owned(), json!(ms(measured_ns)));
        evidence.insert("uncertain_ms".to_owned(), json!(ms(uncertain_ns)));
        Ok(Some(evidence))
    }
}

impl Strike for Stepping {
    fn engine(&self) -> &'static str {
        "libfaketime"
    }

    fn inject(&mut self, hands: &mut Hands, _trigger: &Trigger) -> Result<u64, FaultError> {
        let sign = if self.step_ms < 0 { '-' } else { '+' };
        let (seconds, ms) = (self.step_ms.abs() / 1_000, self.step_ms.abs() % 1_000);
        let offset = format!("{sign}{seconds}.{ms:03}");
        hands.act(&self.host, |agent| agent.put(OFFSET_FILE, offset))?;
        Ok(monotonic_ns())
    }

    fn patience(&self) -> Patience {
        Patience::For(Duration::from_secs(2))
    }

    fn shown(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        self.stepped(hands, i128::from(self.step_ms) * 1_000_000)
    }

    fn heal(&mut self, hands: &mut Hands) -> Result<(), FaultError> {
        hands.act(&self.host, |agent| agent.put(OFFSET_FILE, NO_OFFSET))?;
        Ok(())
    }

    fn over(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        self.stepped(hands, 0)
    }
}

/// How far a server's clock is ahead of the machine's.
#[derive(Clone, Copy, Debug)]
struct Offset {
    ns: i128,
    /// Half of what the measuring took: the server looked at its clock at some time in it.
    uncertain_ns: i128,
}

impl Offset {
    fn measure(hands: &mut Hands, host: &str, service: &dyn Service) -> Result<Offset, FaultError> {
        let sent_ns = wall_clock_ns();
        let server_ns = hands.observe(host, |agent| service.wall_clock_ns(agent))?;
        let received_ns = wall_clock_ns();
        let server_ns = i128::try_from(server_ns).unwrap_or(i128::MAX);
        Ok(Offset {
            ns: server_ns - (sent_ns + received_ns) / 2,
            uncertain_ns: (received_ns - sent_ns).abs() / 2,
        })
    }
}

/// The machine's wall clock, in nanoseconds since 1970.
fn wall_clock_ns() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
    })
}

/// Nanoseconds as milliseconds with three decimals.
fn ms(ns: i128) -> f64 {
    (ns / 1_000) as f64 / 1_000.0
}
