//! The grants of a history of our own: of which lock each is, and what ends or prolongs one without an operation that says so.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::entries::{Entry, Value};
use crate::{Effect, Event, Function, Kind, LEADER, Role, host_of};

/// The grants that are open.
#[derive(Default)]
pub(super) struct Grants {
    names: Vec<String>,
    /// By the number of the acquire.
    open: HashMap<u64, Grant>,
    /// Of operations in flight that may tell of a loss, under which grant each is done: its completion need not say so.
    asked: HashMap<u64, u64>,
    /// The processes that asked for a lock.
    processes: HashSet<String>,
    /// The processes that a fault killed.
    dead: HashSet<String>,
    /// By the operation of each fault that kills a server: when it was done; `None` as long as it is not.
    server_deaths: HashMap<u64, Option<u64>>,
    flaw: Option<String>,
}

struct Grant {
    /// Which of the names.
    lock: usize,
    /// Who holds it, once it is told that the lock was granted.
    holder: Option<String>,
    expires: bool,
    /// When it was asked for.
    asked: u64,
}

impl Grants {
    /// Where the record does not fit itself, as far as that was seen.
    pub(super) fn flaw(&self) -> Option<&str> {
        self.flaw.as_deref()
    }

    /// The lock of an operation on one, also where it tells its grant alone.
    pub(super) fn lock_of<'a>(&mut self, event: &mut Event<'a>) -> Option<Cow<'a, str>> {
        let acquire = match event.f {
            Function::Acquire => Some(event.op),
            _ => event.grant,
        };
        let known = acquire.and_then(|acquire| self.open.get(&acquire));
        let known = known.map(|grant| &self.names[grant.lock]);
        let lock = match (event.lock.take(), known) {
            (Some(lock), Some(known)) if lock != known.as_str() => {
                let flaw = self.flaw.take();
                self.flaw = flaw.or_else(|| Some(of_another_lock(event, &lock, known)));
                Some(Cow::Owned(known.clone()))
            }
            (None, Some(known)) => Some(Cow::Owned(known.clone())),
            (lock, _) => lock,
        };
        match (event.f, event.kind, acquire) {
            (Function::Acquire, Kind::Invoke, Some(acquire)) => {
                if let Some(lock) = &lock {
                    let grant = Grant {
                        lock: self.name(lock),
                        holder: None,
                        expires: false,
                        asked: event.t,
                    };
                    self.open.insert(acquire, grant);
                }
            }
            // Nothing is done under such a grant any more.
            (Function::Acquire, Kind::Fail, Some(acquire))
            | (Function::Release, Kind::Ok, Some(acquire)) => {
                self.open.remove(&acquire);
            }
            _ => {}
        }
        lock
    }

    /// Makes an operation say what it tells of holds: whether one that failed was too late, and for how long an extension
    /// was asked for. `behind` gets what it tells beside.
    pub(super) fn tell(&mut self, event: &mut Event<'_>, behind: &mut VecDeque<Entry<'static>>) {
        self.keep_grant(event);
        match (event.f, event.kind) {
            (Function::Acquire, Kind::Invoke) if !self.processes.contains(&*event.process) => {
                self.processes.insert(event.process.to_string());
            }
            (Function::Acquire, Kind::Ok) => self.granted(event, behind),
            (Function::Extend, Kind::Invoke) => {
                let asked = event.ttl_ms.map(|ttl_ms| ttl_ms.saturating_mul(1_000_000));
                event.validity = asked.map(|asked| event.t.saturating_add(asked));
            }
            (Function::Extend, Kind::Fail) if event.lost == Some(true) => {
                self.lost(event, event.grant, behind);
            }
            // The lock was gone, and may have been since it was asked for.
            (Function::Release, Kind::Fail) if event.lost == Some(true) => event.kind = Kind::Info,
            (Function::Write, Kind::Fail) if event.error.as_deref() == Some("rejected") => {
                self.lost(event, event.grant, behind);
            }
            _ => {}
        }
    }

    /// Gives a completion the grant of its invocation.
    fn keep_grant(&mut self, event: &mut Event<'_>) {
        if !matches!(event.f, Function::Extend | Function::Held | Function::Write) {
            return;
        }
        match (event.kind, event.grant) {
            (Kind::Invoke, Some(grant)) => drop(self.asked.insert(event.op, grant)),
            (Kind::Invoke, None) => {}
            (_, told) => event.grant = self.asked.remove(&event.op).or(told),
        }
    }

    /// A lock was granted: not for long to a process that was being killed, or without an end of its own by a server that was.
    fn granted(&mut self, event: &Event<'_>, behind: &mut VecDeque<Entry<'static>>) {
        let Some(grant) = self.open.get_mut(&event.op) else {
            return;
        };
        grant.holder = Some(event.process.to_string());
        grant.expires = event.validity.is_some();
        // A grant without expiry goes with its server. One whose acquire was in flight while that was killed may be of the
        // server before or of that after, and nobody knows which.
        let mut deaths = self.server_deaths.values();
        let dies = |done: &Option<u64>| done.is_none_or(|done| grant.asked <= done);
        let with_its_server = !grant.expires && deaths.any(dies);
        if with_its_server || self.dead.contains(&*event.process) {
            self.lost(event, Some(event.op), behind);
        }
    }

    /// Says what an event that is no operation tells of holds.
    pub(super) fn remark(&mut self, event: &mut Event<'_>, behind: &mut VecDeque<Entry<'static>>) {
        self.keep_grant(event);
        match (event.f, event.kind) {
            (Function::Lost, _) => self.lost(event, event.grant, behind),
            (Function::Held, Kind::Ok) if event.held == Some(false) => {
                self.lost(event, event.grant, behind);
            }
            (Function::Renewed, _) => {
                behind.extend(
                    self.entry(event, "renewed", event.grant)
                        .map(|renewed| Entry {
                            validity: event.validity,
                            ..renewed
                        }),
                );
            }
            (Function::Exit, _) => {
                self.lost_where(event, behind, |grant| {
                    grant.holder.as_deref() == Some(&*event.process)
                });
            }
            (Function::Inject, Kind::Invoke) if kills(event) => self.killed(event, behind),
            (Function::Inject, Kind::Fail) if kills(event) => {
                self.dead.retain(|process| !strikes(event, process));
                self.server_deaths.remove(&event.op);
            }
            (Function::Inject, _) => {
                if let Some(done) = self.server_deaths.get_mut(&event.op) {
                    *done = Some(event.t);
                }
            }
            _ => {}
        }
    }

    /// A fault kills: clients with all that they hold, or a server, with what has no end of its own.
    fn killed(&mut self, event: &Event<'_>, behind: &mut VecDeque<Entry<'static>>) {
        let processes = self.processes.iter();
        let dead = processes.filter(|process| strikes(event, process));
        self.dead.extend(dead.cloned());
        let hosts = event.on.as_deref().unwrap_or_default();
        let server = hosts
            .iter()
            .any(|host| host == LEADER || Role::of(host) == Some(Role::Server));
        if server {
            self.server_deaths.insert(event.op, None);
        }
        self.lost_where(event, behind, |grant| {
            let killed = |holder: &String| strikes(event, holder);
            grant.holder.as_ref().is_some_and(killed) || (server && !grant.expires)
        });
    }

    /// Says of the grants that are such that they may have ended by now.
    fn lost_where(
        &self,
        event: &Event<'_>,
        behind: &mut VecDeque<Entry<'static>>,
        is_such: impl Fn(&Grant) -> bool,
    ) {
        let granted = self.open.iter().filter(|(_, grant)| grant.holder.is_some());
        let mut lost: Vec<u64> = granted
            .filter(|(_, grant)| is_such(grant))
            .map(|(acquire, _)| *acquire)
            .collect();
        lost.sort_unstable();
        for grant in lost {
            self.lost(event, Some(grant), behind);
        }
    }

    /// Says that a grant may have ended by now.
    fn lost(&self, event: &Event<'_>, grant: Option<u64>, behind: &mut VecDeque<Entry<'static>>) {
        behind.extend(self.entry(event, "lost", grant));
    }

    /// A remark on a grant that is open, by its holder.
    fn entry(
        &self,
        event: &Event<'_>,
        f: &'static str,
        grant: Option<u64>,
    ) -> Option<Entry<'static>> {
        let known = self.open.get(&grant?)?;
        let holder = known.holder.clone()?;
        Some(Entry {
            line: 0,
            time: Some(event.t),
            process: holder.into(),
            op: Some(event.op),
            kind: Kind::Info,
            f: f.into(),
            key: Some(Value::Text(self.names[known.lock].clone().into())),
            value: Value::Nil,
            token: None,
            validity: None,
            grant,
            error: None,
        })
    }

    fn name(&mut self, lock: &str) -> usize {
        let known = self.names.iter().position(|name| name == lock);
        known.unwrap_or_else(|| {
            self.names.push(lock.to_owned());
            self.names.len() - 1
        })
    }
}

/// Whether a fault ends the processes that it strikes.
fn kills(event: &Event<'_>) -> bool {
    let deeds = event.does.as_deref().unwrap_or_default();
    deeds.iter().any(Effect::is_deadly)
}

/// Whether a fault strikes the host of a process.
fn strikes(event: &Event<'_>, process: &str) -> bool {
    let hosts = event.on.as_deref().unwrap_or_default();
    hosts.iter().any(|host| host == host_of(process))
}

/// That an operation names another lock than its grant's.
#[cold]
fn of_another_lock(event: &Event<'_>, lock: &str, known: &str) -> String {
    format!(
        "the record does not fit itself: op {} ({} of {}) names the lock {lock:?}, and its grant is of {known:?}",
        event.op,
        event.f.name(),
        event.process
    )
}
