//! What the locks share that are a key with an expiry on a Redis without a disk: redis-set, redis-token and redlock.

use std::sync::LazyLock;
use std::time::Duration;

use histories::Hazard;
use redis::Script;

use super::{Answer, ELSEWHERE, Hello};
use crate::connections::redis::Server;
use crate::connections::{ANSWER_TIMEOUT, Failure};
use crate::contract::{Guarantee, Statement, keeps, limit};

/// Deletes a lock if its value is still the holder's own; 1 if it was. Two steps of a client would leave room for the
/// lock to end, and to be another's, between them.
pub static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then
             return redis.call('DEL', KEYS[1])
         end
         return 0",
    )
});

/// Gives a lock a new time to live (milliseconds) if its value is still the holder's own; 1 if it was.
pub static EXTEND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then
             return redis.call('PEXPIRE', KEYS[1], ARGV[2])
         end
         return 0",
    )
});

/// How a holder learns that it holds no longer.
pub const GONE: &str = "the key is gone or has another's value";

/// Clients count on a grant from when they asked for it, so that nothing but their servers can give it to two.
pub const CERTAIN: Statement = keeps(Guarantee::Exclusion, ELSEWHERE);

/// Nor can a server that keeps its memory and its time.
pub const SERVER_ALIVE: Statement = keeps(
    Guarantee::Exclusion,
    &[
        Hazard::ServerStopped,
        Hazard::ServerCutOff,
        Hazard::ServerLost,
        Hazard::ServerClockBack,
    ],
);

/// A clock that is stepped forward.
pub const EARLY_END: Statement = limit(
    Guarantee::Exclusion,
    &[Hazard::ServerClockForward],
    "Redis ends keys by its wall clock, and a step forward ends them early",
);

/// A clock that is stepped back.
pub const LATE_END: Statement = limit(
    Guarantee::Progress,
    &[Hazard::ServerClockBack],
    "Redis ends keys by its wall clock, and a step back lets them live longer",
);

/// A server that is started again with nothing.
pub const FORGOTTEN: Statement = limit(
    Guarantee::Exclusion,
    &[Hazard::ServerRestarted, Hazard::ServerEmptied],
    "a Redis that keeps nothing on disk forgets its locks when it restarts",
);

/// A client's side of a lock on one Redis, once it is granted: whose it is, the key's value tells.
pub struct Holder {
    /// The server.
    pub server: Server,
    grant: Option<Grant>,
}

#[derive(Clone)]
struct Grant {
    key: String,
    value: String,
    token: Option<u64>,
}

impl Holder {
    /// One that holds nothing yet.
    ///
    /// # Errors
    /// If there is not exactly one server.
    pub fn new(hello: &Hello) -> anyhow::Result<Holder> {
        Ok(Holder {
            server: Server::new(hello.only_server()?, ANSWER_TIMEOUT),
            grant: None,
        })
    }

    /// The key was set to this value; the grant before is forgotten.
    pub fn granted(
        &mut self,
        key: &str,
        value: String,
        token: Option<u64>,
        ttl: Duration,
    ) -> Answer {
        let key = key.to_owned();
        self.grant = Some(Grant { key, value, token });
        Answer::granted(token, ttl)
    }

    /// The lock was asked for and not granted; what was granted before is forgotten.
    pub fn not_granted(&mut self, outcome: Result<(), Failure>) -> Answer {
        self.grant = None;
        match outcome {
            Ok(()) => Answer::Busy,
            Err(failure) => self.failed(failure),
        }
    }

    /// As [`super::Lock::extend`].
    pub async fn extend(&mut self, ttl: Duration) -> Answer {
        let Some(Grant { key, value, token }) = self.grant.clone() else {
            return Answer::nothing_held();
        };
        let mut script = EXTEND.key(key);
        script.arg(value).arg(ttl.as_millis() as u64);
        match self.server.script(&script).await {
            Ok(true) => Answer::granted(token, ttl),
            Ok(false) => Answer::lost(GONE),
            Err(failure) => self.failed(failure),
        }
    }

    /// As [`super::Lock::release`].
    pub async fn release(&mut self) -> Answer {
        let Some(Grant { key, value, .. }) = self.grant.take() else {
            return Answer::nothing_held();
        };
        let mut script = RELEASE.key(key);
        script.arg(value);
        match self.server.script(&script).await {
            Ok(true) => Answer::Released,
            Ok(false) => Answer::lost(GONE),
            Err(failure) => self.failed(failure),
        }
    }

    /// As [`super::Lock::held`].
    pub async fn held(&mut self) -> Answer {
        let Some(Grant { key, value, token }) = self.grant.clone() else {
            return Answer::nothing_held();
        };
        let mut get = redis::cmd("GET");
        get.arg(key);
        match self.server.command::<Option<String>>(&get).await {
            Ok(Some(found)) if found == value => Answer::held(token),
            Ok(_) => Answer::lost(GONE),
            Err(failure) => self.failed(failure),
        }
    }

    fn failed(&mut self, failure: Failure) -> Answer {
        self.server.disconnect();
        failure.into()
    }
}
