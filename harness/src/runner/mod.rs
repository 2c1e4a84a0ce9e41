//! Runs cells on real servers: starts a site for each topology, gives every run fresh clients and names of its own on
//! it, and judges what was recorded.

mod cells;
mod clients;
mod competition;
mod directory;
mod ended;
mod one_run;
mod recorder;
mod stop;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use containers::Engine;
use containers::site::{Site, SiteRequest};
use containers::topologies::Topology;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use cells::{Cell, Partition, Selection, Wanted};
pub use directory::{make_folder, write};
pub use stop::{Stop, end_at_once};

use one_run::Made;

use crate::exit::{self, Exit, Interrupted};
use crate::limits;
use crate::report::{Class, Judgement};

/// What is to be run, and how.
pub struct Order {
    /// The cells, each with the plan of its runs but for their seeds.
    pub cells: Vec<Cell>,
    /// How many runs each cell gets.
    pub times: u32,
    /// The seed of each cell's first run; every further run adds one.
    pub seed: u64,
    /// Where the run directories go; absolute.
    pub out: PathBuf,
    /// How many sites may be up at once.
    pub jobs: usize,
    /// Leave the servers running at the end.
    pub keep_running: bool,
    /// Disable every fault's mechanism, to see whether its evidence notices.
    pub sabotage: bool,
}

/// Hears how things go.
pub trait Observer: Send + Sync {
    /// Something that is worth a line was begun or finished.
    fn step(&self, what: &str);
    /// A run begins.
    fn run_begins(&self, title: &str);
    /// A run was judged.
    fn run_judged(&self, judgement: &Judgement);
    /// Something kept a cell from being run to its end. Told at once, since it may take long until all else has ended.
    fn failed(&self, error: &anyhow::Error);
}

/// Everything that the cells' runs came to.
pub struct Outcome {
    /// For each cell, in order, its judgements.
    pub judgements: Vec<Vec<Judgement>>,
    /// The errors that kept cells from being run to their end.
    pub errors: Vec<anyhow::Error>,
}

/// That this process may start as many threads as an order's runs need.
///
/// # Errors
/// [`containers::Error::TooFewThreads`].
pub fn check_threads(order: &Order) -> Result<()> {
    let sites = places(order.jobs, groups(&order.cells).len());
    Ok(limits::have_threads(sites)?)
}

/// Runs all cells. The sites of different topologies run side by side.
pub async fn run(
    order: Order,
    engine: &Engine,
    observer: Arc<dyn Observer>,
    stop: Stop,
) -> Outcome {
    let order = Arc::new(order);
    let groups = groups(&order.cells);
    let places = Arc::new(Semaphore::new(places(order.jobs, groups.len())));
    let errors = Arc::new(Errors::new(observer.clone()));
    let judgements = Arc::new(Mutex::new(vec![Vec::new(); order.cells.len()]));
    let mut sites = JoinSet::new();
    for group in groups {
        let (order, places, engine) = (order.clone(), places.clone(), engine.clone());
        let (observer, stop, judgements) = (observer.clone(), stop.clone(), judgements.clone());
        let errors = errors.clone();
        sites.spawn(async move {
            let _place = places.acquire().await;
            let keep = |cell: usize, judgement: Judgement| {
                observer.run_judged(&judgement);
                judgements.lock().unwrap_or_else(PoisonError::into_inner)[cell].push(judgement);
            };
            run_group(&order, &engine, &group, &*observer, &stop, &errors, keep).await
        });
    }
    while let Some(ended) = sites.join_next().await {
        if let Err(panic) = ended {
            errors.add(anyhow::Error::new(panic).context("a site's task ended early"));
        }
    }
    let judgements =
        std::mem::take(&mut *judgements.lock().unwrap_or_else(PoisonError::into_inner));
    Outcome {
        judgements,
        errors: errors.take(),
    }
}

