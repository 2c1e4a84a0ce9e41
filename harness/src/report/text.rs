//! Words, marks and tables for people.

use std::fmt::Write;

use checker::{Answer, FaultReport};
use histories::{Event, Seal};

use super::standing::{self, Shown, Standing};
use super::{Class, JudgedProperty, Judgement, Page};

/// The evidence of a fault that says how long it took from its trigger to its being in force, in microseconds.
const LATENCY: &str = "latency_us";

/// The bound that a stop at a named point has to keep in 99 of 100 cases, in microseconds.
const STOP_BOUND_US: u64 = 2_000;

/// The properties from the most telling one on: a data loss says more than a belief.
const BY_WEIGHT: [&str; 7] = [
    "mutual-exclusion",
    "no-stale-write",
    "no-lost-update",
    "token-order",
    "document",
    "progress",
    "exclusive-belief",
];

/// How something is to be looked upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// As promised.
    Good,
    /// As known.
    Known,
    /// A broken promise.
    Bad,
    /// Nobody can say.
    Doubtful,
    /// Neither.
    None,
}

impl Mark {
    pub(super) fn in_markdown(self, words: &str) -> String {
        match self {
            Mark::Good => format!("✅ {words}"),
            Mark::Known => format!("☑️ {words}"),
            Mark::Bad => format!("❌ **{words}**"),
            Mark::Doubtful => format!("❔ {words}"),
            Mark::None => words.to_owned(),
        }
    }

    /// Its colour, as a terminal takes it (ECMA-48, SGR).
    pub(super) fn code(self) -> Option<&'static str> {
        match self {
            Mark::None => None,
            Mark::Good => Some("32"),
            Mark::Known => Some("36"),
            Mark::Bad => Some("1;31"),
            Mark::Doubtful => Some("33"),
        }
    }
}

/// How fast clients were stopped at their points, over all runs.
pub(super) fn stop_latency<'a>(judgements: impl Iterator<Item = &'a Judgement>) -> Option<String> {
    let mut micros: Vec<u64> = judgements
        .flat_map(|judgement| &judgement.faults)
        .filter(|fault| fault.engine == "sigstop" && fault.took_hold)
        .filter_map(latency_us)
        .collect();
    micros.sort_unstable();
    let at = |percent: usize| {
        micros
            .get((micros.len() * percent).div_ceil(100).saturating_sub(1))
            .copied()
    };
    let (median, p99, worst) = (at(50)?, at(99)?, *micros.last()?);
    let within = micros.iter().filter(|us| **us < STOP_BOUND_US).count();
    Some(format!(
        "from trigger to stopped: median {median} µs, 99th percentile {p99} µs, longest {worst} µs; {within} of {} under 2 ms",
        micros.len()
    ))
}

fn latency_us(fault: &FaultReport) -> Option<u64> {
    fault.evidence.get(LATENCY)?.as_u64()
}

fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// An answer as verdicts spell it.
pub fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Holds => "holds",
        Answer::Violated => "violated",
        Answer::Unknown => "unknown",
    }
}

pub(super) fn mark(answer: Answer) -> Mark {
    match answer {
        Answer::Holds => Mark::Good,
        Answer::Violated => Mark::Bad,
        Answer::Unknown => Mark::Doubtful,
    }
}

/// A class as a person reads it.
fn class_words(class: Class) -> &'static str {
    match class {
        Class::Kept => "promise kept",
        Class::Broken => "PROMISE BROKEN",
        Class::LimitShown => "known limit shown",
        Class::LimitNotShown => "known limit, not shown this time",
        Class::Unspecified => "unspecified: nobody said",
        Class::Unknown => "unknown",
    }
}

fn class_mark(class: Class) -> Mark {
    match class {
        Class::Kept => Mark::Good,
        Class::Broken => Mark::Bad,
        Class::LimitShown => Mark::Known,
        Class::LimitNotShown => Mark::None,
        Class::Unspecified | Class::Unknown => Mark::Doubtful,
    }
}

impl Judgement {
    /// The property of this class that says most.
    pub(super) fn most_telling(&self, class: Class) -> Option<&JudgedProperty> {
        let weight = |property: &&JudgedProperty| {
            BY_WEIGHT
                .iter()
                .position(|name| *name == property.name)
                .unwrap_or(BY_WEIGHT.len())
        };
        self.properties
            .iter()
            .filter(|property| property.class == class)
            .min_by_key(weight)
    }

