//! The storages: what the lock's holder writes to. One file each; a new one is that file and a line in [`STORAGES`].

mod postgres;

use std::net::SocketAddr;

use async_trait::async_trait;

use crate::connections::postgres::Session;
use crate::contract::TOKEN;

/// All storages, in the order in which they are shown.
pub static STORAGES: &[&dyn StorageService] = &[&postgres::Postgres];

/// All policies, in the order in which they are shown.
pub static POLICIES: &[Policy] = &[UNFENCED, FENCED, SAME_TRANSACTION];

/// Accepts every write.
pub const UNFENCED: Policy = Policy {
    name: "unfenced",
    summary: "accepts every write",
    write_condition: None,
    needs_transaction: false,
};

/// Accepts a write whose token is not lower than the highest that wrote.
pub const FENCED: Policy = Policy {
    name: "fenced",
    summary: "rejects a write whose token is lower than the highest that wrote",
    write_condition: Some(TOKEN),
    needs_transaction: false,
};

/// Reads and writes in the transaction that holds the lock.
pub const SAME_TRANSACTION: Policy = Policy {
    name: "same-transaction",
    summary: "reads and writes in the transaction that holds the lock, so that its end is the work's end",
    write_condition: None,
    needs_transaction: true,
};

/// How a storage treats a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name, as on the command line and in the plan.
    pub name: &'static str,
    /// What it does, in half a line.
    pub summary: &'static str,
    /// What it compares in a write before it accepts it, if anything: with [`TOKEN`] it needs a lock service whose grants
    /// carry one.
    pub write_condition: Option<&'static str>,
    /// It needs a lock service whose grant is a database transaction; the document then lies on the lock's own server.
    pub needs_transaction: bool,
}

impl Policy {
    /// Whether it needs a lock service whose grants carry a token.
    pub fn needs_token(&self) -> bool {
        self.write_condition == Some(TOKEN)
    }
}

/// The storage of that name.
pub fn storage(name: &str) -> Option<&'static dyn StorageService> {
    STORAGES
        .iter()
        .copied()
        .find(|storage| storage.name() == name)
}

/// The policy of that name.
pub fn policy(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}

/// What keeps the document.
#[async_trait]
pub trait StorageService: Sync {
    /// Its name, as on the command line and in the plan.
    fn name(&self) -> &'static str;

    /// What it is, in half a line.
    fn summary(&self) -> &'static str;

    /// Makes an untouched document: version 0, empty value. Does nothing where it is there already. The tables are made
    /// on the first call; calls may run at once.
    ///
    /// # Errors
    /// What the server said, or that it could not be reached.
    async fn prepare(&self, server: SocketAddr, document: &str) -> anyhow::Result<()>;

    /// The document's log: all writes that were ever accepted, in the order of their versions.
    ///
    /// # Errors
    /// What the server said, or that it could not be reached.
    async fn log(&self, server: SocketAddr, document: &str) -> anyhow::Result<Vec<Entry>>;

    /// A client's side of it. Connects nowhere yet.
    fn connect(
        &self,
        server: SocketAddr,
        client: &str,
        policy: &'static Policy,
    ) -> Box<dyn Storage>;
}

/// One row of a storage's log: a write that it accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The version that the write made, from 1 on without a gap.
    pub version: u64,
    /// The client's operation.
    pub op: u64,
    /// The token that was sent along.
    pub token: Option<u64>,
    /// What was written.
    pub value: String,
}

/// A write, as a client asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write<'a> {
    /// The document's name.
    pub document: &'a str,
    /// What to write.
    pub value: &'a str,
    /// The client's operation, for the log.
    pub op: u64,
    /// The grant's token; only where the policy needs one.
    pub token: Option<u64>,
}

/// What came of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The document as it is.
    Is {
        /// Its version; 0 if it is untouched.
        version: u64,
        /// Its value; empty if it is untouched.
        value: String,
    },
    /// It was not read.
    Failed {
        /// Why.
        error: String,
    },
}

impl Read {
    /// Not read, because of `error`.
    pub fn failed(error: impl ToString) -> Read {
        Read::Failed {
            error: error.to_string(),
        }
    }
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is the document's new version.
    Accepted {
        /// The version that it made.
        version: u64,
    },
    /// It is that version once the transaction is committed, by the lock's release.
    AtCommit {
        /// The version that it will have made.
        version: u64,
    },
    /// The policy forbade it.
    Rejected,
    /// It was certainly not done, for another reason.
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

impl Written {
    /// Perhaps written, because of `error`.
    pub fn unknown(error: impl ToString) -> Written {
        Written::Unknown {
            error: error.to_string(),
        }
    }
}

/// A client's side of a storage. It connects when it is first asked, and again after an outcome was unknown.
#[async_trait(?Send)]
pub trait Storage {
    /// Reads a document, in the lock's transaction where there is one.
    async fn read(&mut self, session: Option<&Session>, document: &str) -> Read;

    /// Writes a document, in the lock's transaction where there is one.
    async fn write(&mut self, session: Option<&Session>, write: &Write<'_>) -> Written;
}
