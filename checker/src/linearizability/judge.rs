//! From entries to what is said of a history: the calls of each object are gathered, decided, and told in words.

use histories::entries::Entry;
use rayon::prelude::*;
use serde::Serialize;

use crate::linearizability::{
    Decision, Gathered, Gathering, GatheringError, Limits, NEVER, Object, Violation, linearizable,
};
use crate::models::Recorded;
use crate::verdict::Answer;

/// What is found of a history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The worst of what is found of its objects.
    pub outcome: Answer,
    /// How many operations were judged, of those that tell anything.
    pub operations: u64,
    /// How many of those nobody knows whether they happened.
    pub unknown: u64,
    /// How many objects there are.
    pub objects: u64,
    /// What is found of the objects that are not linearizable, or of which it is not known: in the order of their first calls.
    pub findings: Vec<Finding>,
}

/// What is found of one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its key, where the history has several objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What is found.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// That an object is not linearizable, or that it is not known.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub enum Outcome {
    /// It is not.
    Violated {
        /// What proves it.
        witness: Proof,
    },
    /// It was not found out.
    Unknown {
        /// Why, as a fragment.
        reason: String,
    },
}

/// What proves that an object is not linearizable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// What went wrong, in one sentence.
    pub sentence: String,
    /// The numbers of the operations that prove it, or the lines of their invocations.
    pub operations: Vec<u64>,
    /// The same operations, told whole; none where the history was judged as it came, and is past.
    pub calls: Vec<ProvingCall>,
    /// The events of the longest prefix that is linearizable: the one after it breaks the history.
    pub linearizable_events: u32,
}

/// One of the operations that prove a violation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProvingCall {
    /// Its number, or the line of its invocation.
    pub id: u64,
    /// Who made it.
    pub process: String,
    /// What it did, as people write it.
    pub operation: String,
    /// At which event it began, counted from 0.
    pub invoked: u32,
    /// At which event it returned; absent if it never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<u32>,
}

/// Takes the entries of one history, and then judges it.
pub trait Judge {
    /// Takes the next entry, in the order of their times.
    ///
    /// # Errors
    /// When the entry fits no operation in flight, or the model has no such operation.
    fn push(&mut self, entry: &Entry<'_>) -> Result<(), GatheringError>;

    /// Judges what was pushed.
    ///
    /// # Errors
    /// When the model has no such operation as one that never returned.
    fn finish(self: Box<Self>, limits: &Limits<'_>) -> Result<Judgement, GatheringError>;
}

impl<M: Recorded> Judge for Gathering<M> {
    fn push(&mut self, entry: &Entry<'_>) -> Result<(), GatheringError> {
        Gathering::push(self, entry)
    }

    fn finish(self: Box<Self>, limits: &Limits<'_>) -> Result<Judgement, GatheringError> {
        Ok(judge(&(*self).finish()?, limits))
    }
}

/// Judges each object, several at once.
pub fn judge<M: Recorded>(gathered: &Gathered<M>, limits: &Limits<'_>) -> Judgement {
    let decisions = gathered
        .objects
        .par_iter()
        .map(|object| linearizable(&gathered.model, &object.history, limits));
    let decisions: Vec<Decision> = decisions.collect();
    let found = gathered.objects.iter().zip(decisions);
    let findings: Vec<Finding> = found
        .filter_map(|(object, decision)| finding(gathered, object, decision))
        .collect();
    let objects = gathered.objects.len() as u64;
    Judgement::new(gathered.operations, gathered.unknown, objects, findings)
}

impl Judgement {
    pub(super) fn new(
        operations: u64,
        unknown: u64,
        objects: u64,
        findings: Vec<Finding>,
    ) -> Judgement {
        Judgement {
            outcome: overall(&findings),
            operations,
            unknown,
            objects,
            findings,
        }
    }

    /// Takes it back that the history holds, if that is what was found.
    pub(super) fn doubt(&mut self, reason: &str) {
        if self.outcome == Answer::Holds {
            self.outcome = Answer::Unknown;
            let outcome = Outcome::Unknown {
                reason: reason.to_owned(),
            };
            self.findings.push(Finding { key: None, outcome });
        }
    }
}

pub(super) fn overall(findings: &[Finding]) -> Answer {
    let violated = |finding: &Finding| matches!(finding.outcome, Outcome::Violated { .. });
    match findings {
        [] => Answer::Holds,
        some if some.iter().any(violated) => Answer::Violated,
        _ => Answer::Unknown,
    }
}

fn finding<M: Recorded>(
    gathered: &Gathered<M>,
    object: &Object<M::Operation>,
    decision: Decision,
) -> Option<Finding> {
    let outcome = match decision {
        Decision::Linearizable => return None,
        Decision::Violated(violation) => Outcome::Violated {
            witness: proof(gathered, object, violation),
        },
        Decision::Unknown { reason, reached } => Outcome::Unknown {
            reason: format!(
                "{reason}; the first {} events of the history are linearizable",
                gathered.events_before(reached)
            ),
        },
    };
    Some(Finding {
        key: object.key.clone(),
        outcome,
    })
}

fn proof<M: Recorded>(
    gathered: &Gathered<M>,
    object: &Object<M::Operation>,
    violation: Violation,
) -> Proof {
    let calls = violation.calls.iter().map(|&at| {
        let call = &object.history.calls()[at];
        ProvingCall {
            id: call.id,
            process: gathered.processes.text(call.process).to_owned(),
            operation: gathered.model.describe(&call.operation),
            invoked: gathered.events_before(call.invoked),
            returned: (call.returned != NEVER).then(|| gathered.events_before(call.returned)),
        }
    });
    let calls: Vec<ProvingCall> = calls.collect();
    let mut sentence = violation.sentence.unwrap_or_else(|| sentence(&calls));
    if let Some(key) = &object.key {
        sentence = format!("of {key}: {sentence}");
    }
    Proof {
        sentence,
        operations: calls.iter().map(|call| call.id).collect(),
        calls,
        linearizable_events: gathered.events_before(violation.prefix),
    }
}

/// More calls than these a sentence does not name.
const NAMED: usize = 6;

/// That these calls have no order.
fn sentence(calls: &[ProvingCall]) -> String {
    if let [first, .., last] = calls
        && calls.len() > NAMED
    {
        return format!(
            "{} operations, from {} to {}, have no order that fits their times and outcomes, whatever else happened",
            calls.len(),
            first.id,
            last.id
        );
    }
    let told: Vec<String> = calls
        .iter()
        .map(|call| format!("{} ({}, by {})", call.operation, call.id, call.process))
        .collect();
    match told.as_slice() {
        [] => "no order of the calls fits their times and outcomes".to_owned(),
        [one] => format!("{one} cannot have had that outcome, whatever else happened"),
        [some @ .., last] => {
            let before = calls.windows(2).all(|pair| {
                pair[0]
                    .returned
                    .is_some_and(|returned| returned < pair[1].invoked)
            });
            let after = if before { ", one after another," } else { "" };
            format!(
                "{} and {last}{after} have no order that fits their times and outcomes, whatever else happened",
                some.join(", ")
            )
        }
    }
}
