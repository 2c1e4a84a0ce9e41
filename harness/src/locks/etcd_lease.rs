//! etcd-lease: a key on an etcd cluster that lives as long as its lease, which is kept alive in the background. Its create
//! revision is the token.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use containers::agent::monotonic_ns;
use etcd_client::{
    Client as Etcd, Compare, CompareOp, Error, EventType, PutOptions, Txn, TxnOp, WatchFilterType,
    WatchOptions,
};
use histories::Hazard;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{
    Answer, ELSEWHERE, HOLDER_IN_TIME, Has, Hello, LATE_HOLDER, Lock, LockService, Loss, Renewals,
    Teller,
};
use crate::connections::etcd::{EtcdFailure, Members};
use crate::connections::{ANSWER_TIMEOUT, Failure};
use crate::contract::{Guarantee, Statement, keeps};

/// The lock service.
pub struct EtcdLease;

/// How a holder learns that it holds no longer.
const OVER: &str = "the lease is over";

/// How long to wait before the next member is asked for a keep-alive.
const RETRY: Duration = Duration::from_millis(50);

/// What it promises: a majority of its members outlives each of them, and leases run on the monotonic clock.
const STATEMENTS: &[Statement] = &[
    keeps(Guarantee::Exclusion, ELSEWHERE),
    keeps(Guarantee::Exclusion, MEMBER_TROUBLE),
    LATE_HOLDER,
    HOLDER_IN_TIME,
    // It is kept alive in the background however long the work takes, and its holder counts the time that is left.
    keeps(Guarantee::Belief, &[Hazard::WorkHeld, Hazard::ServerCutOff]),
    keeps(Guarantee::TokenOrder, ELSEWHERE),
    keeps(Guarantee::TokenOrder, MEMBER_TROUBLE),
    keeps(Guarantee::Progress, ELSEWHERE),
    keeps(Guarantee::Progress, MEMBER_TROUBLE),
];

/// All that can happen to a member but the loss of its disk.
const MEMBER_TROUBLE: &[Hazard] = &[
    Hazard::ServerStopped,
    Hazard::ServerCutOff,
    Hazard::ServerRestarted,
    Hazard::ServerLost,
    Hazard::ServerClockForward,
    Hazard::ServerClockBack,
];

#[async_trait]
impl LockService for EtcdLease {
    fn name(&self) -> &'static str {
        "etcd-lease"
    }

    fn summary(&self) -> &'static str {
        "a key that lives as long as a lease, on three etcd members"
    }

    fn topologies(&self) -> &'static [&'static str] {
        &["etcd"]
    }

    fn has(&self) -> Has {
        Has {
            tokens: true,
            expiry: true,
            waiting: true,
            notice: true,
            ..Has::default()
        }
    }

    fn ttl_ms(&self, wanted_ms: u64) -> u64 {
        wanted_ms.max(1).next_multiple_of(1000)
    }

    fn statements(&self) -> &'static [Statement] {
        STATEMENTS
    }

    fn connect(&self, hello: &Hello) -> anyhow::Result<Box<dyn Lock>> {
        Ok(Box::new(Client {
            members: Members::new(hello.servers.clone(), hello.seed),
            name: hello.client.clone(),
            grant: None,
        }))
    }
}

struct Client {
    members: Members,
    name: String,
    grant: Option<Grant>,
}

struct Grant {
    key: String,
    revision: i64,
    lease: Lease,
}

impl Grant {
    fn token(&self) -> Option<u64> {
        u64::try_from(self.revision).ok()
    }
}

/// What came of the transaction that creates the key.
enum Created {
    /// It did, at this revision.
    At(i64),
    /// The key was there, at this revision of the store.
    Busy(i64),
}

impl Client {
    async fn lease(&mut self, ttl: Duration) -> Result<Lease, Failure> {
        let seconds = ttl.as_secs_f64().ceil() as i64;
        let sent_ns = monotonic_ns();
        let grant = async |etcd: &mut Etcd| etcd.lease_grant(seconds, None).await;
        match self.members.ask(ANSWER_TIMEOUT, grant).await {
            Ok(granted) => {
                // etcd raises a time to live that is too short for its elections.
                let ttl = Duration::from_secs(granted.ttl().unsigned_abs());
                let members = self.members.clone();
                Ok(Lease::keep(granted.id(), ttl, sent_ns, members))
            }
            // No key was asked for yet, and a lease that was granted all the same ends without having had one.
            Err(failure) => Err(Failure::Refused(format!(
                "no lease: {}",
                Failure::from(failure)
            ))),
        }
    }

