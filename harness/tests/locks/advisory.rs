//! postgres-advisory-xact alone: the lock ends with its transaction, whatever ends that.

use std::time::Duration;

use harness::connections::postgres::Session;
use tokio::time::timeout;
use tokio_postgres::types::Type;

use super::conformance::{Bench, LONG, is_granted, is_lost};
use super::servers::Servers;
use super::{PATIENCE, until};

/// All that is to be shown of it.
pub async fn all(servers: &Servers) {
    let bench = Bench::of("postgres-advisory-xact", servers);
    a_terminated_holder_is_told(&bench).await;
}

async fn a_terminated_holder_is_told(bench: &Bench) {
    let lock = bench.lock("terminated");
    let mut holder = bench.client(&lock);
    bench.granted(holder.acquire(&lock, LONG, Duration::ZERO).await);
    assert!(holder.session().is_some());

    let administrator = Session::open(bench.servers[0], "administrator")
        .await
        .unwrap();
    let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = left($1, 63)";
    let terminated = administrator
        .query(PATIENCE, terminate, &[(&lock, Type::TEXT)])
        .await
        .unwrap();
    assert_eq!(terminated.len(), 1);

    let told = timeout(PATIENCE, holder.loss().wait()).await;
    assert!(told.is_ok(), "the holder was not told");
    let mut heir = bench.client("c2");
    until("the lock of the terminated holder", async || {
        Some(heir.acquire(&lock, LONG, Duration::ZERO).await).filter(is_granted)
    })
    .await;
    let extended = holder.extend(LONG).await;
    assert!(is_lost(&extended), "{extended:?}");
    let released = holder.release().await;
    assert!(is_lost(&released), "{released:?}");
    assert!(is_granted(&heir.held().await));
    // The next grant is over a new connection, and nothing of the old one hangs on to it.
    bench.granted(
        holder
            .acquire(&bench.lock("next"), LONG, Duration::ZERO)
            .await,
    );
    assert_eq!(holder.loss().told(), None);
}
