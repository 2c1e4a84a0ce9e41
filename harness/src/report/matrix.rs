//! What many runs came to: the matrix of promises, with the sentence and the place of every finding.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use super::standing::{self, Shown, Standing};
use super::text::{self, Mark};
use super::{JudgedProperty, Judgement, Page};
use crate::exit::{self, Exit};
use crate::runner::Cell;

/// All runs of one cell.
pub struct CellReport {
    /// The scenario.
    pub scenario: String,
    /// The lock service.
    pub lock: String,
    /// The policy.
    pub policy: String,
    /// How many runs were asked for.
    pub asked: u32,
    /// Those that were made, in order.
    pub judgements: Vec<Judgement>,
}

impl CellReport {
    /// The report of a cell of which so many runs were asked for.
    pub fn new(cell: &Cell, asked: u32, judgements: Vec<Judgement>) -> CellReport {
        CellReport {
            scenario: cell.scenario().to_owned(),
            lock: cell.lock.name().to_owned(),
            policy: cell.policy.name.to_owned(),
            asked,
            judgements,
        }
    }

    fn not_run(&self) -> usize {
        (self.asked as usize).saturating_sub(self.judgements.len())
    }

    /// `kept 20/20`, or `kept 3 of 20` where the rest was not run.
    fn words(&self) -> String {
        let (standing, runs) = (Standing::of(&self.judgements), self.judgements.len());
        let shown = standing.count(&self.judgements);
        let word = standing.word;
        match (runs, self.not_run()) {
            (0, _) => word.to_owned(),
            (1, 0) => word.to_owned(),
            (_, 0) => format!("{word} {shown}/{runs}"),
            _ if shown == runs => format!("{word} {shown} of {}", self.asked),
            _ => format!("{word} {shown}/{runs} of {}", self.asked),
        }
    }

    fn mark(&self) -> Mark {
        match Standing::of(&self.judgements).mark {
            Mark::Good | Mark::Known if self.not_run() > 0 => Mark::Doubtful,
            mark => mark,
        }
    }

    /// What is not run may not be as what was.
    fn exit(&self) -> Exit {
        let exit = Standing::of(&self.judgements).exit;
        if self.not_run() > 0 {
            exit.max(Exit::Inconclusive)
        } else {
            exit
        }
    }

    /// The run that is worth looking at, and what it shows.
    fn finding(&self) -> Option<(&Judgement, Option<&JudgedProperty>)> {
        match Standing::of(&self.judgements).shown_by {
            Shown::Class(class) => self.judgements.iter().find_map(|judgement| {
                let property = judgement.most_telling(class)?;
                Some((judgement, Some(property)))
            }),
            Shown::MissedControl => self.judgements.first().map(|first| (first, None)),
            Shown::Nothing | Shown::AnyRun => None,
        }
    }

    fn row(&self) -> String {
        format!("{} {}", self.lock, self.policy)
    }
}