    async fn create(&mut self, key: &str, lease: i64) -> Result<Created, EtcdFailure> {
        let name = self.name.clone();
        let create = async |etcd: &mut Etcd| {
            let absent = Compare::create_revision(key, CompareOp::Equal, 0);
            let put = TxnOp::put(key, name, Some(PutOptions::new().with_lease(lease)));
            let answer = etcd.txn(Txn::new().when([absent]).and_then([put])).await?;
            let revision = answer.header().map(|header| header.revision());
            let revision = revision.ok_or_else(|| Error::Internal("no header".to_owned()))?;
            Ok(if answer.succeeded() {
                Created::At(revision)
            } else {
                Created::Busy(revision)
            })
        };
        self.members.ask(ANSWER_TIMEOUT, create).await
    }

    /// Waits until the key is deleted after a revision of the store.
    async fn deleted(
        &mut self,
        key: &str,
        after: i64,
        within: Duration,
    ) -> Result<(), EtcdFailure> {
        let watch = async |etcd: &mut Etcd| {
            let options = WatchOptions::new()
                .with_start_revision(after + 1)
                .with_filters([WatchFilterType::NoPut]);
            let mut watch = etcd.watch(key, Some(options)).await?;
            while let Some(message) = watch.message().await? {
                if message.canceled() {
                    return Err(Error::WatchError(message.cancel_reason().to_owned()));
                }
                let mut events = message.events().iter();
                if events.any(|event| event.event_type() == EventType::Delete) {
                    return Ok(());
                }
            }
            Err(Error::WatchError("the watch ended".to_owned()))
        };
        self.members.ask(within, watch).await
    }

    /// Tries to create the key until it is created or the wait is over. Waiting, it is told of the key's deletion.
    async fn create_within(
        &mut self,
        key: &str,
        lease: &Lease,
        wait: Duration,
    ) -> Result<Created, Failure> {
        let until = Instant::now() + wait;
        loop {
            let busy_at = match self.create(key, lease.id).await? {
                Created::At(revision) => return Ok(Created::At(revision)),
                Created::Busy(revision) => revision,
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Created::Busy(busy_at));
            }
            let mut loss = lease.loss.clone();
            tokio::select! {
                waited = timeout(left, self.deleted(key, busy_at, left + ANSWER_TIMEOUT)) => match waited {
                    Ok(Ok(())) => {}
                    Ok(Err(failure)) => return Err(not_created(failure)),
                    Err(_) => return Ok(Created::Busy(busy_at)),
                },
                by = loss.wait() => return Err(Failure::Refused(format!("{by}, while it waited"))),
            }
        }
    }
}

/// A watch that failed created nothing.
fn not_created(failure: EtcdFailure) -> Failure {
    Failure::Refused(format!("no watch: {}", Failure::from(failure)))
}

#[async_trait(?Send)]
impl Lock for Client {
    async fn acquire(&mut self, lock: &str, ttl: Duration, wait: Duration) -> Answer {
        let asked_ns = monotonic_ns();
        if let Some(forgotten) = self.grant.take() {
            forgotten.lease.revoke_in_background(&self.members);
        }
        let lease = match self.lease(ttl).await {
            Ok(lease) => lease,
            Err(failure) => return failure.into(),
        };
        let outcome = self.create_within(lock, &lease, wait).await;
        let valid_until_ns = lease.renewals.valid_until_ns();
        match outcome {
            // Whoever waited longer than the lease lived has not got the lock, whatever was answered to an old request.
            Ok(Created::At(revision))
                if valid_until_ns > monotonic_ns() && lease.loss.told().is_none() =>
            {
                let key = lock.to_owned();
                let grant = self.grant.insert(Grant {
                    key,
                    revision,
                    lease,
                });
                let valid_for = Duration::from_nanos(valid_until_ns - asked_ns);
                Answer::granted(grant.token(), valid_for)
            }
            other => {
                lease.revoke_in_background(&self.members);
                match other {
                    Ok(Created::Busy(_)) => Answer::Busy,
                    Ok(Created::At(_)) => Failure::Refused(OVER.to_owned()).into(),
                    Err(failure) => failure.into(),
                }
            }
        }
    }

    /// Keeps the lease alive once more, now; a lease lives as long as it was granted for, whatever is asked.
    async fn extend(&mut self, _ttl: Duration) -> Answer {
        let Some(grant) = &self.grant else {
            return Answer::nothing_held();
        };
        let (id, ttl) = (grant.lease.id, grant.lease.ttl);
        match renew(&mut self.members, id, ANSWER_TIMEOUT).await {
            Ok(()) => Answer::granted(grant.token(), ttl),
            Err(EtcdFailure::NoLease) => Answer::lost(OVER),
            Err(EtcdFailure::Other(failure)) => failure.into(),
        }
    }

