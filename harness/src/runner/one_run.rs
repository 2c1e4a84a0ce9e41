//! One run of one plan on a site that is up.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use containers::agent::protocol::Command;
use containers::agent::{Heartbeat, monotonic_ns};
use containers::site::{End, Ends, Host, Site};
use containers::{Engine, EngineFacts};
use histories::{Event, FORMAT_VERSION, Function, Header, Kind, Plan, STORAGE};
use nemesis::Nemesis;

use super::Stop;
use super::clients::{Client, Clients, by_itself, ended};
use super::directory::RunDirectory;
use super::ended::host_ended;
use super::recorder::Recorder;
use crate::client::ClientConfig;
use crate::contract::contract;
use crate::locks::LockService;
use crate::report::{Judgement, judge};
use crate::storages::{Policy, StorageService};

/// How often the run looks whether it is over.
const INTERVAL: Duration = Duration::from_millis(10);

/// How long servers may take to be ready for the next run.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// How long clients may take to finish their round when they are asked to end.
const END_WITHIN: Duration = Duration::from_secs(20);

/// How long the end of a host may take to be known that has made something else fail.
const EXPLAINED_WITHIN: Duration = Duration::from_millis(500);

/// How long an agent may take to answer: that it stands still is known before.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

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

/// What a run came to.
pub struct Made {
    /// What its `verdict.json` says.
    pub judgement: Judgement,
    /// Whether it came to its end, or what ended it before.
    pub ended: Result<()>,
}

