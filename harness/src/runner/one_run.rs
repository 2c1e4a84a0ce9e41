//! One run of one plan on a site that is up.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use containers::agent::Agent;
use containers::agent::monotonic_ns;
use containers::agent::protocol::Command;
use containers::site::{Host, Site};
use containers::{Engine, EngineFacts};
use histories::{Event, FORMAT_VERSION, Function, Header, Kind, Plan, STORAGE};
use nemesis::Nemesis;

use super::Stop;
use super::clients::Client;
use super::directory::{RunDirectory, write};
use super::recorder::Recorder;
use crate::client::ClientConfig;

use crate::locks::LockService;
use crate::report::{Judgement, judge};
use crate::storages::{Policy, StorageService};

/// How often the run looks whether it is over.
const INTERVAL: Duration = Duration::from_millis(10);

/// How long servers may take to be ready for the next run.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// How long clients may take to finish their round when they are asked to end.
const END_WITHIN: Duration = Duration::from_secs(20);

/// The first operation of the storage's own in a history; those of clients are above it and those of the nemesis below.
const FIRST_STORAGE_OP: u64 = 5_000_000;

/// A run that is to be made.
pub struct Run<'a> {
    /// Where.
    pub site: &'a Arc<Site>,
    /// What Docker is.
    pub engine: &'a Engine,
    /// What is to be done.
    pub plan: Plan,
    /// The lock service.
    pub lock: &'static dyn LockService,
    /// The storage.
    pub storage: &'static dyn StorageService,
    /// How the storage treats a write.
    pub policy: &'static Policy,
    /// Where run directories go.
    pub out: &'a Path,
    /// Whether the faults' mechanisms are disabled.
    pub sabotage: bool,
}

