//! redlock alone: what five nodes can do without some of them.

use std::net::SocketAddr;
use std::time::Duration;

use harness::locks::{Answer, Lock};

use super::conformance::{Bench, LONG, is_granted};
use super::gate::Gate;
use super::servers::Servers;
use super::until;

/// All that is to be shown of it.
pub async fn all(servers: &Servers) {
    let bench = Bench::of("redlock", servers);
    a_grant_is_relied_on_for_less_than_its_keys_live(&bench).await;
    a_minority_is_not_missed(&bench).await;
    a_grant_that_came_too_late_is_none(&bench).await;
    without_a_majority_nothing_is_left_behind(&bench).await;
    what_comes_late_is_undone_by_what_comes_behind_it(&bench).await;
}

/// A client whose every node is behind a gate, with all its connections made.
async fn gated(bench: &Bench, case: &str) -> (Vec<Gate>, Box<dyn Lock>) {
    let mut gates = Vec::new();
    for server in &bench.servers {
        gates.push(Gate::before(*server).await);
    }
    let through: Vec<SocketAddr> = gates.iter().map(|gate| gate.address).collect();
    let mut client = bench.client_of("c1", &through);
    let warm = bench.lock(&format!("warm-{case}"));
    bench.granted(client.acquire(&warm, LONG, Duration::ZERO).await);
    assert_eq!(client.release().await, Answer::Released);
    (gates, client)
}

/// Whether another client gets the lock at once.
async fn is_free(bench: &Bench, lock: &str) -> bool {
    let mut other = bench.client("c2");
    let free = is_granted(&other.acquire(lock, LONG, Duration::ZERO).await);
    other.release().await;
    free
}

async fn a_grant_is_relied_on_for_less_than_its_keys_live(bench: &Bench) {
    let mut client = bench.client("c1");
    let answer = client
        .acquire(&bench.lock("drift"), LONG, Duration::ZERO)
        .await;
    // A hundredth for the clocks' drift, and 2 ms for the keys' expiry.
    let valid_for = LONG - LONG / 100 - Duration::from_millis(2);
    assert_eq!(answer, Answer::granted(None, valid_for));
    assert_eq!(client.release().await, Answer::Released);
}

async fn a_minority_is_not_missed(bench: &Bench) {
    let (gates, mut client) = gated(bench, "minority").await;
    let lock = bench.lock("minority");
    gates[..2].iter().for_each(Gate::shut_requests);
    bench.granted(client.acquire(&lock, LONG, Duration::ZERO).await);
    assert!(is_granted(&client.held().await));
    assert!(!is_free(bench, &lock).await);
    bench.granted(client.extend(LONG).await);
    assert_eq!(client.release().await, Answer::Released);
    assert!(is_free(bench, &lock).await);
}

/// The keys are set everywhere, yet so late that no time is left to rely on them.
async fn a_grant_that_came_too_late_is_none(bench: &Bench) {
    let mut client = bench.client("c1");
    let lock = bench.lock("too-late");
    let answer = client
        .acquire(&lock, Duration::from_millis(2), Duration::ZERO)
        .await;
    assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    assert!(is_free(bench, &lock).await);
}

async fn without_a_majority_nothing_is_left_behind(bench: &Bench) {
    let (gates, mut client) = gated(bench, "majority").await;
    let lock = bench.lock("majority");
    gates[..3].iter().for_each(Gate::shut_answers);
    let answer = client.acquire(&lock, LONG, Duration::ZERO).await;
    assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    // The three nodes that could not answer have set the key, and deleted it as well.
    assert!(is_free(bench, &lock).await);
    gates.iter().for_each(Gate::open);
    let granted = until("the majority", async || {
        Some(client.acquire(&lock, LONG, Duration::ZERO).await).filter(is_granted)
    });
    bench.granted(granted.await);
    assert_eq!(client.release().await, Answer::Released);
}

/// Keys that are set when their client has long given up would block everyone else for as long as they live.
async fn what_comes_late_is_undone_by_what_comes_behind_it(bench: &Bench) {
    let (gates, mut client) = gated(bench, "late").await;
    let lock = bench.lock("late");
    gates.iter().for_each(Gate::shut_requests);
    let answer = client.acquire(&lock, LONG, Duration::ZERO).await;
    assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    assert!(is_free(bench, &lock).await);
    gates.iter().for_each(Gate::open);
    for _ in 0..20 {
        until("what came late to be undone", async || {
            is_free(bench, &lock).await.then_some(())
        })
        .await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
