//! The histories that paths on the command line mean.

use std::fs::DirEntry;
use std::io::{self, ErrorKind, StdinLock};
use std::path::{Path, PathBuf};

use anyhow::Result;
use containers::site::FOLDERS;
use histories::entries::Entries;
use histories::{Place, ReadError};

use super::beside;
use crate::exit::{Unreadable, UsageError};

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

/// What paths mean.
#[derive(Default)]
pub struct Found {
    /// Histories.
    pub files: Vec<PathBuf>,
    /// Why there is nothing to read at a path, or at one below it.
    pub refused: Vec<anyhow::Error>,
    /// Run directories without a history: whatever their runs were to show, nobody knows it.
    pub unrecorded: Vec<PathBuf>,
}

/// All histories that paths mean, in the order of the paths. A path that means none keeps no other from being judged.
pub fn find(paths: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for path in paths {
        find_in(path, &mut found);
    }
    found
}

/// The history that a path means: the file itself, or the one in a run directory.
pub fn one(path: &Path) -> Result<PathBuf> {
    if path == Path::new(STANDARD_INPUT) {
        return Err(UsageError("name a file here, not standard input".to_owned()).into());
    }
    let mut found = Found::default();
    find_in(path, &mut found);
    if let Some(error) = found.refused.pop() {
        return Err(error);
    }
    match found.files.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(UsageError(format!(
            "{} holds no history: its run ended before it recorded anything, or has only begun; run it again",
            path.display()
        ))
        .into()),
        several => Err(UsageError(format!(
            "{} holds {} histories: name one of them",
            path.display(),
            several.len()
        ))
        .into()),
    }
}

/// All histories under a path, in the order of their names.
fn find_in(path: &Path, found: &mut Found) {
    let shown = path.display();
    if path == Path::new(STANDARD_INPUT) {
        if found.files.iter().any(|file| file == path) {
            return found.misused("standard input is one history: name `-` once".to_owned());
        }
        return found.files.push(path.to_owned());
    }
    let kind = match std::fs::metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return found.misused(format!("{shown}: there is no such file or folder"));
        }
        Err(error) => return found.unreadable(path, error),
    };
    if kind.is_file() {
        return found.files.push(path.to_owned());
    }
    if !kind.is_dir() {
        return found.misused(format!(
            "{shown} is no regular file: save it to a file first, or give it as standard input, as `-`"
        ));
    }
    let before = found.count();
    found.walk(path);
    if found.count() == before {
        found.misused(format!(
            "{shown} holds no history (.jsonl, .edn, .jsonl.zst or .edn.zst, or a log that Porcupine reads)"
        ));
    }
}

impl Found {
    /// How many histories there are, those that cannot be read and those that are missing among them.
    pub fn count(&self) -> usize {
        self.files.len() + self.refused.len() + self.unrecorded.len()
    }

    fn misused(&mut self, why: String) {
        self.refused.push(UsageError(why).into());
    }

    fn unreadable(&mut self, path: &Path, source: io::Error) {
        let path = path.to_owned();
        self.refused.push(Unreadable { path, source }.into());
    }

    /// Adds what is in a folder; one that cannot be read keeps nobody from reading those beside it. What has the name of a
    /// history and is no regular file is told when it is opened.
    fn walk(&mut self, folder: &Path) {
        let read = || -> io::Result<Vec<_>> { std::fs::read_dir(folder)?.collect() };
        let mut entries = match read() {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(folder, error),
        };
        entries.sort_by_key(DirEntry::file_name);
        if is_of_unrecorded_run(&entries) {
            self.unrecorded.push(folder.to_owned());
        }
        for entry in entries {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    if ![FOLDERS, "clients", "logs"].contains(&&*name) {
                        self.walk(&path);
                    }
                }
                Ok(kind) if kind.is_symlink() => {
                    if is_named_as_history(&name) {
                        self.refused.push(not_followed(path).into());
                    }
                }
                Ok(_) if is_history(&path, &name) => self.files.push(path),
                Ok(_) => {}
                Err(error) => self.unreadable(&path, error),
            }
        }
    }
}

/// Whether what is in a folder is a run's that has no history. Passed over, it would look as if there had been no such run.
fn is_of_unrecorded_run(entries: &[DirEntry]) -> bool {
    let any_file = |is_it: fn(&str) -> bool| {
        entries.iter().any(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            !is_folder && is_it(&entry.file_name().to_string_lossy())
        })
    };
    any_file(|name| name == beside::PLAN) && !any_file(beside::is_history_of_run)
}

/// A symbolic link below a folder is not read: it may lead anywhere.
fn not_followed(link: PathBuf) -> ReadError {
    ReadError::Io {
        place: Place {
            path: Some(link),
            ..Place::default()
        },
        source: io::Error::other(
            "it is a symbolic link, and none is followed below a folder: name it by itself",
        ),
    }
}

/// Whether a file in a folder is a history: by its name, or, where a name says little, by how it begins. One that cannot
/// be opened may be.
fn is_history(path: &Path, name: &str) -> bool {
    let may_be = [".log", ".txt"].iter().any(|end| stem(name).ends_with(end));
    is_named_as_history(name)
        || (may_be && matches!(Entries::open(path), Ok(_) | Err(ReadError::Io { .. })))
}

fn is_named_as_history(name: &str) -> bool {
    [".jsonl", ".edn"]
        .iter()
        .any(|end| stem(name).ends_with(end))
}

/// A name without the ending of what is compressed.
fn stem(name: &str) -> &str {
    name.strip_suffix(".zst").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_in_progress_keeps_for_its_hosts_is_no_history() {
        let out = tempfile::tempdir().unwrap();
        let history = out.path().join("no-fault/run/history.jsonl");
        let of_host = out.path().join(FOLDERS).join("site/c1/run/client.jsonl");
        for file in [&history, &of_host] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        assert_eq!(find(&[out.path().to_owned()]).files, [history]);
    }
}
