//! What many runs came to: the matrix of promises, with the sentence and the place of every finding.

use std::fmt::Write;
use std::path::PathBuf;

use super::text::{self, Mark};
use super::{Class, JudgedProperty, Judgement};
use crate::exit::Exit;
use crate::runner::Cell;

/// All runs of one cell.
pub struct CellReport {
    /// The scenario.
    pub scenario: String,
    /// The lock service.
    pub lock: String,
    /// The policy.
    pub policy: String,
    /// Its runs, in order.
    pub judgements: Vec<Judgement>,
}

/// What a cell came to, the worst of its runs, but for limits: those are shown if any run shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was run.
    NotRun,
    /// Every promise was kept, and there was no limit to be shown.
    Kept,
    /// So many runs broke a promise.
    Broken(usize),
    /// So many runs showed a limit.
    LimitShown(usize),
    /// No run showed what the scenario is there to show.
    LimitNotShown,
    /// So many runs do not tell.
    Unknown(usize),
}

impl CellReport {
    /// The report of a cell.
    pub fn new(cell: &Cell, judgements: Vec<Judgement>) -> CellReport {
        CellReport {
            scenario: cell.scenario().to_owned(),
            lock: cell.lock.name().to_owned(),
            policy: cell.policy.name.to_owned(),
            judgements,
        }
    }

    /// What the cell came to.
    pub fn standing(&self) -> Standing {
        let count = |class| {
            self.judgements
                .iter()
                .filter(|judgement| judgement.has(class))
                .count()
        };
        let missed = |control: &String| {
            !self
                .judgements
                .iter()
                .any(|judgement| shows(judgement, control))
        };
        match (
            self.judgements.first(),
            count(Class::Broken),
            count(Class::Unknown),
            count(Class::LimitShown),
        ) {
            (None, ..) => Standing::NotRun,
            (_, broken @ 1.., ..) => Standing::Broken(broken),
            (_, _, unknown @ 1.., _) => Standing::Unknown(unknown),
            (Some(first), ..) if first.controls.iter().any(missed) => Standing::LimitNotShown,
            (.., shown @ 1..) => Standing::LimitShown(shown),
            _ => Standing::Kept,
        }
    }

    /// The run that is worth looking at, and what it shows.
    fn finding(&self) -> Option<(&Judgement, Option<&JudgedProperty>)> {
        let of = |class: Class| {
            self.judgements.iter().find_map(|judgement| {
                let property = judgement.most_telling(class)?;
                Some((judgement, Some(property)))
            })
        };
        match self.standing() {
            Standing::Broken(_) => of(Class::Broken),
            Standing::Unknown(_) => of(Class::Unknown),
            Standing::LimitShown(_) => of(Class::LimitShown),
            Standing::LimitNotShown => self.judgements.first().map(|first| (first, None)),
            Standing::NotRun | Standing::Kept => None,
        }
    }

    fn exit(&self) -> Exit {
        match self.standing() {
            Standing::Broken(_) => Exit::Broken,
            Standing::Unknown(_) | Standing::LimitNotShown | Standing::NotRun => Exit::Inconclusive,
            Standing::Kept | Standing::LimitShown(_) => Exit::Kept,
        }
    }

    fn row(&self) -> String {
        format!("{} {}", self.lock, self.policy)
    }
}

fn shows(judgement: &Judgement, control: &str) -> bool {
    judgement
        .property(control)
        .is_some_and(|property| property.class == Class::LimitShown)
}

impl Standing {
    fn words(self, runs: usize) -> String {
        let of = |count: usize, word: &str| {
            if runs == 1 {
                word.to_owned()
            } else {
                format!("{word} {count}/{runs}")
            }
        };
        match self {
            Standing::NotRun => "not run".to_owned(),
            Standing::Kept => of(runs, "kept"),
            Standing::Broken(count) => of(count, "BROKEN"),
            Standing::LimitShown(count) => of(count, "limit shown"),
            Standing::LimitNotShown => of(0, "limit not shown"),
            Standing::Unknown(count) => of(count, "unknown"),
        }
    }

    fn mark(self) -> Mark {
        match self {
            Standing::Kept => Mark::Good,
            Standing::LimitShown(_) => Mark::Known,
            Standing::Broken(_) => Mark::Bad,
            Standing::Unknown(_) | Standing::LimitNotShown | Standing::NotRun => Mark::Doubtful,
        }
    }
}

/// What an order came to.
pub struct SuiteReport {
    /// The cells.
    pub cells: Vec<CellReport>,
    /// What kept cells from being run.
    pub errors: Vec<anyhow::Error>,
    /// Where the run directories are.
    pub out: PathBuf,
}

