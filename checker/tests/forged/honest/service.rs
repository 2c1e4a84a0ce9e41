//! The simulated lock and storage: what each does at the instant at which a request reaches it.

/// Who holds the lock, as the server sees it.
#[derive(Clone, Copy, Debug)]
struct Holder {
    grant: u64,
    /// Until when, by the server's clock.
    until: u64,
}

/// A lock server with a clock of its own.
#[derive(Debug, Default)]
pub struct Lock {
    holder: Option<Holder>,
    tokens: u64,
    /// How far its clock is ahead.
    pub ahead: u64,
    /// Whether it is down.
    pub is_down: bool,
}

impl Lock {
    fn is_held(&self, now: u64) -> bool {
        self.holder
            .is_some_and(|holder| now.saturating_add(self.ahead) < holder.until)
    }

    /// Whether this grant holds it.
    pub fn is_held_by(&self, grant: u64, now: u64) -> bool {
        self.is_held(now) && self.holder.is_some_and(|holder| holder.grant == grant)
    }

    /// Gives it to a grant, with a token, unless another holds it.
    pub fn acquire(&mut self, grant: u64, now: u64, ttl: Option<u64>) -> Option<u64> {
        if self.is_held(now) {
            return None;
        }
        self.tokens += 1;
        self.set(grant, now, ttl);
        Some(self.tokens)
    }

    fn set(&mut self, grant: u64, now: u64, ttl: Option<u64>) {
        let until = ttl.map_or(u64::MAX, |ttl| now + self.ahead + ttl);
        self.holder = Some(Holder { grant, until });
    }

    /// Counts the TTL anew, if this grant holds it.
    pub fn extend(&mut self, grant: u64, now: u64, ttl: Option<u64>) -> bool {
        let held = self.is_held_by(grant, now);
        if held {
            self.set(grant, now, ttl);
        }
        held
    }

    /// Takes it back, if this grant holds it.
    pub fn release(&mut self, grant: u64, now: u64) -> bool {
        let held = self.is_held_by(grant, now);
        if held {
            self.holder = None;
        }
        held
    }

    /// It forgets who held it. Its tokens are on the disk.
    pub fn forget(&mut self) {
        self.holder = None;
    }
}

/// One document and the log of what was written to it.
#[derive(Debug, Default)]
pub struct Storage {
    /// The rows: the write's op, its token and its value.
    pub log: Vec<(u64, Option<u64>, String)>,
    fence: u64,
}

impl Storage {
    /// The version and the value.
    pub fn read(&self) -> (u64, String) {
        let value = self.log.last().map_or("", |row| row.2.as_str());
        (self.log.len() as u64, value.to_owned())
    }

    /// Accepts a write and gives its version, unless its token is lower than one that it saw.
    pub fn write(&mut self, op: u64, token: Option<u64>, value: &str) -> Option<u64> {
        if token.is_some_and(|token| token < self.fence) {
            return None;
        }
        self.fence = self.fence.max(token.unwrap_or(0));
        self.log.push((op, token, value.to_owned()));
        Some(self.log.len() as u64)
    }
}
