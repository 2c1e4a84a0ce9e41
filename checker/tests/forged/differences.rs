//! Where the checker and the judge say something else of a history.

use checker::Options;
use histories::Reader;
use serde_json::Value;

use crate::judge::{Judgement, judge};

/// The properties that are compared: `efficiency` only counts.
const PROPERTIES: [&str; 7] = [
    "mutual-exclusion",
    "exclusive-belief",
    "token-order",
    "no-stale-write",
    "no-lost-update",
    "document",
    "progress",
];

/// What the checker says, as other programs read it.
fn verdict(text: &str) -> Result<Value, String> {
    checker::check(|| Reader::new(text.as_bytes()), Options::default())
        .map_err(|error| error.to_string())
        .map(|verdict| serde_json::to_value(&verdict).expect("a verdict is JSON"))
}

/// Outcome and class of a property by the checker's verdict; one that it leaves out is unknown.
fn of_checker<'v>(verdict: &'v Value, property: &str) -> (&'v str, &'v str) {
    let all = verdict["properties"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let found = all.iter().find(|found| found["name"] == property);
    found.map_or(("unknown", "unknown"), |found| {
        (
            found["outcome"].as_str().unwrap_or("none"),
            found["class"].as_str().unwrap_or("none"),
        )
    })
}

/// Where both differ.
pub fn differences(text: &str) -> Vec<String> {
    match (judge(text), verdict(text)) {
        (Ok(judgement), Ok(verdict)) => differing(&judgement, &verdict),
        (Err(_), Err(_)) => Vec::new(),
        (Ok(judgement), Err(error)) => {
            let refused = judgement.assumptions.is_empty();
            refused
                .then(|| format!("the checker refuses it: {error}"))
                .into_iter()
                .collect()
        }
        (Err(error), Ok(_)) => vec![format!("the judge refuses it: {error}")],
    }
}

fn differing(judgement: &Judgement, verdict: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let failed = verdict["assumptions"]
        .as_array()
        .is_some_and(|failed| !failed.is_empty());
    if failed == judgement.assumptions.is_empty() {
        all.push(format!(
            "assumptions: judge {:?}, checker {}",
            judgement.assumptions, verdict["assumptions"]
        ));
    }
    all.extend(PROPERTIES.iter().filter_map(|property| {
        let (outcome, class) = of_checker(verdict, property);
        if class == "kept" && judgement.outcome(property) != "holds" {
            return Some(format!("{property}: kept, and does not hold"));
        }
        let finding = (judgement.outcome(property), judgement.class(property));
        (!agree(judgement, finding, (outcome, class)))
            .then(|| format!("{property}: judge {finding:?}, checker {outcome} {class}"))
    }));
    all
}

/// Of operations that do not fit, everyone may make something else, yet nobody may say that anything holds.
fn agree(
    judgement: &Judgement,
    (outcome, class): (&str, Option<&str>),
    found: (&str, &str),
) -> bool {
    let open = outcome == "violated" && class.is_none() && found.1 != "kept";
    match judgement.is_garbled {
        true => found.0 != "holds" && found.1 != "kept",
        false => outcome == found.0 && (open || class == Some(found.1)),
    }
}
