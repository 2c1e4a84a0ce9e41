//! The storage: what its policies accept, and what its log says of it.

use std::net::SocketAddr;
use std::time::Duration;

use harness::connections::Failure;
use harness::locks::{self, Answer, Hello, Lock};
use harness::storages::{
    Entry, FENCED, Policy, Read, SAME_TRANSACTION, Storage, StorageService, UNFENCED, Write,
    Written, storage,
};

use super::servers::Servers;

/// All that is to be shown of the storage.
pub async fn all(servers: &Servers) {
    let bench = Bench {
        storage: storage("postgres").unwrap(),
        server: servers.addresses[0],
        run: uuid::Uuid::now_v7().simple().to_string(),
    };
    preparing_at_once_and_again_does_no_harm(&bench).await;
    unfenced_accepts_everything_and_logs_it(&bench).await;
    fenced_rejects_lower_tokens(&bench).await;
    a_write_in_a_transaction_is_done_at_its_commit(&bench).await;
    a_failed_transaction_is_not_taken_for_committed(&bench).await;
    a_transaction_with_an_answer_missing_is_never_committed(&bench).await;
}

struct Bench {
    storage: &'static dyn StorageService,
    server: SocketAddr,
    run: String,
}

impl Bench {
    async fn document(&self, case: &str) -> String {
        let document = format!("{case}-{}", self.run);
        self.storage.prepare(self.server, &document).await.unwrap();
        document
    }

    fn client(&self, policy: &'static Policy) -> Box<dyn Storage> {
        self.storage.connect(self.server, "c1", policy)
    }

    async fn log(&self, document: &str) -> Vec<Entry> {
        self.storage.log(self.server, document).await.unwrap()
    }

    fn lock(&self) -> Box<dyn Lock> {
        let hello = Hello {
            servers: vec![self.server],
            client: "c1".to_owned(),
            seed: 1,
        };
        let service = locks::service("postgres-advisory-xact").unwrap();
        service.connect(&hello).unwrap()
    }

    async fn locked(&self, lock: &mut dyn Lock) {
        let answer = lock
            .acquire(&self.run, Duration::ZERO, Duration::ZERO)
            .await;
        assert!(matches!(answer, Answer::Granted { .. }), "{answer:?}");
    }
}

fn write<'a>(document: &'a str, op: u64, token: Option<u64>, value: &'a str) -> Write<'a> {
    Write {
        document,
        value,
        op,
        token,
    }
}

fn entry(version: u64, op: u64, token: Option<u64>, value: &str) -> Entry {
    Entry {
        version,
        op,
        token,
        value: value.to_owned(),
    }
}

fn is(version: u64, value: &str) -> Read {
    let value = value.to_owned();
    Read::Is { version, value }
}

async fn preparing_at_once_and_again_does_no_harm(bench: &Bench) {
    let names: Vec<String> = (0..8)
        .map(|n| format!("at-once-{n}-{}", bench.run))
        .collect();
    let calls = names
        .iter()
        .map(|name| bench.storage.prepare(bench.server, name));
    for prepared in futures_util::future::join_all(calls).await {
        prepared.unwrap();
    }
    let document = bench.document("again").await;
    let mut client = bench.client(&UNFENCED);
    let written = client.write(None, &write(&document, 1, None, "kept")).await;
    assert_eq!(written, Written::Accepted { version: 1 });
    bench
        .storage
        .prepare(bench.server, &document)
        .await
        .unwrap();
    assert_eq!(client.read(None, &document).await, is(1, "kept"));
}

async fn unfenced_accepts_everything_and_logs_it(bench: &Bench) {
    let document = bench.document("unfenced").await;
    let mut client = bench.client(&UNFENCED);
    assert_eq!(client.read(None, &document).await, is(0, ""));
    assert_eq!(bench.log(&document).await, []);
    for (op, version) in [(11, 1), (12, 2), (13, 3)] {
        let value = format!("c1-{op}");
        let written = client
            .write(None, &write(&document, op, None, &value))
            .await;
        assert_eq!(written, Written::Accepted { version });
    }
    assert_eq!(client.read(None, &document).await, is(3, "c1-13"));
    let logged = [
        entry(1, 11, None, "c1-11"),
        entry(2, 12, None, "c1-12"),
        entry(3, 13, None, "c1-13"),
    ];
    assert_eq!(bench.log(&document).await, logged);
}