    /// `violated (no-stale-write, exclusive-belief)`.
    pub fn in_short(&self) -> String {
        let names = |answer: Answer| -> Vec<&str> {
            self.properties
                .iter()
                .filter(|property| property.outcome == answer)
                .map(|property| property.name.as_str())
                .collect()
        };
        let word = word(self.outcome);
        match self.outcome {
            Answer::Holds => word.to_owned(),
            answer => format!("{word} ({})", names(answer).join(", ")),
        }
    }

    /// The run in one line, in the words of the matrix.
    pub fn line(&self) -> String {
        let alone = std::slice::from_ref(self);
        let standing = Standing::of(alone);
        let names: Vec<&str> = match standing.shown_by {
            Shown::Class(class) => self
                .properties
                .iter()
                .filter(|property| property.class == class)
                .map(|property| property.name.as_str())
                .collect(),
            Shown::MissedControl => standing::missed_controls(alone),
            Shown::AnyRun | Shown::Nothing => Vec::new(),
        };
        let says = match names.as_slice() {
            [] => standing.word.to_owned(),
            names => format!("{}: {}", standing.word, names.join(", ")),
        };
        format!(
            "{} {} {} (seed {}): {says}",
            self.scenario, self.lock, self.policy, self.seed
        )
    }

    /// The whole verdict for a person.
    pub fn human(&self, color: bool) -> Page {
        // Writing to a page can't fail.
        let mut page = Page::new(color);
        let _ = write!(page, "{}: ", self.history);
        page.paint(&self.in_short(), mark(self.outcome));
        let _ = writeln!(
            page,
            "\n  {}: {} on {}, storage {} {}, seed {}, run {}",
            self.scenario, self.lock, self.topology, self.storage, self.policy, self.seed, self.run
        );
        let counts = &self.counts;
        let _ = writeln!(
            page,
            "  {} operations, {} grants, {} writes accepted, {} rejected, {} of unknown outcome",
            counts.operations,
            counts.grants,
            counts.writes_accepted,
            counts.writes_rejected,
            counts.unknown
        );
        for fault in &self.faults {
            let _ = writeln!(page, "  {}", fault_line(fault));
        }
        let _ = writeln!(page, "  {}", seal_line(self.seal));
        for assumption in &self.assumptions {
            let _ = writeln!(page, "  nothing can be said to hold: {assumption}");
        }
        let rows = self.properties.iter().map(|property| {
            vec![
                ("  ".to_owned(), Mark::None),
                (property.name.clone(), Mark::None),
                (word(property.outcome).to_owned(), mark(property.outcome)),
                (
                    class_words(property.class).to_owned(),
                    class_mark(property.class),
                ),
                (property.reason.clone(), Mark::None),
            ]
        });
        page.table(&[], rows.collect());
        for property in &self.properties {
            if let Some(witness) = &property.witness {
                let _ = write!(page, "\n\n  {}: {}", property.name, witness.sentence);
                for event in &witness.events {
                    let _ = write!(page, "\n    {}", event_line(event));
                }
            }
        }
        page
    }
}

/// Whether a history is as it was when it was closed, in words.
fn seal_line(seal: Seal) -> String {
    let means = match seal {
        Seal::Sealed => "it is as it was when it was closed",
        Seal::Edited => "it is not as it was when it was closed",
        Seal::Unsealed => "it has no digest by which an edit would be noticed",
        Seal::Cut => "it was never closed: this speaks of what is whole",
    };
    format!("{seal}: {means}")
}

fn fault_line(fault: &FaultReport) -> String {
    let when = |at: Option<u64>, never: &str| at.map_or(never.to_owned(), seconds);
    let mut line = format!(
        "fault {} on {} ({}): from {} to {}",
        fault.fault,
        fault.on.join(", "),
        fault.engine,
        when(fault.injected_ns, "never"),
        when(fault.healed_ns, "the end")
    );
    match latency_us(fault) {
        _ if !fault.took_hold => line += ", and nothing shows that it took hold",
        Some(us) => {
            let _ = write!(line, ", {us} µs after its trigger");
        }
        None => {}
    }
    line
}

/// A witness's event: time, who, what, and the fields that matter.
fn event_line(event: &Event<'_>) -> String {
    let mut line = format!(
        "{:>11}  {:<8} {:<8} {:<7}",
        seconds(event.t),
        event.process,
        event.f.name(),
        event.kind.name()
    );
    let mut field = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(line, " {name} {value}");
        }
    };
    field("token", event.token.map(|token| token.to_string()));
    field("valid until", event.validity.map(seconds));
    field(
        "based on",
        event.based_on.map(|version| version.to_string()),
    );
    field("version", event.version.map(|version| version.to_string()));
    field("value", event.value.as_ref().map(|value| value.to_string()));
    field("", event.error.as_ref().map(|error| error.to_string()));
    line
}
