//! What every lock service does alike, whatever it is made of; and what follows from what it says that it has.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use harness::locks::{self, Answer, Hello, Lock, LockService, SERVICES};
use tokio::time::timeout;

use super::gate::Gate;
use super::servers::Servers;
use super::{PATIENCE, until};

/// All that is to be shown of all services on these servers.
pub async fn all(servers: &Servers) {
    let here = SERVICES
        .iter()
        .filter(|service| service.topologies().contains(&servers.topology));
    for service in here {
        let bench = Bench::of(service.name(), servers);
        service.prepare(&bench.servers).await.unwrap();
        service.prepare(&bench.servers).await.unwrap();
        one_holder_at_a_time(&bench).await;
        names_are_apart(&bench).await;
        nothing_held_nothing_done(&bench).await;
        tokens_rise(&bench).await;
        a_new_acquire_forgets_the_old_grant(&bench).await;
        what_a_dead_client_held_becomes_free(&bench).await;
        an_extended_grant_lives_on(&bench).await;
        an_expired_grant_is_its_successors(&bench).await;
        waiting_is_told_by_the_server(&bench).await;
        silence_is_not_an_answer(&bench).await;
    }
}

/// A lock service on real servers.
#[derive(Clone)]
pub struct Bench {
    service: &'static dyn LockService,
    /// The servers.
    pub servers: Vec<SocketAddr>,
    run: String,
}

impl Bench {
    /// The lock service of that name on these servers.
    pub fn of(service: &str, servers: &Servers) -> Bench {
        Bench {
            service: locks::service(service).unwrap(),
            servers: servers.addresses.clone(),
            run: uuid::Uuid::now_v7().simple().to_string(),
        }
    }

    fn name(&self) -> &'static str {
        self.service.name()
    }

    /// A name that no other case and no other service has.
    pub fn lock(&self, case: &str) -> String {
        format!("{}-{case}-{}", self.name(), self.run)
    }

    /// A client of that name.
    pub fn client(&self, client: &str) -> Box<dyn Lock> {
        self.client_of(client, &self.servers)
    }

    /// A client that is given other addresses for the servers.
    pub fn client_of(&self, client: &str, servers: &[SocketAddr]) -> Box<dyn Lock> {
        let hello = Hello {
            servers: servers.to_vec(),
            client: client.to_owned(),
            seed: 1,
        };
        self.service.connect(&hello).unwrap()
    }

    /// Short, and a little longer than the service's shortest.
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.service.ttl_ms(300))
    }

    /// The token of a grant, which has to have all that the service says it has.
    pub fn granted(&self, answer: Answer) -> Option<u64> {
        let has = self.service.has();
        let Answer::Granted {
            token,
            valid_for_ns,
        } = answer
        else {
            panic!("{} did not grant: {answer:?}", self.name());
        };
        assert_eq!(token.is_some(), has.tokens, "{}: token", self.name());
        assert_eq!(
            valid_for_ns.is_some(),
            has.expiry,
            "{}: validity",
            self.name()
        );
        token
    }
}

/// Long enough to outlast any case.
pub const LONG: Duration = Duration::from_secs(60);

/// Whether the lock is no longer the client's.
pub fn is_lost(answer: &Answer) -> bool {
    matches!(answer, Answer::Lost { .. })
}

/// Whether the lock is the client's.
pub fn is_granted(answer: &Answer) -> bool {
    matches!(answer, Answer::Granted { .. })
}

async fn one_holder_at_a_time(bench: &Bench) {
    let lock = bench.lock("one");
    let (mut first, mut second) = (bench.client("c1"), bench.client("c2"));
    let token = bench.granted(first.acquire(&lock, LONG, Duration::ZERO).await);
    let busy = second.acquire(&lock, LONG, Duration::ZERO).await;
    assert_eq!(busy, Answer::Busy, "{}", bench.name());
    assert!(is_granted(&first.held().await), "{}", bench.name());

    assert_eq!(first.release().await, Answer::Released, "{}", bench.name());
    let next = until("the released lock", async || {
        Some(second.acquire(&lock, LONG, Duration::ZERO).await).filter(is_granted)
    });
    let higher = bench.granted(next.await);
    assert!(
        token.is_none() || higher > token,
        "{}: {higher:?} after {token:?}",
        bench.name()
    );
    assert_eq!(second.release().await, Answer::Released, "{}", bench.name());
}

