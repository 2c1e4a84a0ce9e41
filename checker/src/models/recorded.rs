//! How a model's operations are read from a history.

use histories::entries::Value;

use crate::models::Model;

/// A model whose operations can be read from a history's entries.
pub trait Recorded: Model + Sized {
    /// The operation that a history tells of; `None` where it tells nothing, as a read of unknown outcome does.
    ///
    /// # Errors
    /// When the model has no such operation, or not with such a value.
    fn read(&mut self, told: &Told<'_>) -> Result<Option<Self::Operation>, Misfit>;

    /// Whether objects of this model do anything by themselves.
    const ACTS_BY_ITSELF: bool = false;

    /// Takes notice of an operation that begins, with an outcome that is not known yet. What it gives is given back as
    /// [`Told::begun`]. Asked only of a model that says it acts by itself.
    fn begin(&mut self, _told: &Told<'_>) -> u32 {
        0
    }

    /// From when on the object may do this by itself, in the history's nanoseconds, where an entry says no more than that: a
    /// client gave up what may have ended before. Asked only of a model that says it acts by itself.
    fn allows_from(&self, _operation: &Self::Operation, _told: &Told<'_>) -> Option<u64> {
        None
    }

    /// What the object may do by itself later because of this operation, and from when on, in the history's nanoseconds:
    /// a lease ends. Asked only of a model that says it acts by itself.
    fn by_itself(
        &self,
        _operation: &Self::Operation,
        _told: &Told<'_>,
    ) -> Option<(u64, Self::Operation)> {
        None
    }

    /// Whether what an object may do by itself can no longer be done once a later operation of the same process has
    /// happened. Searches are faster for knowing it, and no verdict depends on it.
    fn is_void_after(&self, _by_itself: &Self::Operation, _later: &Self::Operation) -> bool {
        false
    }
}

/// All that a history tells of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// What it does: `read`, `cas`, `acquire`.
    pub f: &'a str,
    /// The part of the object that it is done to, where the history has several.
    pub key: Option<&'a Value<'a>>,
    /// Who did it, as a number and as the history spells it.
    pub process: (u32, &'a str),
    /// What went in.
    pub input: &'a Value<'a>,
    /// What came of it.
    pub outcome: Outcome<'a>,
    /// The fencing token, if the history has it apart from the values.
    pub token: Option<u64>,
    /// Until when the grant may be relied on, if the history has it apart from the values; of an extension of unknown outcome,
    /// until when it was asked for.
    pub validity: Option<u64>,
    /// The operation's number, if the history has numbers.
    pub op: Option<u64>,
    /// The number of the acquire under whose grant this is done, if the history has it.
    pub grant: Option<u64>,
    /// What the model said when the operation [began](Recorded::begin).
    pub begun: u32,
}

/// What came of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome<'a> {
    /// It happened, and this came out.
    Done(&'a Value<'a>),
    /// It was refused. Whether that says anything of the object is for the model to say.
    Refused(Option<&'a str>),
    /// It may have happened at any time since its invocation.
    Unknown,
}

impl<'a> Outcome<'a> {
    /// That of an operation that failed: its error is a name, or a vector that begins with one, as in Jepsen's histories.
    pub(crate) fn refused(error: Option<&'a str>) -> Outcome<'a> {
        let name = |error: &'a str| match error.strip_prefix('[') {
            Some(inner) => {
                let inner = inner.trim_start_matches([':', '"', ' ']);
                let end = inner.find([' ', ',', '"', ']']).unwrap_or(inner.len());
                &inner[..end]
            }
            None => error,
        };
        Outcome::Refused(error.map(name))
    }
}

/// Why an entry is none of a model's operations, as a fragment: ``a mutex has no operation `enqueue` ``.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misfit(pub String);

/// The misfit of an operation that a model does not have.
pub(super) fn no_operation(model: &str, known: &[&str], told: &Told<'_>) -> Misfit {
    let known: Vec<String> = known.iter().map(|f| format!("`{f}`")).collect();
    Misfit(format!(
        "a {model} has no operation `{}`: it has {}",
        told.f,
        known.join(", ")
    ))
}

/// What an operation wrote: what went in. If that is nil it is what came out, as Jepsen's checkers read it.
///
/// # Errors
/// When something else came out than went in.
pub(super) fn written<'a>(told: &Told<'a>) -> Result<&'a Value<'a>, Misfit> {
    match told.outcome {
        Outcome::Done(value) if *told.input == Value::Nil => Ok(value),
        Outcome::Done(value) if *value != Value::Nil && value != told.input => Err(Misfit(
            format!("`{}` of {} returns as one of {value}", told.f, told.input),
        )),
        _ => Ok(told.input),
    }
}

/// The misfit of an operation whose value is of no use.
pub(super) fn wrong_value(wanted: &str, told: &Told<'_>, value: &Value<'_>) -> Misfit {
    Misfit(format!("`{}` wants {wanted}, and has {value}", told.f))
}
