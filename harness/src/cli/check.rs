//! `fencepost check`: saved histories, judged offline.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use checker::Answer;
use checker::linearizability::{self, Limits, Request};
use clap::Args;
use histories::ReadError;
use histories::entries::{Entries, Format as FileFormat};
use serde::Serialize;

use super::histories::{self as paths, Found};
use super::models::ModelArguments;
use super::saved_verdict::{self, Difference};
use super::{Format, Voice, output, say, tell, tell_error};
use crate::exit::{self, Exit, UsageError};
use crate::limits;
use crate::report::{self, Judgement, ModelJudgement, Page, SuiteReport, judge_properties};
use crate::runner::Stop;

/// How long the last results may take to be written when it is time to stop: nobody may be reading.
const LAST_WRITE: Duration = Duration::from_secs(1);

#[derive(Args)]
pub struct CheckArguments {
    /// Histories (ours, Jepsen's EDN, Porcupine's logs; .zst too), run directories, or folders of those; `-` for standard
    /// input
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,

    /// Only these properties; without any: every property that the history can speak to
    #[arg(
        long = "property",
        value_delimiter = ',',
        env = "FENCEPOST_PROPERTY",
        value_name = "NAME",
        conflicts_with = "model"
    )]
    properties: Vec<String>,

    /// Exit by what was promised, as `run` does: a known limit that was shown is no failure, and what nobody can say is 2,
    /// as is a limit that a scenario is there to show and that none of its histories for a lock and policy shows.
    /// Histories without a contract, and those judged by a model, count as ever
    #[arg(long, env = "FENCEPOST_BY_CONTRACT")]
    by_contract: bool,

    #[command(flatten)]
    model: ModelArguments,
}

/// What one history came to.
#[derive(Serialize)]
struct Judged {
    #[serde(flatten)]
    verdict: Verdict,
    /// What the `verdict.json` beside it says otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    saved_verdict_differs: Vec<Difference>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Verdict {
    /// One of ours, by the properties of locks and storages.
    ByProperties(Box<Judgement>),
    /// By a sequential model.
    ByModel(ModelJudgement),
}

