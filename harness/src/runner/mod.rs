//! Runs cells on real servers: starts a site for each topology, gives every run fresh clients and names of its own on
//! it, and judges what was recorded.

mod cells;
mod clients;
mod directory;
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

pub use cells::{Cell, Partition, Wanted};
pub use directory::{make_folder, write};
pub use stop::Stop;

use crate::report::Judgement;

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
}

/// Everything that the cells' runs came to.
pub struct Outcome {
    /// For each cell, in order, its judgements.
    pub judgements: Vec<Vec<Judgement>>,
    /// The errors that kept cells from being run to their end.
    pub errors: Vec<anyhow::Error>,
}

/// Runs all cells. The sites of different topologies run side by side.
pub async fn run(
    order: Order,
    engine: &Engine,
    observer: Arc<dyn Observer>,
    stop: Stop,
) -> Outcome {
    let order = Arc::new(order);
    let places = Arc::new(Semaphore::new(order.jobs.max(1)));
    let judgements = Arc::new(Mutex::new(vec![Vec::new(); order.cells.len()]));
    let mut sites = JoinSet::new();
    for group in groups(&order.cells) {
        let (order, places, engine) = (order.clone(), places.clone(), engine.clone());
        let (observer, stop, judgements) = (observer.clone(), stop.clone(), judgements.clone());
        sites.spawn(async move {
            let _place = places.acquire().await.context("the places are gone")?;
            stop.check()?;
            let keep = |cell: usize, judgement: Judgement| {
                observer.run_judged(&judgement);
                judgements.lock().unwrap_or_else(PoisonError::into_inner)[cell].push(judgement);
            };
            run_group(&order, &engine, &group, &*observer, &stop, keep).await
        });
    }
    let mut errors = Vec::new();
    while let Some(ended) = sites.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => errors.push(error),
            Err(panic) => {
                errors.push(anyhow::Error::new(panic).context("a site's task ended early"))
            }
        }
    }
    let judgements =
        std::mem::take(&mut *judgements.lock().unwrap_or_else(PoisonError::into_inner));
    Outcome { judgements, errors }
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
    mut keep: impl FnMut(usize, Judgement),
) -> Result<()> {
    observer.step(&format!(
        "starting {}, a storage and {} clients",
        group.topology.summary, group.clients
    ));
    let site = Site::start(SiteRequest {
        run: uuid::Uuid::now_v7().to_string(),
        topology: group.topology,
        clients: group.clients,
        out_dir: order.out.clone(),
        exe: std::env::current_exe().context("find the path of this program")?,
    });
    let site = tokio::select! {
        site = site => Arc::new(site?),
        () = stop.asked() => return stop.check(),
    };
    let result = run_cells(order, engine, group, &site, observer, stop, &mut keep).await;
    if order.keep_running {
        observer.step(&kept(&site));
        site.keep();
        return result;
    }
    match Arc::into_inner(site) {
        Some(site) => site.stop().await?,
        None => tracing::warn!("the site is still in use, it goes when that ends"),
    }
    result
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
            keep(index, run.go(stop).await.with_context(|| cell.title())?);
        }
    }
    Ok(())
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

    use histories::{FORMAT_VERSION, Header, Plan, Workload};

    /// A plan with nothing in it that can go wrong.
    pub fn plan() -> Plan {
        Plan {
            scenario: "no-fault".into(),
            lock: "redis-set".into(),
            topology: "redis".into(),
            storage: "postgres".into(),
            policy: "unfenced".into(),
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
            servers: BTreeMap::new(),
            images: BTreeMap::new(),
            machine: BTreeMap::new(),
        }
    }
}
