//! The way in: events are pushed one by one, then the history is judged.

use std::io::BufRead;

use histories::{Ending, Event, Function, Header, Plan, ReadError, Reader};

use crate::assumptions;
use crate::error::{CheckError, Error, UnknownProperty};
use crate::grants::{Grants, end_with_their_processes};
use crate::intake::{Intake, Open};
use crate::names::NONE;
use crate::operations::Call;
use crate::properties::{Case, Property, efficiency, properties};
use crate::storage::StorageOrder;
use crate::verdict::{Answer, Counts, Outcome, PropertyVerdict, Verdict};

/// What to judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    only: Option<Vec<&'static str>>,
}

impl Options {
    /// Judges these properties and no others; of one that the history cannot speak to, the verdict says so.
    ///
    /// Without it every property is judged that the history can speak to.
    ///
    /// # Errors
    /// When a property of some name does not exist.
    pub fn only<N: AsRef<str>>(
        names: impl IntoIterator<Item = N>,
    ) -> Result<Options, UnknownProperty> {
        let known = |name: N| {
            let property = properties()
                .iter()
                .find(|property| property.name == name.as_ref());
            property
                .map(|property| property.name)
                .ok_or_else(|| UnknownProperty {
                    name: name.as_ref().to_owned(),
                })
        };
        Ok(Options {
            only: Some(names.into_iter().map(known).collect::<Result<_, _>>()?),
        })
    }
}

/// Judges one history: the same events give the same verdict for ever.
///
/// ```
/// # use histories::{Event, Function, Kind};
/// # fn judge(header: &histories::Header, events: &[Event<'_>]) -> Result<checker::Verdict, checker::Error> {
/// let mut checker = checker::Checker::new(header, checker::Options::default());
/// for event in events {
///     checker.push(event)?;
/// }
/// Ok(checker.finish(true))
/// # }
/// ```
pub struct Checker {
    plan: Plan,
    options: Options,
    intake: Intake,
}

impl Checker {
    /// Begins with a history's header.
    pub fn new(header: &Header, options: Options) -> Checker {
        Checker {
            plan: header.plan.clone(),
            options,
            intake: Intake::new(&header.plan),
        }
    }

    /// Takes the next event, in the order of their times.
    ///
    /// # Errors
    /// When nobody can tell what the event means: it lacks a field, or is out of order. Flaws that leave the rest of
    /// the history intelligible are no errors; they show up in [`Verdict::assumptions`].
    pub fn push(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.intake.push(event)
    }

    /// Judges what was pushed. `complete` says whether the history was written to its end: of one that is cut nothing is
    /// said to hold.
    pub fn finish(self, complete: bool) -> Verdict {
        let Intake {
            mut record,
            faults,
            mut flaws,
            open,
            ..
        } = self.intake;
        let without_table =
            |open: &&Open| matches!(open.f, Function::Release | Function::Held | Function::Work);
        record.other_unknown += open.values().filter(without_table).count() as u64;
        end_with_their_processes(&mut record, &faults, complete);
        let storage = StorageOrder::new(&record, &mut flaws);
        let grants = Grants::new(&record);
        let (lost_events, hidden_holds) = (flaws.lose_events(), flaws.hide_holds());
        let assumptions = assumptions::failures(&record, &storage, &faults, flaws, complete);
        let case = Case {
            record: &record,
            grants,
            storage,
            faults: &faults,
            plan: &self.plan,
            complete,
            lost_events,
            hidden_holds,
        };
        let chosen = chosen(&self.options, &case);
        let measured = chosen
            .iter()
            .any(|(property, silent)| property.name == efficiency::NAME && silent.is_none());
        let properties: Vec<PropertyVerdict> = chosen
            .into_iter()
            .map(|(property, silent)| judge(property, silent, &case, &assumptions))
            .collect();
        Verdict {
            outcome: overall(&properties),
            properties,
            assumptions,
            faults: faults.reports(),
            counts: counts(&case),
            efficiency: measured.then(|| efficiency::measure(&case)),
            events: record.events,
            complete,
        }
    }
}

/// Reads a history and judges it. `open` gives a reader at its beginning; it is called again if the events turn out not
/// to be in the order of their times, as in the file of a run that nobody put in order: they are sorted in memory then.
///
/// ```no_run
/// # fn main() -> Result<(), checker::CheckError> {
/// let verdict = checker::check(|| histories::Reader::open("history.jsonl"), checker::Options::default())?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the history cannot be read, or nobody can tell what one of its events means.
pub fn check<R: BufRead>(
    mut open: impl FnMut() -> Result<Reader<R>, ReadError>,
    options: Options,
) -> Result<Verdict, CheckError> {
    match check_in_order(open()?, options.clone()) {
        Err(CheckError::Event {
            source: Error::OutOfOrder { .. },
            ..
        }) => check_sorted(open()?, options),
        verdict => verdict,
    }
}

