//! The seam between a client and a lock service, whoever wrote it: what is asked, what is answered, what is told.
//!
//! All that crosses it is plain data, so that it could cross a pipe as JSON lines: [`Hello`] once, then an [`Ask`] and
//! its [`Answer`], one at a time, and a [`Loss`] and [`Renewals`] whenever the service has them to tell. [`Lock`] is the
//! client's side of it.

use std::future;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::connections::postgres::Session;

/// Said once, before anything is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The servers of the lock service, in the order of their hosts.
    pub servers: Vec<SocketAddr>,
    /// Who asks: the name of the process, `c1` or after a restart `c1.2`.
    pub client: String,
    /// What the service's random choices follow from.
    pub seed: u64,
}

impl Hello {
    /// The only server of a service that runs on one.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn only_server(&self) -> anyhow::Result<SocketAddr> {
        match self.servers[..] {
            [server] => Ok(server),
            _ => bail!("runs on one server, and was given {}", self.servers.len()),
        }
    }
}

/// What a lock service has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Has {
    /// Each grant carries a fencing token.
    pub tokens: bool,
    /// A grant ends by itself when its time to live is over.
    pub expiry: bool,
    /// It can wait for a busy lock, told by the server and not by asking again and again.
    pub waiting: bool,
    /// It tells of a loss without being asked.
    pub notice: bool,
    /// A grant is a database transaction, and ends with it.
    pub transaction: bool,
}

/// What a client can ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ask")]
pub enum Ask {
    /// Grant me the lock. Answered by granted, busy, refused or unknown.
    Acquire {
        /// The lock's name.
        lock: String,
        /// How long the grant is to live, in milliseconds; nothing to a service without expiry.
        ttl_ms: u64,
        /// How long to wait for a busy lock, in milliseconds; nothing to a service that cannot wait.
        wait_ms: u64,
    },
    /// Let my grant live this long from now. Answered by granted, lost, refused or unknown.
    Extend {
        /// In milliseconds.
        ttl_ms: u64,
    },
    /// Take my grant back. Answered by released, lost, refused or unknown.
    Release,
    /// Do I hold the lock, as far as you know? Answered by granted, lost, refused or unknown.
    Held,
}

/// What a lock service can answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "answer")]
pub enum Answer {
    /// The lock is the client's.
    Granted {
        /// The fencing token, where the service has them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// How long the grant may be relied on, in nanoseconds counted from when the client asked; absent for a lock
        /// without expiry, and where the service was only asked whether it holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        valid_for_ns: Option<u64>,
    },
    /// Another has it.
    Busy,
    /// It was the client's until now, and is given back.
    Released,
    /// It is no longer the client's.
    Lost {
        /// By what the service knows.
        error: String,
    },
    /// It was certainly not done, for another reason than the lock's being busy or lost: what was held still is.
    Refused {
        /// Why.
        error: String,
    },
    /// It may have been done, or may yet be.
    Unknown {
        /// What happened instead of an answer.
        error: String,
    },
}

impl Answer {
    /// Granted, and to be relied on for `valid_for` from when the client asked.
    pub fn granted(token: Option<u64>, valid_for: Duration) -> Answer {
        Answer::Granted {
            token,
            valid_for_ns: Some(valid_for.as_nanos() as u64),
        }
    }

    /// Granted, with nothing said of how long: there is no expiry, or the question was only whether it holds.
    pub fn held(token: Option<u64>) -> Answer {
        Answer::Granted {
            token,
            valid_for_ns: None,
        }
    }

    /// No longer the client's, known by `error`.
    pub fn lost(error: impl Into<String>) -> Answer {
        Answer::Lost {
            error: error.into(),
        }
    }

    /// The answer to something that was asked of a grant that the client no longer has.
    pub fn nothing_held() -> Answer {
        Answer::lost("no grant is held")
    }
}

/// A client's side of a lock service. It holds at most one grant; an acquire forgets the one before.
///
/// It connects when it is first asked, and again after an answer was [`Answer::Unknown`]; so nothing is lost by making
/// one while no server is up.
#[async_trait(?Send)]
pub trait Lock {
    /// Asks for the lock, waiting up to `wait` where the service can.
    async fn acquire(&mut self, lock: &str, ttl: Duration, wait: Duration) -> Answer;

    /// Asks for the grant to live for `ttl` from now.
    async fn extend(&mut self, ttl: Duration) -> Answer;

    /// Gives the grant back.
    async fn release(&mut self) -> Answer;

    /// Asks the service whether the grant still holds.
    async fn held(&mut self) -> Answer;

    /// What the service tells of the present grant without being asked; never anything where it has no notice.
    fn loss(&self) -> Loss {
        Loss::never()
    }

    /// Until when the present grant may be relied on that the service renews in the background; never later where it does not.
    fn renewals(&self) -> Renewals {
        Renewals::never()
    }

    /// The database session whose transaction is the grant, where it is one. Storage policy `same-transaction` works in it.
    fn session(&self) -> Option<&Session> {
        None
    }

    /// Asks, in the words of the seam.
    async fn ask(&mut self, ask: &Ask) -> Answer {
        match ask {
            Ask::Acquire {
                lock,
                ttl_ms,
                wait_ms,
            } => {
                let (ttl, wait) = (
                    Duration::from_millis(*ttl_ms),
                    Duration::from_millis(*wait_ms),
                );
                self.acquire(lock, ttl, wait).await
            }
            Ask::Extend { ttl_ms } => self.extend(Duration::from_millis(*ttl_ms)).await,
            Ask::Release => self.release().await,
            Ask::Held => self.held().await,
        }
    }
}

/// Whether a grant is known to be lost, told at any time: by what, once it is.
#[derive(Clone, Debug)]
pub struct Loss(watch::Receiver<Option<String>>);

/// The service's end of a [`Loss`].
pub type Teller = watch::Sender<Option<String>>;

impl Loss {
    /// A loss that is never told.
    pub fn never() -> Loss {
        Loss::new().1
    }

    /// A loss, and the end at which it is told.
    pub fn new() -> (Teller, Loss) {
        let (teller, told) = watch::channel(None);
        (teller, Loss(told))
    }

    /// By what the grant was lost, if that was told by now.
    pub fn told(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Waits until the loss is told; for ever if it never is.
    pub async fn wait(&mut self) -> String {
        if let Ok(told) = self.0.wait_for(Option::is_some).await
            && let Some(by) = told.clone()
        {
            return by;
        }
        future::pending().await
    }
}

/// Until when a grant may be relied on that is renewed in the background, in nanoseconds of CLOCK_MONOTONIC: told whenever
/// that is later than it was.
#[derive(Clone, Debug)]
pub struct Renewals(watch::Receiver<u64>);

impl Renewals {
    /// A grant that is not renewed.
    pub fn never() -> Renewals {
        Renewals::new(0).1
    }

    /// A grant that may be relied on until then at first, and the end at which its renewals are told.
    pub fn new(valid_until_ns: u64) -> (watch::Sender<u64>, Renewals) {
        let (renewed, told) = watch::channel(valid_until_ns);
        (renewed, Renewals(told))
    }

    /// Until when the grant may be relied on, by all that was told.
    pub fn valid_until_ns(&self) -> u64 {
        *self.0.borrow()
    }

    /// Waits until the grant may be relied on for longer than is known; for ever if it is never renewed.
    pub async fn beyond(&mut self, known_ns: u64) -> u64 {
        match self
            .0
            .wait_for(|valid_until_ns| *valid_until_ns > known_ns)
            .await
        {
            Ok(valid_until_ns) => *valid_until_ns,
            Err(_) => future::pending().await,
        }
    }
}