    async fn release(&mut self) -> Answer {
        let Some(grant) = self.grant.take() else {
            return Answer::nothing_held();
        };
        let id = grant.lease.id;
        let revoke = async |etcd: &mut Etcd| etcd.lease_revoke(id).await;
        match self.members.ask(ANSWER_TIMEOUT, revoke).await {
            Ok(_) => Answer::Released,
            Err(EtcdFailure::NoLease) => Answer::lost(OVER),
            Err(EtcdFailure::Other(failure)) => failure.into(),
        }
    }

    async fn held(&mut self) -> Answer {
        let Some(grant) = &self.grant else {
            return Answer::nothing_held();
        };
        let key = grant.key.clone();
        let get = async |etcd: &mut Etcd| etcd.get(key, None).await;
        match self.members.ask(ANSWER_TIMEOUT, get).await {
            Ok(found) => {
                let mut found = found.kvs().iter();
                if found.any(|found| found.create_revision() == grant.revision) {
                    Answer::held(grant.token())
                } else {
                    Answer::lost("the key is gone or another's")
                }
            }
            Err(failure) => Failure::from(failure).into(),
        }
    }

    fn loss(&self) -> Loss {
        match &self.grant {
            Some(grant) => grant.lease.loss.clone(),
            None => Loss::never(),
        }
    }

    fn renewals(&self) -> Renewals {
        match &self.grant {
            Some(grant) => grant.lease.renewals.clone(),
            None => Renewals::never(),
        }
    }
}

/// A lease that a task of its own keeps alive, until this is dropped or the lease is over.
struct Lease {
    id: i64,
    ttl: Duration,
    /// Until when it lives at least: its time to live, counted from when the last answered request was sent.
    renewals: Renewals,
    loss: Loss,
    keeper: JoinHandle<()>,
}

impl Lease {
    fn keep(id: i64, ttl: Duration, sent_ns: u64, members: Members) -> Lease {
        let (teller, loss) = Loss::new();
        let (renewed, renewals) = Renewals::new(sent_ns + nanos(ttl));
        let keeper = tokio::spawn(keep_alive(id, ttl, members, renewed, teller));
        Lease {
            id,
            ttl,
            renewals,
            loss,
            keeper,
        }
    }

    /// Nobody waits for it: if it fails the lease ends by itself.
    fn revoke_in_background(self, members: &Members) {
        revoke_in_background(self.id, members.clone());
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Asks for more time whenever a third of it is over, until the lease is over.
async fn keep_alive(
    id: i64,
    ttl: Duration,
    mut members: Members,
    renewed: watch::Sender<u64>,
    teller: Teller,
) {
    loop {
        sleep(ttl / 3).await;
        loop {
            let sent_ns = monotonic_ns();
            let left = left_until(*renewed.borrow());
            if left.is_zero() {
                teller.send_replace(Some("no keep-alive was answered in time".to_owned()));
                return;
            }
            match renew(&mut members, id, left.min(ANSWER_TIMEOUT)).await {
                Ok(()) => {
                    renewed.send_replace(sent_ns + nanos(ttl));
                    break;
                }
                Err(EtcdFailure::NoLease) => {
                    teller.send_replace(Some(OVER.to_owned()));
                    return;
                }
                Err(EtcdFailure::Other(_)) => {
                    // No longer than the lease lives: its end is told when it comes.
                    let left = left_until(*renewed.borrow());
                    sleep(RETRY.min(left)).await;
                }
            }
        }
    }
}

fn left_until(valid_until_ns: u64) -> Duration {
    Duration::from_nanos(valid_until_ns.saturating_sub(monotonic_ns()))
}

fn nanos(ttl: Duration) -> u64 {
    ttl.as_nanos() as u64
}

/// One keep-alive, answered by a lease that lives.
async fn renew(members: &mut Members, id: i64, within: Duration) -> Result<(), EtcdFailure> {
    let renew = async |etcd: &mut Etcd| etcd.lease_keep_alive(id).await;
    members.ask(within, renew).await.map(|_| ())
}

fn revoke_in_background(id: i64, mut members: Members) {
    tokio::spawn(async move {
        let revoke = async |etcd: &mut Etcd| etcd.lease_revoke(id).await;
        if let Err(EtcdFailure::Other(failure)) = members.ask(ANSWER_TIMEOUT, revoke).await {
            tracing::debug!("lease {id} is left to end by itself: {failure}");
        }
    });
}