impl Run<'_> {
    /// Makes the run. Whatever happens, what was recorded is kept, and is judged if it can be read.
    pub async fn go(self, stop: &Stop) -> Result<Judgement> {
        let run = uuid::Uuid::now_v7();
        let hosts: Vec<&str> = self
            .site
            .hosts
            .iter()
            .map(|host| host.name.as_str())
            .collect();
        let directory = RunDirectory::create(self.out, &self.plan, &run.to_string(), &hosts)?;
        let names = Names::of(&run);
        self.make_ready(&directory, &names).await?;

        let header = self.header(&run.to_string());
        let files: Vec<_> = self
            .clients()
            .map(|host| directory.client_events(&host.name))
            .collect();
        for file in &files {
            File::create(file).with_context(|| format!("make {}", file.display()))?;
        }
        let recorder = Recorder::start(&directory.history(), &header, &files)?;
        let acted = self.act(&directory, &names, &recorder, stop).await;
        let logged = match &acted {
            Ok(base_ns) => self.record_log(&names, *base_ns, &recorder).await,
            Err(_) => Ok(()),
        };
        recorder.finish()?;
        histories::seal(directory.history())?;
        directory.forget_clients()?;
        directory.mark_latest()?;
        let judgement = judge(&directory.history())?;
        write(&directory.verdict(), judgement.to_json_pretty().as_bytes())?;

        let kept = || format!("what was recorded is in {}", directory.path().display());
        acted.with_context(kept)?;
        logged.with_context(kept)?;
        stop.check()?;
        Ok(judgement)
    }

    fn clients(&self) -> impl Iterator<Item = &Host> {
        self.site.clients().take(self.plan.clients as usize)
    }

    /// Waits for the servers, and makes what the lock and the storage need before the first client comes.
    async fn make_ready(&self, directory: &RunDirectory, names: &Names) -> Result<()> {
        tokio::task::block_in_place(|| {
            for host in &self.site.hosts {
                let mut agent = host.agent()?;
                agent.log_to(&directory.logs(&host.name))?;
                if let Some(service) = host.service() {
                    wait_until_ready(host, service, &mut agent)?;
                }
            }
            anyhow::Ok(())
        })?;
        self.lock
            .prepare(&self.lock_servers())
            .await
            .context("prepare the lock service")?;
        self.storage
            .prepare(self.storage_server(), &names.document)
            .await
            .context("prepare the storage")
    }

    fn lock_servers(&self) -> Vec<SocketAddr> {
        self.site.servers().filter_map(server_address).collect()
    }

    /// With a policy that works in the lock's transaction, the document lies on the lock's own server.
    fn storage_server(&self) -> SocketAddr {
        let own = if self.policy.needs_transaction {
            self.site.servers().find_map(server_address)
        } else {
            None
        };
        own.or_else(|| server_address(self.site.storage()))
            .unwrap_or_else(|| unreachable!("a storage runs a server"))
    }

    fn header(&self, run: &str) -> Header {
        Header {
            fencepost: FORMAT_VERSION,
            run: run.to_owned(),
            started: crate::report::rfc3339(std::time::SystemTime::now()),
            seed: self.plan.seed,
            plan: self.plan.clone(),
            servers: self.site.versions.clone(),
            images: self
                .site
                .hosts
                .iter()
                .map(|host| (host.name.clone(), host.image.clone()))
                .collect(),
            machine: machine(self.engine.facts()),
        }
    }

    /// Starts clients and nemesis, waits for the end, heals, ends the clients. Returns the run's monotonic base.
    async fn act(
        &self,
        directory: &RunDirectory,
        names: &Names,
        recorder: &Recorder,
        stop: &Stop,
    ) -> Result<u64> {
        let base_ns = monotonic_ns();
        let mut clients = self.start_clients(directory, names, base_ns)?;
        let sink = recorder.sink();
        let nemesis = Nemesis::start(
            self.plan.clone(),
            self.site.clone(),
            base_ns,
            // The recorder is gone only when the run is over, and then nothing is left to tell.
            move |event| drop(sink.send(event)),
            self.sabotage,
        );
        let watched = self
            .watch(&nemesis, &mut clients, recorder, base_ns, stop)
            .await;
        let ended = tokio::task::block_in_place(|| {
            nemesis.heal_all_and_stop();
            clients
                .iter_mut()
                .try_for_each(|client| client.end(recorder, base_ns, END_WITHIN))
        });
        watched.and(ended).map(|()| base_ns)
    }

    fn start_clients(
        &self,
        directory: &RunDirectory,
        names: &Names,
        base_ns: u64,
    ) -> Result<Vec<Client>> {
        tokio::task::block_in_place(|| {
            let ready: Result<Vec<_>> = self
                .clients()
                .map(|host| self.arm_client(host, directory, names, base_ns))
                .collect();
            ready?
                .into_iter()
                .map(|(host, command)| Client::start(host, command, &self.plan))
                .collect()
        })
    }

    /// Writes a client's configuration and arms its host, so that nothing is left but to start it.
    fn arm_client<'h>(
        &self,
        host: &'h Host,
        directory: &RunDirectory,
        names: &Names,
        base_ns: u64,
    ) -> Result<(&'h Host, Command)> {
        let rules = nemesis::rules_for(&self.plan, &host.name, self.sabotage);
        let config = ClientConfig {
            client: host.name.clone(),
            base_ns,
            events: directory.client_events(&host.name),
            plan: self.plan.clone(),
            lock: names.lock.clone(),
            lock_servers: self.lock_servers(),
            document: names.document.clone(),
            storage_server: self.storage_server(),
            rules: rules.clone(),
        };
        let path = directory.client_config(&host.name);
        write(
            &path,
            serde_json::to_string_pretty(&config)
                .context("write a client's configuration")?
                .as_bytes(),
        )?;
        host.agent()?.arm(rules)?;
        let argv = ["fencepost", "client", &path.to_string_lossy()]
            .map(str::to_owned)
            .to_vec();
        Ok((
            host,
            Command {
                argv,
                ..Command::default()
            },
        ))
    }

    /// Waits until every fault is over and every client that lives has done its rounds since, or the limit is reached.
    async fn watch(
        &self,
        nemesis: &Nemesis,
        clients: &mut [Client],
        recorder: &Recorder,
        base_ns: u64,
        stop: &Stop,
    ) -> Result<()> {
        let limit = Instant::now() + Duration::from_millis(self.plan.limit_ms);
        let mut at_settled: Option<BTreeMap<String, u64>> = None;
        while Instant::now() < limit && !stop.is_asked() && !recorder.has_failed() {
            tokio::time::sleep(INTERVAL).await;
            tokio::task::block_in_place(|| {
                clients
                    .iter_mut()
                    .try_for_each(|client| client.notice(recorder, base_ns))
            })?;
            if !nemesis.settled() {
                continue;
            }
            let rounds = recorder.rounds();
            let since = at_settled.get_or_insert_with(|| rounds.clone());
            let done = |client: &Client| {
                let count =
                    |rounds: &BTreeMap<String, u64>| rounds.get(&client.host).copied().unwrap_or(0);
                !client.lives || count(&rounds) >= count(since) + self.plan.workload.rounds
            };
            if clients.iter().all(done) {
                break;
            }
        }
        Ok(())
    }

    /// Reads the storage's log of accepted writes into the history.
    async fn record_log(&self, names: &Names, base_ns: u64, recorder: &Recorder) -> Result<()> {
        let sink = recorder.sink();
        let tell = |event: Event<'static>| sink.send(event).context("the recorder is gone");
        let event = |op, kind, f| {
            let mut event = Event::new(monotonic_ns() - base_ns, STORAGE, op, kind, f);
            event.document = Some(names.document.clone().into());
            event
        };
        tell(event(FIRST_STORAGE_OP, Kind::Invoke, Function::Log))?;
        let entries = match self
            .storage
            .log(self.storage_server(), &names.document)
            .await
        {
            Ok(entries) => entries,
            Err(error) => {
                let mut unknown = event(FIRST_STORAGE_OP, Kind::Info, Function::Log);
                unknown.error = Some(format!("{error:#}").into());
                return tell(unknown);
            }
        };
        for entry in &entries {
            let mut row = event(entry.op, Kind::Ok, Function::Accepted);
            (row.version, row.token) = (Some(entry.version), entry.token);
            row.value = Some(entry.value.clone().into());
            tell(row)?;
        }
        let mut done = event(FIRST_STORAGE_OP, Kind::Ok, Function::Log);
        done.entries = Some(entries.len() as u64);
        tell(done)
    }
}

