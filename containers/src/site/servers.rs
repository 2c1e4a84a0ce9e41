//! The servers of a site: started together, waited for, asked which of them leads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::interference::while_starting;
use super::{End, Ended, Ends, Host, Role};
use crate::Error;
use crate::agent::Agent;
use crate::services::{Member, SERVER, Service};

/// How long a server may take from its start until it serves; seconds are usual on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The pause between two questions whether a server serves, and between two looks whether all do.
const READY_PAUSE: Duration = Duration::from_millis(20);

/// Starts the servers of all hosts at once and waits until all serve; the version of each. That is given up as soon as
/// nobody waits for it any more, or `ends` tell of a host that is of no more use.
pub fn start(
    hosts: &[Host],
    ends: &Ends,
    cancelled: &AtomicBool,
) -> Result<BTreeMap<String, String>, Error> {
    let started = start_unless(hosts, || {
        cancelled.load(Ordering::Relaxed) || ends.unasked().is_some()
    });
    super::start::check(cancelled)?;
    match ends.unasked() {
        // Whatever else failed follows from that.
        Some(end) => Err(ended(&end, hosts)),
        None => started,
    }
}

fn start_unless(
    hosts: &[Host],
    is_of_no_use: impl Fn() -> bool,
) -> Result<BTreeMap<String, String>, Error> {
    let given_up = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let servers = hosts
            .iter()
            .filter_map(|host| Some((host, host.service()?)));
        let started = servers.map(|(host, service)| {
            let all = members_beside(host, hosts);
            let given_up = Arc::clone(&given_up);
            let thread = thread::Builder::new()
                .spawn_scoped(scope, move || start_one(host, service, &all, &given_up));
            let doing = || format!("starting {} on host {}", service.name(), host.name);
            Ok((
                host,
                thread.map_err(|source| Error::thread(doing(), source))?,
            ))
        });
        let started: Vec<_> = started.collect::<Result<_, Error>>()?;
        while started.iter().any(|(_, thread)| !thread.is_finished()) {
            given_up.store(is_of_no_use(), Ordering::Relaxed);
            thread::sleep(READY_PAUSE);
        }
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
    given_up: &Arc<AtomicBool>,
) -> Result<String, Error> {
    // No answer is waited for once the start is given up: to ask a server that somebody has stopped takes seconds.
    let mut agent = Agent::connect(&host.socket)?.unless(Arc::clone(given_up));
    let me = Member {
        host: &host.name,
        address: host.address,
        service,
    };
    service.start(&mut agent, &me, all)?;
    let deadline = Instant::now() + READY_WITHIN;
    while !service.ready(&mut agent)? {
        super::start::check(given_up)?;
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

/// The error of servers of which this ended before all of them served.
fn ended(end: &End, hosts: &[Host]) -> Error {
    let host = hosts.iter().find(|host| host.name == end.host);
    let server = host.and_then(|host| Some((host.agent().ok()?, host.service()?)));
    match (&end.ended, server) {
        (Ended::Process { .. }, Some((mut agent, service))) => {
            not_up(&mut agent, service, &format!("ended ({})", end.how))
        }
        // Docker tells more of it.
        (Ended::Host, _) => Error::Host {
            host: end.host.clone(),
            reason: format!("is of no use: {}", end.how),
        },
        _ => while_starting(end.host.clone(), &end.how, String::new()),
    }
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
