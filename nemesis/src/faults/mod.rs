//! Faults: one file each, and one line in [`FAULTS`].
//!
//! A [`Fault`] is a value that says what it is, what it may strike and what it has to be told. [`Fault::begin`] makes a
//! [`Strike`] of it, one planned fault on one host: it acts, shows by *evidence* that the fault took hold, heals, and
//! shows that it is over. A strike acts through [`Hands::act`] and looks through [`Hands::observe`] alone. With its
//! hands tied (sabotage) an action does nothing, so that a strike that shows evidence all the same is found out.

mod clock_step;
mod crash;
mod delay;
mod long_work;
mod pause;
mod restart;

use std::time::Duration;

use containers::agent::Agent;
use containers::agent::protocol::Action;
use containers::services::Service;
use histories::{Effect, Expectation, PlannedFault, Shows};
use serde_json::{Map, Value};

use crate::hands::Hands;
use crate::trigger::Trigger;
use histories::Role;

/// All faults.
pub static FAULTS: &[&dyn Fault] = &[
    &pause::Pause,
    &crash::Crash,
    &restart::Restart,
    &clock_step::ClockStep,
    &delay::Delay,
    &long_work::LongWork,
];

/// The fault of this name.
pub fn find(name: &str) -> Option<&'static dyn Fault> {
    FAULTS.iter().copied().find(|fault| fault.name() == name)
}

/// A planned fault with what it does and shows, as the fault of that name declares it.
pub fn declared(planned: PlannedFault) -> PlannedFault {
    let Some(fault) = find(&planned.fault) else {
        return planned;
    };
    PlannedFault {
        does: fault.does(&planned.with),
        shows: fault.shows(&planned.with),
        ..planned
    }
}

/// Runs what a fault has to run inside a host, until it is told to end: the hidden subcommand `fault-process`.
pub fn fault_process(fault: &str, arguments: &[String]) -> Result<(), FaultError> {
    match find(fault) {
        Some(fault) => fault.process(arguments),
        None => Err(FaultError::Plan(format!("no fault is called `{fault}`"))),
    }
}

/// What one field of a fault's evidence has to say.
fn shows(field: &str, expectation: Expectation) -> Shows {
    Shows::from([(field.to_owned(), expectation)])
}

/// What shows that a fault took hold, or that it is over: figures that a person believes, named with their units.
pub type Evidence = Map<String, Value>;

/// One kind of fault.
pub trait Fault: Sync {
    /// Its name, as scenarios use it.
    fn name(&self) -> &'static str;

    /// What it does, in one sentence for a list.
    fn summary(&self) -> &'static str;

    /// What it does to the host that it strikes, with these parameters: contracts and the checker go by that and know no
    /// fault by its name.
    fn does(&self, with: &Map<String, Value>) -> Vec<Effect>;

    /// What its evidence has to say for it to have taken hold, with these parameters.
    fn shows(&self, with: &Map<String, Value>) -> Shows;

    /// What it can strike.
    fn strikes(&self) -> &'static [Role];

    /// What it has to be told, and may be.
    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    /// How it comes to an end.
    fn lasting(&self) -> Lasting;

    /// Whether the client that it strikes completes nothing while it lasts.
    fn stops_its_client(&self) -> bool {
        false
    }

    /// Whether it consists in holding its client at the very point that triggers it, which must then be its trigger.
    fn holds_its_client(&self) -> bool {
        false
    }

    /// Whether its healing disturbs clients that are at work as much as the fault did. Where it lasts until the run ends, it
    /// then heals when they have ended.
    fn healing_disturbs_clients(&self) -> bool {
        false
    }

    /// What the agent does with a client that reaches the point at which this fault strikes that same client.
    fn at_own_point(&self) -> Action {
        Action::Hold
    }

    /// Completions of its own client that its evidence needs to hear of: function and outcome.
    fn listens(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Whether it can strike a server of this kind; the error says why not.
    fn suits(&self, _service: &dyn Service) -> Result<(), String> {
        Ok(())
    }

    /// By what it would act in the host of this agent; the error says what the host lacks.
    fn available(&self, agent: &mut Agent) -> Result<&'static str, String>;

    /// What runs as a process of its own inside a host: `fencepost fault-process <fault> ARGUMENTS…`.
    fn process(&self, _arguments: &[String]) -> Result<(), FaultError> {
        Err(FaultError::Plan(format!(
            "`{}` has no process of its own",
            self.name()
        )))
    }

    /// Makes ready to strike `target`, with nothing done yet that a client could notice.
    fn begin(&self, target: &Target, hands: &mut Hands) -> Result<Box<dyn Strike>, FaultError>;
}

/// One planned fault on one host, from its injection to its end.
pub trait Strike: Send {
    /// By what it acts: `sigstop`, `libfaketime`, `netem`, …
    fn engine(&self) -> &'static str;