async fn fenced_rejects_lower_tokens(bench: &Bench) {
    let document = bench.document("fenced").await;
    let mut client = bench.client(&FENCED);
    let tries = [
        (1, 5, Written::Accepted { version: 1 }),
        (2, 5, Written::Accepted { version: 2 }),
        (3, 4, Written::Rejected),
        (4, 7, Written::Accepted { version: 3 }),
        (5, 5, Written::Rejected),
        // Claim L6: again and with the same token is no better.
        (6, 5, Written::Rejected),
        (7, 7, Written::Accepted { version: 4 }),
    ];
    for (op, token, expected) in tries {
        let value = format!("v{op}");
        let write = write(&document, op, Some(token), &value);
        assert_eq!(client.write(None, &write).await, expected, "operation {op}");
    }
    assert_eq!(client.read(None, &document).await, is(4, "v7"));
    let logged = [
        entry(1, 1, Some(5), "v1"),
        entry(2, 2, Some(5), "v2"),
        entry(3, 4, Some(7), "v4"),
        entry(4, 7, Some(7), "v7"),
    ];
    assert_eq!(bench.log(&document).await, logged);

    let without = client.write(None, &write(&document, 8, None, "v8")).await;
    assert!(matches!(without, Written::Refused { .. }), "{without:?}");
}

async fn a_write_in_a_transaction_is_done_at_its_commit(bench: &Bench) {
    let document = bench.document("transaction").await;
    let mut client = bench.client(&SAME_TRANSACTION);
    let mut lock = bench.lock();
    let outside = client.read(lock.session(), &document).await;
    assert!(
        matches!(outside, Read::Failed { .. }),
        "read without a transaction: {outside:?}"
    );

    bench.locked(&mut *lock).await;
    assert_eq!(client.read(lock.session(), &document).await, is(0, ""));
    let written = client
        .write(lock.session(), &write(&document, 1, None, "a"))
        .await;
    assert_eq!(written, Written::AtCommit { version: 1 });
    assert_eq!(bench.log(&document).await, []);
    assert_eq!(lock.release().await, Answer::Released);
    assert_eq!(bench.log(&document).await, [entry(1, 1, None, "a")]);

    // A client that dies with its transaction has done nothing, and holds nothing.
    bench.locked(&mut *lock).await;
    let written = client
        .write(lock.session(), &write(&document, 2, None, "b"))
        .await;
    assert_eq!(written, Written::AtCommit { version: 2 });
    drop(lock);
    let mut heir = bench.lock();
    super::until("the dead client's lock", async || {
        let answer = heir
            .acquire(&bench.run, Duration::ZERO, Duration::ZERO)
            .await;
        matches!(answer, Answer::Granted { .. }).then_some(())
    })
    .await;
    assert_eq!(client.read(heir.session(), &document).await, is(1, "a"));
    assert_eq!(heir.release().await, Answer::Released);
    assert_eq!(bench.log(&document).await, [entry(1, 1, None, "a")]);
}

async fn a_failed_transaction_is_not_taken_for_committed(bench: &Bench) {
    let document = bench.document("failed").await;
    let mut client = bench.client(&SAME_TRANSACTION);
    let mut lock = bench.lock();
    bench.locked(&mut *lock).await;
    let written = client
        .write(lock.session(), &write(&document, 1, None, "a"))
        .await;
    assert_eq!(written, Written::AtCommit { version: 1 });
    let session = lock.session().unwrap();
    let failed = session
        .execute(Duration::from_secs(5), "SELECT 1 / 0")
        .await;
    assert!(failed.is_err());
    let released = lock.release().await;
    assert!(matches!(released, Answer::Lost { .. }), "{released:?}");
    assert_eq!(bench.log(&document).await, []);
}

/// A COMMIT would be done after the statement that nobody waited for, and with it.
async fn a_transaction_with_an_answer_missing_is_never_committed(bench: &Bench) {
    let document = bench.document("missing").await;
    let mut client = bench.client(&SAME_TRANSACTION);
    let mut lock = bench.lock();
    bench.locked(&mut *lock).await;
    let session = lock.session().unwrap();
    let slow = session
        .execute(Duration::from_millis(20), "SELECT pg_sleep(0.5)")
        .await;
    assert!(matches!(slow, Err(Failure::Unknown(_))), "{slow:?}");
    let written = client
        .write(lock.session(), &write(&document, 1, None, "a"))
        .await;
    assert!(matches!(written, Written::Refused { .. }), "{written:?}");
    let released = lock.release().await;
    assert!(matches!(released, Answer::Lost { .. }), "{released:?}");
    let mut heir = bench.lock();
    super::until("the lock of the transaction", async || {
        let answer = heir
            .acquire(&bench.run, Duration::ZERO, Duration::ZERO)
            .await;
        matches!(answer, Answer::Granted { .. }).then_some(())
    })
    .await;
    assert_eq!(bench.log(&document).await, []);
}
