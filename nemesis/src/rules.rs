//! Which points and completions the agents of clients have to watch for, so that triggers can fire.

use std::collections::HashMap;

use containers::agent::protocol::{Action, At, Rule};
use histories::{Plan, PlannedFault, When};

use crate::faults;

/// A rule with what it is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Armed {
    /// The client whose agent has the rule.
    pub client: String,
    pub rule: Rule,
    /// The faults that a point sets off, by their index in the plan; empty for a completion.
    pub steps: Vec<usize>,
}

/// The rules to arm in the host of a client before it starts.
///
/// The client is stopped (SIGSTOP) at the point at which a `pause` strikes it first, held at every other point that faults
/// wait for until they are in place, and asked to tell of completions. With `sabotage` nobody is stopped.
pub fn rules_for(plan: &Plan, client: &str, sabotage: bool) -> Vec<Rule> {
    let of_client = |armed: Armed| (armed.client == client).then_some(armed.rule);
    Rules::new(plan, sabotage)
        .armed
        .into_iter()
        .filter_map(of_client)
        .collect()
}

/// The rules of all clients, found again by what asks for them. A rule's number is unique among those of its client.
pub(crate) struct Rules {
    pub armed: Vec<Armed>,
    /// By client: its rules, in the order of their numbers, which begin with 1.
    by_client: HashMap<String, Vec<usize>>,
    of_steps: Vec<OfStep>,
    /// The faults of one trigger each, in the plan's order.
    groups: Vec<Vec<usize>>,
}

/// What a fault waits for.
struct OfStep {
    /// The rule that tells of its trigger; none for a time.
    trigger: Option<usize>,
    /// The rule that tells of the event that it lasts until.
    until: Option<usize>,
    group: usize,
}

impl Rules {
    pub fn new(plan: &Plan, sabotage: bool) -> Rules {
        let mut arming = Arming::default();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut group_of: HashMap<String, usize> = HashMap::new();
        let mut of_steps = Vec::with_capacity(plan.faults.len());
        for (step, planned) in plan.faults.iter().enumerate() {
            // What is waited for has no hash; its debug text is as good a key.
            let group = *group_of
                .entry(format!("{:?}", planned.when))
                .or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(step);
            let (trigger, until) = arming.add(step, planned, sabotage);
            of_steps.push(OfStep {
                trigger,
                until,
                group,
            });
        }
        let mut by_client: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, armed) in arming.armed.iter().enumerate() {
            by_client
                .entry(armed.client.clone())
                .or_default()
                .push(index);
        }
        Rules {
            armed: arming.armed,
            by_client,
            of_steps,
            groups,
        }
    }

    /// The rule of a client with this number.
    pub fn find(&self, client: &str, rule: u32) -> Option<&Armed> {
        let index = (rule as usize).checked_sub(1)?;
        let &index = self.by_client.get(client)?.get(index)?;
        Some(&self.armed[index])
    }

    /// What tells of the trigger of a fault; none for a time.
    pub fn of_trigger(&self, step: usize) -> Option<&Armed> {
        self.of_steps[step].trigger.map(|rule| &self.armed[rule])
    }

    /// What tells of the event that a fault lasts until.
    pub fn of_until(&self, step: usize) -> Option<&Armed> {
        self.of_steps[step].until.map(|rule| &self.armed[rule])
    }

    /// The point that sets off the fault of a step; none for another trigger.
    pub fn of_point(&self, step: usize) -> Option<&Armed> {
        self.of_trigger(step)
            .filter(|armed| !armed.steps.is_empty())
    }

    /// The faults with the same trigger that stand before this one in the plan.
    pub fn before(&self, step: usize) -> &[usize] {
        let group = &self.groups[self.of_steps[step].group];
        &group[..group.partition_point(|&other| other < step)]
    }
}

fn stops_at_own_point(fault: &str) -> bool {
    faults::find(fault).is_some_and(|fault| fault.at_own_point() == Action::Stop)
}

/// The rules so far, found again by their clients and by what those reach.
#[derive(Default)]
struct Arming {
    armed: Vec<Armed>,
    by_client: HashMap<String, HashMap<String, usize>>,
}

impl Arming {
    /// Adds the rules of a fault: which one tells of its trigger, and which one of the event that it lasts until.
    fn add(
        &mut self,
        step: usize,
        planned: &PlannedFault,
        sabotage: bool,
    ) -> (Option<usize>, Option<usize>) {
        let trigger = match &planned.when {
            When::Time { .. } => None,
            When::Point {
                client,
                point,
                nth_grant,
            } => {
                let at = At::Point {
                    point: point.clone(),
                    nth_grant: *nth_grant,
                };
                let stops = planned.on == *client && stops_at_own_point(&planned.fault);
                let action = if stops && !sabotage {
                    Action::Stop
                } else {
                    Action::Hold
                };
                Some(self.add_point(client, at, action, step))
            }
            When::Event(named) => Some(self.add_event(&named.client, &named.f, &named.outcome)),
        };
        let until = planned.until.event.as_ref();
        let until = until.map(|named| self.add_event(&named.client, &named.f, &named.outcome));
        for (f, outcome) in faults::find(&planned.fault).map_or(&[][..], |fault| fault.listens()) {
            self.add_event(&planned.on, f, outcome);
        }
        (trigger, until)
    }

    /// One rule serves all faults that wait at the same point. Its action is the first one's: faults strike in the plan's
    /// order, so that a pause behind another fault stops the client when its turn comes.
    fn add_point(&mut self, client: &str, at: At, action: Action, step: usize) -> usize {
        let index = self.find_or_add(client, at, action);
        self.armed[index].steps.push(step);
        index
    }

    fn add_event(&mut self, client: &str, f: &str, outcome: &str) -> usize {
        let at = At::Event {
            f: f.to_owned(),
            outcome: outcome.to_owned(),
        };
        self.find_or_add(client, at, Action::Tell)
    }

    fn find_or_add(&mut self, client: &str, at: At, action: Action) -> usize {
        let of_client = self.by_client.entry(client.to_owned()).or_default();
        let (before, next) = (of_client.len() as u32, self.armed.len());
        // What is reached has no hash; its debug text is as good a key.
        let index = *of_client.entry(format!("{at:?}")).or_insert(next);
        if index == next {
            self.armed.push(Armed {
                client: client.to_owned(),
                rule: Rule {
                    rule: before + 1,
                    at,
                    action,
                },
                steps: Vec::new(),
            });
        }
        index
    }
}
