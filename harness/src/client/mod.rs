//! The client process: it runs a workload against a lock and a storage, alone in its host, and writes down all it does.
//!
//! It lives on after anything but a failure to write that down: a history with holes in it must not look green.

mod grant;
mod points;
mod record;
#[cfg(test)]
mod tests;
mod worker;

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, anyhow, bail};
use containers::agent::protocol::{At, Rule};
use histories::Plan;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

pub use grant::Grant;
pub use record::{Open, Record, RecordingFailed};
pub use worker::{Client, Pending, Tools};

use crate::locks::{self, Hello};
use crate::storages;
use crate::workloads;

/// The name of the client's process in its host's agent.
pub const CLIENT: &str = "client";

/// The operation of `exit` events and of servers' stalls, which belong to none.
pub const EXIT_OP: u64 = 0;

/// How many operations a client may do before its numbers run into those of the next.
const OPS_A_CLIENT: u64 = 10_000_000;

/// How many operations a client may do in one life.
const OPS_A_LIFE: u64 = 1_000_000;

/// All that a client has to be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientConfig {
    /// Its host: `c1`.
    pub client: String,
    /// The run's monotonic base: its times are CLOCK_MONOTONIC nanoseconds since then.
    pub base_ns: u64,
    /// The file that it appends its events to; all its lives the same.
    pub events: PathBuf,
    /// What is to be done.
    pub plan: Plan,
    /// The name of the lock, which no other run uses.
    pub lock: String,
    /// The lock service's servers, in the order of their hosts.
    pub lock_servers: Vec<SocketAddr>,
    /// The name of the document, which no other run uses.
    pub document: String,
    /// The storage's server; the lock's own where the policy works in the lock's transaction.
    pub storage_server: SocketAddr,
    /// What its agent is to hear of. Points count in its first life only: a second would reach them all over again.
    pub rules: Vec<Rule>,
}

/// Which of its host's clients a process is: the first is `c1`, and the one after a restart `c1.2`.
pub fn process_name(client: &str, life: u32) -> String {
    if life <= 1 {
        client.to_owned()
    } else {
        format!("{client}.{life}")
    }
}

/// The first operation of a client in that life: of `c2` 20,000,001, and after a restart 21,000,001.
///
/// # Errors
/// If the client's name is not `c` and a number from 1 on.
pub fn first_op(client: &str, life: u32) -> Result<u64> {
    let number = client.strip_prefix('c').and_then(|n| n.parse().ok());
    let number: u64 = number
        .filter(|&n| n > 0)
        .ok_or_else(|| anyhow!("a client is called c1, c2 and so on, not `{client}`"))?;
    Ok(number * OPS_A_CLIENT + u64::from(life.max(1) - 1) * OPS_A_LIFE + 1)
}

/// Runs a client until SIGTERM asks it to finish its round.
///
/// `FENCEPOST_AGENT` names the socket of its agent, and `FENCEPOST_LIFE` counts its lives.
///
/// # Errors
/// If the configuration is not one, or an event could not be written down ([`RecordingFailed`]).
pub fn run(config: &Path) -> Result<()> {
    let text = std::fs::read_to_string(config)
        .with_context(|| format!("read the client's configuration {}", config.display()))?;
    let config = serde_json::from_str(&text)
        .with_context(|| format!("read the client's configuration {}", config.display()))?;
    let life = match env::var("FENCEPOST_LIFE") {
        Ok(life) => life
            .parse()
            .with_context(|| format!("read FENCEPOST_LIFE `{life}`"))?,
        Err(_) => 1,
    };
    let agent = env::var_os("FENCEPOST_AGENT").map(PathBuf::from);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the client's runtime")?;
    runtime.block_on(live(config, life, agent))
}

/// One life of a client.
async fn live(config: ClientConfig, life: u32, agent: Option<PathBuf>) -> Result<()> {
    let stop = stop_on_terminate()?;
    let process = process_name(&config.client, life);
    let plan = &config.plan;
    let workload = workloads::workload(&plan.workload.name)
        .ok_or_else(|| anyhow!("there is no workload `{}`", plan.workload.name))?;
    let tools = tools(&config, life, &process, agent, stop)?;
    let record = Rc::clone(&tools.record);
    let mut client = Client::new(&config, &process, tools);
    tracing::info!(
        "{process} begins: {} with policy {}",
        plan.lock,
        plan.policy
    );
    let rounds = async {
        while !client.is_stopping() {
            workload.round(&mut client).await?;
        }
        record.beat()
    };
    tokio::select! {
        done = rounds => done?,
        failed = record.keep_beating() => return Err(failed.into()),
    }
    tracing::info!("{process} ends as it was asked to");
    Ok(())
}

/// What a client works with: its record, its lock and its storage, as the plan names them.
fn tools(
    config: &ClientConfig,
    life: u32,
    process: &str,
    agent: Option<PathBuf>,
    stop: watch::Receiver<bool>,
) -> Result<Tools> {
    let plan = &config.plan;
    let service = locks::service(&plan.lock)
        .ok_or_else(|| anyhow!("there is no lock service `{}`", plan.lock))?;
    let storage = storages::storage(&plan.storage)
        .ok_or_else(|| anyhow!("there is no storage `{}`", plan.storage))?;
    let policy = storages::policy(&plan.policy)
        .ok_or_else(|| anyhow!("there is no policy `{}`", plan.policy))?;
    if let Some(reason) = service.refuses(policy) {
        bail!("{reason}");
    }
    let mut random = random_of(plan.seed, process);
    let hello = Hello {
        servers: config.lock_servers.clone(),
        client: process.to_owned(),
        seed: random.next_u64(),
    };
    let mut rules = config.rules.clone();
    rules.retain(|rule| life <= 1 || matches!(rule.at, At::Event { .. }));
    let record = Record::open(
        &config.events,
        process,
        config.base_ns,
        first_op(&config.client, life)?,
        points::Reach::new(rules, agent),
    )?;
    let lock = service
        .connect(&hello)
        .with_context(|| format!("the lock service {}", service.name()))?;
    Ok(Tools {
        record: Rc::new(record),
        lock,
        has: service.has(),
        storage: storage.connect(config.storage_server, process, policy),
        policy,
        random,
        stop,
    })
}

/// What a process's random choices come from: the run's seed and its name, which together are the generator's own seed.
fn random_of(seed: u64, process: &str) -> ChaCha8Rng {
    let mut bytes = [0; 32];
    let from = seed.to_le_bytes().into_iter().chain(process.bytes());
    bytes.iter_mut().zip(from).for_each(|(to, from)| *to = from);
    ChaCha8Rng::from_seed(bytes)
}

/// Becomes true when SIGTERM came.
fn stop_on_terminate() -> Result<watch::Receiver<bool>> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let (stopping, stop) = watch::channel(false);
    tokio::spawn(async move {
        terminate.recv().await;
        stopping.send_replace(true);
        // The sender stays, for a closed channel would tell nobody anything.
        stopping.closed().await;
    });
    Ok(stop)
}
