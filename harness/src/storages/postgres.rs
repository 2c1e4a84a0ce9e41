//! postgres: a row a document, and in the same statement a row a write in a log that only grows.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{Entry, Policy, Read, Storage, StorageService, Write, Written};
use crate::connections::Failure;
use crate::connections::postgres::{Parameter, Server, Session, create};

/// The storage.
pub struct Postgres;

/// How long an answer may take. Much longer than a lock's, since a write may be held up on its way for longer than any
/// lease lives, and is to arrive and be answered all the same.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

const TABLES: &str = "CREATE TABLE IF NOT EXISTS documents (
    name text PRIMARY KEY,
    version bigint NOT NULL,
    value text NOT NULL,
    fence bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS writes_log (
    document text NOT NULL,
    version bigint NOT NULL,
    op bigint NOT NULL,
    token bigint,
    value text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (document, version)
)";

const PREPARE: &str = "INSERT INTO documents (name, version, value, fence) VALUES ($1, 0, '', 0)
    ON CONFLICT (name) DO NOTHING";

const READ: &str = "SELECT version, value FROM documents WHERE name = $1";

const LOG: &str =
    "SELECT version, op, token, value FROM writes_log WHERE document = $1 ORDER BY version";

/// Writes, logs the write, and gives the new version; no row if the fence rejected it. The fence is the highest token that
/// wrote; a holder may write many times, so that an equal one is accepted. A write without a token is never rejected.
const WRITE: &str = "WITH accepted AS (
    UPDATE documents SET version = version + 1, value = $2, fence = greatest(fence, $3)
    WHERE name = $1 AND ($3 IS NULL OR fence <= $3)
    RETURNING version
), logged AS (
    INSERT INTO writes_log (document, version, op, token, value)
    SELECT $1, version, $4, $3, $2 FROM accepted
)
SELECT version FROM accepted";

#[async_trait]
impl StorageService for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn summary(&self) -> &'static str {
        "a row a document in Postgres, with a log of the accepted writes"
    }

    async fn prepare(&self, server: SocketAddr, document: &str) -> anyhow::Result<()> {
        create(server, TABLES).await?;
        let mut server = Server::new(server, "fencepost");
        let parameters: [Parameter; 1] = [(&document, Type::TEXT)];
        server.query(ANSWER_TIMEOUT, PREPARE, &parameters).await?;
        Ok(())
    }

    async fn log(&self, server: SocketAddr, document: &str) -> anyhow::Result<Vec<Entry>> {
        let mut server = Server::new(server, "fencepost");
        let parameters: [Parameter; 1] = [(&document, Type::TEXT)];
        let rows = server.query(ANSWER_TIMEOUT, LOG, &parameters).await?;
        rows.iter().map(entry).collect()
    }

    fn connect(
        &self,
        server: SocketAddr,
        client: &str,
        policy: &'static Policy,
    ) -> Box<dyn Storage> {
        Box::new(Client {
            server: Server::new(server, client),
            policy,
        })
    }
}

fn entry(row: &Row) -> anyhow::Result<Entry> {
    let token: Option<i64> = row.try_get(2)?;
    Ok(Entry {
        version: number(row, 0)?,
        op: number(row, 1)?,
        token: token.map(u64::try_from).transpose()?,
        value: row.try_get(3)?,
    })
}

/// Postgres has no unsigned integers.
fn number(row: &Row, column: usize) -> anyhow::Result<u64> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).with_context(|| format!("column {column} of a row is negative"))
}

struct Client {
    server: Server,
    policy: &'static Policy,
}

impl Client {
    /// Runs a statement, in the lock's transaction where there is one.
    async fn query(
        &mut self,
        session: Option<&Session>,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        if !self.policy.needs_transaction {
            return self
                .server
                .query(ANSWER_TIMEOUT, statement, parameters)
                .await;
        }
        let Some(session) = session else {
            return Err(Failure::Refused(
                "the lock's transaction is over".to_owned(),
            ));
        };
        session.query(ANSWER_TIMEOUT, statement, parameters).await
    }
}

#[async_trait(?Send)]
impl Storage for Client {
    async fn read(&mut self, session: Option<&Session>, document: &str) -> Read {
        let parameters: [Parameter; 1] = [(&document, Type::TEXT)];
        let rows = match self.query(session, READ, &parameters).await {
            Ok(rows) => rows,
            Err(failure) => return Read::failed(failure),
        };
        let Some(row) = rows.first() else {
            return Read::failed(format!("there is no document {document}"));
        };
        match (number(row, 0), row.try_get(1)) {
            (Ok(version), Ok(value)) => Read::Is { version, value },
            (Err(error), _) => Read::failed(error),
            (_, Err(error)) => Read::failed(error),
        }
    }

    async fn write(&mut self, session: Option<&Session>, write: &Write<'_>) -> Written {
        if self.policy.needs_token() && write.token.is_none() {
            let error = "the policy needs a token, and there is none".to_owned();
            return Written::Refused { error };
        }
        // Below 2^63, all of them: operations are counted, and tokens come from counters.
        let (token, op) = (write.token.map(|token| token as i64), write.op as i64);
        let parameters: [Parameter; 4] = [
            (&write.document, Type::TEXT),
            (&write.value, Type::TEXT),
            (&token, Type::INT8),
            (&op, Type::INT8),
        ];
        let rows = self.query(session, WRITE, &parameters).await;
        let at_commit = self.policy.needs_transaction;
        match rows.map(|rows| rows.first().map(|row| number(row, 0))) {
            Ok(Some(Ok(version))) if at_commit => Written::AtCommit { version },
            Ok(Some(Ok(version))) => Written::Accepted { version },
            Ok(Some(Err(error))) => Written::unknown(error),
            Ok(None) => Written::Rejected,
            // The session is given up, and with it the transaction: nothing of it can be committed any more.
            Err(Failure::Unknown(error)) if at_commit => Written::Refused { error },
            Err(Failure::Unknown(error)) => Written::Unknown { error },
            Err(failure) => Written::Refused {
                error: failure.to_string(),
            },
        }
    }
}
