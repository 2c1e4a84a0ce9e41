//! What the models of locks share: who asks for what, and what came of it.

use histories::entries::Value;

use super::recorded::{Misfit, Outcome, Told, no_operation};
use crate::names::Names;

/// An owner, as the number under which [`Owners`] keeps its name: from 0 on, in the order in which they were first met.
pub type Owner = u32;

/// Those who hold locks.
#[derive(Default)]
pub(super) struct Owners(Names);

impl Owners {
    /// Who acts: the client or owner that the value names, else the process.
    pub(super) fn of(&mut self, told: &Told<'_>) -> Owner {
        let named = told.input.get("client").or_else(|| told.input.get("owner"));
        match named {
            Some(Value::Text(name) | Value::Keyword(name)) => self.0.number(name),
            Some(name) => self.0.number(&name.to_string()),
            None => self.0.number(told.process.1),
        }
    }

    /// An owner's name; its number if it was made without one.
    pub(super) fn name(&self, owner: Owner) -> String {
        if (owner as usize) < self.0.len() {
            return self.0.text(owner).to_owned();
        }
        format!("owner {owner}")
    }
}

/// What is asked of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Acquire,
    Release,
}

/// What a history says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It happened, or may have.
    Granted,
    /// The lock was refused because somebody held it.
    Busy,
    /// Nothing that counts.
    Nothing,
}

impl Verb {
    /// The verb of an entry.
    ///
    /// # Errors
    /// When the entry is about something else.
    pub(super) fn of(model: &str, told: &Told<'_>) -> Result<Verb, Misfit> {
        match told.f {
            "acquire" | "lock" => Ok(Verb::Acquire),
            "release" | "unlock" => Ok(Verb::Release),
            _ => Err(no_operation(model, &["acquire", "release"], told)),
        }
    }

    /// What came of it. A refusal counts only where the model wants it to.
    pub(super) fn attempt(self, told: &Told<'_>, refusals_count: bool) -> Attempt {
        match (self, told.outcome) {
            (_, Outcome::Done(_) | Outcome::Unknown) => Attempt::Granted,
            (Verb::Acquire, Outcome::Refused(Some("busy"))) if refusals_count => Attempt::Busy,
            _ => Attempt::Nothing,
        }
    }
}

/// The fencing token that a grant came with.
pub(super) fn token(told: &Told<'_>) -> Option<u64> {
    let number = |value: &Value<'_>| match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let Outcome::Done(value) = told.outcome else {
        return None;
    };
    let named = || value.get("fence").or_else(|| value.get("token"));
    told.token
        .or_else(|| number(value))
        .or_else(|| named().and_then(number))
}
