//! etcd-lease alone: its lease is kept alive in the background, and is worth nothing when it ended while its client waited.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use containers::agent::monotonic_ns;
use etcd_client::Client as Etcd;
use harness::locks::Answer;
use tokio::time::timeout;

use super::conformance::{Bench, LONG, is_granted};
use super::servers::Servers;
use super::{PATIENCE, until};

/// All that is to be shown of it.
pub async fn all(servers: &Servers) {
    let bench = Bench::of("etcd-lease", servers);
    a_lease_is_kept_alive_in_the_background(&bench).await;
    whoever_waited_longer_than_its_lease_lived_is_not_granted(&bench).await;
}

async fn connect(server: SocketAddr) -> Etcd {
    Etcd::connect([format!("http://{server}")], None)
        .await
        .unwrap()
}

/// All leases that there are.
async fn leases(etcd: &mut Etcd) -> BTreeSet<i64> {
    let leases = etcd.leases().await.unwrap();
    leases.leases().iter().map(|lease| lease.id()).collect()
}

async fn a_lease_is_kept_alive_in_the_background(bench: &Bench) {
    let lock = bench.lock("kept");
    let (mut holder, mut dead) = (bench.client("c1"), bench.client("c2"));
    bench.granted(holder.acquire(&lock, bench.ttl(), Duration::ZERO).await);
    let first_ns = holder.renewals().valid_until_ns();
    let witness = bench.lock("not-kept");
    bench.granted(dead.acquire(&witness, bench.ttl(), Duration::ZERO).await);
    drop(dead);
    let mut heir = bench.client("c3");
    until("the lease that nobody keeps alive", async || {
        Some(heir.acquire(&witness, LONG, Duration::ZERO).await).filter(is_granted)
    })
    .await;
    assert!(is_granted(&holder.held().await));
    assert_eq!(holder.loss().told(), None);
    let valid_until_ns = holder.renewals().valid_until_ns();
    assert!(valid_until_ns > first_ns.max(monotonic_ns()));
    assert_eq!(holder.release().await, Answer::Released);
}

/// Claim E5. The client stands still while it waits, so that nothing keeps its lease alive; then the lock is released.
async fn whoever_waited_longer_than_its_lease_lived_is_not_granted(bench: &Bench) {
    let lock = bench.lock("waited");
    let holder = Holder::of(bench, &lock);
    let mut etcd = connect(bench.servers[0]).await;
    let before = leases(&mut etcd).await;
    let mut waiter = bench.client("c1");
    let mut waiting = waiter.acquire(&lock, bench.ttl(), LONG);
    let lease = until("the waiter's lease", async || {
        let early = timeout(Duration::from_millis(50), &mut waiting).await;
        assert!(early.is_err(), "two were let in: {early:?}");
        leases(&mut etcd).await.difference(&before).next().copied()
    });
    let lease = lease.await;

    assert_eq!(holder.release_when_over(lease), Answer::Released);
    let answer = timeout(PATIENCE, waiting).await.unwrap();
    assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    let mut other = bench.client("c3");
    bench.granted(other.acquire(&lock, LONG, Duration::ZERO).await);
    assert_eq!(other.release().await, Answer::Released);
}

/// A client that holds the lock, in a thread of its own.
struct Holder {
    when_over: mpsc::Sender<i64>,
    thread: thread::JoinHandle<Answer>,
}

impl Holder {
    fn of(bench: &Bench, lock: &str) -> Holder {
        let (held, is_held) = mpsc::channel();
        let (when_over, lease) = mpsc::channel();
        let (bench, lock) = (bench.clone(), lock.to_owned());
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let mut holder = bench.client("c2");
                bench.granted(holder.acquire(&lock, LONG, Duration::ZERO).await);
                held.send(()).unwrap();
                let lease = until("the waiter", async || lease.try_recv().ok()).await;
                let mut etcd = connect(bench.servers[0]).await;
                until("the waiter's lease to end", async || {
                    (!leases(&mut etcd).await.contains(&lease)).then_some(())
                })
                .await;
                holder.release().await
            })
        });
        is_held.recv_timeout(PATIENCE).unwrap();
        Holder { when_over, thread }
    }

    /// Waits, without letting the calling thread do anything else, until that lease is over and the lock released.
    fn release_when_over(self, lease: i64) -> Answer {
        self.when_over.send(lease).unwrap();
        self.thread.join().unwrap()
    }
}
