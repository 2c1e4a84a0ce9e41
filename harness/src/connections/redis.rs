//! One Redis server.

use std::net::SocketAddr;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue,
    IntoConnectionInfo, RedisError, ScriptInvocation,
};
use tokio::time::timeout;

use super::Failure;

/// A server to which a connection is made whenever one is needed.
pub struct Server {
    address: SocketAddr,
    /// How long connecting may take, and then how long an answer.
    within: Duration,
    connection: Option<MultiplexedConnection>,
}

impl Server {
    /// The server at `address`, given `within` to connect and again to answer.
    pub fn new(address: SocketAddr, within: Duration) -> Server {
        Server {
            address,
            within,
            connection: None,
        }
    }

    /// Sends a command. A connection over which no answer came in time is kept: what undoes the command has to travel
    /// behind it on the same connection, and a late answer is dropped with the request that it belongs to. A broken
    /// connection is replaced before the next request.
    ///
    /// # Errors
    /// [`Failure::Refused`] if there was no connection or the server answered with an error, else [`Failure::Unknown`].
    pub async fn command<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Failure> {
        let mut connection = self.connection().await?;
        let answer = timeout(self.within, command.query_async(&mut connection)).await;
        self.outcome(answer.ok())
    }

    /// Runs a script, loading it first where the server has not got it. Otherwise as [`Server::command`].
    pub async fn script<T: FromRedisValue>(
        &mut self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, Failure> {
        let mut connection = self.connection().await?;
        let answer = timeout(self.within, script.invoke_async(&mut connection)).await;
        self.outcome(answer.ok())
    }

    /// Makes a new connection for the next request.
    pub fn disconnect(&mut self) {
        self.connection = None;
    }

    async fn connection(&mut self) -> Result<MultiplexedConnection, Failure> {
        if let Some(connection) = &self.connection {
            return Ok(connection.clone());
        }
        let refused = |error: String| Failure::Refused(format!("no connection: {error}"));
        let connection = timeout(self.within, connect(self.address))
            .await
            .map_err(|_| refused(format!("none within {} ms", self.within.as_millis())))?
            .map_err(|error| refused(error.to_string()))?;
        Ok(self.connection.insert(connection).clone())
    }

    fn outcome<T>(&mut self, answer: Option<Result<T, RedisError>>) -> Result<T, Failure> {
        match answer {
            None => Err(Failure::no_answer(self.within)),
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => {
                if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) {
                    Err(Failure::Refused(error.to_string()))
                } else {
                    self.disconnect();
                    Err(Failure::Unknown(error.to_string()))
                }
            }
        }
    }
}

async fn connect(address: SocketAddr) -> Result<MultiplexedConnection, RedisError> {
    let address = ConnectionAddr::Tcp(address.ip().to_string(), address.port());
    // The crate leaves Nagle's algorithm on, which makes a script's second request wait for an acknowledgement.
    let settings = TcpSettings::default().set_nodelay(true);
    let info = address.into_connection_info()?.set_tcp_settings(settings);
    // The bounds are ours, over a request as a whole.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    Client::open(info)?
        .get_multiplexed_async_connection_with_config(&config)
        .await
}
