//! Judges plans, whoever made them: a scenario file, a saved history, a generator.
//!
//! The rules stand here, once. The reader of scenario files asks the same ones, and adds line and column.

mod cast;
mod form;
mod names;
pub(crate) mod ranges;
pub(crate) mod sense;

use std::fmt;

use histories::{Plan, abridged, visible};

use crate::scenario::MESSAGE_MAX;

pub(crate) use cast::Cast;
pub(crate) use form::scenario_name;

/// The most problems that a message tells one by one.
const TOLD_MAX: usize = 20;

/// Judges whether a plan can be run: its form, and every name in it but those of the lock service, the storage and the
/// policy, of which the nemesis knows nothing.
///
/// # Errors
/// All that is wrong with its form; where that is right, all that is wrong with the rest.
pub fn validate(plan: &Plan) -> Result<(), PlanProblems> {
    validate_form(plan)?;
    let mut problems = PlanProblems::default();
    names::judge(plan, &mut problems);
    problems.or_none()
}

/// Judges what can be judged of a plan without knowing any lock, fault or topology: the scenario's name, that its controls
/// are properties, and that every number is in its range. A plan of another build passes, whose other names are unknown here.
///
/// # Errors
/// All that is wrong.
pub fn validate_form(plan: &Plan) -> Result<(), PlanProblems> {
    let mut problems = PlanProblems::default();
    form::judge(plan, &mut problems);
    problems.or_none()
}

/// One thing that is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanProblem {
    /// The field, as in the history's header: `faults[0].until.at_most_ms`.
    pub field: String,
    /// What it must be and what it is, or the nearest right name.
    pub message: String,
    /// The fault whose field it is, by its index.
    pub step: Option<usize>,
}

/// All that is wrong with a plan, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanProblems(Vec<PlanProblem>);

impl PlanProblems {
    /// One problem, of a field.
    pub fn of(field: &str, message: String) -> PlanProblems {
        PlanProblems(vec![PlanProblem {
            field: field.to_owned(),
            message,
            step: None,
        }])
    }

    /// The problems.
    pub fn all(&self) -> &[PlanProblem] {
        &self.0
    }

    /// Adds what is wrong with a field, if anything is; gives what is right.
    fn judge<T>(&mut self, field: impl Into<String>, judged: Result<T, String>) -> Option<T> {
        self.add(None, field.into(), judged)
    }

    fn or_none(self) -> Result<(), PlanProblems> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Likewise of a field of a fault, by the fault's index.
    fn judge_fault<T>(&mut self, step: usize, field: &str, judged: Result<T, String>) -> Option<T> {
        let field = match field {
            "" => format!("faults[{step}]"),
            field => format!("faults[{step}].{field}"),
        };
        self.add(Some(step), field, judged)
    }

    fn add<T>(
        &mut self,
        step: Option<usize>,
        field: String,
        judged: Result<T, String>,
    ) -> Option<T> {
        let add = |message| {
            self.0.push(PlanProblem {
                field,
                message,
                step,
            });
        };
        judged.map_err(add).ok()
    }
}

impl fmt::Display for PlanProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, message) = (visible(&self.field), visible(&self.message));
        let (field, message) = (
            abridged(&field, MESSAGE_MAX),
            abridged(&message, MESSAGE_MAX),
        );
        write!(formatter, "`{field}`: {message}")
    }
}

impl fmt::Display for PlanProblems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the plan is wrong: ")?;
        for (index, problem) in self.0.iter().take(TOLD_MAX).enumerate() {
            let before = if index > 0 { "; " } else { "" };
            write!(formatter, "{before}{problem}")?;
        }
        match self.0.len().saturating_sub(TOLD_MAX) {
            0 => Ok(()),
            more => write!(formatter, "; and {more} more"),
        }
    }
}

impl std::error::Error for PlanProblems {}
