//! The command line: one definition makes the parser, the help, the completions and the man page.

mod beside;
mod check;
mod clean;
mod doctor;
mod export;
mod histories;
mod images;
mod list;
mod models;
mod output;
mod progress;
mod replay;
mod run;
mod saved_verdict;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use output::{say, tell};

use crate::exit::{self, Exit};
use crate::limits;
use crate::runner::{self, Stop};

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
  1    a promise was broken (check: a property is violated; with --by-contract: one that was promised)
  2    inconclusive: a check is unknown, a fault has no evidence, or a control was not caught
  64   wrong usage
  65   a history can't be read
  69   Docker, a server, disk space or a needed capability is missing
  70   a bug of fencepost's own
  130  interrupted, or the terminal is gone
Where several apply, the first of 70, 1, 130, 69, 65, 64, 2, 0; a closed pipe changes none of them.";

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
    // A panic has been told of by its hook; to whoever waits for the status it is a bug like any other.
    let ended = catch_unwind(AssertUnwindSafe(|| call(arguments))).unwrap_or(Exit::Bug);
    ended.max(output::status())
}

fn call(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            // Without colours, which its display leaves out: it repeats what was typed.
            error.to_string().trim_end().lines().for_each(tell);
            return Exit::Usage;
        }
        Err(help) => {
            output::heed_loss(help.print().and_then(|()| std::io::stdout().flush()));
            return Exit::Kept;
        }
    };
    log_to_standard_error(cli.verbose);
    let voice = Voice {
        format: cli.format,
        color: cli.color.for_standard_output(),
    };
    dispatch(cli.verb, voice).unwrap_or_else(|error| {
        tell_error(&error);
        exit::of_error(&error)
    })
}

/// Says what went wrong, and what to do about it.
fn tell_error(error: &anyhow::Error) {
    for line in exit::told(error) {
        tell(line);
    }
}

fn dispatch(verb: Verb, voice: Voice) -> Result<Exit> {
    limits::have_descriptors()?;
    match &verb {
        // They end in good order.
        Verb::Run(_) | Verb::Replay(_) | Verb::Check(_) | Verb::Images(_) => {}
        // They are told by the harness when to end.
        Verb::Agent { .. } | Verb::Client { .. } | Verb::FaultProcess { .. } => {}
        _ => drop(Stop::on_signals(runner::end_at_once, || {})?),
    }
    match verb {
        Verb::Run(arguments) => run::run(&arguments, voice),
        Verb::Check(arguments) => check::check(arguments, voice),
        Verb::Export(arguments) => export::export(&arguments),
        Verb::Replay(arguments) => replay::replay(&arguments, voice),
        Verb::List(arguments) => list::list(&arguments, voice),
        Verb::Doctor => doctor::doctor(voice),
        Verb::Images(arguments) => images::images(&arguments, voice),
        Verb::Clean(arguments) => clean::clean(&arguments, voice),
        Verb::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Cli::command(),
                "fencepost",
                &mut output::Results,
            );
            Ok(Exit::Kept)
        }
        Verb::Man => {
            clap_mangen::Man::new(Cli::command()).render(&mut output::Results)?;
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
        .with_writer(|| output::Log)
        // They would be written with `eprintln!`, which panics where standard error is gone.
        .log_internal_errors(false)
        .with_ansi(false)
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
