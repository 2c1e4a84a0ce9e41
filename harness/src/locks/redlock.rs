//! redlock: a key on five Redis nodes that know nothing of each other, asked all at once; held on a majority of them.
//!
//! The algorithm is that of <https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::join_all;
use histories::Hazard;

use super::keys;
use super::redis_set::Values;
use super::{
    Answer, ELSEWHERE, HOLDER_IN_TIME, Has, Hello, LATE_ANSWER, LATE_HOLDER, LONG_WORK, Lock,
    LockService,
};
use crate::connections::Failure;
use crate::connections::redis::Server;
use crate::contract::{Guarantee, Statement, keeps};

/// The lock service.
pub struct Redlock;

/// How long a node may take to connect, and again to answer: short beside a time to live, so that a dead node costs
/// little of it.
const NODE_TIMEOUT: Duration = Duration::from_millis(50);

/// What it promises: as long as a majority of its nodes is up, one of them being down or late costs time alone.
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
    keeps(
        Guarantee::Progress,
        &[
            Hazard::ServerStopped,
            Hazard::ServerCutOff,
            Hazard::ServerRestarted,
            Hazard::ServerLost,
            Hazard::ServerClockForward,
        ],
    ),
    keys::LATE_END,
];

#[async_trait]
impl LockService for Redlock {
    fn name(&self) -> &'static str {
        "redlock"
    }

    fn summary(&self) -> &'static str {
        "a key on the majority of five Redis nodes"
    }

    fn topologies(&self) -> &'static [&'static str] {
        &["redlock"]
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
            nodes: hello.servers.iter().map(node).collect(),
            values: Values::new(hello),
            grant: None,
        }))
    }
}

fn node(address: &SocketAddr) -> Server {
    Server::new(*address, NODE_TIMEOUT)
}

struct Client {
    nodes: Vec<Server>,
    values: Values,
    grant: Option<Grant>,
}

#[derive(Clone)]
struct Grant {
    key: String,
    value: String,
}

/// How the nodes answered a question of yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Votes {
    nodes: usize,
    yes: usize,
    no: usize,
}

impl Votes {
    fn count(answers: &[Result<bool, Failure>]) -> Votes {
        let of = |wanted| {
            let same = |answer: &&Result<bool, Failure>| **answer == Ok(wanted);
            answers.iter().filter(same).count()
        };
        Votes {
            nodes: answers.len(),
            yes: of(true),
            no: of(false),
        }
    }

    fn quorum(self) -> usize {
        self.nodes / 2 + 1
    }

    /// The majority said yes.
    fn won(self) -> bool {
        self.yes >= self.quorum()
    }

    /// So many said no that the rest is no majority, whatever it would have said.
    fn lost(self) -> bool {
        self.nodes - self.no < self.quorum()
    }

    fn said(self, done: &str) -> String {
        let Votes { nodes, yes, no } = self;
        let silent = nodes - yes - no;
        format!("{done} on {yes} of {nodes} nodes; {silent} did not answer")
    }
}

/// Deletes the key on these nodes, whatever they answered before: one that was silent may yet set it. What undoes that
/// travels behind it on the same connection; a connection that stays silent is then given up.
async fn release_on(
    nodes: impl Iterator<Item = &mut Server>,
    Grant { key, value }: Grant,
) -> Vec<Result<bool, Failure>> {
    let mut script = keys::RELEASE.key(key);
    script.arg(value);
    let script = &script;
    let answers = nodes.map(|node| async move {
        let answer = node.script(script).await;
        if answer.is_err() {
            node.disconnect();
        }
        answer
    });
    join_all(answers).await
}

/// What the nodes' clocks may have drifted apart in that time, and a little for the expiry of keys itself.
fn drift(ttl: Duration) -> Duration {
    ttl / 100 + Duration::from_millis(2)
}

#[async_trait(?Send)]
impl Lock for Client {
    async fn acquire(&mut self, lock: &str, ttl: Duration, _wait: Duration) -> Answer {
        let asked = Instant::now();
        let valid_for = ttl.saturating_sub(drift(ttl));
        let grant = Grant {
            key: lock.to_owned(),
            value: self.values.next(),
        };
        let mut set = redis::cmd("SET");
        set.arg(&grant.key).arg(&grant.value);
        set.arg("NX").arg("PX").arg(ttl.as_millis() as u64);
        let answers = self.nodes.iter_mut().map(|node| node.command(&set));
        let answers = join_all(answers).await;
        let votes = Votes::count(&answers);
        if votes.won() && asked.elapsed() < valid_for {
            self.grant = Some(grant);
            return Answer::granted(None, valid_for);
        }
        self.grant = None;
        let reached = self.nodes.iter_mut().zip(&answers);
        let reached = reached.filter(|(_, answer)| !matches!(answer, Err(Failure::Refused(_))));
        release_on(reached.map(|(node, _)| node), grant).await;
        // None of these leaves the lock to the client, be it set on a node for a while yet.
        if votes.lost() {
            Answer::Busy
        } else if votes.won() {
            let error = "set on a majority when no time was left".to_owned();
            Answer::Refused { error }
        } else {
            let error = votes.said("set");
            Answer::Refused { error }
        }
    }

    async fn extend(&mut self, ttl: Duration) -> Answer {
        let Some(Grant { key, value }) = self.grant.clone() else {
            return Answer::nothing_held();
        };
        let asked = Instant::now();
        let valid_for = ttl.saturating_sub(drift(ttl));
        let mut script = keys::EXTEND.key(key);
        script.arg(value).arg(ttl.as_millis() as u64);
        let answers = self.nodes.iter_mut().map(|node| node.script(&script));
        let votes = Votes::count(&join_all(answers).await);
        if votes.won() && asked.elapsed() < valid_for {
            Answer::granted(None, valid_for)
        } else if votes.lost() {
            Answer::lost(keys::GONE)
        } else {
            let error = votes.said("extended");
            Answer::Unknown { error }
        }
    }

    async fn release(&mut self) -> Answer {
        let Some(grant) = self.grant.take() else {
            return Answer::nothing_held();
        };
        let votes = Votes::count(&release_on(self.nodes.iter_mut(), grant).await);
        if votes.won() {
            Answer::Released
        } else if votes.lost() {
            Answer::lost(keys::GONE)
        } else {
            let error = votes.said("released");
            Answer::Unknown { error }
        }
    }

    async fn held(&mut self) -> Answer {
        let Some(Grant { key, value }) = self.grant.clone() else {
            return Answer::nothing_held();
        };
        let mut get = redis::cmd("GET");
        get.arg(key);
        let answers = self.nodes.iter_mut().map(async |node| {
            let found = node.command::<Option<String>>(&get).await?;
            Ok(found.as_ref() == Some(&value))
        });
        let votes = Votes::count(&join_all(answers).await);
        if votes.won() {
            Answer::held(None)
        } else if votes.lost() {
            Answer::lost(keys::GONE)
        } else {
            let error = votes.said("found");
            Answer::Unknown { error }
        }
    }
}