impl SuiteReport {
    /// All judgements.
    pub fn judgements(&self) -> impl Iterator<Item = &Judgement> {
        self.cells.iter().flat_map(|cell| &cell.judgements)
    }

    /// The exit status that the cells lead to, errors left aside.
    pub fn exit(&self) -> Exit {
        self.cells
            .iter()
            .map(CellReport::exit)
            .max()
            .unwrap_or(Exit::Inconclusive)
    }

    /// For a person: the findings, the matrix, the counts.
    pub fn human(&self, color: bool) -> String {
        let findings = self.findings();
        let (header, rows) = self.matrix();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let paint = |(words, mark): (String, Mark)| text::paint(&words, mark, color);
        let rows = rows
            .into_iter()
            .map(|row| row.into_iter().map(paint).collect())
            .collect();
        let mut page = String::new();
        for (title, finding) in findings {
            // Writing to a string can't fail.
            let _ = writeln!(page, "{title}\n    {finding}");
        }
        if !page.is_empty() {
            page.push('\n');
        }
        let _ = write!(page, "{}\n\n{}", text::table(&header, rows), self.closing());
        page
    }

    /// The same as Markdown.
    pub fn markdown(&self) -> String {
        let (header, rows) = self.matrix();
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let rule = vec!["---".to_owned(); header.len()];
        let mut page = format!("# Fencepost: {}\n\n", self.closing());
        page += &line(header);
        page += &line(rule);
        for row in rows {
            page += &line(
                row.into_iter()
                    .map(|(words, mark)| mark.in_markdown(&words))
                    .collect(),
            );
        }
        page += "\n## Findings\n\n";
        for (title, finding) in self.findings() {
            let _ = writeln!(page, "- **{title}**  \n  {finding}");
        }
        for error in &self.errors {
            let _ = writeln!(page, "- **error**  \n  {error:#}");
        }
        page
    }

    /// Title and sentence of every cell that shows something.
    fn findings(&self) -> Vec<(String, String)> {
        let finding = |cell: &CellReport| {
            let (judgement, property) = cell.finding()?;
            let standing = cell.standing().words(cell.judgements.len());
            let title = match property {
                Some(property) => format!(
                    "{} {}: {standing}: {}",
                    cell.scenario,
                    cell.row(),
                    property.name
                ),
                None => format!(
                    "{} {}: {standing}: {}",
                    cell.scenario,
                    cell.row(),
                    judgement.controls.join(", ")
                ),
            };
            let sentence = match property {
                Some(property) => property
                    .witness
                    .as_ref()
                    .map_or(property.reason.as_str(), |w| w.sentence.as_str()),
                None => "the scenario is there to show a violation, and no run did",
            };
            Some((title, format!("{sentence}\n    {}", judgement.history)))
        };
        self.cells.iter().filter_map(finding).collect()
    }

    /// Header and rows: a row for each lock service and policy, a column for each scenario.
    fn matrix(&self) -> (Vec<String>, Vec<Vec<(String, Mark)>>) {
        let mut scenarios: Vec<&str> = Vec::new();
        let mut rows: Vec<String> = Vec::new();
        for cell in &self.cells {
            if !scenarios.contains(&cell.scenario.as_str()) {
                scenarios.push(&cell.scenario);
            }
            if !rows.contains(&cell.row()) {
                rows.push(cell.row());
            }
        }
        let at = |row: &String, scenario: &str| {
            let cell = self
                .cells
                .iter()
                .find(|cell| cell.row() == *row && cell.scenario == scenario);
            cell.map_or(("–".to_owned(), Mark::None), |cell| {
                (
                    cell.standing().words(cell.judgements.len()),
                    cell.standing().mark(),
                )
            })
        };
        let lines = rows
            .iter()
            .map(|row| {
                std::iter::once((row.clone(), Mark::None))
                    .chain(scenarios.iter().map(|scenario| at(row, scenario)))
                    .collect()
            })
            .collect();
        let header = std::iter::once(String::new())
            .chain(scenarios.iter().map(|name| (*name).to_owned()))
            .collect();
        (header, lines)
    }

    fn closing(&self) -> String {
        let runs = self.judgements().count();
        let count = |class| {
            self.judgements()
                .filter(|judgement| judgement.has(class))
                .count()
        };
        let mut closing = format!(
            "{runs} runs: {} broke a promise, {} showed a known limit, {} unknown; all of it is in {}",
            count(Class::Broken),
            count(Class::LimitShown),
            count(Class::Unknown),
            self.out.display()
        );
        if let Some(latency) = text::stop_latency(self.judgements()) {
            let _ = write!(closing, "\n{latency}");
        }
        closing
    }
}
