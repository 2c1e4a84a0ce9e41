//! The start of a site: its network, its hosts, their agents, their servers, in this order.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use tokio::runtime::Runtime;

use super::ground::Ground;
use super::{CLIENT_STAGE, Ends, FOLDERS, Role, STORAGE, STORAGE_SERVICE, Site, SiteRequest};
use super::{docker_events, servers};
use crate::{Error, RuntimeDirectory};

/// How long what Docker was asked for may take once nobody waits for it any more.
pub(super) const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// The pause between two looks whether the start was given up.
const CANCEL_PAUSE: Duration = Duration::from_millis(20);

/// Starts a site, or removes what there was of it.
pub fn start(request: &SiteRequest, cancelled: &AtomicBool) -> Result<Site, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::io("a runtime of its own", source))?;
    let mut watch = Stopwatch::new();
    let directory = RuntimeDirectory::of_run(&request.run)?;
    let folders = make_folders(request)?;
    let ground = Ground::new(request, directory.path(), folders.path());
    let ground = runtime.block_on(unless(cancelled, ground))?;
    watch.lap("images");
    // From here on, whatever ends the start removes what it has made.
    let mut site = Site {
        run: request.run.clone(),
        topology: request.topology,
        hosts: Vec::new(),
        versions: BTreeMap::new(),
        timings: Vec::new(),
        ends: Ends::none(),
        _following: None,
        runtime: Some(directory),
        folders: Some(folders),
        kept: AtomicBool::new(false),
        gone: false,
    };
    match fill(&mut site, request, &runtime, &ground, &mut watch, cancelled) {
        Ok(()) => {
            site.timings = watch.laps;
            Ok(site)
        }
        Err(error) => Err(runtime.block_on(async {
            let error = ground.explained(error).await;
            site.give_up(&ground.engine, error).await
        })),
    }
}

/// Makes all that a site consists of.
fn fill(
    site: &mut Site,
    request: &SiteRequest,
    runtime: &Runtime,
    ground: &Ground,
    watch: &mut Stopwatch,
    cancelled: &AtomicBool,
) -> Result<(), Error> {
    check(cancelled)?;
    runtime.block_on(ground.settled(cancelled, ground.make_network()))?;
    watch.lap("network");
    check(cancelled)?;
    let hosts = planned(request).into_iter();
    // All are awaited, also after one has failed: what Docker was asked for can only be removed when it is there.
    let hosts = join_all(hosts.map(|(name, role)| ground.make_host(name, role)));
    let hosts = async { hosts.await.into_iter().collect::<Result<_, Error>>() };
    site.hosts = runtime.block_on(ground.settled(cancelled, hosts))?;
    watch.lap("containers");
    check(cancelled)?;
    let agents = site.hosts.iter().map(|host| ground.agent_of(host));
    runtime.block_on(unless(cancelled, try_join_all(agents)))?;
    watch.lap("agents");
    check(cancelled)?;
    // Before the servers start, so that whoever lays hands on one that is not up yet is noticed.
    site.ends = Ends::of(&site.hosts)?;
    site._following = Some(docker_events::follow(ground, &site.ends)?);
    let look = docker_events::look(ground, &site.hosts, &site.ends);
    runtime.block_on(unless(cancelled, look))?;
    site.versions = servers::start(&site.hosts, &site.ends, cancelled)?;
    watch.lap("servers");
    check(cancelled)
}

/// Makes what holds the hosts' folders, in a place of its own beside the runs.
fn make_folders(request: &SiteRequest) -> Result<RuntimeDirectory, Error> {
    let out = &request.out_dir;
    fs::create_dir_all(out).map_err(|source| Error::io(out, source))?;
    let out = fs::canonicalize(out).map_err(|source| Error::io(out, source))?;
    RuntimeDirectory::beside(&out.join(FOLDERS), &request.run)
}

/// Ends a start that nobody waits for any more.
pub fn check(cancelled: &AtomicBool) -> Result<(), Error> {
    match cancelled.load(Ordering::Relaxed) {
        true => Err(Error::Cancelled),
        false => Ok(()),
    }
}

/// The outcome of something that may be left undone in the middle, as soon as nobody waits for it any more.
async fn unless<T>(
    cancelled: &AtomicBool,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        outcome = work => outcome,
        () = given_up(cancelled) => Err(Error::Cancelled),
    }
}

/// Waits until nobody waits for the start any more.
pub(super) async fn given_up(cancelled: &AtomicBool) {
    while !cancelled.load(Ordering::Relaxed) {
        tokio::time::sleep(CANCEL_PAUSE).await;
    }
}

/// The hosts that a site is to have.
pub(super) fn planned(request: &SiteRequest) -> Vec<(String, Role)> {
    let servers = request.topology.servers.iter();
    let servers = servers.map(|(name, service)| ((*name).to_owned(), Role::Server(*service)));
    let storage = (STORAGE.to_owned(), Role::Storage(STORAGE_SERVICE));
    let clients = (1..=request.clients).map(|number| (format!("c{number}"), Role::Client));
    servers.chain([storage]).chain(clients).collect()
}

pub(super) fn stage(role: Role) -> &'static str {
    role.service()
        .map_or(CLIENT_STAGE, |service| service.name())
}

/// How long each part of something took.
struct Stopwatch {
    since: Instant,
    laps: Vec<(&'static str, Duration)>,
}

impl Stopwatch {
    fn new() -> Stopwatch {
        Stopwatch {
            since: Instant::now(),
            laps: Vec::new(),
        }
    }

    fn lap(&mut self, what: &'static str) {
        self.laps.push((what, self.since.elapsed()));
        self.since = Instant::now();
    }
}