impl Run<'_> {
    /// Makes the run. Whatever happens, what was recorded is kept, and is judged if it can be read.
    pub async fn go(self, stop: &Stop) -> Result<Made> {
        let run = uuid::Uuid::now_v7();
        let directory =
            RunDirectory::create(self.out, &self.plan, &run.to_string(), &self.site.hosts)?;
        let names = Names::of(&run);
        let ready = self.unless_ended(self.make_ready(&directory, &names)).await;
        self.explained(ready, &directory).await?;

        let files: Vec<_> = self
            .clients()
            .map(|host| directory.client_events(&host.name))
            .collect();
        let header = self.header(&run.to_string());
        let recorder = Recorder::start(&directory.history(), &header, &files)?;
        let base_ns = monotonic_ns();
        let mut clients = Clients::new(&self.site.ends, recorder.sink(), base_ns);
        let acted = self
            .act(&directory, &names, base_ns, &mut clients, &recorder, stop)
            .await;
        let logged = match &acted {
            Ok(()) => {
                let log = async {
                    self.record_log(&names, base_ns, &recorder).await?;
                    self.ask_agents().await
                };
                self.unless_ended(log).await
            }
            Err(_) => Ok(()),
        };
        let ran = self.explained(acted.and(logged), &directory).await;
        // One that came last has to get into the history, and may be known only by now.
        let taken_in = self.explained(clients.take_in(), &directory).await;
        recorder.finish()?;
        histories::seal(directory.history())?;
        directory.finish(&self.site.hosts)?;
        directory.mark_latest()?;
        let judgement = judge(&directory.history())?;
        directory.write_verdict(&judgement.to_json_pretty())?;

        let ended = ran
            .and(taken_in)
            .with_context(|| format!("what was recorded is in {}", directory.path().display()))
            .and_then(|()| stop.check());
        Ok(Made { judgement, ended })
    }

    /// What a part of the run comes to, or an error as soon as something ends that was not to.
    async fn unless_ended<T>(&self, part: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            outcome = part => outcome,
            end = self.site.ends.await_unasked() => Err(ended(&end)),
        }
    }

    /// The same outcome, with the end of a host in the place of an error that follows from it.
    async fn explained<T>(&self, outcome: Result<T>, directory: &RunDirectory) -> Result<T> {
        let error = match outcome {
            Ok(_) => return outcome,
            Err(error) => error,
        };
        let ends = &self.site.ends;
        match tokio::time::timeout(EXPLAINED_WITHIN, ends.await_unasked()).await {
            Ok(end) => Err(self.error_of(&end, directory).await.unwrap_or(error)),
            Err(_) => Err(error),
        }
    }

    async fn error_of(&self, end: &End, directory: &RunDirectory) -> Option<anyhow::Error> {
        if let Some(error) = by_itself(end) {
            return Some(error);
        }
        let host = self.site.host(&end.host)?;
        let error = host_ended(end, host, &directory.log(host), self.engine).await;
        Some(error.into())
    }

    fn clients(&self) -> impl Iterator<Item = &Host> {
        self.site.clients().take(self.plan.clients as usize)
    }

    /// Waits for the servers, and makes what the lock and the storage need before the first client comes.
    async fn make_ready(&self, directory: &RunDirectory, names: &Names) -> Result<()> {
        let ends = self.site.ends.clone();
        let hosts: Vec<(Host, PathBuf)> = self
            .site
            .hosts
            .iter()
            .map(|host| (host.clone(), directory.folder(host)))
            .collect();
        // Not on this thread, which has to notice when a host ends meanwhile.
        let ready = tokio::task::spawn_blocking(move || {
            hosts
                .iter()
                .try_for_each(|(host, folder)| make_host_ready(host, folder, &ends))
        });
        ready.await.context("wait for the servers")??;
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
            contract: contract(self.lock, self.policy),
            heartbeat_ms: Some(Heartbeat::INTERVAL.as_millis() as u64),
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

    /// Starts clients and nemesis, waits for the end, heals what keeps clients from ending, ends them, and heals the rest.
    async fn act(
        &self,
        directory: &RunDirectory,
        names: &Names,
        base_ns: u64,
        clients: &mut Clients,
        recorder: &Recorder,
        stop: &Stop,
    ) -> Result<()> {
        tokio::task::block_in_place(|| self.start_clients(directory, names, base_ns, clients))?;
        let sink = recorder.sink();
        let nemesis = Nemesis::start(
            self.plan.clone(),
            self.site.clone(),
            base_ns,
            // The recorder is gone only when the run is over, and then nothing is left to tell.
            move |event| drop(sink.send(event)),
            self.sabotage,
        );
        let watched = self.watch(&nemesis, clients, recorder, stop).await;
        if watched.is_err() {
            nemesis.hurry()();
            // Healing may take long with a host that answers no more, and whatever clients do meanwhile says nothing.
            tokio::task::block_in_place(|| clients.kill());
        }
        let nemesis = self.heal(nemesis, |nemesis| {
            nemesis.heal_for_clients_to_end();
            nemesis
        });
        let nemesis = nemesis.await;
        let ended = tokio::task::block_in_place(|| {
            let ended = watched.and_then(|()| clients.end(END_WITHIN));
            if ended.is_err() {
                // Those, too, that healing has started again.
                clients.kill();
            }
            ended
        });
        self.heal(nemesis, Nemesis::heal_all_and_stop).await;
        ended
    }

    /// Lets the nemesis heal in good order, or at once when something ends that was not to.
    async fn heal<T: Send + 'static>(
        &self,
        nemesis: Nemesis,
        heal: impl FnOnce(Nemesis) -> T + Send + 'static,
    ) -> T {
        let hurry = nemesis.hurry();
        let mut healing = tokio::task::spawn_blocking(move || heal(nemesis));
        let healed = tokio::select! {
            healed = &mut healing => healed,
            _ = self.site.ends.await_unasked() => {
                hurry();
                healing.await
            }
        };
        healed.unwrap_or_else(|mistake| std::panic::resume_unwind(mistake.into_panic()))
    }

    fn start_clients(
        &self,
        directory: &RunDirectory,
        names: &Names,
        base_ns: u64,
        clients: &mut Clients,
    ) -> Result<()> {
        let ready: Result<Vec<_>> = self
            .clients()
            .map(|host| self.arm_client(host, directory, names, base_ns))
            .collect();
        ready?
            .into_iter()
            .try_for_each(|(host, command)| clients.start(host, command))
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
            events: directory.events_in(host),
            plan: self.plan.clone(),
            lock: names.lock.clone(),
            lock_servers: self.lock_servers(),
            document: names.document.clone(),
            storage_server: self.storage_server(),
            rules: rules.clone(),
        };
        let config =
            serde_json::to_string_pretty(&config).context("write a client's configuration")?;
        let path = directory.write_client_config(host, &config)?;
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

    /// Waits until every fault is over, every client that lives has done its rounds since, and two have competed where there
    /// are two; or until the limit is reached.
    async fn watch(
        &self,
        nemesis: &Nemesis,
        clients: &mut Clients,
        recorder: &Recorder,
        stop: &Stop,
    ) -> Result<()> {
        let limit = Instant::now() + Duration::from_millis(self.plan.limit_ms);
        let mut at_settled: Option<BTreeMap<String, u64>> = None;
        while Instant::now() < limit && !stop.is_asked() && !recorder.has_failed() {
            tokio::time::sleep(INTERVAL).await;
            tokio::task::block_in_place(|| clients.notice())?;
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
            let contended = clients.living() < 2 || recorder.competed();
            if clients.all(done) && contended {
                break;
            }
        }
        Ok(())
    }

    /// Reads the storage's log of accepted writes into the history.
    /// Whether all agents are there still: one that stands still can't tell of what befell its host in this run.
    async fn ask_agents(&self) -> Result<()> {
        let hosts = self.site.hosts.clone();
        let asked = tokio::task::spawn_blocking(move || {
            hosts.iter().try_for_each(|host| {
                let mut agent = host.agent()?;
                agent.hello(ANSWERS_WITHIN)?;
                Ok::<_, containers::Error>(())
            })
        });
        Ok(asked.await.context("ask the agents")??)
    }

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

/// Waits until a host's server serves; from now on what its processes write goes to `folder`.
fn make_host_ready(host: &Host, folder: &Path, ends: &Ends) -> Result<()> {
    let mut agent = host.agent()?;
    agent.log_to(folder)?;
    let Some(service) = host.service() else {
        return Ok(());
    };
    let limit = Instant::now() + READY_WITHIN;
    while !service.ready(&mut agent)? {
        let reason = match ends.unasked() {
            Some(end) => format!("is waited for no longer, as host {} ended", end.host),
            None if Instant::now() > limit => format!(
                "is not ready for the next run within {} s; see its log in the run's directory",
                READY_WITHIN.as_secs()
            ),
            None => {
                std::thread::sleep(INTERVAL);
                continue;
            }
        };
        return Err(containers::Error::Service {
            host: host.name.clone(),
            service: service.name(),
            reason,
        }
        .into());
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
