//! Every lock service, and the storage under every policy, against real servers in containers.

mod advisory;
mod conformance;
mod etcd;
mod gate;
mod redlock;
mod servers;
mod storage;

use std::time::{Duration, Instant};

/// How long a test waits for something that is to come by itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks again and again until there is an answer.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let limit = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < limit, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn lock_services_on_one_redis() {
    servers::with("redis", conformance::all);
}

#[test]
fn redlock_on_five_nodes() {
    servers::with("redlock", async |servers| {
        conformance::all(servers).await;
        redlock::all(servers).await;
    });
}

#[test]
fn lock_services_and_storage_on_postgres() {
    servers::with("postgres", async |servers| {
        conformance::all(servers).await;
        advisory::all(servers).await;
        storage::all(servers).await;
    });
}

#[test]
fn etcd_lease_on_three_members() {
    servers::with("etcd", async |servers| {
        conformance::all(servers).await;
        etcd::all(servers).await;
    });
}
