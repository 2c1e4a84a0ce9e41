//! `fencepost check`: saved histories, judged offline.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::Result;
use checker::Answer;
use checker::linearizability::{self, Limits};
use clap::Args;
use histories::ReadError;
use histories::entries::{Entries, Format as FileFormat};
use serde::Serialize;

use super::histories as paths;
use super::models::ModelArguments;
use super::{Format, Voice, say};
use crate::exit::{self, Exit, UsageError};
use crate::report::{Judgement, ModelJudgement, judge_properties};

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

    #[command(flatten)]
    model: ModelArguments,
}

/// What one history came to.
#[derive(Serialize)]
#[serde(untagged)]
enum Judged {
    /// One of ours, by the properties of locks and storages.
    ByProperties(Box<Judgement>),
    /// By a sequential model.
    ByModel(ModelJudgement),
}

pub fn check(arguments: &CheckArguments, voice: Voice) -> Result<Exit> {
    refuse_unknown(&arguments.properties)?;
    let request = arguments.model.request()?;
    let files = paths::find(&arguments.paths)?;
    let mut results = Results::default();
    let mut exit = Exit::Kept;
    for file in &files {
        match judge(file, arguments, &request) {
            Ok(judged) => {
                exit = exit.max(exit_of(judged.outcome()));
                results.add(judged, voice)?;
            }
            Err(error) => {
                eprintln!("fencepost: {error:#}");
                exit = exit.max(exit::of_error(&error));
                results.unreadable += 1;
            }
        }
    }
    results.close(voice)?;
    Ok(exit)
}

/// Our own histories are judged by properties, unless a model is named; others by a model.
fn judge(
    path: &Path,
    arguments: &CheckArguments,
    request: &linearizability::Request,
) -> Result<Judged> {
    if path == Path::new(paths::STANDARD_INPUT) {
        return judge_by_model(path, paths::standard_input(), arguments, request);
    }
    let open = || Entries::open(path);
    if request.model.is_none() && open()?.format() == FileFormat::Fencepost {
        return Ok(Judged::ByProperties(Box::new(judge_properties(
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
    judge_by_model(path, open, arguments, request)
}

fn judge_by_model<R: BufRead>(
    path: &Path,
    mut open: impl FnMut() -> Result<Entries<R>, ReadError>,
    arguments: &CheckArguments,
    request: &linearizability::Request,
) -> Result<Judged> {
    let alarm = arguments.model.alarm();
    let limits = Limits {
        bytes: arguments.model.bytes(),
        interrupted: Some(&alarm),
        ..Limits::default()
    };
    let open = || Ok(open()?.with_keys(arguments.model.keys()));
    let checked = linearizability::check(open, request, &limits)?;
    Ok(Judged::ByModel(ModelJudgement::new(path, checked)))
}

impl Judged {
    fn outcome(&self) -> Answer {
        match self {
            Judged::ByProperties(judgement) => judgement.outcome,
            Judged::ByModel(judgement) => judgement.outcome,
        }
    }

    fn human(&self, color: bool) -> String {
        match self {
            Judged::ByProperties(judgement) => judgement.human(color),
            Judged::ByModel(judgement) => judgement.human(color),
        }
    }
}

/// What the histories came to, told as it is known or at the end.
#[derive(Default)]
struct Results {
    list: Vec<Judged>,
    holding: usize,
    violated: usize,
    unknown: usize,
    unreadable: usize,
}

impl Results {
    fn add(&mut self, judged: Judged, voice: Voice) -> Result<()> {
        match judged.outcome() {
            Answer::Holds => self.holding += 1,
            Answer::Violated => self.violated += 1,
            Answer::Unknown => self.unknown += 1,
        }
        match voice.format {
            Format::Human => say(judged.human(voice.color)),
            Format::Jsonl => say(serde_json::to_string(&judged)?),
            Format::Json => {
                self.list.push(judged);
                Ok(())
            }
        }
    }

    fn close(&self, voice: Voice) -> Result<()> {
        let all = self.holding + self.violated + self.unknown + self.unreadable;
        match voice.format {
            Format::Json => say(serde_json::to_string_pretty(&self.list)?),
            Format::Human if all > 1 => say(format!(
                "\n{all} histories: {} hold, {} are violated, {} unknown, {} could not be read",
                self.holding, self.violated, self.unknown, self.unreadable
            )),
            Format::Human | Format::Jsonl => Ok(()),
        }
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

/// The exit status of a history judged alone: any violation counts, promised or not.
fn exit_of(outcome: Answer) -> Exit {
    match outcome {
        Answer::Violated => Exit::Broken,
        Answer::Holds => Exit::Kept,
        Answer::Unknown => Exit::Inconclusive,
    }
}
