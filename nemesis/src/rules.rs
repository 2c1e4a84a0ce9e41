//! Which points and completions the agents of clients have to watch for, so that triggers can fire.

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
/// The client is stopped (SIGSTOP) at the point at which a `pause` strikes it, held at every other point that a fault
/// waits for until that fault is in place, and asked to tell of completions. With `sabotage` nobody is stopped.
pub fn rules_for(plan: &Plan, client: &str, sabotage: bool) -> Vec<Rule> {
    let of_client = |armed: Armed| (armed.client == client).then_some(armed.rule);
    armed(plan, sabotage)
        .into_iter()
        .filter_map(of_client)
        .collect()
}

/// The rules of all clients. A rule's number is unique among those of its client.
pub(crate) fn armed(plan: &Plan, sabotage: bool) -> Vec<Armed> {
    let mut all = Vec::new();
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
                add_point(&mut all, client, at, action, step);
            }
            When::Event(named) => add_event(&mut all, &named.client, &named.f, &named.outcome),
        }
        if let Some(named) = &planned.until.event {
            add_event(&mut all, &named.client, &named.f, &named.outcome);
        }
        for (f, outcome) in faults::find(&planned.fault).map_or(&[][..], |fault| fault.listens()) {
            add_event(&mut all, &planned.on, f, outcome);
        }
    }
    all
}

fn stops_at_own_point(fault: &str) -> bool {
    faults::find(fault).is_some_and(|fault| fault.at_own_point() == Action::Stop)
}

/// One rule serves all faults that wait at the same point. A client that is stopped there is held as well.
fn add_point(all: &mut Vec<Armed>, client: &str, at: At, action: Action, step: usize) {
    let armed = find_or_add(all, client, at, action);
    armed.steps.push(step);
    if action == Action::Stop {
        armed.rule.action = Action::Stop;
    }
}

fn add_event(all: &mut Vec<Armed>, client: &str, f: &str, outcome: &str) {
    let at = At::Event {
        f: f.to_owned(),
        outcome: outcome.to_owned(),
    };
    find_or_add(all, client, at, Action::Tell);
}

fn find_or_add<'a>(all: &'a mut Vec<Armed>, client: &str, at: At, action: Action) -> &'a mut Armed {
    let same = |armed: &Armed| armed.client == client && armed.rule.at == at;
    let index = all.iter().position(same).unwrap_or_else(|| {
        let before = all.iter().filter(|armed| armed.client == client).count();
        all.push(Armed {
            client: client.to_owned(),
            rule: Rule {
                rule: before as u32 + 1,
                at,
                action,
            },
            steps: Vec::new(),
        });
        all.len() - 1
    });
    &mut all[index]
}
