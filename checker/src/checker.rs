//! The way in: events are pushed one by one, then the history is judged.

use std::io::BufRead;

use histories::{Clause, Event, Function, Hazard, Header, Plan, Promise, ReadError, Reader, Seal};

use crate::assumptions::{self, Assumed};
use crate::contract::{self, Class, Contract, Said};
use crate::error::{CheckError, Error, UnknownProperty};
use crate::grants::{Grants, end_grants};
use crate::hazards::{Excuse, Hazards};
use crate::intake::{Intake, Open};
use crate::names::NONE;
use crate::operations::{Call, Process};
use crate::plausible;
use crate::properties::{Case, Property, efficiency, properties};
use crate::storage::StorageOrder;
use crate::verdict::{Answer, Counts, FaultReport, Outcome, PropertyVerdict, Verdict};

/// What to judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    only: Option<Vec<&'static str>>,
    contract: Vec<Clause>,
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
            ..Options::default()
        })
    }

    /// Takes this contract for a history of version 1 that brings none.
    pub fn or_contract(self, contract: Vec<Clause>) -> Options {
        Options { contract, ..self }
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
/// Ok(checker.finish(histories::Seal::Sealed))
/// # }
/// ```
pub struct Checker {
    plan: Plan,
    contract: Contract,
    stalls_recorded: bool,
    /// Whether the plan says by what its storage rejects writes.
    states_condition: bool,
    options: Options,
    intake: Intake,
    /// Whether the events had to be put in order first.
    is_unordered: bool,
}

impl Checker {
    /// Begins with a history's header.
    pub fn new(header: &Header, options: Options) -> Checker {
        // From version 2 on a history states its own contract; one that states nothing promises nothing.
        let stated = if header.fencepost < 2 && header.contract.is_empty() {
            &options.contract
        } else {
            &header.contract
        };
        Checker {
            plan: header.plan.clone(),
            contract: Contract::new(stated.clone()),
            stalls_recorded: header.heartbeat_ms.is_some_and(|ms| {
                let short = ms.saturating_mul(5) <= header.plan.ttl_ms;
                ms > 0 && short
            }),
            states_condition: header.fencepost >= 2,
            options,
            intake: Intake::new(header),
            is_unordered: false,
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

    /// Judges what was pushed. `seal` says whether the history is as it was when it was closed: of one that is cut or edited
    /// nothing is said to hold.
    pub fn finish(self, seal: Seal) -> Verdict {
        let complete = seal != Seal::Cut;
        let Intake {
            mut record,
            faults,
            mut flaws,
            open,
            ..
        } = self.intake;
        let without_completion =
            |open: &&Open| matches!(open.f, Function::Release | Function::Held | Function::Work);
        let faults = faults.finish(&record);
        record.other_unknown += open.values().filter(without_completion).count() as u64;
        end_grants(&mut record, &faults, complete);
        let storage = StorageOrder::new(&record, &mut flaws);
        plausible::note(
            &mut record,
            &storage,
            &self.plan,
            self.states_condition,
            &mut flaws,
        );
        let grants = Grants::new(&record, self.plan.ttl_ms.saturating_mul(1_000_000));
        let hazards = Hazards::new(&record, &faults, &self.plan, self.stalls_recorded);
        let undead = record.processes.iter().any(Process::outlives_its_death);
        let (lost_events, hidden_holds) = (flaws.lose_events(), flaws.hide_holds() || undead);
        let assumed = Assumed {
            record: &record,
            storage: &storage,
            grants: &grants,
            faults: &faults,
            plan: &self.plan,
            seal,
            is_unordered: self.is_unordered,
        };
        let assumptions = assumptions::failures(&assumed, flaws);
        let case = Case {
            record: &record,
            grants,
            storage,
            plan: &self.plan,
            contract: &self.contract,
            hazards,
            planned: contract::planned(&self.plan),
            complete,
            lost_events,
            hidden_holds,
        };
        of_all(&self.options, &case, assumptions, faults.reports(), seal)
    }
}

/// The verdict of all properties that were chosen.
fn of_all(
    options: &Options,
    case: &Case<'_>,
    assumptions: Vec<String>,
    faults: Vec<FaultReport>,
    seal: Seal,
) -> Verdict {
    let chosen = chosen(options, case);
    let measured = chosen
        .iter()
        .any(|(property, silent)| property.name == efficiency::NAME && silent.is_none());
    let properties: Vec<PropertyVerdict> = chosen
        .into_iter()
        .map(|(property, silent)| judge(property, silent, case, &assumptions))
        .collect();
    Verdict {
        outcome: overall(&properties),
        properties,
        assumptions,
        faults,
        counts: counts(case),
        efficiency: measured.then(|| efficiency::measure(case)),
        controls: controls(case),
        events: case.record.events,
        seal,
    }
}

/// The plan's controls, as far as their violation is a known limit under the faults that the plan has in store.
fn controls(case: &Case<'_>) -> Vec<String> {
    let limited = |control: &&String| {
        let said = case.contract.said_of_all(control, &case.planned);
        said.promise == Promise::NotPromised
    };
    case.plan.controls.iter().filter(limited).cloned().collect()
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
    Ok(checker.finish(reader.seal().unwrap_or(Seal::Cut)))
}

fn check_sorted<R: BufRead>(
    mut reader: Reader<R>,
    options: Options,
) -> Result<Verdict, CheckError> {
    let mut checker = Checker::new(reader.header(), options);
    checker.is_unordered = true;
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
    Ok(checker.finish(reader.seal().unwrap_or(Seal::Cut)))
}

/// The properties to judge, and why the history cannot speak to those of which it cannot. One that the contract
/// mentions is judged all the same: what was promised and not seen is not kept.
fn chosen(options: &Options, case: &Case<'_>) -> Vec<(&'static Property, Option<&'static str>)> {
    let silent = properties()
        .iter()
        .map(|property| (property, (property.silent)(case)));
    match &options.only {
        Some(only) => silent
            .filter(|(property, _)| only.contains(&property.name))
            .collect(),
        None => silent
            .filter(|(property, silent)| silent.is_none() || case.contract.mentions(property.name))
            .collect(),
    }
}

fn judge(
    property: &Property,
    silent: Option<&'static str>,
    case: &Case<'_>,
    assumptions: &[String],
) -> PropertyVerdict {
    let unknown = |reason: String| {
        let said = case.contract.said_of_all(property.name, &case.planned);
        verdict(
            property,
            Outcome::Unknown { reason },
            0,
            Class::Unknown,
            said,
        )
    };
    if let Some(silent) = silent {
        return unknown(format!("the history says nothing of it: {silent}"));
    }
    let finding = (property.judge)(case, &case.cuts(property.name, None));
    match (finding.outcome, assumptions) {
        (Outcome::Violated { witness }, _) => {
            let outcome = Outcome::Violated { witness };
            violated(property, case, outcome, finding.violations)
        }
        (Outcome::Unknown { reason }, _) => unknown(reason),
        (Outcome::Holds, [only]) => unknown(only.clone()),
        (Outcome::Holds, [first, more @ ..]) => {
            unknown(format!("{first} (and {} more)", more.len()))
        }
        (Outcome::Holds, []) => {
            let said = case.contract.said_of_all(property.name, &case.planned);
            let class = contract::class_of_holding(said.promise);
            verdict(property, Outcome::Holds, 0, class, said)
        }
    }
}

/// The gravest class of a property's violations, with the first violation of that class: one that nothing excuses is
/// looked for first.
fn violated(property: &Property, case: &Case<'_>, any: Outcome, count: u64) -> PropertyVerdict {
    let always = case.contract.said(property.name, Hazard::Nothing);
    if always.promise == Promise::NotPromised {
        return verdict(property, any, count, Class::LimitShown, always);
    }
    let without = |excuse| {
        let cuts = case.cuts(property.name, Some(excuse));
        let outcome = (property.judge)(case, &cuts).outcome;
        outcome.witness().is_some().then_some(outcome)
    };
    if let Some(outcome) = without(Excuse::LimitOrUnspecified) {
        let class = match always.promise {
            Promise::Promised => Class::Broken,
            _ => Class::Unspecified,
        };
        return verdict(property, outcome, count, class, always);
    }
    let windows = case.hazards.windows.iter();
    let about: Vec<Hazard> = windows
        .map(|window| window.hazard)
        .chain([Hazard::WorkHeld])
        .collect();
    let said = |promise| {
        let mut said = about
            .iter()
            .map(|&hazard| case.contract.said(property.name, hazard));
        said.find(|said| said.promise == promise)
    };
    if let Some(outcome) = without(Excuse::Limit) {
        let said = said(Promise::Unspecified).unwrap_or_else(|| Said {
            promise: Promise::Unspecified,
            why:
                "nobody knows whether what happened meanwhile was more than the contract allows for"
                    .to_owned(),
        });
        return verdict(property, outcome, count, Class::Unspecified, said);
    }
    let limit = said(Promise::NotPromised).unwrap_or(always);
    verdict(property, any, count, Class::LimitShown, limit)
}

fn verdict(
    property: &Property,
    outcome: Outcome,
    violations: u64,
    class: Class,
    said: Said,
) -> PropertyVerdict {
    PropertyVerdict {
        name: property.name.to_owned(),
        outcome,
        violations,
        contract: said.promise,
        class,
        why: said.why,
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
