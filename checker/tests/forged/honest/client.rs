//! A simulated client: what it does next.

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The lock.
    Acquire,
    /// More time.
    Extend,
    /// Whether it still holds the lock.
    Held,
    /// The document.
    Read,
    /// A new version of the document.
    Write,
    /// That the lock be taken back.
    Release,
}

impl Call {
    /// As the history spells it.
    pub fn f(self) -> &'static str {
        match self {
            Call::Acquire => "acquire",
            Call::Extend => "extend",
            Call::Held => "held",
            Call::Read => "read",
            Call::Write => "write",
            Call::Release => "release",
        }
    }
}

/// A grant that the client has.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The acquire's op.
    pub op: u64,
    /// The token.
    pub token: Option<u64>,
    /// The op of the work under it.
    pub work: u64,
    /// What the client read.
    pub read: u64,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its number, from 1.
    pub number: u64,
    /// Its life, from 1.
    pub life: u64,
    /// How many grants it had.
    pub grants: u64,
    /// The grant that it has.
    pub grant: Option<Grant>,
    /// The rounds that it completed.
    pub rounds: u64,
    /// The request in flight, and its op and invocation.
    pub calls: (Call, u64, u64),
    /// When the request reaches the server.
    pub reaches: u64,
    /// The next op.
    pub next_op: u64,
    /// Whether it is done.
    pub is_done: bool,
    /// When it asked for the grant that it has or had last.
    pub began: u64,
    /// How often it may still extend under this grant.
    pub extends: u64,
}

impl Client {
    /// A client that has not begun.
    pub fn new(number: u64, reaches: u64) -> Self {
        Client {
            number,
            life: 1,
            grants: 0,
            grant: None,
            rounds: 0,
            calls: (Call::Acquire, 0, 0),
            reaches,
            next_op: number * 10_000_000 + 1,
            is_done: false,
            began: 0,
            extends: 0,
        }
    }

    /// The process's name.
    pub fn process(&self) -> String {
        match self.life {
            1 => format!("c{}", self.number),
            life => format!("c{}.{life}", self.number),
        }
    }

    /// A new op.
    pub fn op(&mut self) -> u64 {
        self.next_op += 1;
        self.next_op - 1
    }
}