/// The names that a run's lock and document have, so that no two runs on the same servers ever meet.
struct Names {
    lock: String,
    document: String,
}

impl Names {
    fn of(run: &uuid::Uuid) -> Names {
        // The end of a UUIDv7 is its random part.
        let id = run.simple().to_string().split_off(22);
        Names {
            lock: format!("lock-{id}"),
            document: format!("document-{id}"),
        }
    }
}

fn server_address(host: &Host) -> Option<SocketAddr> {
    host.service()
        .map(|service| SocketAddr::from((host.address, service.port())))
}

fn wait_until_ready(
    host: &Host,
    service: &dyn containers::services::Service,
    agent: &mut Agent,
) -> Result<()> {
    let limit = Instant::now() + READY_WITHIN;
    while !service.ready(agent)? {
        if Instant::now() > limit {
            bail!(
                "{} on host {} is not ready for the next run within {} s; see its log in the run's directory",
                service.name(),
                host.name,
                READY_WITHIN.as_secs()
            );
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}

/// What of the machine belongs into a history's header.
fn machine(facts: &EngineFacts) -> BTreeMap<String, String> {
    [
        ("docker", facts.version.clone()),
        ("kernel", facts.kernel.clone()),
        ("operating-system", facts.operating_system.clone()),
        ("architecture", facts.architecture.clone()),
        ("processors", facts.processors.to_string()),
        ("storage-driver", facts.storage_driver.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