async fn names_are_apart(bench: &Bench) {
    let (mut first, mut second) = (bench.client("c1"), bench.client("c2"));
    bench.granted(
        first
            .acquire(&bench.lock("here"), LONG, Duration::ZERO)
            .await,
    );
    bench.granted(
        second
            .acquire(&bench.lock("there"), LONG, Duration::ZERO)
            .await,
    );
    assert_eq!(first.release().await, Answer::Released, "{}", bench.name());
    assert!(is_granted(&second.held().await), "{}", bench.name());
    assert_eq!(second.release().await, Answer::Released, "{}", bench.name());
}

async fn nothing_held_nothing_done(bench: &Bench) {
    let mut client = bench.client("c1");
    for answer in [
        client.extend(LONG).await,
        client.release().await,
        client.held().await,
    ] {
        assert!(is_lost(&answer), "{}: {answer:?}", bench.name());
    }
}

async fn tokens_rise(bench: &Bench) {
    if !bench.service.has().tokens {
        return;
    }
    let lock = bench.lock("tokens");
    let mut clients = [bench.client("c1"), bench.client("c2")];
    let mut last = None;
    for round in 0..20 {
        let client = &mut clients[round % 2];
        let token = bench.granted(client.acquire(&lock, LONG, Duration::ZERO).await);
        assert!(token > last, "{}: {token:?} after {last:?}", bench.name());
        last = token;
        assert_eq!(client.release().await, Answer::Released, "{}", bench.name());
    }
}

/// A client whose acquire or release had no answer just goes on.
async fn a_new_acquire_forgets_the_old_grant(bench: &Bench) {
    let mut client = bench.client("c1");
    bench.granted(
        client
            .acquire(&bench.lock("old"), LONG, Duration::ZERO)
            .await,
    );
    bench.granted(
        client
            .acquire(&bench.lock("new"), LONG, Duration::ZERO)
            .await,
    );
    assert_eq!(client.release().await, Answer::Released, "{}", bench.name());
    let again = client.release().await;
    assert!(is_lost(&again), "{}: {again:?}", bench.name());
}

async fn what_a_dead_client_held_becomes_free(bench: &Bench) {
    let lock = bench.lock("dead");
    let (mut dead, mut heir) = (bench.client("c1"), bench.client("c2"));
    bench.granted(dead.acquire(&lock, bench.ttl(), Duration::ZERO).await);
    drop(dead);
    let granted = until("a dead client's lock", async || {
        Some(heir.acquire(&lock, LONG, Duration::ZERO).await).filter(is_granted)
    });
    bench.granted(granted.await);
    assert_eq!(heir.release().await, Answer::Released, "{}", bench.name());
}

async fn an_extended_grant_lives_on(bench: &Bench) {
    let lock = bench.lock("extended");
    let mut client = bench.client("c1");
    let token = bench.granted(client.acquire(&lock, bench.ttl(), Duration::ZERO).await);
    let extended = client.extend(LONG).await;
    if !bench.service.has().expiry {
        assert!(
            matches!(extended, Answer::Refused { .. }),
            "{}: {extended:?}",
            bench.name()
        );
        return;
    }
    assert_eq!(bench.granted(extended), token, "{}", bench.name());

    // When a grant that was made later and as short is over, this one would be.
    let witness = bench.lock("witness");
    let mut later = bench.client("c2");
    bench.granted(later.acquire(&witness, bench.ttl(), Duration::ZERO).await);
    drop(later);
    let mut other = bench.client("c3");
    until("the witness to expire", async || {
        Some(other.acquire(&witness, LONG, Duration::ZERO).await).filter(is_granted)
    })
    .await;
    let busy = other.acquire(&lock, LONG, Duration::ZERO).await;
    assert_eq!(busy, Answer::Busy, "{}", bench.name());
    assert!(is_granted(&client.held().await), "{}", bench.name());
    assert_eq!(client.release().await, Answer::Released, "{}", bench.name());
}

/// The client stands still until its lock is another's, as a paused process does: nothing of it runs, not even what keeps
/// a lease alive.
async fn an_expired_grant_is_its_successors(bench: &Bench) {
    let has = bench.service.has();
    if !has.expiry {
        return;
    }
    for release_first in [true, false] {
        let lock = bench.lock(&format!("expired-{release_first}"));
        let mut paused = bench.client("c1");
        let old = bench.granted(paused.acquire(&lock, bench.ttl(), Duration::ZERO).await);
        let successor = Successor::of(bench, &lock);

        if release_first {
            let released = paused.release().await;
            assert!(is_lost(&released), "{}: {released:?}", bench.name());
        } else {
            let held = paused.held().await;
            assert!(is_lost(&held), "{}: {held:?}", bench.name());
            let extended = paused.extend(LONG).await;
            assert!(is_lost(&extended), "{}: {extended:?}", bench.name());
            if has.notice {
                let told = timeout(PATIENCE, paused.loss().wait()).await;
                assert!(told.is_ok(), "{} did not tell of the loss", bench.name());
            }
        }
        let (new, released) = successor.end();
        assert!(
            old.is_none() || new > old,
            "{}: {new:?} after {old:?}",
            bench.name()
        );
        assert_eq!(
            released,
            Answer::Released,
            "{}: the old holder freed it",
            bench.name()
        );
    }
}

