//! redis-set: `SET key value NX PX ttl` on one Redis, with a random value that release and extend compare.

use std::time::Duration;

use async_trait::async_trait;
use histories::Hazard;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::keys::{self, Holder};
use super::{
    Answer, ELSEWHERE, HOLDER_IN_TIME, Has, Hello, LATE_ANSWER, LATE_HOLDER, LONG_WORK, Lock,
    LockService, ONE_SERVER,
};
use crate::contract::{Guarantee, Statement, keeps};

/// The lock service.
pub struct RedisSet;

/// What it promises.
const STATEMENTS: &[Statement] = &[
    keys::CERTAIN,
    keys::SERVER_ALIVE,
    keys::EARLY_END,
    keys::FORGOTTEN,
    LATE_HOLDER,
    LONG_WORK,
    LATE_ANSWER,
    HOLDER_IN_TIME,
    keeps(Guarantee::Progress, ELSEWHERE),
    keeps(Guarantee::Progress, &[Hazard::ServerClockForward]),
    keys::LATE_END,
    ONE_SERVER,
];

#[async_trait]
impl LockService for RedisSet {
    fn name(&self) -> &'static str {
        "redis-set"
    }

    fn summary(&self) -> &'static str {
        "SET NX PX with a random value, on one Redis"
    }

    fn topologies(&self) -> &'static [&'static str] {
        &["redis"]
    }

    fn has(&self) -> Has {
        Has {
            expiry: true,
            ..Has::default()
        }
    }

    fn statements(&self) -> &'static [Statement] {
        STATEMENTS
    }

    fn connect(&self, hello: &Hello) -> anyhow::Result<Box<dyn Lock>> {
        Ok(Box::new(Client {
            holder: Holder::new(hello)?,
            values: Values::new(hello),
        }))
    }
}

/// Values that no other grant has.
pub(super) struct Values {
    client: String,
    random: ChaCha8Rng,
}

impl Values {
    pub(super) fn new(hello: &Hello) -> Values {
        Values {
            client: hello.client.clone(),
            random: ChaCha8Rng::seed_from_u64(hello.seed),
        }
    }

    /// The client's name sets the value apart even from one of a client with the same seed.
    pub(super) fn next(&mut self) -> String {
        let (high, low) = (self.random.next_u64(), self.random.next_u64());
        format!("{}-{high:016x}{low:016x}", self.client)
    }
}

struct Client {
    holder: Holder,
    values: Values,
}

#[async_trait(?Send)]
impl Lock for Client {
    async fn acquire(&mut self, lock: &str, ttl: Duration, _wait: Duration) -> Answer {
        let value = self.values.next();
        let mut set = redis::cmd("SET");
        set.arg(lock).arg(&value);
        set.arg("NX").arg("PX").arg(ttl.as_millis() as u64);
        match self.holder.server.command(&set).await {
            Ok(true) => self.holder.granted(lock, value, None, ttl),
            Ok(false) => self.holder.not_granted(Ok(())),
            Err(failure) => self.holder.not_granted(Err(failure)),
        }
    }

    async fn extend(&mut self, ttl: Duration) -> Answer {
        self.holder.extend(ttl).await
    }

    async fn release(&mut self) -> Answer {
        self.holder.release().await
    }

    async fn held(&mut self) -> Answer {
        self.holder.held().await
    }
}
