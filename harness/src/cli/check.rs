//! `fencepost check`: saved histories, judged offline.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use checker::Answer;
use clap::Args;

use super::{Format, Voice, say};
use crate::exit::{self, Exit, UsageError};
use crate::report::{Judgement, judge_properties};

#[derive(Args)]
pub struct CheckArguments {
    /// Histories (`history.jsonl`, `.zst`), run directories, or folders of those
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,

    /// Only these properties; without any: every property that the history can speak to
    #[arg(
        long = "property",
        value_delimiter = ',',
        env = "FENCEPOST_PROPERTY",
        value_name = "NAME"
    )]
    properties: Vec<String>,
}

pub fn check(arguments: &CheckArguments, voice: Voice) -> Result<Exit> {
    refuse_unknown(&arguments.properties)?;
    let mut files = Vec::new();
    for path in &arguments.paths {
        find_histories(path, &mut files)?;
    }
    let mut judgements = Vec::new();
    let mut exit = Exit::Kept;
    for file in &files {
        match judge_properties(file, &arguments.properties) {
            Ok(judgement) => {
                exit = exit.max(judgement.exit_of_check());
                match voice.format {
                    Format::Human => say(judgement.human(voice.color))?,
                    Format::Jsonl => say(judgement.to_json())?,
                    Format::Json => judgements.push(judgement),
                }
            }
            Err(error) => {
                eprintln!("fencepost: {error:#}");
                exit = exit.max(exit::of_error(&error));
            }
        }
    }
    if voice.format == Format::Json {
        say(serde_json::to_string_pretty(&judgements)?)?;
    }
    Ok(exit)
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

/// The history that a path means: the file itself, or the one in a run directory.
pub fn history_of(path: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    find_histories(path, &mut found)?;
    match found.as_slice() {
        [one] => Ok(one.clone()),
        several => Err(UsageError(format!(
            "{} holds {} histories: name one of them",
            path.display(),
            several.len()
        ))
        .into()),
    }
}

/// All histories under a path, in the order of their names; symbolic links inside folders are not followed.
fn find_histories(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        if !path.exists() {
            return Err(UsageError(format!(
                "{}: there is no such file or folder",
                path.display()
            ))
            .into());
        }
        if !path.is_file() {
            return Err(UsageError(format!(
                "{} is no regular file: a history is read more than once, so save it to a file first",
                path.display()
            ))
            .into());
        }
        found.push(path.to_owned());
        return Ok(());
    }
    let before = found.len();
    walk(path, found).map_err(|error| UsageError(format!("{error:#}")))?;
    if found.len() == before {
        return Err(UsageError(format!(
            "{} holds no history (history.jsonl or .jsonl.zst)",
            path.display()
        ))
        .into());
    }
    Ok(())
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let read = || -> std::io::Result<Vec<_>> { std::fs::read_dir(folder)?.collect() };
    let mut entries = read().with_context(|| format!("look into {}", folder.display()))?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry
            .file_type()
            .with_context(|| format!("look at {}", entry.path().display()))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if kind.is_dir() && name != "clients" && name != "logs" {
            walk(&entry.path(), found)?;
        } else if kind.is_file() && (name.ends_with(".jsonl") || name.ends_with(".jsonl.zst")) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The exit status of a history judged alone: any violation counts, promised or not.
impl Judgement {
    fn exit_of_check(&self) -> Exit {
        match self.outcome {
            Answer::Violated => Exit::Broken,
            Answer::Holds => Exit::Kept,
            Answer::Unknown => Exit::Inconclusive,
        }
    }
}
