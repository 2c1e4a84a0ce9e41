//! The command line: one definition makes the parser, the help, the completions and the man page.

mod check;
mod clean;
mod doctor;
mod export;
mod histories;
mod images;
mod list;
mod models;
mod progress;
mod replay;
mod run;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use crate::exit::{self, Exit};

/// Finds out whether a distributed lock keeps its promise, on real servers.
#[derive(Parser)]
#[command(
    name = "fencepost",
    version,
    max_term_width = 110,
    propagate_version = true
)]
#[command(after_help = EXIT_STATUSES)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,

    /// How results are written to standard output
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        env = "FENCEPOST_FORMAT",
        value_name = "FORMAT"
    )]
    format: Format,

    /// When to colour
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        env = "FENCEPOST_COLOR",
        value_name = "WHEN"
    )]
    color: Color,

    /// Say more on standard error; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

const EXIT_STATUSES: &str = "\
Exit status:
  0    all promises kept
  1    a promise was broken (check: a property is violated)
  2    inconclusive: a check is unknown, a fault has no evidence, or a control was not caught
  64   wrong usage
  65   a history can't be read
  69   Docker, disk space or a needed capability is missing
  70   a bug of fencepost's own
  130  interrupted";

#[derive(Subcommand)]
enum Verb {
    /// Run scenarios on real servers and judge what happened
    Run(run::RunArguments),
    /// Judge saved histories, offline
    Check(check::CheckArguments),
    /// Write a saved history in the format of others' checkers
    Export(export::ExportArguments),
    /// Run the plan of a saved history again: how often does it reproduce?
    Replay(replay::ReplayArguments),
    /// List what there is
    List(list::ListArguments),
    /// Say what this machine can do, and what it lacks
    Doctor,
    /// Build the images ahead of the first run, or list them
    Images(images::ImagesArguments),
    /// Remove what runs of dead owners left in Docker
    Clean(clean::CleanArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
    /// PID 1 of every host
    #[command(hide = true)]
    Agent {
        /// The Unix socket to listen on
        #[arg(long)]
        socket: PathBuf,
    },
    /// A client of a run, inside its host
    #[command(hide = true)]
    Client {
        /// Its configuration
        config: PathBuf,
    },
    /// A process that a fault needs inside a host
    #[command(hide = true)]
    FaultProcess {
        /// The fault
        fault: String,
        /// The fault's own arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables and sentences
    #[default]
    Human,
    /// One JSON list at the end
    Json,
    /// One JSON object a line, as it is known
    Jsonl,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    fn for_standard_output(self) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            }
        }
    }
}

/// How this call speaks: settled once, handed to every verb.
#[derive(Clone, Copy, Debug)]
pub struct Voice {
    /// The format of standard output.
    pub format: Format,
    /// Whether standard output is coloured.
    pub color: bool,
}

/// Parses the arguments, does what they say, and tells how the process is to exit.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Kept
            };
        }
    };
    log_to_standard_error(cli.verbose);
    let voice = Voice {
        format: cli.format,
        color: cli.color.for_standard_output(),
    };
    match dispatch(cli.verb, voice) {
        Ok(exit) => exit,
        Err(error) if is_broken_pipe(&error) => Exit::Kept,
        Err(error) => {
            let exit = exit::of_error(&error);
            let _ = writeln!(std::io::stderr(), "fencepost: {error:#}");
            if exit == Exit::Bug {
                let _ = writeln!(
                    std::io::stderr(),
                    "this looks like a bug of fencepost's own; please report it with the lines above"
                );
            }
            exit
        }
    }
}

fn dispatch(verb: Verb, voice: Voice) -> Result<Exit> {
    match verb {
        Verb::Run(arguments) => run::run(&arguments, voice),
        Verb::Check(arguments) => check::check(&arguments, voice),
        Verb::Export(arguments) => export::export(&arguments),
        Verb::Replay(arguments) => replay::replay(&arguments, voice),
        Verb::List(arguments) => list::list(&arguments, voice),
        Verb::Doctor => doctor::doctor(voice),
        Verb::Images(arguments) => images::images(&arguments, voice),
        Verb::Clean(arguments) => clean::clean(&arguments, voice),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fencepost", &mut script);
            std::io::stdout().write_all(&script)?;
            Ok(Exit::Kept)
        }
        Verb::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
            Ok(Exit::Kept)
        }
        Verb::Agent { socket } => match containers::agent::serve(&socket)? {},
        Verb::Client { config } => crate::client::run(&config).map(|()| Exit::Kept),
        Verb::FaultProcess { fault, arguments } => {
            nemesis::fault_process(&fault, &arguments)?;
            Ok(Exit::Kept)
        }
    }
}

/// Writes a line of a result; a reader that went away ends the call quietly.
pub(crate) fn say(line: impl std::fmt::Display) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

fn log_to_standard_error(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info,bollard=warn,testcontainers=warn",
        _ => "debug,h2=info,hyper=info,bollard=info",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("FENCEPOST_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
