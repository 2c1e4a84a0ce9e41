//! The scenarios that come with Fencepost: one file each in `nemesis/scenarios/`, and one line here.

use super::{Scenario, ScenarioError, reader};

/// A scenario that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Its file's text.
    pub text: &'static str,
}

impl BuiltIn {
    /// Reads it; an error is a mistake of ours, which a test finds.
    pub fn read(&self) -> Result<Scenario, ScenarioError> {
        reader::read(
            self.name,
            &format!("nemesis/scenarios/{}.toml", self.name),
            self.text,
        )
    }
}

/// Takes in the files of these names.
macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".toml")),
        }),*]
    };
}

static SCENARIOS: &[BuiltIn] = built_in![
    "no-fault",
    "short-pause",
    "paused-client",
    "delayed-write",
    "holder-crash",
    "leader-failover",
    "redis-clock-step",
    "redlock-clock-step",
    "redlock-minority-cut",
];

/// All built-in scenarios, from the mildest to the most special.
pub fn scenarios() -> &'static [BuiltIn] {
    SCENARIOS
}
