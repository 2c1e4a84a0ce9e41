//! One Postgres server, over a bare connection: a pool would break whatever belongs to a session.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row};

use super::{CONNECT_TIMEOUT, Failure};
use crate::locks::Loss;

/// As whom, and to which database, as the images have it; there is no password.
const USER: &str = "postgres";
const DATABASE: &str = "postgres";

/// A statement's parameter with its type, so that a statement takes one round trip and no preparation.
pub type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// One connection. It is closed when this is dropped, and what it had not committed is rolled back.
#[derive(Debug)]
pub struct Session {
    client: Client,
    driver: JoinHandle<()>,
    closed: Loss,
    /// A statement has no answer. What came next would be done after it, and a COMMIT would make it happen.
    unanswered: AtomicBool,
}

impl Session {
    /// Connects; `client` is the name by which the server knows the session.
    ///
    /// # Errors
    /// [`Failure::Refused`], since nothing was asked yet.
    pub async fn open(server: SocketAddr, client: &str) -> Result<Session, Failure> {
        let refused = |error: String| Failure::Refused(format!("no connection: {error}"));
        let mut config = Config::new();
        config
            .hostaddr(server.ip())
            .port(server.port())
            .user(USER)
            .dbname(DATABASE)
            .application_name(client);
        let (client, connection) = timeout(CONNECT_TIMEOUT, config.connect(NoTls))
            .await
            .map_err(|_| refused(format!("none within {} ms", CONNECT_TIMEOUT.as_millis())))?
            .map_err(|error| refused(said(&error)))?;
        let (teller, closed) = Loss::new();
        let driver = tokio::spawn(async move {
            let by = match connection.await {
                Ok(()) => "the connection was closed".to_owned(),
                Err(error) => format!("the connection broke: {}", said(&error)),
            };
            teller.send_replace(Some(by));
        });
        Ok(Session {
            client,
            driver,
            closed,
            unanswered: AtomicBool::new(false),
        })
    }

    /// Runs one statement and gives its rows.
    ///
    /// # Errors
    /// [`Failure::Refused`] or [`Failure::Busy`] if the server rejected the statement: a single one, or a whole
    /// transaction, is then rolled back. [`Failure::Unknown`] if there is no answer; all that is asked of this session
    /// later is [`Failure::Refused`], so that an open transaction is sure to be rolled back.
    pub async fn query(
        &self,
        within: Duration,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        self.bounded(within, self.client.query_typed(statement, parameters))
            .await
    }

    /// Runs a statement, or several, that have no parameters and whose rows do not matter. Errors as [`Session::query`].
    pub async fn execute(&self, within: Duration, statements: &str) -> Result<(), Failure> {
        self.bounded(within, self.client.batch_execute(statements))
            .await
    }

    /// By what the connection ended, told when it did.
    pub fn closed(&self) -> &Loss {
        &self.closed
    }

    /// Why nothing can be asked of this session any more; `None` while it can.
    pub fn broken(&self) -> Option<String> {
        let unanswered = self.unanswered.load(Ordering::Relaxed);
        let given_up = || unanswered.then(|| "an earlier statement was not answered".to_owned());
        self.closed.told().or_else(given_up)
    }

    async fn bounded<T>(
        &self,
        within: Duration,
        request: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        if let Some(by) = self.broken() {
            return Err(Failure::Refused(by));
        }
        // Set first, for the case that this future is dropped.
        self.unanswered.store(true, Ordering::Relaxed);
        let failure = match timeout(within, request).await {
            Ok(Ok(answer)) => {
                self.unanswered.store(false, Ordering::Relaxed);
                return Ok(answer);
            }
            Ok(Err(error)) => failure(&error),
            Err(_) => Failure::no_answer(within),
        };
        let unknown = matches!(failure, Failure::Unknown(_));
        self.unanswered.store(unknown, Ordering::Relaxed);
        Err(failure)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The driver would otherwise stay until all is answered that was asked, and keep the connection open.
        self.driver.abort();
    }
}

/// A server of which a [`Session`] is opened whenever one is needed.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    client: String,
    session: Option<Session>,
}

impl Server {
    /// The server at `address`, which will know its sessions as `client`'s.
    pub fn new(address: SocketAddr, client: &str) -> Server {
        Server {
            address,
            client: client.to_owned(),
            session: None,
        }
    }

    /// Runs one statement and gives its rows.
    ///
    /// # Errors
    /// As [`Session::query`]; after [`Failure::Unknown`] the next statement goes over another connection.
    pub async fn query(
        &mut self,
        within: Duration,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let session = self.session().await?;
        session.query(within, statement, parameters).await
    }

    /// The session that was opened last, of use or not; `None` after [`Server::disconnect`].
    pub fn current(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Closes the session; the next statement goes over another.
    pub fn disconnect(&mut self) {
        self.session = None;
    }

    /// The open session, or a new one if the last is of no more use.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub async fn session(&mut self) -> Result<&Session, Failure> {
        let open = self.session.take();
        let session = match open.filter(|session| session.broken().is_none()) {
            Some(session) => session,
            None => Session::open(self.address, &self.client).await?,
        };
        Ok(self.session.insert(session))
    }
}

/// Makes tables. The statements have to do nothing where a table is there already; that alone would not keep two that
/// make the same one at once from failing, so they are run one after another.
///
/// # Errors
/// As [`Session::execute`].
pub async fn create(server: SocketAddr, statements: &str) -> Result<(), Failure> {
    let session = Session::open(server, "fencepost").await?;
    let statements = format!("SELECT pg_advisory_xact_lock({CREATE_KEY}); {statements}");
    session.execute(CREATE_TIMEOUT, &statements).await
}

/// The advisory lock under which tables are made.
const CREATE_KEY: i64 = 0x66_65_6e_63_65;

/// How long making tables may take.
const CREATE_TIMEOUT: Duration = Duration::from_secs(30);

/// Only an error of the statement itself, sent by a server that goes on, says that nothing was done.
fn failure(error: &tokio_postgres::Error) -> Failure {
    match error.as_db_error() {
        Some(rejection) if rejection.parsed_severity() != Some(Severity::Error) => {
            Failure::Unknown(said(error))
        }
        Some(rejection) if *rejection.code() == SqlState::LOCK_NOT_AVAILABLE => Failure::Busy,
        Some(_) => Failure::Refused(said(error)),
        None => Failure::Unknown(said(error)),
    }
}

/// The server's own words; `tokio_postgres::Error` shows only "db error".
fn said(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(error), _) => format!("{} ({})", error.message(), error.code().code()),
        (None, Some(source)) => source.to_string(),
        (None, None) => error.to_string(),
    }
}
