//! `fencepost run`: scenarios on real servers, and what they came to.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use containers::Engine;

use super::progress::Display;
use super::{Format, Voice, say, tell, tell_error};
use crate::exit::{self, Exit, Interrupted, UsageError};
use crate::report::{CellReport, Judgement, SuiteReport};
use crate::runner::{self, Observer, Order, Outcome, Partition, Selection, Stop, Wanted};

/// Where runs go unless said otherwise.
pub const OUT: &str = "fencepost-runs";

#[derive(Args)]
pub struct RunArguments {
    /// Scenarios by name, or scenario files by path; without any: the quick suite
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,

    /// How often each cell is run: quick once, full 3 times, nightly 20 times
    #[arg(long, value_enum, env = "FENCEPOST_SUITE")]
    suite: Option<Suite>,

    /// Lock services, or all
    #[arg(
        long,
        value_delimiter = ',',
        env = "FENCEPOST_LOCK",
        value_name = "NAME"
    )]
    lock: Vec<String>,

    /// Topologies, or all
    #[arg(
        long,
        value_delimiter = ',',
        env = "FENCEPOST_TOPOLOGY",
        value_name = "NAME"
    )]
    topology: Vec<String>,

    /// Storages, or all
    #[arg(
        long,
        value_delimiter = ',',
        env = "FENCEPOST_STORAGE",
        value_name = "NAME"
    )]
    storage: Vec<String>,

    /// Storage policies, or all
    #[arg(
        long,
        value_delimiter = ',',
        env = "FENCEPOST_POLICY",
        value_name = "NAME"
    )]
    policy: Vec<String>,

    /// What every random choice of the first run follows from; each further run adds one
    #[arg(long, env = "FENCEPOST_SEED", value_name = "N")]
    seed: Option<u64>,

    /// How many runs each cell gets
    #[arg(long, env = "FENCEPOST_TIMES", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    times: Option<u32>,

    /// Run only a part of the cells: slice:M/N or hash:M/N
    #[arg(long, env = "FENCEPOST_PARTITION", value_name = "PART")]
    partition: Option<Partition>,

    #[command(flatten)]
    how: HowArguments,
}

/// How runs are made, whatever is run.
#[derive(Args)]
pub struct HowArguments {
    /// Where the run directories go
    #[arg(long, default_value = OUT, env = "FENCEPOST_OUT", value_name = "DIR")]
    pub out: PathBuf,

    /// How many topologies may be up at once
    #[arg(long, default_value_t = 2, env = "FENCEPOST_JOBS", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,

    /// Leave the servers running when the runs are over
    #[arg(long, env = "FENCEPOST_KEEP_RUNNING")]
    pub keep_running: bool,

    /// Write a summary in Markdown to this file as well, a new one or a regular one
    #[arg(long, env = "FENCEPOST_SUMMARY", value_name = "FILE")]
    pub summary: Option<PathBuf>,

    /// Disable the mechanism of every fault, to see that its evidence notices
    #[arg(long, hide = true)]
    pub sabotage: bool,
}

/// How often each cell of the whole matrix is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    Quick,
    Full,
    Nightly,
}

impl Suite {
    fn times(self) -> u32 {
        match self {
            Suite::Quick => 1,
            Suite::Full => 3,
            Suite::Nightly => 20,
        }
    }
}

pub fn run(arguments: &RunArguments, voice: Voice) -> Result<Exit> {
    let wanted = Wanted {
        scenarios: arguments.scenarios.clone(),
        locks: arguments.lock.clone(),
        topologies: arguments.topology.clone(),
        storages: arguments.storage.clone(),
        policies: arguments.policy.clone(),
    };
    let Selection { mut cells, skipped } = wanted.cells()?;
    for reason in skipped {
        tell(format_args!("fencepost: skipped: {reason}"));
    }
    if let Some(partition) = arguments.partition {
        cells = partition.of(cells);
        if cells.is_empty() {
            return Err(UsageError(
                "this partition has no cells: there are more parts than cells".into(),
            )
            .into());
        }
    }
    let suite = arguments.suite.unwrap_or(Suite::Quick);
    let order = Order {
        cells,
        times: arguments.times.unwrap_or(suite.times()),
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        out: arguments.how.make_out()?,
        jobs: arguments.how.jobs.into(),
        keep_running: arguments.how.keep_running,
        sabotage: arguments.how.sabotage,
    };
    let suite = carry_out(order, voice)?;
    conclude(&suite, &arguments.how, voice)
}

impl HowArguments {
    /// Makes the folder for the runs; absolute, since it is mounted into containers at the same path.
    pub fn make_out(&self) -> Result<PathBuf> {
        let usable = |path: &Path| -> Result<PathBuf> {
            runner::make_folder(path)?;
            let path = path
                .canonicalize()
                .with_context(|| format!("find {}", path.display()))?;
            // A folder that can't be written to is better found out before anything is started.
            let probe = path.join(format!(".fencepost-{}", std::process::id()));
            runner::write(&probe, b"")?;
            std::fs::remove_file(&probe).with_context(|| format!("remove {}", probe.display()))?;
            Ok(path)
        };
        if let Some(summary) = &self.summary {
            runner::write(summary, b"").map_err(not_usable)?;
        }
        usable(&self.out).map_err(not_usable)
    }
}