    /// Acts. Returns when the fault was in place, in nanoseconds of CLOCK_MONOTONIC.
    fn inject(&mut self, hands: &mut Hands, trigger: &Trigger) -> Result<u64, FaultError>;

    /// How long evidence may take to show.
    fn patience(&self) -> Patience;

    /// The evidence that the fault took hold, from observation alone; `None` while nothing shows it.
    fn shown(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError>;

    /// Whether there is something to heal for this reason.
    fn heals(&self, _why: Why) -> bool {
        true
    }

    /// Undoes what the fault did, however far it came. May be called again and again.
    fn heal(&mut self, hands: &mut Hands) -> Result<(), FaultError>;

    /// The evidence that the fault is over, from observation alone; `None` while it is not.
    fn over(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError>;
}

/// How a fault comes to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// It is over as soon as it has happened, and takes no `until`.
    Moment,
    /// It has to be told `until` when it lasts, since a run cannot end under it.
    Bounded,
    /// It may last until the run ends.
    Open,
}

/// How long the evidence of a strike is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It shows at once or not at all.
    For(Duration),
    /// It shows when there is something that the fault can touch, such as a packet: at the latest when it heals.
    WhileItLasts,
    /// It can be told only when the fault comes to its end.
    ToItsEnd,
}

/// Why a fault heals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its `until` has come.
    Planned,
    /// The run ends.
    RunEnds,
}

/// What a fault can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// Whether it must be there.
    pub needed: bool,
    /// What it means, with an example.
    pub summary: &'static str,
}

impl Parameter {
    /// Its name in a plan, where a length has become milliseconds: `delay_ms`.
    pub fn planned_name(&self) -> String {
        match self.takes {
            Takes::Length | Takes::Step => format!("{}_ms", self.name),
            Takes::Host | Takes::Port => self.name.to_owned(),
        }
    }
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A length of time above zero.
    Length,
    /// A step of a clock, forwards or back.
    Step,
    /// Another host.
    Host,
    /// A TCP port.
    Port,
}

/// What a strike is aimed at.
#[derive(Clone, Debug)]
pub struct Target {
    /// The fault's index in the plan, which makes names in the host unique.
    pub step: usize,
    /// The host, `leader` resolved.
    pub host: String,
    /// The process in that host: `client` or `server`.
    pub process: &'static str,
    /// The parameters, as the plan holds them.
    pub with: Map<String, Value>,
}

impl Target {
    /// A parameter that is a number.
    pub fn number(&self, name: &str) -> Result<Option<i64>, FaultError> {
        self.with
            .get(name)
            .map(|value| {
                value
                    .as_i64()
                    .ok_or_else(|| self.odd(name, "a whole number"))
            })
            .transpose()
    }

    /// A parameter that is a text.
    pub fn text(&self, name: &str) -> Result<Option<&str>, FaultError> {
        self.with
            .get(name)
            .map(|value| value.as_str().ok_or_else(|| self.odd(name, "a text")))
            .transpose()
    }

    /// The error of a parameter that is not there.
    pub fn lacks(&self, name: &str) -> FaultError {
        FaultError::Plan(format!("fault {} lacks `{name}`", self.step + 1))
    }

    fn odd(&self, name: &str, wanted: &str) -> FaultError {
        FaultError::Plan(format!(
            "`{name}` of fault {} must be {wanted}, not {}",
            self.step + 1,
            self.with.get(name).unwrap_or(&Value::Null)
        ))
    }
}

/// Why a fault could not act or look.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// The host, its agent or its server did not do as asked.
    #[error(transparent)]
    Host(#[from] containers::Error),
    /// The plan asks for what cannot be; a scenario file would have been refused.
    #[error("the plan is wrong: {0}")]
    Plan(String),
    /// The host lacks what the fault needs.
    #[error("{0}")]
    Unavailable(String),
    /// What runs inside a host failed.
    #[error("the fault's own process failed at {what}: {source}")]
    Process {
        /// What it was doing.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A program in the host failed.
    #[error("`{command}` failed in {host}: {reason}")]
    Command {
        /// The host.
        host: String,
        /// What was run.
        command: String,
        /// What it said.
        reason: String,
    },
}