/// How many sites may be up at once: a semaphore cannot count as far as a command line.
fn places(jobs: usize, groups: usize) -> usize {
    jobs.min(groups).max(1)
}

/// What went wrong, told as it happens.
struct Errors {
    observer: Arc<dyn Observer>,
    met: Mutex<Vec<anyhow::Error>>,
}

impl Errors {
    fn new(observer: Arc<dyn Observer>) -> Errors {
        Errors {
            observer,
            met: Mutex::default(),
        }
    }

    /// Takes an error in, and tells it unless the same was told before.
    fn add(&self, error: anyhow::Error) {
        let error = advised(error);
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let text = format!("{error:#}");
        let told = |before: &anyhow::Error| {
            // Sites that lose the same Docker meet it at different things.
            is_left_behind(before) && is_left_behind(&error)
                || format!("{before:#}").contains(&text)
        };
        if !met.iter().any(told) {
            self.observer.failed(&error);
        }
        met.push(error);
    }

    /// Takes in an error of starting or stopping, and the interruption that may have led to it.
    fn add_with_interrupt(&self, error: anyhow::Error, stop: &Stop) {
        self.add(error);
        if let Err(interrupted) = stop.check() {
            self.add(interrupted);
        }
    }

    /// Whether Docker is of no use any more, as one of them says.
    fn lost_docker(&self) -> bool {
        let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_docker = met.iter().filter_map(|error| error.downcast_ref());
        of_docker.any(containers::Error::is_of_daemon)
    }

    fn take(&self) -> Vec<anyhow::Error> {
        std::mem::take(&mut *self.met.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_left_behind(error: &anyhow::Error) -> bool {
    let of_docker = error.downcast_ref::<containers::Error>();
    matches!(of_docker, Some(containers::Error::LeftBehind { .. }))
}

/// An error of the system's that says by itself neither what it means nor what to do, with that.
pub fn advised(error: anyhow::Error) -> anyhow::Error {
    let is_any = |is_so: fn(&std::io::Error) -> bool| exit::io_causes(&error).any(is_so);
    let advice = if is_any(containers::is_limit_of_files) {
        "raise the limit of open files (`ulimit -n 4096`), or run fewer clients or `--jobs` at once"
    } else if is_any(exit::is_full) {
        "make room there, or name another place (--out, --summary)"
    } else {
        return error;
    };
    // Errors of hosts, of Docker and of histories say it themselves.
    let says = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<containers::Error>()
            || cause.is::<containers::agent::AgentError>()
            || cause.is::<histories::WriteError>()
    };
    if error.chain().any(says) {
        return error;
    }
    error.context(advice)
}

/// Cells that can share one site.
struct Group {
    topology: &'static Topology,
    clients: u32,
    cells: Vec<usize>,
}

fn groups(cells: &[Cell]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let clients = cell.clients();
        match groups
            .iter_mut()
            .find(|group| group.topology.name == cell.topology.name && group.clients == clients)
        {
            Some(group) => group.cells.push(index),
            None => groups.push(Group {
                topology: cell.topology,
                clients,
                cells: vec![index],
            }),
        }
    }
    groups
}

async fn run_group(
    order: &Order,
    engine: &Engine,
    group: &Group,
    observer: &dyn Observer,
    stop: &Stop,
    errors: &Errors,
    mut keep: impl FnMut(usize, Judgement),
) {
    if errors.lost_docker() {
        return;
    }
    let site = match start_site(order, engine, group, observer, stop).await {
        Ok(site) => Arc::new(site),
        Err(error) => return errors.add_with_interrupt(error, stop),
    };
    if let Err(error) = run_cells(order, engine, group, &site, observer, stop, &mut keep).await {
        errors.add(error);
    }
    if order.keep_running {
        observer.step(&kept(&site));
        site.keep();
        return;
    }
    let told = Told(observer);
    let impatience = engine.impatience(stop.asked(), &told);
    match Arc::into_inner(site).map(|site| site.stop_unless(impatience)) {
        Some(stopped) => {
            if let Err(error) = stopped.await {
                errors.add_with_interrupt(error.into(), stop);
            }
        }
        None => tracing::warn!("the site is still in use, it goes when that ends"),
    }
}

/// Tells an observer of waits.
struct Told<'a>(&'a dyn Observer);

