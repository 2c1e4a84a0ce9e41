//! The members of an etcd cluster, spoken to one at a time: to the next one after one gave no answer.

use std::net::SocketAddr;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, Error};
use tokio::time::timeout;

use super::{CONNECT_TIMEOUT, Failure};

/// What etcd says of a lease that is over or was never granted.
const LEASE_NOT_FOUND: &str = "etcdserver: requested lease not found";

/// The members, and the connection to one of them.
///
/// The client crate could balance requests over all members, but it goes on choosing one that is down.
#[derive(Clone)]
pub struct Members {
    servers: Vec<SocketAddr>,
    at: u64,
    open: Option<Client>,
}

/// Why a request to etcd has no answer of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdFailure {
    /// The lease that it named is over, or was never granted.
    NoLease,
    /// Anything else.
    Other(Failure),
}

impl From<EtcdFailure> for Failure {
    fn from(failure: EtcdFailure) -> Failure {
        match failure {
            EtcdFailure::NoLease => Failure::Refused("the lease is over".to_owned()),
            EtcdFailure::Other(failure) => failure,
        }
    }
}

impl Members {
    /// The members, of which `first` (counted round) is spoken to first.
    pub fn new(servers: Vec<SocketAddr>, first: u64) -> Members {
        Members {
            servers,
            at: first,
            open: None,
        }
    }

    /// Sends a request to the present member, and turns to the next one if there is no answer.
    pub async fn ask<T>(
        &mut self,
        within: Duration,
        request: impl AsyncFnOnce(&mut Client) -> Result<T, Error>,
    ) -> Result<T, EtcdFailure> {
        let client = self.client().await?;
        let failure = match timeout(within, request(client)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) if is_no_lease(&error) => return Err(EtcdFailure::NoLease),
            Ok(Err(error)) => Failure::Unknown(said(&error)),
            Err(_) => Failure::no_answer(within),
        };
        self.turn();
        Err(EtcdFailure::Other(failure))
    }

    /// Speaks to the next member from now on.
    pub fn turn(&mut self) {
        self.at = self.at.wrapping_add(1);
        self.open = None;
    }

    async fn client(&mut self) -> Result<&mut Client, EtcdFailure> {
        let client = match self.open.take() {
            Some(client) => client,
            None => self.connect().await?,
        };
        Ok(self.open.insert(client))
    }

    /// Makes a client of the present member; the connection itself is made by its first request.
    async fn connect(&self) -> Result<Client, EtcdFailure> {
        let refused = |error: String| EtcdFailure::Other(Failure::Refused(error));
        let at = self.at.checked_rem(self.servers.len() as u64);
        let server = at
            .and_then(|at| self.servers.get(at as usize))
            .ok_or_else(|| refused("the cluster has no member".to_owned()))?;
        // A member that knows no leader says so at once, and ends its watches, where it would else be silent.
        let options = ConnectOptions::default()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_require_leader(true);
        Client::connect([format!("http://{server}")], Some(options))
            .await
            .map_err(|error| refused(said(&error)))
    }
}

fn is_no_lease(error: &Error) -> bool {
    match error {
        Error::GRpcStatus(status) => status.message() == LEASE_NOT_FOUND,
        // What the client crate makes of a keep-alive that was answered by a time to live of 0.
        Error::LeaseKeepAliveError(message) => message == "lease not found",
        _ => false,
    }
}

/// The server's own words; the error itself prints all of the answer's metadata.
fn said(error: &Error) -> String {
    match error {
        Error::GRpcStatus(status) if status.message().is_empty() => status.code().to_string(),
        Error::GRpcStatus(status) => status.message().to_owned(),
        _ => error.to_string(),
    }
}
