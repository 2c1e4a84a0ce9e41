//! Scenarios as the command line names them: those that are built in, and files.

use std::error::Error;

use nemesis::{Scenario, ScenarioError, load, scenarios};
use proptest::prelude::*;

#[test]
fn a_file_is_found_by_its_path_and_a_scenario_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my-own.toml");
    std::fs::write(&path, scenarios()[0].text).unwrap();
    assert_eq!(load(path.to_str().unwrap()).unwrap().name, "my-own");
    assert_eq!(load("paused-client").unwrap().name, "paused-client");
    assert_eq!(
        load("paused-clients").unwrap_err().to_string(),
        "no scenario is called `paused-clients`, and it is no path of a `.toml` file; did you mean `paused-client`?"
    );
    let missing = load("nowhere/my.toml").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "cannot read the scenario nowhere/my.toml"
    );
    assert!(missing.source().is_some(), "what the system said");
}

#[test]
fn every_built_in_scenario_is_right_and_says_what_it_shows() {
    for built_in in scenarios() {
        let scenario = built_in.read().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, built_in.name);
        assert!(!scenario.claims.is_empty(), "{}", built_in.name);
    }
}

proptest! {
    #[test]
    fn a_damaged_scenario_is_read_or_refused_at_a_place(
        index in 0..scenarios().len(),
        at in 0.0..1.0_f64,
        cut in 0_usize..20,
        put_in in "[a-z0-9\"{}\\[\\]=.,#\\n -]{0,6}",
    ) {
        let mut text = scenarios()[index].text.to_owned();
        let start = (at * text.len() as f64) as usize;
        let start = (0..=start).rev().find(|byte| text.is_char_boundary(*byte)).unwrap_or(0);
        let end = (start + cut).min(text.len());
        let end = (end..=text.len()).find(|byte| text.is_char_boundary(*byte)).unwrap_or(text.len());
        text.replace_range(start..end, &put_in);
        if let Err(ScenarioError::Invalid { problems }) = Scenario::parse("my", "my.toml", &text) {
            prop_assert!(!problems.is_empty());
            let lines = text.lines().count() + 1;
            prop_assert!(problems.iter().all(|problem| problem.line <= lines));
        }
    }
}
