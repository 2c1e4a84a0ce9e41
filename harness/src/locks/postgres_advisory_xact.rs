//! postgres-advisory-xact: an advisory lock that ends with its transaction, in which the work is done as well.

use std::mem;
use std::time::Duration;

use async_trait::async_trait;
use histories::Hazard;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{Answer, ELSEWHERE, Has, Hello, Lock, LockService, Loss, ONE_SERVER};
use crate::connections::postgres::{Parameter, Server, Session};
use crate::connections::{ANSWER_TIMEOUT, Failure};
use crate::contract::{Guarantee, Statement, keeps, limit};

/// The lock service.
pub struct PostgresAdvisoryXact;

/// Whether the lock was free. Advisory locks have integers for names; the server hashes ours to 64 bits.
const TRY: &str = "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))";

/// Waits for the lock as long as `lock_timeout` says, which the rest of the transaction shall not know of.
const WAIT: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0)) IS NOT NULL, set_config('lock_timeout', '0', true)";

const HELD: &str = "SELECT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted
)";

/// In a transaction that failed, COMMIT alone succeeds, and rolls back; another statement before it says so.
const COMMIT: &str = "SELECT 1; COMMIT";

/// How a holder learns that it holds no longer.
const ROLLED_BACK: &str = "the transaction was rolled back";

/// What it promises. The server keeps the lock for a client that stands still, and a transaction that it lost was never there.
const STATEMENTS: &[Statement] = &[
    keeps(Guarantee::Exclusion, ELSEWHERE),
    keeps(Guarantee::Exclusion, SERVER_TROUBLE),
    keeps(Guarantee::Exclusion, SERVER_ENDS),
    keeps(Guarantee::Belief, ELSEWHERE),
    keeps(Guarantee::Belief, SERVER_TROUBLE),
    limit(
        Guarantee::Belief,
        SERVER_ENDS,
        "a holder learns that its session ended when the news arrives, and another may have been granted the lock by then",
    ),
    keeps(
        Guarantee::Progress,
        &[
            Hazard::Nothing,
            Hazard::ClientStopped,
            Hazard::ClientCrashed,
            Hazard::WorkHeld,
            Hazard::WriteHeld,
            Hazard::StorageCrashed,
            Hazard::StorageClock,
            Hazard::ServerClockForward,
            Hazard::ServerClockBack,
        ],
    ),
    limit(
        Guarantee::Progress,
        &[Hazard::ClientCutOff],
        "the server keeps the session of a client that it does not hear of until it notices",
    ),
    ONE_SERVER,
];

/// What its server lives through, with its sessions.
const SERVER_TROUBLE: &[Hazard] = &[
    Hazard::ServerStopped,
    Hazard::ServerCutOff,
    Hazard::ServerClockForward,
    Hazard::ServerClockBack,
];

/// What ends its sessions, but leaves its disk.
const SERVER_ENDS: &[Hazard] = &[Hazard::ServerRestarted, Hazard::ServerLost];

#[async_trait]
impl LockService for PostgresAdvisoryXact {
    fn name(&self) -> &'static str {
        "postgres-advisory-xact"
    }

    fn summary(&self) -> &'static str {
        "an advisory lock in the Postgres transaction that does the work"
    }

    fn topologies(&self) -> &'static [&'static str] {
        &["postgres"]
    }

    fn has(&self) -> Has {
        Has {
            waiting: true,
            notice: true,
            transaction: true,
            ..Has::default()
        }
    }

    fn statements(&self) -> &'static [Statement] {
        STATEMENTS
    }

    fn connect(&self, hello: &Hello) -> anyhow::Result<Box<dyn Lock>> {
        Ok(Box::new(Client {
            server: Server::new(hello.only_server()?, &hello.client),
            holds: false,
        }))
    }
}

struct Client {
    server: Server,
    /// The server's session is in the transaction that holds the lock.
    holds: bool,
}

impl Client {
    /// Begins a transaction and asks for the lock in it; whether it was granted.
    async fn begin(&mut self, lock: &str, wait: Duration) -> Result<bool, Failure> {
        let session = self.server.session().await?;
        let (begin, ask, within) = if wait.is_zero() {
            ("BEGIN".to_owned(), TRY, ANSWER_TIMEOUT)
        } else {
            let wait_ms = wait.as_millis();
            let begin = format!("BEGIN; SET LOCAL lock_timeout = {wait_ms}");
            (begin, WAIT, wait + ANSWER_TIMEOUT)
        };
        session.execute(ANSWER_TIMEOUT, &begin).await?;
        let parameters: [Parameter; 1] = [(&lock, Type::TEXT)];
        first(session.query(within, ask, &parameters).await)
    }

    async fn roll_back(&mut self) {
        if let Some(session) = self.server.current()
            && session.execute(ANSWER_TIMEOUT, "ROLLBACK").await.is_err()
        {
            self.server.disconnect();
        }
    }
}

/// The yes or no in the first column of the first row.
fn first(rows: Result<Vec<Row>, Failure>) -> Result<bool, Failure> {
    match rows?.first().map(|row| row.try_get(0)) {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(error)) => Err(Failure::Unknown(error.to_string())),
        None => Err(Failure::Unknown("no row".to_owned())),
    }
}

#[async_trait(?Send)]
impl Lock for Client {
    async fn acquire(&mut self, lock: &str, _ttl: Duration, wait: Duration) -> Answer {
        if mem::take(&mut self.holds) {
            self.server.disconnect();
        }
        match self.begin(lock, wait).await {
            Ok(true) => {
                self.holds = true;
                Answer::held(None)
            }
            Ok(false) | Err(Failure::Busy) => {
                self.roll_back().await;
                Answer::Busy
            }
            Err(failure) => {
                self.server.disconnect();
                failure.into()
            }
        }
    }

    async fn extend(&mut self, _ttl: Duration) -> Answer {
        match self.server.current() {
            Some(session) if self.holds => match session.broken() {
                Some(by) => Answer::lost(format!("{ROLLED_BACK}: {by}")),
                None => Answer::Refused {
                    error: "the lock has no expiry".to_owned(),
                },
            },
            _ => Answer::nothing_held(),
        }
    }

    async fn release(&mut self) -> Answer {
        let session = match self.server.current() {
            Some(session) if mem::take(&mut self.holds) => session,
            _ => return Answer::nothing_held(),
        };
        match session.execute(ANSWER_TIMEOUT, COMMIT).await {
            Ok(()) => Answer::Released,
            Err(failure) => {
                self.server.disconnect();
                match failure {
                    Failure::Busy => Answer::lost(ROLLED_BACK),
                    Failure::Refused(error) => Answer::lost(format!("{ROLLED_BACK}: {error}")),
                    Failure::Unknown(error) => Answer::Unknown { error },
                }
            }
        }
    }

    async fn held(&mut self) -> Answer {
        let session = match self.server.current() {
            Some(session) if self.holds => session,
            _ => return Answer::nothing_held(),
        };
        match first(session.query(ANSWER_TIMEOUT, HELD, &[]).await) {
            Ok(true) => Answer::held(None),
            Ok(false) => Answer::lost("the session holds no such lock"),
            Err(_) if session.broken().is_some() => Answer::lost(ROLLED_BACK),
            Err(failure) => failure.into(),
        }
    }

    fn loss(&self) -> Loss {
        match self.server.current() {
            Some(session) if self.holds => session.closed().clone(),
            _ => Loss::never(),
        }
    }

    fn session(&self) -> Option<&Session> {
        self.server.current().filter(|_| self.holds)
    }
}