/// A place that was named and can't be used is a mistake of the call, unless the machine has no room or no right for it.
fn not_usable(error: anyhow::Error) -> anyhow::Error {
    let is_closed = |cause: &std::io::Error| {
        exit::is_full(cause) || cause.kind() == ErrorKind::PermissionDenied
    };
    if exit::io_causes(&error).any(is_closed) {
        error.context("name another place (--out, --summary), or make room and make it writable")
    } else if exit::of_error(&error) == Exit::Unavailable {
        error
    } else {
        UsageError(format!("{error:#}: name another place")).into()
    }
}

/// Runs an order from an idle machine to a clean one: sweeps what is left of the dead, sees to the images, runs.
pub fn carry_out(order: Order, voice: Voice) -> Result<SuiteReport> {
    runner::check_threads(&order)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let at_first = || tell("fencepost: stopping; once more to stop at once");
    let at_second = || {
        if let Err(error) = containers::sweep_own_blocking() {
            tell_error(&error.into());
        }
    };
    let stop = Stop::on_signals(at_first, at_second)?;
    let report = runtime.block_on(async {
        let display = Display::new(order.cells.len() * order.times as usize);
        let engine = tokio::select! {
            engine = make_ready(&order, &display) => engine?,
            () = stop.asked() => return Err(Interrupted.into()),
        };
        let (cells, times, out) = (order.cells.clone(), order.times, order.out.clone());
        let observer = Arc::new(Teller {
            display: display.clone(),
            voice,
        });
        let Outcome { judgements, errors } = runner::run(order, &engine, observer, stop).await;
        display.finish();
        let cells = cells
            .iter()
            .zip(judgements)
            .map(|(cell, judgements)| CellReport::new(cell, times, judgements))
            .collect();
        anyhow::Ok(SuiteReport { cells, errors, out })
    });
    // Nothing that still hangs in Docker may keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    report
}

/// Docker, with nothing in it of the dead, and with the images that an order needs.
async fn make_ready(order: &Order, display: &Display) -> Result<Engine> {
    let engine = containers::engine_telling(display).await?;
    let dead = containers::sweep(&engine, &containers::Which::Dead);
    match engine.unless_silent(display, dead).await {
        Ok(swept) if swept.is_empty() => {}
        Ok(swept) => display.line(&format!("removed what a dead run had left: {swept}")),
        Err(error) if error.is_of_daemon() => return Err(error.into()),
        // What is left of others is no reason not to run.
        Err(error) => display.line(&format!("{error}")),
    }
    let stages = stages(order);
    let images = containers::images::ensure(&engine, &stages, display);
    engine.unless_silent(display, images).await?;
    Ok(engine)
}

/// Writes and shows what came out, and says what it means for the exit status. What goes to a file goes first: whoever
/// reads the rest may be gone.
pub fn conclude(suite: &SuiteReport, how: &HowArguments, voice: Voice) -> Result<Exit> {
    let mut exit = suite.exit();
    if let Some(path) = &how.summary
        && let Err(error) = runner::write(path, suite.markdown().as_bytes())
    {
        let error = runner::advised(error);
        tell_error(&error);
        exit = exit.max(exit::of_error(&error));
    }
    match voice.format {
        Format::Human => say(suite.human(voice.color)),
        Format::Json => say(serde_json::to_string_pretty(
            &suite.judgements().collect::<Vec<_>>(),
        )?),
        Format::Jsonl => {}
    }
    // All others were told as they came. Every site that was interrupted says so; once is enough.
    let interrupted = |error: &&&anyhow::Error| exit::of_error(error) == Exit::Interrupted;
    let errors = suite.distinct_errors();
    errors
        .iter()
        .find(interrupted)
        .into_iter()
        .for_each(|error| tell_error(error));
    Ok(exit)
}

/// The stages of the Dockerfile that an order needs.
fn stages(order: &Order) -> Vec<&'static str> {
    let mut stages: Vec<&'static str> = vec![
        containers::site::CLIENT_STAGE,
        containers::site::STORAGE_STAGE,
    ];
    for cell in &order.cells {
        stages.extend(
            cell.topology
                .servers
                .iter()
                .map(|(_, service)| service.name()),
        );
    }
    stages.sort_unstable();
    stages.dedup();
    stages
}

/// A seed that is short enough to be typed again.
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xffff)
}

/// Tells of runs as they go.
struct Teller {
    display: Display,
    voice: Voice,
}

impl Observer for Teller {
    fn step(&self, what: &str) {
        self.display.line(what);
    }

    fn run_begins(&self, title: &str) {
        self.display.now(title);
    }

    fn failed(&self, error: &anyhow::Error) {
        if exit::of_error(error) != Exit::Interrupted {
            for line in exit::told(error) {
                self.display.line(&line);
            }
        }
    }

    fn run_judged(&self, judgement: &Judgement) {
        self.display.run_done();
        self.display.line(&judgement.line());
        if self.voice.format == Format::Jsonl {
            say(judgement.to_json());
        }
    }
}