fn check_in_order<R: BufRead>(
    mut reader: Reader<R>,
    options: Options,
) -> Result<Verdict, CheckError> {
    let mut checker = Checker::new(reader.header(), options);
    while let Some(event) = reader.next()? {
        if let Err(source) = checker.push(&event) {
            return Err(CheckError::Event {
                line: reader.line(),
                source,
            });
        }
    }
    Ok(checker.finish(is_complete(&reader)))
}

fn check_sorted<R: BufRead>(
    mut reader: Reader<R>,
    options: Options,
) -> Result<Verdict, CheckError> {
    let mut checker = Checker::new(reader.header(), options);
    let mut events = Vec::new();
    while let Some(event) = reader.next()? {
        let event = event.into_owned();
        events.push((reader.line(), event));
    }
    events.sort_by_key(|(_, event)| event.t);
    for (line, event) in events {
        checker
            .push(&event)
            .map_err(|source| CheckError::Event { line, source })?;
    }
    Ok(checker.finish(is_complete(&reader)))
}

fn is_complete<R: BufRead>(reader: &Reader<R>) -> bool {
    matches!(reader.ending(), Some(Ending::Complete { .. }))
}

/// The properties to judge, and why the history cannot speak to those of which it cannot.
fn chosen(options: &Options, case: &Case<'_>) -> Vec<(&'static Property, Option<&'static str>)> {
    let silent = properties()
        .iter()
        .map(|property| (property, (property.silent)(case)));
    match &options.only {
        Some(only) => silent
            .filter(|(property, _)| only.contains(&property.name))
            .collect(),
        None => silent.filter(|(_, silent)| silent.is_none()).collect(),
    }
}

fn judge(
    property: &Property,
    silent: Option<&'static str>,
    case: &Case<'_>,
    assumptions: &[String],
) -> PropertyVerdict {
    let name = property.name.to_owned();
    if let Some(silent) = silent {
        let reason = format!("the history says nothing of it: {silent}");
        return PropertyVerdict {
            name,
            outcome: Outcome::Unknown { reason },
            violations: 0,
        };
    }
    let finding = (property.judge)(case);
    let outcome = match (finding.outcome, assumptions) {
        (Outcome::Holds, [only]) => Outcome::Unknown {
            reason: only.clone(),
        },
        (Outcome::Holds, [first, more @ ..]) => Outcome::Unknown {
            reason: format!("{first} (and {} more)", more.len()),
        },
        (outcome, _) => outcome,
    };
    PropertyVerdict {
        name,
        outcome,
        violations: finding.violations,
    }
}

fn overall(properties: &[PropertyVerdict]) -> Answer {
    let any = |answer: Answer| {
        properties
            .iter()
            .any(|property| property.outcome.answer() == answer)
    };
    if any(Answer::Violated) {
        Answer::Violated
    } else if properties.is_empty() || any(Answer::Unknown) {
        Answer::Unknown
    } else {
        Answer::Holds
    }
}

fn counts(case: &Case<'_>) -> Counts {
    let record = case.record;
    let mut accepted: Vec<u32> = case
        .storage
        .accepted
        .iter()
        .map(|accepted| accepted.write)
        .collect();
    accepted.sort_unstable();
    accepted.dedup();
    let unknown = |call: &Call| call.unknown();
    let acquires = record
        .acquires
        .iter()
        .filter(|acquire| acquire.lock != NONE);
    let unknown_others = acquires.filter(|acquire| unknown(&acquire.call)).count()
        + record
            .extends
            .iter()
            .filter(|extend| unknown(&extend.call))
            .count()
        + record
            .reads
            .iter()
            .filter(|read| unknown(&read.call))
            .count();
    Counts {
        operations: record.operations,
        grants: record
            .acquires
            .iter()
            .filter(|acquire| acquire.granted())
            .count() as u64,
        outlived: case.grants.outlived(),
        writes_accepted: accepted.len() as u64,
        writes_rejected: record.writes.iter().filter(|write| write.rejected).count() as u64,
        unknown: (unknown_others + case.storage.unsettled.len()) as u64 + record.other_unknown,
    }
}

#[cfg(test)]
mod tests;
