//! What must be true of a record for anything to hold.

pub mod fits;
mod killed;
mod lives;
mod struck;
mod tried;
mod whole;

use super::Facts;

/// The assumptions that failed, each in a few words.
pub fn failed(facts: &Facts) -> Vec<String> {
    let mut failures = Failures(Vec::new());
    whole::check(facts, &mut failures);
    killed::check(facts, &mut failures);
    fits::check(facts, &mut failures);
    tried::check(facts, &mut failures);
    failures.0
}

/// The failures so far.
struct Failures(Vec<String>);

impl Failures {
    /// Something has to be true, or else this is said.
    fn unless(&mut self, is_true: bool, otherwise: impl FnOnce() -> String) {
        if !is_true {
            self.0.push(otherwise());
        }
    }
}
