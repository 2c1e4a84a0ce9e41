//! Which points and completions the agents of clients have to watch for, so that triggers can fire.

use std::collections::HashMap;

use containers::agent::protocol::{Action, At, Rule};
use histories::{Plan, When};

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
    armed(plan, sabotage)
        .into_iter()
        .filter_map(of_client)
        .collect()
}

/// The rules of all clients. A rule's number is unique among those of its client.
pub(crate) fn armed(plan: &Plan, sabotage: bool) -> Vec<Armed> {
    let mut all = Arming::default();
    for (step, planned) in plan.faults.iter().enumerate() {
        match &planned.when {
            When::Time { .. } => {}
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
                all.add_point(client, at, action, step);
            }
            When::Event(named) => all.add_event(&named.client, &named.f, &named.outcome),
        }
        if let Some(named) = &planned.until.event {
            all.add_event(&named.client, &named.f, &named.outcome);
        }
        for (f, outcome) in faults::find(&planned.fault).map_or(&[][..], |fault| fault.listens()) {
            all.add_event(&planned.on, f, outcome);
        }
    }
    all.armed
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
    /// One rule serves all faults that wait at the same point. Its action is the first one's: faults strike in the plan's
    /// order, so that a pause behind another fault stops the client when its turn comes.
    fn add_point(&mut self, client: &str, at: At, action: Action, step: usize) {
        self.find_or_add(client, at, action).steps.push(step);
    }

    fn add_event(&mut self, client: &str, f: &str, outcome: &str) {
        let at = At::Event {
            f: f.to_owned(),
            outcome: outcome.to_owned(),
        };
        self.find_or_add(client, at, Action::Tell);
    }

    fn find_or_add(&mut self, client: &str, at: At, action: Action) -> &mut Armed {
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
        &mut self.armed[index]
    }
}
