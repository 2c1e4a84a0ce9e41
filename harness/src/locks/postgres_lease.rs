//! postgres-lease: one row a lock in Postgres, which says until when it is taken and counts a fence up.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use histories::Hazard;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{
    Answer, ELSEWHERE, HOLDER_IN_TIME, Has, Hello, LATE_ANSWER, LATE_HOLDER, LONG_WORK, Lock,
    LockService, ONE_SERVER,
};
use crate::connections::postgres::{Parameter, Server, create};
use crate::connections::{ANSWER_TIMEOUT, Failure};
use crate::contract::{Guarantee, Statement, keeps, limit};

/// The lock service.
pub struct PostgresLease;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS leases (
    name text PRIMARY KEY,
    holder text NOT NULL,
    fence bigint NOT NULL,
    expires timestamptz NOT NULL
)";

/// Takes the lease and raises its fence in one statement, if it is over. A statement that has to wait for another on the
/// same row sees what that one left, and `clock_timestamp()`, unlike `now()`, is read after the wait.
const ACQUIRE: &str = "INSERT INTO leases AS lease (name, holder, fence, expires)
    VALUES ($1, $2, 1, clock_timestamp() + $3 * interval '1 millisecond')
    ON CONFLICT (name) DO UPDATE
    SET holder = $2, fence = lease.fence + 1, expires = clock_timestamp() + $3 * interval '1 millisecond'
    WHERE lease.expires <= clock_timestamp()
    RETURNING fence";

const EXTEND: &str = "UPDATE leases SET expires = clock_timestamp() + $3 * interval '1 millisecond'
    WHERE name = $1 AND fence = $2 AND expires > clock_timestamp()
    RETURNING fence";

/// Ends the lease. The row stays, for the fence has to keep rising.
const RELEASE: &str = "UPDATE leases SET expires = '-infinity'
    WHERE name = $1 AND fence = $2 AND expires > clock_timestamp()
    RETURNING fence";

const HELD: &str = "SELECT fence FROM leases
    WHERE name = $1 AND fence = $2 AND expires > clock_timestamp()";

/// How a holder learns that it holds no longer.
const OVER: &str = "the lease is over or has a higher fence";

/// What it promises: its rows are on disk, and the clock of its server decides when they end.
const STATEMENTS: &[Statement] = &[
    keeps(Guarantee::Exclusion, ELSEWHERE),
    keeps(
        Guarantee::Exclusion,
        &[
            Hazard::ServerStopped,
            Hazard::ServerCutOff,
            Hazard::ServerRestarted,
            Hazard::ServerLost,
            Hazard::ServerClockBack,
        ],
    ),
    limit(
        Guarantee::Exclusion,
        &[Hazard::ServerClockForward],
        "the server's clock decides expiry, and a step forward ends a lease early",
    ),
    LATE_HOLDER,
    LONG_WORK,
    LATE_ANSWER,
    HOLDER_IN_TIME,
    keeps(Guarantee::TokenOrder, ELSEWHERE),
    keeps(
        Guarantee::TokenOrder,
        &[
            Hazard::ServerStopped,
            Hazard::ServerCutOff,
            Hazard::ServerRestarted,
            Hazard::ServerLost,
            Hazard::ServerClockForward,
            Hazard::ServerClockBack,
        ],
    ),
    keeps(Guarantee::Progress, ELSEWHERE),
    keeps(Guarantee::Progress, &[Hazard::ServerClockForward]),
    limit(
        Guarantee::Progress,
        &[Hazard::ServerClockBack],
        "the server's clock decides expiry, and a step back lets a lease live longer",
    ),
    ONE_SERVER,
];

