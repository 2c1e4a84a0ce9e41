//! Whether everything that a plan names is there, and whether its faults make sense.

use containers::topologies::{self, TOPOLOGIES};
use histories::{Named, Plan, PlannedFault, Until, When};
use serde_json::Value;

use super::form::within;
use super::ranges::{LONGEST_MS, PARAMETER_MS, PORT};
use super::sense::{self, Sketch};
use super::{Cast, PlanProblems};
use crate::faults::{FAULTS, Fault, Parameter, Takes, find};
use crate::words::{FUNCTIONS, OUTCOMES, POINTS, WORKLOADS, instead, known};

/// Expects that the plan's form is right.
pub(super) fn judge(plan: &Plan, problems: &mut PlanProblems) {
    let workload = known("workload", &plan.workload.name, WORKLOADS);
    problems.judge("workload.name", workload);
    let names: Vec<&str> = TOPOLOGIES.iter().map(|topology| topology.name).collect();
    problems.judge("topology", known("topology", &plan.topology, &names));
    let Some(topology) = topologies::find(&plan.topology) else {
        return;
    };
    let cast = Cast::new(plan.clients, &[topology]);
    let mut sketches = Vec::new();
    for (step, planned) in plan.faults.iter().enumerate() {
        let judging = OfFault {
            step,
            planned,
            cast: &cast,
            limit_ms: plan.limit_ms,
        };
        if let Some(fault) = judging.judge(problems) {
            let sketch = Sketch::of_planned(fault, planned);
            let here = sketch.not_here(topology).map_or(Ok(()), |reason| {
                Err(format!("on topology `{}` {reason}", topology.name))
            });
            problems.judge_fault(step, "on", here);
            sketches.push((step, sketch));
        }
    }
    let (steps, sketches): (Vec<usize>, Vec<Sketch>) = sketches.into_iter().unzip();
    for (index, message) in sense::stopped_twice(sketches) {
        problems.judge_fault::<()>(steps[index], "when", Err(message));
    }
}

/// One fault that is being judged.
struct OfFault<'a> {
    step: usize,
    planned: &'a PlannedFault,
    cast: &'a Cast,
    limit_ms: u64,
}

impl OfFault<'_> {
    /// Judges it alone; the fault, if it is one and its host is there.
    fn judge(&self, problems: &mut PlanProblems) -> Option<&'static dyn Fault> {
        let (step, planned) = (self.step, self.planned);
        let names: Vec<&str> = FAULTS.iter().map(|fault| fault.name()).collect();
        problems.judge_fault(step, "fault", known("fault", &planned.fault, &names));
        let fault = find(&planned.fault)?;
        let role = self.cast.host(&planned.on);
        let on = role.and_then(|role| sense::strikes(fault, &planned.on, role));
        let on = problems.judge_fault(step, "on", on);
        self.judge_when(fault, problems);
        self.judge_until(fault, problems);
        self.judge_parameters(fault, problems);
        on.map(|()| fault)
    }

    fn judge_when(&self, fault: &'static dyn Fault, problems: &mut PlanProblems) {
        match &self.planned.when {
            When::Time { after_ms } => {
                let in_time = sense::comes_in_time(*after_ms, self.limit_ms);
                problems.judge_fault(self.step, "when.after_ms", in_time);
            }
            When::Point { client, point, .. } => {
                problems.judge_fault(self.step, "when.client", self.cast.client(client));
                let point = known("point", point, POINTS);
                problems.judge_fault(self.step, "when.point", point);
            }
            When::Event(named) => self.judge_event("when", named, problems),
        }
        let trigger = Sketch::of_planned(fault, self.planned).trigger();
        problems.judge_fault(self.step, "when", trigger);
    }

    fn judge_event(&self, field: &str, named: &Named, problems: &mut PlanProblems) {
        for (key, judged) in [
            ("client", self.cast.client(&named.client)),
            ("f", known("function", &named.f, FUNCTIONS)),
            ("outcome", known("outcome", &named.outcome, OUTCOMES)),
        ] {
            problems.judge_fault(self.step, &format!("{field}.{key}"), judged);
        }
    }

    fn judge_until(&self, fault: &'static dyn Fault, problems: &mut PlanProblems) {
        let (step, until) = (self.step, &self.planned.until);
        let end = sense::end(fault, *until != Until::default());
        problems.judge_fault(step, "until", end);
        if until.at_most_ms.is_some() && until.after_ms.is_none() && until.event.is_none() {
            let wrong = "it names no end: add `after_ms` or `event`";
            problems.judge_fault::<()>(step, "until", Err(wrong.to_owned()));
        }
        if let (Some(after_ms), Some(at_most_ms)) = (until.after_ms, until.at_most_ms)
            && at_most_ms < after_ms
        {
            let wrong = format!("{at_most_ms} is less than `after_ms` ({after_ms})");
            problems.judge_fault::<()>(step, "until.at_most_ms", Err(wrong));
        }
        if let Some(named) = &until.event {
            self.judge_event("until.event", named, problems);
            let waits = sense::waits_for(fault, &self.planned.on, &named.client);
            problems.judge_fault(step, "until.event.client", waits);
        }
    }

    fn judge_parameters(&self, fault: &dyn Fault, problems: &mut PlanProblems) {
        let names: Vec<String> = fault
            .parameters()
            .iter()
            .map(Parameter::planned_name)
            .collect();
        for (name, value) in &self.planned.with {
            let parameter = names.iter().position(|known| known == name);
            let judged = match parameter {
                Some(index) => self.judge_value(&fault.parameters()[index], value),
                None => Err(format!(
                    "unknown parameter `{name}` of `{}`; {}",
                    fault.name(),
                    instead(name, &names)
                )),
            };
            problems.judge_fault(self.step, &format!("with.{name}"), judged);
        }
        for (parameter, name) in fault.parameters().iter().zip(&names) {
            if parameter.needed && !self.planned.with.contains_key(name) {
                let wrong = format!("`{name}` is missing: {}", parameter.summary);
                problems.judge_fault::<()>(self.step, "with", Err(wrong));
            }
        }
    }

    fn judge_value(&self, parameter: &Parameter, value: &Value) -> Result<(), String> {
        match parameter.takes {
            Takes::Length => whole(value, &PARAMETER_MS),
            Takes::Port => whole(value, &PORT),
            Takes::Step => match value.as_i64() {
                Some(0) => Err("it is a step of nothing".to_owned()),
                Some(ms) if ms.unsigned_abs() <= LONGEST_MS => Ok(()),
                _ => Err(format!(
                    "must be a whole number from -{LONGEST_MS} to {LONGEST_MS}, not {value}"
                )),
            },
            Takes::Host => match value.as_str() {
                Some(host) => {
                    sense::other_host(self.cast, parameter.name, host, Some(&self.planned.on))
                }
                None => Err(format!("must be the name of a host, not {value}")),
            },
        }
    }
}

fn whole(value: &Value, range: &std::ops::RangeInclusive<u64>) -> Result<(), String> {
    match value.as_u64() {
        Some(number) => within(number, range),
        None => Err(format!(
            "must be a whole number from {} to {}, not {value}",
            range.start(),
            range.end()
        )),
    }
}
