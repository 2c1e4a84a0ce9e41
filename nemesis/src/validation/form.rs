//! What can be judged of a plan without knowing any lock, fault or topology: the scenario's name, its controls, and the ranges
//! of its numbers.

use std::ops::RangeInclusive;

use histories::{Plan, PlannedFault, When, visible};

use super::PlanProblems;
use super::ranges;
use crate::words::{PROPERTIES, known};

/// The longest name of a scenario, in bytes: file systems take 255, and names are put together with others.
const NAME_MAX: usize = 128;

pub(super) fn judge(plan: &Plan, problems: &mut PlanProblems) {
    let workload = &plan.workload;
    problems.judge("scenario", scenario_name(&plan.scenario));
    for (field, name) in [
        ("lock", &plan.lock),
        ("storage", &plan.storage),
        ("policy", &plan.policy),
    ] {
        // Without one nothing would be asked of it.
        let named = (!name.is_empty()).then_some(());
        problems.judge(field, named.ok_or_else(|| "it is empty".to_owned()));
    }
    for (field, number, range) in [
        ("clients", u64::from(plan.clients), ranges::CLIENTS),
        ("ttl_ms", plan.ttl_ms, ranges::TTL_MS),
        (
            "progress_bound_ms",
            plan.progress_bound_ms,
            ranges::PROGRESS_BOUND_MS,
        ),
        ("limit_ms", plan.limit_ms, ranges::LIMIT_MS),
        ("workload.work_ms", workload.work_ms, ranges::WORK_MS),
        ("workload.rest_ms", workload.rest_ms, ranges::REST_MS),
        ("workload.retry_ms", workload.retry_ms, ranges::RETRY_MS),
        ("workload.rounds", workload.rounds, ranges::ROUNDS),
    ] {
        problems.judge(field, within(number, &range));
    }
    for (index, control) in plan.controls.iter().enumerate() {
        let judged = known("property", control, PROPERTIES);
        problems.judge(format!("controls[{index}]"), judged);
    }
    for (step, fault) in plan.faults.iter().enumerate() {
        judge_fault(step, fault, problems);
    }
}

/// A scenario's name becomes that of a folder, below which its runs are kept.
pub(crate) fn scenario_name(name: &str) -> Result<(), String> {
    let wrong = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.len() > NAME_MAX {
        format!("it is longer than {NAME_MAX} bytes")
    } else if name.starts_with('.') {
        "it begins with a `.`".to_owned()
    } else if name.contains('/') {
        "it has a `/` in it".to_owned()
    } else if visible(name) != name {
        "it has a control character in it".to_owned()
    } else if name.trim() != name {
        "it begins or ends with a space".to_owned()
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(NAME_MAX).collect();
    Err(format!(
        "`{shown}` cannot be a scenario's name, which becomes that of a folder: {wrong}"
    ))
}

fn judge_fault(step: usize, fault: &PlannedFault, problems: &mut PlanProblems) {
    let until = &fault.until;
    let (field, number, range) = match &fault.when {
        When::Time { after_ms } => ("when.after_ms", Some(*after_ms), ranges::AFTER_MS),
        When::Point { nth_grant, .. } => ("when.nth_grant", Some(*nth_grant), ranges::GRANT),
        When::Event(_) => ("when", None, ranges::GRANT),
    };
    for (field, number, range) in [
        (field, number, range),
        ("until.after_ms", until.after_ms, ranges::LASTS_MS),
        ("until.at_most_ms", until.at_most_ms, ranges::LASTS_MS),
    ] {
        let judged = number.map_or(Ok(()), |number| within(number, &range));
        problems.judge_fault(step, field, judged);
    }
}

/// Whether a number is in its range.
pub(super) fn within(number: u64, range: &RangeInclusive<u64>) -> Result<(), String> {
    if range.contains(&number) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    Err(format!(
        "must be a whole number from {least} to {most}, not {number}"
    ))
}
