//! The servers of a site: started together, waited for, asked which of them leads.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Host, Role};
use crate::Error;
use crate::agent::Agent;
use crate::services::{Member, SERVER, Service};

/// How long a server may take from its start until it serves; seconds are usual on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The pause between two questions whether a server serves.
const READY_PAUSE: Duration = Duration::from_millis(20);

/// Starts the servers of all hosts at once and waits until all serve; the version of each.
pub fn start(hosts: &[Host], cancelled: &AtomicBool) -> Result<BTreeMap<String, String>, Error> {
    thread::scope(|scope| {
        let servers = hosts
            .iter()
            .filter_map(|host| Some((host, host.service()?)));
        let started = servers.map(|(host, service)| {
            let all = members_beside(host, hosts);
            let thread = thread::Builder::new()
                .spawn_scoped(scope, move || start_one(host, service, &all, cancelled));
            let doing = || format!("starting {} on host {}", service.name(), host.name);
            Ok((
                host,
                thread.map_err(|source| Error::thread(doing(), source))?,
            ))
        });
        let started: Vec<_> = started.collect::<Result<_, Error>>()?;
        let mut versions = BTreeMap::new();
        for (host, started) in started {
            let version = started.join().map_err(|_| Error::Host {
                host: host.name.clone(),
                reason: "the start of its server panicked: this is a bug of ours".to_owned(),
            })??;
            versions.insert(host.name.clone(), version);
        }
        Ok(versions)
    })
}

/// The members of the topology that a host is in; the storage stands alone.
fn members_beside<'a>(host: &Host, hosts: &'a [Host]) -> Vec<Member<'a>> {
    let is_storage = |role: Role| matches!(role, Role::Storage(_));
    hosts
        .iter()
        .filter(|other| is_storage(other.role) == is_storage(host.role))
        .filter_map(|other| {
            Some(Member {
                host: &other.name,
                address: other.address,
                service: other.service()?,
            })
        })
        .collect()
}

fn start_one(
    host: &Host,
    service: &'static dyn Service,
    all: &[Member<'_>],
    cancelled: &AtomicBool,
) -> Result<String, Error> {
    let mut agent = host.agent()?;
    let me = Member {
        host: &host.name,
        address: host.address,
        service,
    };
    service.start(&mut agent, &me, all)?;
    let deadline = Instant::now() + READY_WITHIN;
    while !service.ready(&mut agent)? {
        super::start::check(cancelled)?;
        if let Some(ended) = agent.look(SERVER)?.ended {
            return Err(not_up(&mut agent, service, &format!("ended ({ended})")));
        }
        if Instant::now() >= deadline {
            let waited = format!("did not serve within {} s", READY_WITHIN.as_secs());
            return Err(not_up(&mut agent, service, &waited));
        }
        thread::sleep(READY_PAUSE);
    }
    service.version(&mut agent)
}

fn not_up(agent: &mut Agent, service: &'static dyn Service, what: &str) -> Error {
    let log = agent.tail(SERVER).unwrap_or_else(|error| error.to_string());
    Error::Service {
        host: agent.host().to_owned(),
        service: service.name(),
        reason: format!(
            "{what} after it was started; the end of its log:\n{}",
            log.trim_end()
        ),
    }
}

/// The name of the first of these hosts whose server says that it leads.
pub fn leader(servers: &[Host]) -> Result<String, Error> {
    let (answers, heard) = mpsc::channel();
    let mut asked = 0;
    for host in servers {
        let Some(service) = host.service() else {
            continue;
        };
        let (host, answers) = (host.clone(), answers.clone());
        asked += 1;
        // Not joined: one that is paused answers late or never, and is not waited for once another has answered.
        let thread = thread::Builder::new().spawn(move || {
            let leads = host.agent().and_then(|mut agent| service.leads(&mut agent));
            // Nobody hears it where another has been believed.
            let _ = answers.send((host.name, leads));
        });
        thread.map_err(|source| Error::thread("asking who leads", source))?;
    }
    drop(answers);
    let mut said = Vec::new();
    for (host, leads) in heard.iter().take(asked) {
        match leads {
            Ok(true) => return Ok(host),
            Ok(false) => said.push(format!("{host} does not lead")),
            Err(error) => said.push(error.to_string()),
        }
    }
    Err(Error::NoLeader {
        answers: said.join("; "),
    })
}
