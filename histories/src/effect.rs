//! What a fault does to the host it strikes, and what its evidence has to say: declared by the fault, carried by plan and
//! event, so that nobody has to know a fault by its name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a fault does to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Its process stands still.
    Stops,
    /// Its process is killed.
    Kills,
    /// Its process is killed and started again at once.
    Restarts,
    /// Its client is alive and its work takes long.
    HoldsWork,
    /// Packets that it sends are held.
    DelaysPackets,
    /// Its wall clock jumps forward.
    ClockForward,
    /// Its wall clock jumps back.
    ClockBack,
    /// What it had on disk is gone.
    LosesState,
    /// Something that this build knows no word for.
    #[serde(other)]
    Unforeseen,
}

/// A deed, and where it is aimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// What is done.
    pub effect: Deed,
    /// The host, or `servers`, to which packets are held; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How long each packet is held, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_ms: Option<u64>,
}

impl Effect {
    /// Whether it ends the processes of its host.
    pub fn is_deadly(&self) -> bool {
        matches!(self.effect, Deed::Kills | Deed::Restarts)
    }

    /// A deed that is aimed nowhere in particular.
    pub fn of(effect: Deed) -> Effect {
        Effect {
            effect,
            to: None,
            each_ms: None,
        }
    }
}

/// What a field of a fault's evidence has to say for the fault to have taken hold. An empty one asks that the field is
/// there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// A text of this one character, at least once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<char>,
    /// A number that is no less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// This very value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// A number that is no farther than `within` from this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<f64>,
    /// See `near`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Another value than that of this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs_from: Option<String>,
    /// Conditions that this build does not know, so that it cannot say that they are met.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What a fault's evidence has to say, by field.
pub type Shows = BTreeMap<String, Expectation>;

impl Expectation {
    /// That the field is there.
    pub fn there() -> Expectation {
        Expectation::default()
    }

    /// That it is a text of this one character.
    pub fn only(character: char) -> Expectation {
        Expectation {
            only: Some(character),
            ..Expectation::default()
        }
    }

    /// That it is a number that is no less.
    pub fn at_least(number: f64) -> Expectation {
        Expectation {
            at_least: Some(number),
            ..Expectation::default()
        }
    }

    /// That it is this very value.
    pub fn equals(value: impl Into<Value>) -> Expectation {
        Expectation {
            equals: Some(value.into()),
            ..Expectation::default()
        }
    }

    /// That it is a number about as high.
    pub fn near(number: f64, within: f64) -> Expectation {
        Expectation {
            near: Some(number),
            within: Some(within),
            ..Expectation::default()
        }
    }

    /// That it has another value than another field.
    pub fn differs_from(field: &str) -> Expectation {
        Expectation {
            differs_from: Some(field.to_owned()),
            ..Expectation::default()
        }
    }

    /// Whether this field of the evidence says so.
    pub fn is_met(&self, field: &str, evidence: &Map<String, Value>) -> bool {
        let Some(value) = evidence.get(field).filter(|value| !value.is_null()) else {
            return false;
        };
        let is_only = |only: char| {
            let text = value.as_str().unwrap_or_default();
            !text.is_empty() && text.chars().all(|found| found == only)
        };
        let is_at_least = |least: f64| value.as_f64().is_some_and(|number| number >= least);
        let is_near = |near: f64| {
            let within = self.within.unwrap_or(0.0);
            let number = value.as_f64();
            number.is_some_and(|number| (number - near).abs() <= within)
        };
        let differs = |other: &String| evidence.get(other).is_some_and(|other| other != value);
        self.only.is_none_or(is_only)
            && self.at_least.is_none_or(is_at_least)
            && self.equals.as_ref().is_none_or(|equal| equal == value)
            && self.near.is_none_or(is_near)
            && self.differs_from.as_ref().is_none_or(differs)
            && self.unknown.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn met(expectation: Value, evidence: Value) -> bool {
        let expectation: Expectation = serde_json::from_value(expectation).unwrap();
        let evidence: Map<String, Value> = serde_json::from_value(evidence).unwrap();
        expectation.is_met("x", &evidence)
    }

    #[test]
    fn evidence_says_what_it_has_to_or_does_not() {
        for (expectation, good, bad) in [
            (json!({}), json!({"x": 0}), json!({"x": null})),
            (json!({"only": "T"}), json!({"x": "TT"}), json!({"x": "TS"})),
            (json!({"only": "T"}), json!({"x": "T"}), json!({"x": ""})),
            (json!({"at_least": 1}), json!({"x": 1}), json!({"x": 0})),
            (json!({"at_least": 1}), json!({"x": 1.5}), json!({"x": "9"})),
            (json!({"equals": 0}), json!({"x": 0}), json!({"x": 1})),
            (
                json!({"near": -30, "within": 2}),
                json!({"x": -29.0}),
                json!({"x": 30}),
            ),
            (
                json!({"differs_from": "y"}),
                json!({"x": 1, "y": 2}),
                json!({"x": 1, "y": 1}),
            ),
            (
                json!({"differs_from": "y"}),
                json!({"x": 1, "y": 2}),
                json!({"x": 1}),
            ),
        ] {
            assert!(
                met(expectation.clone(), good.clone()),
                "{expectation} {good}"
            );
            assert!(
                !met(expectation.clone(), bad.clone()),
                "{expectation} {bad}"
            );
            assert!(!met(expectation, json!({})));
        }
        assert!(!met(json!({"purple": true}), json!({"x": 1})));
    }

    #[test]
    fn a_deed_that_this_build_does_not_know_is_unforeseen() {
        let effect: Effect = serde_json::from_value(json!({"effect": "melts"})).unwrap();
        assert_eq!(effect, Effect::of(Deed::Unforeseen));
    }
}
