//! The `verdict.json` that a run left beside its history: does this build still say the same?

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;

use super::beside;
use crate::report::{self, JudgedProperty, Judgement};

/// A property of which a saved verdict says something else.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The property.
    property: String,
    /// What the saved verdict says.
    saved: String,
    /// What this build says.
    now: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            property,
            saved,
            now,
        } = self;
        write!(f, "{property}: it says {saved}, this build says {now}")
    }
}

/// What the verdict beside a history says otherwise; nothing where there is none.
pub fn differences(history: &Path, judgement: &Judgement) -> Result<Vec<Difference>> {
    match beside::find(history, "verdict.json") {
        Some(path) => Ok(compare(&beside::read(&path, verdict)?, judgement)),
        None => Ok(Vec::new()),
    }
}

fn verdict(content: &[u8]) -> Result<Value> {
    let saved: Value = serde_json::from_slice(content)?;
    if !saved["properties"].is_array() {
        bail!("it has no list of properties");
    }
    Ok(saved)
}

/// Properties that only one of the two knows are none that they disagree on.
fn compare(saved: &Value, judgement: &Judgement) -> Vec<Difference> {
    let saved_outcome = |name: &str| {
        let properties = saved["properties"].as_array()?;
        let property = properties.iter().find(|saved| saved["name"] == name)?;
        property["outcome"].as_str()
    };
    let difference = |property: &JudgedProperty| {
        let saved = saved_outcome(&property.name)?;
        let now = report::word(property.outcome);
        (saved != now).then(|| Difference {
            property: property.name.clone(),
            saved: saved.escape_default().to_string(),
            now: now.to_owned(),
        })
    };
    judgement.properties.iter().filter_map(difference).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn judgement() -> (PathBuf, Judgement) {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../histories/corpus/v1");
        let path = Path::new(corpus).join("paused-client.jsonl");
        let judgement = report::judge(&path).expect("the corpus can be read");
        (path, judgement)
    }

    #[test]
    fn what_the_saved_verdict_says_otherwise_is_found() {
        let (_, judgement) = judgement();
        let mut saved: Value = serde_json::from_str(&judgement.to_json()).unwrap();
        assert_eq!(compare(&saved, &judgement), []);

        let properties = saved["properties"].as_array_mut().unwrap();
        let stale = properties
            .iter_mut()
            .find(|p| p["name"] == "no-stale-write");
        stale.unwrap()["outcome"] = json!("holds\u{1b}");
        properties.push(json!({ "name": "of another build", "outcome": "violated" }));
        let found = compare(&saved, &judgement);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].to_string(),
            "no-stale-write: it says holds\\u{1b}, this build says violated"
        );
    }

    #[test]
    fn what_says_nothing_of_any_property_is_no_verdict() {
        assert!(verdict(b"{}").is_err());
    }
}
