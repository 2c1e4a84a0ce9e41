//! The lock services: what grants. One file each; a new one is that file and a line in [`SERVICES`].

mod etcd_lease;
mod keys;
mod postgres_advisory_xact;
mod postgres_lease;
mod redis_set;
mod redis_token;
mod redlock;
mod seam;

use std::net::SocketAddr;

use async_trait::async_trait;

use histories::Hazard;

use crate::contract::{Guarantee, Statement, keeps, limit};
use crate::storages::Policy;

pub use seam::{Answer, Ask, Has, Hello, Lock, Loss, Renewals, Teller};

/// All lock services, in the order in which they are shown.
pub static SERVICES: &[&dyn LockService] = &[
    &redis_set::RedisSet,
    &redis_token::RedisToken,
    &redlock::Redlock,
    &postgres_lease::PostgresLease,
    &postgres_advisory_xact::PostgresAdvisoryXact,
    &etcd_lease::EtcdLease,
];

/// The lock service of that name.
pub fn service(name: &str) -> Option<&'static dyn LockService> {
    SERVICES
        .iter()
        .copied()
        .find(|service| service.name() == name)
}

/// What grants locks: how it is spoken to, what it has, and what it promises.
#[async_trait]
pub trait LockService: Sync {
    /// Its name, as on the command line and in the plan.
    fn name(&self) -> &'static str;

    /// What it is, in half a line.
    fn summary(&self) -> &'static str;

    /// The names of the topologies that it runs on.
    fn topologies(&self) -> &'static [&'static str];

    /// What it has.
    fn has(&self) -> Has;

    /// The shortest time to live that it can grant whoever wants one no shorter than this, in milliseconds.
    fn ttl_ms(&self, wanted_ms: u64) -> u64 {
        wanted_ms
    }

    /// Why it cannot be used with a storage policy; `None` if it can.
    fn refuses(&self, policy: &Policy) -> Option<String> {
        let (name, has) = (self.name(), self.has());
        if policy.needs_token() && !has.tokens {
            let reason = format!("{name} has no token, so the storage cannot fence its writes");
            Some(reason)
        } else if policy.needs_transaction && !has.transaction {
            let reason = format!("a grant of {name} is no database transaction to work in");
            Some(reason)
        } else if !policy.needs_transaction && has.transaction {
            let reason = format!("a grant of {name} is the transaction that does the work");
            Some(reason)
        } else {
            None
        }
    }

    /// Which guarantees it keeps under which hazards, and which it does not: from them [`crate::contract::contract`] follows.
    /// What it does not mention is not promised.
    fn statements(&self) -> &'static [Statement];

    /// Makes what its servers need before the first client comes, such as a table; does nothing where it is there already.
    ///
    /// # Errors
    /// What the server said, or that it could not be reached.
    async fn prepare(&self, servers: &[SocketAddr]) -> anyhow::Result<()> {
        let _ = servers;
        Ok(())
    }

    /// A client's side of it. Connects nowhere yet.
    ///
    /// # Errors
    /// If it cannot work with that number of servers.
    fn connect(&self, hello: &Hello) -> anyhow::Result<Box<dyn Lock>>;
}

/// What goes wrong elsewhere than on the lock's servers, nothing included.
const ELSEWHERE: &[Hazard] = &[
    Hazard::Nothing,
    Hazard::ClientStopped,
    Hazard::ClientCrashed,
    Hazard::ClientCutOff,
    Hazard::WorkHeld,
    Hazard::WriteHeld,
    Hazard::StorageCrashed,
    Hazard::StorageClock,
];

/// A lease's holder is not told that it holds no longer.
const LATE_HOLDER: Statement = limit(
    Guarantee::Belief,
    &[Hazard::ClientStopped, Hazard::WriteHeld],
    "a lease ends by itself, whatever its holder is still doing",
);

/// Nor does anything keep the lease alive while it works.
const LONG_WORK: Statement = limit(
    Guarantee::Belief,
    &[Hazard::WorkHeld],
    "a lease that nobody extends ends in the middle of work that takes longer",
);

/// The holder takes an answer for granted, however late it comes.
const LATE_ANSWER: Statement = limit(
    Guarantee::Belief,
    &[Hazard::ServerCutOff],
    "an answer that comes late may be to a lease that is over",
);

/// What else can go wrong does not make a lease's holder late.
const HOLDER_IN_TIME: Statement = keeps(
    Guarantee::Belief,
    &[
        Hazard::Nothing,
        Hazard::ClientCrashed,
        Hazard::ClientCutOff,
        Hazard::StorageCrashed,
        Hazard::StorageClock,
        Hazard::ServerStopped,
        Hazard::ServerRestarted,
        Hazard::ServerLost,
        Hazard::ServerClockForward,
        Hazard::ServerClockBack,
    ],
);

/// A service with one server grants nothing while that one does not answer.
const ONE_SERVER: Statement = limit(
    Guarantee::Progress,
    &[
        Hazard::ServerStopped,
        Hazard::ServerCutOff,
        Hazard::ServerRestarted,
        Hazard::ServerLost,
    ],
    "its only server does not answer",
);