#[async_trait]
impl LockService for PostgresLease {
    fn name(&self) -> &'static str {
        "postgres-lease"
    }

    fn summary(&self) -> &'static str {
        "a row with an expiry and a rising fence, in Postgres"
    }

    fn topologies(&self) -> &'static [&'static str] {
        &["postgres"]
    }

    fn has(&self) -> Has {
        Has {
            tokens: true,
            expiry: true,
            ..Has::default()
        }
    }

    fn statements(&self) -> &'static [Statement] {
        STATEMENTS
    }

    async fn prepare(&self, servers: &[SocketAddr]) -> anyhow::Result<()> {
        for server in servers {
            create(*server, TABLE).await?;
        }
        Ok(())
    }

    fn connect(&self, hello: &Hello) -> anyhow::Result<Box<dyn Lock>> {
        Ok(Box::new(Client {
            server: Server::new(hello.only_server()?, &hello.client),
            name: hello.client.clone(),
            grant: None,
        }))
    }
}

struct Client {
    server: Server,
    name: String,
    grant: Option<Grant>,
}

#[derive(Clone)]
struct Grant {
    lock: String,
    fence: i64,
}

impl Grant {
    fn token(&self) -> Option<u64> {
        u64::try_from(self.fence).ok()
    }
}

impl Client {
    /// The fence of the one row that the statement touched, if it touched one.
    async fn fence(
        &mut self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<i64>, Failure> {
        let rows = self
            .server
            .query(ANSWER_TIMEOUT, statement, parameters)
            .await?;
        let fence = |row: &Row| {
            row.try_get(0)
                .map_err(|error| Failure::Unknown(error.to_string()))
        };
        rows.first().map(fence).transpose()
    }
}

fn milliseconds(ttl: Duration) -> f64 {
    ttl.as_secs_f64() * 1000.0
}

#[async_trait(?Send)]
impl Lock for Client {
    async fn acquire(&mut self, lock: &str, ttl: Duration, _wait: Duration) -> Answer {
        self.grant = None;
        let name = self.name.clone();
        let parameters: [Parameter; 3] = [
            (&lock, Type::TEXT),
            (&name, Type::TEXT),
            (&milliseconds(ttl), Type::FLOAT8),
        ];
        match self.fence(ACQUIRE, &parameters).await {
            Ok(Some(fence)) => {
                let lock = lock.to_owned();
                let grant = self.grant.insert(Grant { lock, fence });
                Answer::granted(grant.token(), ttl)
            }
            Ok(None) => Answer::Busy,
            Err(failure) => failure.into(),
        }
    }

    async fn extend(&mut self, ttl: Duration) -> Answer {
        let Some(grant) = self.grant.clone() else {
            return Answer::nothing_held();
        };
        let parameters: [Parameter; 3] = [
            (&grant.lock, Type::TEXT),
            (&grant.fence, Type::INT8),
            (&milliseconds(ttl), Type::FLOAT8),
        ];
        match self.fence(EXTEND, &parameters).await {
            Ok(Some(_)) => Answer::granted(grant.token(), ttl),
            Ok(None) => Answer::lost(OVER),
            Err(failure) => failure.into(),
        }
    }

    async fn release(&mut self) -> Answer {
        let Some(grant) = self.grant.take() else {
            return Answer::nothing_held();
        };
        let parameters: [Parameter; 2] = [(&grant.lock, Type::TEXT), (&grant.fence, Type::INT8)];
        match self.fence(RELEASE, &parameters).await {
            Ok(Some(_)) => Answer::Released,
            Ok(None) => Answer::lost(OVER),
            Err(failure) => failure.into(),
        }
    }

    async fn held(&mut self) -> Answer {
        let Some(grant) = self.grant.clone() else {
            return Answer::nothing_held();
        };
        let parameters: [Parameter; 2] = [(&grant.lock, Type::TEXT), (&grant.fence, Type::INT8)];
        match self.fence(HELD, &parameters).await {
            Ok(Some(_)) => Answer::held(grant.token()),
            Ok(None) => Answer::lost(OVER),
            Err(failure) => failure.into(),
        }
    }
}