/// Another client, in a thread of its own.
struct Successor {
    end: mpsc::Sender<()>,
    thread: thread::JoinHandle<(Option<u64>, Answer)>,
}

impl Successor {
    /// Waits, without letting the calling thread do anything else, until another client has got the lock.
    fn of(bench: &Bench, lock: &str) -> Successor {
        let (granted, is_there) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let (service, servers, lock) = (bench.service, bench.servers.clone(), lock.to_owned());
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let hello = Hello {
                    servers,
                    client: "c2".to_owned(),
                    seed: 2,
                };
                let mut client = service.connect(&hello).unwrap();
                let token = until("a paused client's lock", async || {
                    match client.acquire(&lock, LONG, Duration::ZERO).await {
                        Answer::Granted { token, .. } => Some(token),
                        _ => None,
                    }
                });
                let token = token.await;
                granted.send(()).unwrap();
                // A blocking wait would keep it from keeping its own lease alive.
                until("the end of the case", async || ended.try_recv().ok()).await;
                (token, client.release().await)
            })
        });
        is_there.recv_timeout(PATIENCE).unwrap();
        Successor { end, thread }
    }

    /// Its token, and what its own release was answered.
    fn end(self) -> (Option<u64>, Answer) {
        self.end.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

async fn waiting_is_told_by_the_server(bench: &Bench) {
    if !bench.service.has().waiting {
        return;
    }
    let lock = bench.lock("waiting");
    let (mut first, mut second) = (bench.client("c1"), bench.client("c2"));
    let token = bench.granted(first.acquire(&lock, LONG, Duration::ZERO).await);
    let in_vain = second.acquire(&lock, LONG, Duration::from_millis(50)).await;
    assert_eq!(in_vain, Answer::Busy, "{}", bench.name());

    let mut waiting = second.acquire(&lock, LONG, LONG);
    let early = timeout(Duration::from_millis(100), &mut waiting).await;
    assert!(early.is_err(), "{} let two in: {early:?}", bench.name());
    let (released, granted) = tokio::join!(first.release(), timeout(PATIENCE, waiting));
    assert_eq!(released, Answer::Released, "{}", bench.name());
    let next = bench.granted(granted.expect("the waiting client is told"));
    assert!(
        token.is_none() || next > token,
        "{}: {next:?} after {token:?}",
        bench.name()
    );
    assert_eq!(second.release().await, Answer::Released, "{}", bench.name());
}

/// What is not answered is unknown, or certainly not granted; and no later request gets an earlier one's answer.
async fn silence_is_not_an_answer(bench: &Bench) {
    let mut gates = Vec::new();
    for server in &bench.servers {
        gates.push(Gate::before(*server).await);
    }
    let through: Vec<SocketAddr> = gates.iter().map(|gate| gate.address).collect();
    let mut client = bench.client_of("c1", &through);
    let lock = bench.lock("silence");
    let ttl = bench.ttl();
    bench.granted(client.acquire(&lock, ttl, Duration::ZERO).await);
    assert_eq!(client.release().await, Answer::Released, "{}", bench.name());

    for _ in 0..3 {
        gates.iter().for_each(Gate::shut_answers);
        let unanswered = client.acquire(&lock, ttl, Duration::ZERO).await;
        let honest = matches!(unanswered, Answer::Unknown { .. } | Answer::Refused { .. });
        assert!(honest, "{}: {unanswered:?}", bench.name());
        gates.iter().for_each(Gate::open);

        let granted = until("the lock behind the opened gate", async || {
            Some(client.acquire(&lock, ttl, Duration::ZERO).await).filter(is_granted)
        });
        bench.granted(granted.await);
        assert!(is_granted(&client.held().await), "{}", bench.name());
        gates.iter().for_each(Gate::shut_answers);
        let unanswered = client.release().await;
        assert!(
            matches!(unanswered, Answer::Unknown { .. }),
            "{}: {unanswered:?}",
            bench.name()
        );
        gates.iter().for_each(Gate::open);
    }
}