/// What a missed control means.
const NOT_SHOWN: &str = "the scenario is there to show a violation, and no run did";

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
    /// The matrix of histories that were saved, whoever made them: what they say of themselves tells their cells.
    pub fn of_saved(judgements: Vec<Judgement>) -> SuiteReport {
        let mut cells: Vec<CellReport> = Vec::new();
        for judgement in judgements {
            let own = |cell: &&mut CellReport| {
                (&cell.scenario, &cell.lock, &cell.policy)
                    == (&judgement.scenario, &judgement.lock, &judgement.policy)
            };
            match cells.iter_mut().find(own) {
                Some(cell) => {
                    cell.asked += 1;
                    cell.judgements.push(judgement);
                }
                None => cells.push(CellReport {
                    scenario: judgement.scenario.clone(),
                    lock: judgement.lock.clone(),
                    policy: judgement.policy.clone(),
                    asked: 1,
                    judgements: vec![judgement],
                }),
            }
        }
        SuiteReport {
            cells,
            errors: Vec::new(),
            out: PathBuf::new(),
        }
    }

    /// The matrix alone.
    pub fn table(&self, color: bool) -> Page {
        let (header, rows) = self.matrix();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let mut page = Page::new(color);
        page.table(&header, rows);
        page
    }

    /// All judgements.
    pub fn judgements(&self) -> impl Iterator<Item = &Judgement> {
        self.cells.iter().flat_map(|cell| &cell.judgements)
    }

    /// The exit status that the cells and the errors lead to.
    pub fn exit(&self) -> Exit {
        let cells = self.cells.iter().map(CellReport::exit);
        let errors = self.errors.iter().map(exit::of_error);
        cells.chain(errors).max().unwrap_or(Exit::Inconclusive)
    }

    /// What kept cells from being run, each thing once: sites that share a cause say the same.
    pub fn distinct_errors(&self) -> Vec<&anyhow::Error> {
        let mut said = BTreeSet::new();
        let is_new = |error: &&anyhow::Error| said.insert(format!("{error:#}"));
        self.errors.iter().filter(is_new).collect()
    }

    /// A line for each cell whose scenario is there to show a violation that none of its runs shows.
    pub fn not_shown(&self) -> Vec<String> {
        let line = |cell: &CellReport| {
            let missed = standing::missed_controls(&cell.judgements).join(", ");
            let (scenario, row) = (&cell.scenario, cell.row());
            (!missed.is_empty()).then(|| format!("{scenario} {row}: {missed}: {NOT_SHOWN}"))
        };
        self.cells.iter().filter_map(line).collect()
    }

    /// For a person: the findings, the matrix, the counts.
    pub fn human(&self, color: bool) -> Page {
        let findings = self.findings();
        let (header, rows) = self.matrix();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let mut page = Page::new(color);
        // Writing to a page can't fail.
        for (title, finding) in findings {
            let _ = writeln!(page, "{title}");
            for line in finding.lines() {
                let _ = writeln!(page, "    {}", line.trim_start());
            }
        }
        if !page.is_empty() {
            let _ = writeln!(page);
        }
        page.table(&header, rows);
        let _ = writeln!(page);
        for line in self.closing().lines() {
            let _ = write!(page, "\n{line}");
        }
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
        for error in self.distinct_errors() {
            let _ = writeln!(page, "- **error**  \n  {error:#}");
        }
        page
    }

    /// Title and sentence of every cell that shows something.
    fn findings(&self) -> Vec<(String, String)> {
        let finding = |cell: &CellReport| {
            let (judgement, property) = cell.finding()?;
            let standing = cell.words();
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
                    standing::missed_controls(&cell.judgements).join(", ")
                ),
            };
            let sentence = match property {
                Some(property) => property
                    .witness
                    .as_ref()
                    .map_or(property.reason.as_str(), |w| w.sentence.as_str()),
                None => NOT_SHOWN,
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
                (cell.words(), cell.mark())
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
        let not_run: usize = self.cells.iter().map(CellReport::not_run).sum();
        let of_all = match not_run {
            0 => String::new(),
            _ => format!(" of {}", runs + not_run),
        };
        let noun = if runs + not_run == 1 { "run" } else { "runs" };
        let mut closing = format!(
            "{runs}{of_all} {noun}: {}",
            standing::tally(self.judgements())
        );
        if not_run > 0 {
            let _ = write!(closing, ", {not_run} not run");
        }
        let _ = write!(closing, "; all of it is in {}", self.out.display());
        if let Some(latency) = text::stop_latency(self.judgements()) {
            let _ = write!(closing, "\n{latency}");
        }
        closing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Interrupted;
    use crate::report::Class;
    use crate::report::standing::tests::run_with;

    fn cell(asked: u32, judgements: Vec<Judgement>) -> CellReport {
        CellReport {
            scenario: "paused-client".into(),
            lock: "redis-token".into(),
            policy: "unfenced".into(),
            asked,
            judgements,
        }
    }

    fn suite(cells: Vec<CellReport>, errors: Vec<anyhow::Error>) -> SuiteReport {
        SuiteReport {
            cells,
            errors,
            out: "fencepost-runs".into(),
        }
    }

    #[test]
    fn a_cell_says_how_many_of_its_runs_were_made() {
        let kept = || run_with(&[]);
        let broken = || run_with(&[Class::Broken]);
        for (asked, runs, words, exit) in [
            (1, vec![kept()], "kept", Exit::Kept),
            (2, vec![kept(), kept()], "kept 2/2", Exit::Kept),
            (20, vec![kept()], "kept 1 of 20", Exit::Inconclusive),
            (2, vec![kept(), broken()], "BROKEN 1/2", Exit::Broken),
            (20, vec![kept(), broken()], "BROKEN 1/2 of 20", Exit::Broken),
            (20, vec![], "not run", Exit::Inconclusive),
        ] {
            let cell = cell(asked, runs);
            assert_eq!((cell.words().as_str(), cell.exit()), (words, exit));
        }
    }

    #[test]
    fn totals_add_up_and_nothing_is_said_twice() {
        let mut missed = run_with(&[Class::LimitNotShown]);
        missed.controls = vec![missed.properties[0].name.clone()];
        // It counts once, as the worst that it came to.
        let worst = run_with(&[Class::Broken, Class::Unknown, Class::LimitShown]);
        let interrupted = || anyhow::Error::from(Interrupted);
        let suite = suite(
            vec![
                cell(3, vec![worst, run_with(&[])]),
                cell(2, vec![missed]),
                cell(4, vec![]),
            ],
            vec![
                interrupted(),
                interrupted(),
                interrupted().context("no-fault redlock unfenced"),
            ],
        );
        let expected = "3 of 9 runs: 1 broke a promise, 0 unknown, 0 unspecified, 1 not shown, 0 showed a known limit, 1 kept, 6 not run";
        let (page, markdown) = (suite.human(false).into_text(), suite.markdown());
        assert!(page.contains(expected), "{page}");
        assert!(markdown.contains(expected), "{markdown}");
        assert_eq!(markdown.matches("**error**").count(), 2, "{markdown}");
        assert_eq!(suite.exit(), Exit::Broken);
    }

    #[test]
    fn what_went_wrong_besides_hides_no_broken_promise() {
        let unavailable = || anyhow::Error::from(exit::Unavailable("redis is gone".into()));
        let with = |class, errors| suite(vec![cell(1, vec![run_with(&[class])])], errors).exit();
        let interrupted = anyhow::Error::from(Interrupted);
        assert_eq!(with(Class::Broken, vec![unavailable()]), Exit::Broken);
        assert_eq!(with(Class::Kept, vec![unavailable()]), Exit::Unavailable);
        assert_eq!(
            with(Class::Unknown, vec![unavailable(), interrupted]),
            Exit::Interrupted
        );
    }
}
