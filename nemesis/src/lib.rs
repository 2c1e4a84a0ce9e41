//! What goes wrong: faults, triggers, and the scenarios that arrange them.
//!
//! A [`Scenario`] is read from a TOML file and resolved into a [`Plan`](histories::Plan) for one lock service.
//! [`Nemesis`] carries a plan's faults out on the [`Hosts`] of a run: it waits for each trigger, injects, gathers
//! evidence, heals, and records all of it as events of the history. What the faults are stands in [`faults`]. Every plan,
//! wherever it comes from, is judged by [`validate`] first.
//!
//! Nothing here knows a lock service, and nothing here ever sees a verdict.

mod board;
mod course;
mod engine;
pub mod faults;
mod hands;
mod hosts;
mod network;
mod recorder;
mod rules;
mod scenario;
mod starter;
mod trigger;
mod validation;
mod words;

pub use engine::Nemesis;
pub use faults::{declared, fault_process};
pub use hands::Hands;
pub use histories::{LEADER, Role, SERVERS, STORAGE};
pub use hosts::{CLIENT, Hosts};
pub use rules::rules_for;
pub use scenario::{
    BuiltIn, Choice, Given, Length, Problem, Scenario, ScenarioError, WantedEvent, WantedFault,
    WantedUntil, WantedWhen, WantedWorkload, load, scenarios,
};
pub use trigger::{Reached, Trigger};
pub use validation::{PlanProblem, PlanProblems, validate, validate_form};
pub use words::{FUNCTIONS, OUTCOMES, POINTS, PROPERTIES, WORKLOADS, nearest};
