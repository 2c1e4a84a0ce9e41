//! `fencepost export`: a history in the format of others' checkers.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use histories::Ending;
use histories::entries::{Entries, Export};

use super::{histories as paths, output, tell};
use crate::exit::{Exit, UsageError};

#[derive(Args)]
pub struct ExportArguments {
    /// The history, or the run directory that holds it
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,

    /// The format to write, to standard output
    #[arg(
        long,
        value_enum,
        default_value_t,
        env = "FENCEPOST_TO",
        value_name = "FORMAT"
    )]
    to: To,

    /// Only what was done with these operations: a checker of locks does not want to read of documents
    #[arg(
        long = "only",
        value_delimiter = ',',
        env = "FENCEPOST_ONLY",
        value_name = "OPERATION"
    )]
    only: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum To {
    /// Jepsen's history.edn
    #[default]
    Jepsen,
}

pub fn export(arguments: &ExportArguments) -> Result<Exit> {
    let To::Jepsen = arguments.to;
    let path = paths::one(&arguments.path)?;
    let mut entries = Entries::open(&path)?;
    if let Some(header) = entries.header() {
        nemesis::validate_form(&header.plan).with_context(|| path.display().to_string())?;
    }
    let mut export = Export::new(BufWriter::new(output::Results));
    let only = &arguments.only;
    let mut written = 0;
    // To the end, also where nobody reads on: whether the file is damaged is still to be told.
    while let Some(entry) = entries.next()? {
        if only.is_empty() || only.iter().any(|f| *f == entry.f) {
            export.write(&entry)?;
            written += 1;
        }
    }
    export.finish()?.flush()?;
    if let Some(Ending::Truncated { .. }) = entries.ending() {
        tell(format_args!(
            "note: {} is cut: its export looks as if nothing came after",
            path.display()
        ));
    }
    if written == 0 {
        return Err(UsageError(format!(
            "{}: there is none of these operations to export",
            path.display()
        ))
        .into());
    }
    Ok(Exit::Kept)
}
