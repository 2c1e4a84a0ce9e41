//! redis-token: one script on one Redis that finds the lock free, counts a token up and sets it with an expiry.

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use histories::Hazard;
use redis::Script;

use super::keys::{self, Holder};
use super::{
    Answer, ELSEWHERE, HOLDER_IN_TIME, Has, Hello, LATE_ANSWER, LATE_HOLDER, LONG_WORK, Lock,
    LockService, ONE_SERVER,
};
use crate::contract::{Guarantee, Statement, keeps, limit};

/// The lock service.
pub struct RedisToken;

/// The token if the lock was free. Redis runs nothing else in between, so that no two clients see it free.
static ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('EXISTS', KEYS[1]) == 1 then
             return false
         end
         local token = redis.call('INCR', KEYS[2])
         redis.call('SET', KEYS[1], token, 'PX', ARGV[1])
         return token",
    )
});

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
    keeps(Guarantee::TokenOrder, ELSEWHERE),
    keeps(
        Guarantee::TokenOrder,
        &[
            Hazard::ServerStopped,
            Hazard::ServerCutOff,
            Hazard::ServerLost,
            Hazard::ServerClockForward,
            Hazard::ServerClockBack,
        ],
    ),
    limit(
        Guarantee::TokenOrder,
        &[Hazard::ServerRestarted, Hazard::ServerEmptied],
        "a Redis that keeps nothing on disk counts from 1 again when it restarts",
    ),
    keeps(Guarantee::Progress, ELSEWHERE),
    keeps(Guarantee::Progress, &[Hazard::ServerClockForward]),
    keys::LATE_END,
    ONE_SERVER,
];

#[async_trait]
impl LockService for RedisToken {
    fn name(&self) -> &'static str {
        "redis-token"
    }

    fn summary(&self) -> &'static str {
        "one script that counts a fencing token up, on one Redis"
    }

    fn topologies(&self) -> &'static [&'static str] {
        &["redis"]
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

    fn connect(&self, hello: &Hello) -> anyhow::Result<Box<dyn Lock>> {
        Ok(Box::new(Client {
            holder: Holder::new(hello)?,
        }))
    }
}

struct Client {
    holder: Holder,
}

#[async_trait(?Send)]
impl Lock for Client {
    async fn acquire(&mut self, lock: &str, ttl: Duration, _wait: Duration) -> Answer {
        // The braces keep the lock and its counter in one slot of a cluster, where a script may use no other.
        let key = format!("{{{lock}}}");
        let mut script = ACQUIRE.key(&key);
        script.key(format!("{key}:token"));
        script.arg(ttl.as_millis() as u64);
        match self.holder.server.script::<Option<u64>>(&script).await {
            Ok(Some(token)) => {
                let value = token.to_string();
                self.holder.granted(&key, value, Some(token), ttl)
            }
            Ok(None) => self.holder.not_granted(Ok(())),
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