pub fn check(arguments: CheckArguments, voice: Voice) -> Result<Exit> {
    refuse_unknown(&arguments.properties)?;
    let request = arguments.model.request()?;
    let found = paths::find(&arguments.paths);
    let mut results = Results::new(arguments.by_contract, found.count());
    let Found {
        files,
        refused,
        unrecorded,
    } = found;
    for error in refused {
        results.refuse(&error);
    }
    for run in unrecorded {
        results.miss(&run);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .context("start the runtime")?;
    let exit = results.exit.clone();
    let unless_written = move || {
        std::thread::sleep(LAST_WRITE);
        let exit = worst(&exit).max(Exit::Interrupted);
        std::process::exit(i32::from(exit.code()));
    };
    let stop = Stop::on_signals(unless_written, || {})?;
    let with = Arc::new((arguments, request));
    runtime.block_on(judge_all(&files, &with, &stop, &mut results, voice))?;
    results.close(voice)
}

/// Judges one history after another, until it is asked to stop. A history may take long, but not to be left.
async fn judge_all(
    files: &[PathBuf],
    with: &Arc<(CheckArguments, Request)>,
    stop: &Stop,
    results: &mut Results,
    voice: Voice,
) -> Result<()> {
    for file in files {
        if output::has_hung_up() {
            results.interrupted = true;
            return Ok(());
        }
        let (path, with) = (file.clone(), with.clone());
        let judged = limits::result_of(move || judge(&path, &with.0, &with.1));
        let judged = tokio::select! {
            biased;
            () = stop.asked() => {
                results.interrupted = true;
                return Ok(());
            }
            judged = judged => judged.flatten(),
        };
        match judged {
            Ok(verdict) => results.add(Judged::new(file, verdict), voice)?,
            Err(error) => results.refuse(&error),
        }
    }
    Ok(())
}

/// Our own histories are judged by properties, unless a model is named; others by a model.
fn judge(path: &Path, arguments: &CheckArguments, request: &Request) -> Result<Verdict> {
    if path == Path::new(paths::STANDARD_INPUT) {
        return judge_by_model(path, paths::standard_input(), arguments, request);
    }
    let open = || Entries::open(path);
    let entries = open()?;
    let (format, header) = (entries.format(), entries.header().cloned());
    drop(entries);
    if request.model.is_none() && format == FileFormat::Fencepost {
        return Ok(Verdict::ByProperties(Box::new(judge_properties(
            path,
            &arguments.properties,
        )?)));
    }
    if !arguments.properties.is_empty() {
        return Err(UsageError(format!(
            "{} is not one of our histories, which alone have properties: leave `--property` out",
            path.display()
        ))
        .into());
    }
    if let Some(header) = header {
        nemesis::validate_form(&header.plan).with_context(|| path.display().to_string())?;
    }
    judge_by_model(path, open, arguments, request)
}

fn judge_by_model<R: BufRead>(
    path: &Path,
    mut open: impl FnMut() -> Result<Entries<R>, ReadError>,
    arguments: &CheckArguments,
    request: &Request,
) -> Result<Verdict> {
    let alarm = arguments.model.alarm();
    let limits = Limits {
        bytes: arguments.model.bytes(),
        interrupted: Some(&alarm),
        ..Limits::default()
    };
    limits::start_pool()?;
    let open = || Ok(open()?.with_keys(arguments.model.keys()));
    let checked = linearizability::check(open, request, &limits)?;
    Ok(Verdict::ByModel(ModelJudgement::new(path, checked)))
}

impl Judged {
    /// Says, too, what the verdict that was saved beside the history does not agree with.
    fn new(path: &Path, verdict: Verdict) -> Judged {
        let differences = match &verdict {
            Verdict::ByProperties(judgement) => saved_verdict::differences(path, judgement),
            Verdict::ByModel(_) => Ok(Vec::new()),
        };
        let saved_verdict_differs = differences.unwrap_or_else(|unreadable| {
            tell(format_args!("fencepost: {unreadable:#}"));
            Vec::new()
        });
        for difference in &saved_verdict_differs {
            tell(format_args!(
                "fencepost: {}: the verdict.json beside it does not agree on {difference}",
                path.display()
            ));
        }
        Judged {
            verdict,
            saved_verdict_differs,
        }
    }
}

impl Verdict {
    fn outcome(&self) -> Answer {
        match self {
            Verdict::ByProperties(judgement) => judgement.outcome,
            Verdict::ByModel(judgement) => judgement.outcome,
        }
    }

    fn human(&self, color: bool) -> Page {
        match self {
            Verdict::ByProperties(judgement) => judgement.human(color),
            Verdict::ByModel(judgement) => judgement.human(color),
        }
    }

    /// The exit status of a history alone: any violation counts, unless it is asked what was promised. What all histories of
    /// a scenario and a lock were to show is for [`Results::close`].
    fn exit(&self, by_contract: bool) -> Exit {
        match (self, self.outcome()) {
            (Verdict::ByProperties(judgement), _) if by_contract => report::by_contract(judgement),
            (_, Answer::Violated) => Exit::Broken,
            (_, Answer::Holds) => Exit::Kept,
            (_, Answer::Unknown) => Exit::Inconclusive,
        }
    }
}

/// What the histories came to, told as it is known or at the end.
struct Results {
    by_contract: bool,
    /// How many histories there are.
    all: usize,
    list: Vec<Judged>,
    /// Our own histories, for the matrix.
    own: Vec<Judgement>,
    holding: usize,
    violated: usize,
    unknown: usize,
    unreadable: usize,
    interrupted: bool,
    /// The worst so far.
    exit: Arc<Mutex<Exit>>,
}

fn worst(exit: &Mutex<Exit>) -> Exit {
    *exit.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Results {
    fn new(by_contract: bool, all: usize) -> Results {
        Results {
            by_contract,
            all,
            list: Vec::new(),
            own: Vec::new(),
            holding: 0,
            violated: 0,
            unknown: 0,
            unreadable: 0,
            interrupted: false,
            exit: Arc::new(Mutex::new(Exit::Kept)),
        }
    }

    /// One that could not be judged.
    fn refuse(&mut self, error: &anyhow::Error) {
        tell_error(error);
        self.unreadable += 1;
        self.heed(exit::of_error(error));
    }

    /// A run directory without a history: `run` did not call it kept, and neither may we.
    fn miss(&mut self, run: &Path) {
        tell(format_args!(
            "fencepost: {} holds the plan of a run and no history: the run ended before it recorded anything, or has only \
             begun, and counts as unknown; wait for its end, or run it again and remove this folder",
            run.display()
        ));
        self.unknown += 1;
        self.heed(Exit::Inconclusive);
    }

    fn add(&mut self, judged: Judged, voice: Voice) -> Result<()> {
        match judged.verdict.outcome() {
            Answer::Holds => self.holding += 1,
            Answer::Violated => self.violated += 1,
            Answer::Unknown => self.unknown += 1,
        }
        self.heed(judged.verdict.exit(self.by_contract));
        match voice.format {
            Format::Human => say(judged.verdict.human(voice.color)),
            Format::Jsonl => say(serde_json::to_string(&judged)?),
            Format::Json => {}
        }
        if let Verdict::ByProperties(judgement) = &judged.verdict {
            self.own.push((**judgement).clone());
        }
        if voice.format == Format::Json {
            self.list.push(judged);
        }
        Ok(())
    }

    fn close(mut self, voice: Voice) -> Result<Exit> {
        let own = SuiteReport::of_saved(std::mem::take(&mut self.own));
        if voice.format == Format::Human && own.judgements().count() > 1 {
            say("");
            say(own.table(voice.color));
        }
        // Of histories that were not judged nobody knows what they show.
        if self.by_contract && !self.interrupted {
            for line in own.not_shown() {
                tell(format_args!("fencepost: {line}"));
                self.heed(Exit::Inconclusive);
            }
        }
        match voice.format {
            Format::Json => say(serde_json::to_string_pretty(&self.list)?),
            Format::Human if self.all > 1 => say(format_args!("\n{}", self.summary())),
            Format::Human | Format::Jsonl => {}
        }
        if self.interrupted {
            tell("fencepost: interrupted");
            self.heed(Exit::Interrupted);
        }
        Ok(worst(&self.exit))
    }

    fn heed(&self, exit: Exit) {
        let mut worst = self.exit.lock().unwrap_or_else(PoisonError::into_inner);
        *worst = worst.max(exit);
    }

    fn summary(&self) -> String {
        let mut summary = format!(
            "{} histories: {} hold, {} are violated, {} unknown, {} could not be read",
            self.all, self.holding, self.violated, self.unknown, self.unreadable
        );
        let judged = self.holding + self.violated + self.unknown + self.unreadable;
        if judged < self.all {
            summary += &format!(", {} not judged", self.all - judged);
        }
        if self.by_contract {
            summary += match worst(&self.exit) {
                Exit::Kept => "; every promise was kept",
                Exit::Broken => "; a promise was broken",
                _ => "; that every promise was kept and every control caught is not shown",
            };
        }
        summary
    }
}

fn refuse_unknown(properties: &[String]) -> Result<()> {
    let known: Vec<&str> = checker::properties()
        .iter()
        .map(|property| property.name)
        .collect();
    for name in properties {
        if !known.contains(&name.as_str()) {
            let hint = nemesis::nearest(name, &known)
                .map(|near| format!(" (did you mean `{near}`?)"))
                .unwrap_or_default();
            return Err(UsageError(format!(
                "there is no property `{name}`{hint}; there are: {}",
                known.join(", ")
            ))
            .into());
        }
    }
    Ok(())
}
