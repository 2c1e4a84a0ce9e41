//! The histories that paths on the command line mean.

use std::io::{self, StdinLock};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use histories::entries::Entries;
use histories::{Place, ReadError};

use crate::exit::UsageError;

/// What a path means that is no path: a history that comes through standard input.
pub const STANDARD_INPUT: &str = "-";

/// Opens standard input, which can be read but once.
pub fn standard_input() -> impl FnMut() -> Result<Entries<StdinLock<'static>>, ReadError> {
    let mut read = false;
    move || {
        if std::mem::replace(&mut read, true) {
            return Err(ReadError::Io {
                place: Place::default(),
                source: io::Error::other(
                    "standard input is read but once, and this history would have to be read again: its events are not in \
                     order, or its first operations do not tell its model; name the model, or save it to a file",
                ),
            });
        }
        Entries::new(io::stdin().lock())
    }
}

/// All histories that paths mean, in the order of the paths.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        find_in(path, &mut found)?;
    }
    let from_standard_input = |path: &&PathBuf| *path == Path::new(STANDARD_INPUT);
    if found.iter().filter(from_standard_input).count() > 1 {
        return Err(UsageError("standard input is one history: name `-` once".to_owned()).into());
    }
    Ok(found)
}

/// The history that a path means: the file itself, or the one in a run directory.
pub fn one(path: &Path) -> Result<PathBuf> {
    if path == Path::new(STANDARD_INPUT) {
        return Err(UsageError("name a file here, not standard input".to_owned()).into());
    }
    let mut found = Vec::new();
    find_in(path, &mut found)?;
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
fn find_in(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if path == Path::new(STANDARD_INPUT) {
        found.push(path.to_owned());
        return Ok(());
    }
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
                "{} is no regular file: save it to a file first, or give it as standard input, as `-`",
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
            "{} holds no history (.jsonl, .edn, .jsonl.zst or .edn.zst, or a log that Porcupine reads)",
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
        } else if kind.is_file() && is_history(&entry.path(), &name) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Whether a file in a folder is a history: by its name, or, where a name says little, by how it begins.
fn is_history(path: &Path, name: &str) -> bool {
    let name = name.strip_suffix(".zst").unwrap_or(name);
    if name.ends_with(".jsonl") || name.ends_with(".edn") {
        return true;
    }
    (name.ends_with(".log") || name.ends_with(".txt")) && Entries::open(path).is_ok()
}
