//! What one history came to by a sequential model.

use std::fmt::Write;
use std::path::Path;

use checker::Answer;
use checker::linearizability::{Checked, Finding, Outcome};
use serde::Serialize;

use super::text::{mark, word};
use super::{Page, SCHEMA_VERSION};

/// So many objects that are not linearizable are told of to people; machines get all.
const TOLD: usize = 10;

/// And so many of the operations that prove it of one.
const PROVING: usize = 20;

/// What one history came to by a sequential model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelJudgement {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The history's file.
    pub history: String,
    /// The history's format.
    pub format: &'static str,
    /// The model.
    pub model: &'static str,
    /// Whether the model was guessed.
    pub model_guessed: bool,
    /// `violated` if any object is not linearizable, else `unknown` if of any it is not known, else `holds`.
    pub outcome: Answer,
    /// One, `linearizable`, for each object of which more is to be said than that it holds; one for all if none is.
    pub properties: Vec<JudgedObject>,
    /// How much happened.
    pub counts: ModelCounts,
}

/// What was found of an object.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedObject {
    /// Always `linearizable`.
    pub name: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub finding: ObjectFinding,
}

/// What was found of an object, in the words of all verdicts.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ObjectFinding {
    /// Nothing speaks against any.
    Holds {
        /// `holds`.
        outcome: Answer,
    },
    /// Something does, or may.
    Told(Finding),
}

/// How much happened.
#[derive(Clone, Debug, Serialize)]
pub struct ModelCounts {
    /// The operations that tell anything.
    pub operations: u64,
    /// Those of them of which nobody knows whether they happened.
    pub unknown: u64,
    /// The objects.
    pub objects: u64,
}

impl ModelJudgement {
    /// Of a history at a path.
    pub fn new(path: &Path, checked: Checked) -> ModelJudgement {
        let judgement = checked.judgement;
        let told = |finding| JudgedObject {
            name: "linearizable",
            finding,
        };
        let mut properties: Vec<JudgedObject> = judgement
            .findings
            .into_iter()
            .map(|finding| told(ObjectFinding::Told(finding)))
            .collect();
        if properties.is_empty() {
            properties.push(told(ObjectFinding::Holds {
                outcome: Answer::Holds,
            }));
        }
        ModelJudgement {
            schema_version: SCHEMA_VERSION,
            history: path.display().to_string(),
            format: checked.format.name(),
            model: checked.model.name,
            model_guessed: checked.guessed,
            outcome: judgement.outcome,
            properties,
            counts: ModelCounts {
                operations: judgement.operations,
                unknown: judgement.unknown,
                objects: judgement.objects,
            },
        }
    }

    /// A line, and below it what is not as it should be.
    pub fn human(&self, color: bool) -> Page {
        let counts = &self.counts;
        let guessed = if self.model_guessed { ", guessed" } else { "" };
        // Writing to a page can't fail.
        let mut page = Page::new(color);
        let _ = write!(page, "{}: ", self.history);
        page.paint(word(self.outcome), mark(self.outcome));
        let _ = write!(
            page,
            " ({}{guessed}; {} operations, {} of unknown outcome",
            self.model, counts.operations, counts.unknown
        );
        if counts.objects > 1 {
            let _ = write!(page, ", on {} objects", counts.objects);
        }
        let _ = write!(page, ")");
        let findings = self
            .properties
            .iter()
            .filter_map(|object| match &object.finding {
                ObjectFinding::Told(finding) => Some(finding),
                ObjectFinding::Holds { .. } => None,
            });
        let findings: Vec<&Finding> = findings.collect();
        for finding in findings.iter().take(TOLD) {
            tell(&mut page, finding);
        }
        if findings.len() > TOLD {
            let _ = write!(page, "\n  and of {} objects more", findings.len() - TOLD);
        }
        page
    }
}

/// Adds what is wrong with an object, in lines.
fn tell(page: &mut Page, finding: &Finding) {
    let witness = match &finding.outcome {
        Outcome::Unknown { reason } => {
            let _ = write!(page, "\n  not found out: {reason}");
            return;
        }
        Outcome::Violated { witness } => witness,
    };
    let _ = write!(page, "\n  {}", witness.sentence);
    for call in witness.calls.iter().take(PROVING) {
        let until = match call.returned {
            Some(returned) => format!("to event {returned}"),
            None => "without an end".to_owned(),
        };
        let _ = write!(
            page,
            "\n    {:>9}  {:<8} {}  from event {} {until}",
            call.id, call.process, call.operation, call.invoked
        );
    }
    if witness.calls.len() > PROVING {
        let more = witness.calls.len() - PROVING;
        let _ = write!(
            page,
            "\n    and {more} operations more: --format json has all"
        );
    }
    let s = if witness.linearizable_events == 1 {
        ""
    } else {
        "s"
    };
    let _ = write!(
        page,
        "\n    the longest linearizable prefix has {} event{s}",
        witness.linearizable_events
    );
}