impl containers::Progress for Told<'_> {
    fn step(&self, what: &str) {
        self.0.step(what);
    }

    fn detail(&self, _line: &str) {}
}

async fn start_site(
    order: &Order,
    engine: &Engine,
    group: &Group,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Site> {
    stop.check()?;
    observer.step(&format!(
        "starting {}, a storage and {} clients",
        group.topology.summary, group.clients
    ));
    let request = SiteRequest {
        run: uuid::Uuid::now_v7().to_string(),
        topology: group.topology,
        clients: group.clients,
        out_dir: order.out.clone(),
        // Not by its path, under which another program may lie by now.
        exe: PathBuf::from("/proc/self/exe"),
    };
    let told = Told(observer);
    let given_up = engine.start_given_up(stop.asked(), &told);
    match Site::start_unless(request, given_up).await {
        // What else fails of a start that is given up follows from that.
        Err(error) if stop.is_asked() && !error.leaves_something() => Err(Interrupted.into()),
        site => Ok(site?),
    }
}

async fn run_cells(
    order: &Order,
    engine: &Engine,
    group: &Group,
    site: &Arc<Site>,
    observer: &dyn Observer,
    stop: &Stop,
    keep: &mut impl FnMut(usize, Judgement),
) -> Result<()> {
    for &index in &group.cells {
        let cell = &order.cells[index];
        for nth in 0..order.times {
            stop.check()?;
            observer.run_begins(&format!("{}, {} of {}", cell.title(), nth + 1, order.times));
            let run = one_run::Run {
                site,
                engine,
                plan: cell.plan(order.seed.wrapping_add(u64::from(nth))),
                lock: cell.lock,
                storage: cell.storage,
                policy: cell.policy,
                out: &order.out,
                sabotage: order.sabotage,
            };
            let Made { judgement, ended } = run.go(stop).await.with_context(|| cell.title())?;
            if counts(&judgement, &ended) {
                keep(index, judgement);
            }
            ended.with_context(|| cell.title())?;
        }
    }
    Ok(())
}

/// Whether a run counts: one that was interrupted counts only by a promise that it broke before.
fn counts(judgement: &Judgement, ended: &Result<()>) -> bool {
    let is_interrupted = |error: &anyhow::Error| exit::of_error(error) == Exit::Interrupted;
    !ended.as_ref().is_err_and(is_interrupted) || judgement.has(Class::Broken)
}

fn kept(site: &Site) -> String {
    let hosts: Vec<String> = site
        .hosts
        .iter()
        .map(|host| format!("{} {}", host.name, host.address))
        .collect();
    format!(
        "left running, until `fencepost clean --all`: {}",
        hosts.join(", ")
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use histories::{FORMAT_VERSION, Header, Plan, Workload};

    use super::*;

    #[test]
    fn no_more_sites_than_there_are_groups() {
        assert_eq!(places(2, 3), 2);
        assert_eq!((places(0, 3), places(1, 0)), (1, 1));
        let counted = Semaphore::new(places(usize::MAX, 3));
        assert_eq!(counted.available_permits(), 3);
    }

    #[test]
    fn an_interrupted_run_counts_only_by_a_promise_that_it_broke() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../histories/corpus/v1");
        let history = Path::new(corpus).join("paused-client.jsonl");
        let mut judgement = crate::report::judge(&history).unwrap();
        let interrupted = || Err(anyhow::Error::from(Interrupted).context("a run"));
        assert!(counts(&judgement, &Ok(())));
        assert!(counts(&judgement, &Err(anyhow::anyhow!("host s1 ended"))));
        assert!(!counts(&judgement, &interrupted()));
        judgement.properties[0].class = Class::Broken;
        assert!(counts(&judgement, &interrupted()));
    }

    #[test]
    fn too_many_open_files_come_with_what_to_do() {
        let met = || std::io::Error::from_raw_os_error(nix::libc::EMFILE);
        let error = advised(anyhow::Error::new(met()).context("open c1.jsonl"));
        assert_eq!(
            crate::exit::of_error(&error),
            crate::exit::Exit::Unavailable
        );
        for word in ["ulimit -n", "c1.jsonl", "Too many open files"] {
            assert!(format!("{error:#}").contains(word), "{error:#}");
        }
        let known = advised(containers::Error::io("c1.jsonl", met()).into());
        assert_eq!(
            format!("{known:#}").matches("ulimit -n").count(),
            1,
            "{known:#}"
        );
    }

    #[test]
    fn a_full_disk_comes_with_what_to_do_whatever_met_it() {
        let out = tempfile::tempdir().unwrap();
        let full = || std::io::Error::from_raw_os_error(nix::libc::ENOSPC);
        let write_error = histories::WriteError::Io {
            source: full(),
            path: Some(out.path().to_owned()),
        };
        let met = [
            anyhow::Error::new(full()).context("make the folder runs/no-fault"),
            anyhow::Error::new(full()).context("client c1 ended by itself (exit 69)"),
            write_error.into(),
            containers::Error::io("runs", full()).into(),
        ];
        for error in met {
            let told = format!(
                "{:#}",
                advised(error.context("no-fault redis-set unfenced"))
            );
            let advice = ["make room there", "free some space there"];
            let times: usize = advice.iter().map(|text| told.matches(text).count()).sum();
            assert_eq!(times, 1, "{told}");
        }
    }

    /// Keeps what it is told of errors.
    #[derive(Default)]
    struct Listener(Mutex<Vec<String>>);

    impl Observer for Listener {
        fn step(&self, _what: &str) {}
        fn run_begins(&self, _title: &str) {}
        fn run_judged(&self, _judgement: &Judgement) {}
        fn failed(&self, error: &anyhow::Error) {
            self.0.lock().unwrap().push(error.to_string());
        }
    }

    #[test]
    fn the_same_error_is_told_once_and_counted_twice() {
        let listener = Arc::new(Listener::default());
        let errors = Errors::new(listener.clone());
        for text in ["no Docker", "no disk", "no Docker"] {
            errors.add(anyhow::anyhow!(text));
        }
        assert_eq!(*listener.0.lock().unwrap(), ["no Docker", "no disk"]);
        assert_eq!(errors.take().len(), 3);
    }

    /// A plan with nothing in it that can go wrong.
    pub fn plan() -> Plan {
        Plan {
            scenario: "no-fault".into(),
            lock: "redis-set".into(),
            topology: "redis".into(),
            storage: "postgres".into(),
            policy: "unfenced".into(),
            write_condition: None,
            seed: 1,
            clients: 2,
            ttl_ms: 300,
            progress_bound_ms: 2_000,
            limit_ms: 10_000,
            controls: Vec::new(),
            workload: Workload {
                name: "document".into(),
                work_ms: 5,
                rest_ms: 10,
                retry_ms: 10,
                rounds: 2,
            },
            faults: Vec::new(),
        }
    }

    /// The header of a run of it.
    pub fn header() -> Header {
        Header {
            fencepost: FORMAT_VERSION,
            run: "0199".into(),
            started: "2026-01-01T00:00:00.000Z".into(),
            seed: 1,
            plan: plan(),
            contract: Vec::new(),
            heartbeat_ms: None,
            servers: BTreeMap::new(),
            images: BTreeMap::new(),
            machine: BTreeMap::new(),
        }
    }
}
