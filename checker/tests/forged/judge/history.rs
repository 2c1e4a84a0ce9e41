//! A history as the judge reads it: JSON values, in the order of the file.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// An instant after every other.
pub const FOREVER: u64 = u64::MAX;

/// How the file ends, and whether its digest fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The footer's digest fits.
    Sealed,
    /// It does not fit.
    Edited,
    /// There is no footer.
    Cut,
    /// The footer has no digest, as in version 1.
    Unsealed,
}

/// The header, the events and the ending of one file.
pub struct History {
    /// Line 1.
    pub header: Value,
    /// The events, in the file's order.
    pub events: Vec<Value>,
    /// Those events that neither begin nor complete anything: `lost`, `renewed`, `stall` and `exit`.
    pub remarks: Vec<Value>,
    /// How the file ends.
    pub ending: Ending,
}

const FUNCTIONS: [&str; 16] = [
    "acquire", "extend", "release", "held", "lost", "renewed", "work", "read", "write", "point",
    "stall", "inject", "heal", "log", "accepted", "exit",
];

impl History {
    /// Reads the text of a file. The error says why nothing may be concluded from it.
    pub fn read(file: &str) -> Result<History, String> {
        let mut lines: Vec<&str> = file.split_inclusive('\n').collect();
        let mut partial = lines.pop_if(|line| !line.ends_with('\n')).is_some();
        if lines.is_empty() {
            return Err("no header".to_owned());
        }
        let header = parse(lines.remove(0))?;
        let version = header["fencepost"].as_u64();
        if !matches!(version, Some(1 | 2)) {
            return Err("a version of the format that is not known".to_owned());
        }
        let footer = lines.pop_if(|line| line.starts_with("{\"events\""));
        partial &= footer.is_none();
        let events = lines
            .iter()
            .map(|line| parse_event(line))
            .collect::<Result<Vec<_>, _>>()?;
        let ending = match footer {
            Some(line) if !partial => judge_footer(file, line, events.len(), version)?,
            _ => Ending::Cut,
        };
        let is_remark = |event: &&Value| {
            let f = text(event, "f").unwrap_or_default();
            ["lost", "renewed", "stall", "exit"].contains(&f) && tells(event)
        };
        Ok(History {
            header,
            remarks: events.iter().filter(is_remark).cloned().collect(),
            events,
            ending,
        })
    }

    /// The remarks of this function.
    pub fn remarks_of<'s>(&'s self, f: &'s str) -> impl Iterator<Item = &'s Value> {
        self.remarks
            .iter()
            .filter(move |event| text(event, "f") == Some(f))
    }

    /// The format's version.
    pub fn version(&self) -> u64 {
        number(&self.header, "fencepost").unwrap_or(1)
    }

    /// The plan.
    pub fn plan(&self) -> &Value {
        &self.header["plan"]
    }

    /// The plan's faults.
    pub fn planned(&self) -> &[Value] {
        self.plan()["faults"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The plan's TTL in nanoseconds.
    pub fn ttl(&self) -> u64 {
        number(self.plan(), "ttl_ms").unwrap_or(0) * 1_000_000
    }

    /// Whether stalls of the clients were recorded: those that are as long as a fifth of the TTL show.
    pub fn records_stalls(&self) -> bool {
        let heartbeat = number(&self.header, "heartbeat_ms").unwrap_or(0);
        heartbeat > 0 && heartbeat.saturating_mul(5_000_000) <= self.ttl()
    }
}

/// Whether an event that neither begins nor completes anything is of its type, the log the storage's own, and an injection
/// or a healing the nemesis's.
pub fn tells(event: &Value) -> bool {
    let (f, kind) = (text(event, "f"), text(event, "type"));
    let is_by = |process: &str| text(event, "process") == Some(process);
    match f {
        Some("lost" | "renewed" | "stall" | "exit") => kind == Some("info"),
        Some("accepted") => kind == Some("ok") && is_by("storage"),
        Some("log") => is_by("storage"),
        Some("inject" | "heal") => is_by("nemesis"),
        _ => true,
    }
}

fn judge_footer(
    text: &str,
    line: &str,
    events: usize,
    version: Option<u64>,
) -> Result<Ending, String> {
    let footer = parse(line)?;
    if footer["events"].as_u64() != Some(events as u64) {
        return Err("the footer counts other events than there are".to_owned());
    }
    let before = &text.as_bytes()[..text.len() - line.len()];
    Ok(match footer["sha256"].as_str() {
        None if version == Some(1) => Ending::Unsealed,
        None => Ending::Edited,
        Some(digest) if digest == digest_of(before) => Ending::Sealed,
        Some(_) => Ending::Edited,
    })
}

/// The SHA-256 of these bytes, in hexadecimal.
pub fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn parse(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

fn parse_event(line: &str) -> Result<Value, String> {
    let event = parse(line)?;
    let known = FUNCTIONS.contains(&text(&event, "f").unwrap_or_default())
        && ["invoke", "ok", "fail", "info"].contains(&text(&event, "type").unwrap_or_default());
    if !known || number(&event, "t").is_none() || number(&event, "op").is_none() {
        return Err(format!("not an event: {line}"));
    }
    Ok(event)
}

/// Whether the plan has a lock.
pub fn has_lock(history: &History) -> bool {
    let lock = text(history.plan(), "lock").unwrap_or_default();
    !["", "none"].contains(&lock)
}

/// A field that is a number.
pub fn number(value: &Value, field: &str) -> Option<u64> {
    value[field].as_u64()
}

/// A field that is a text.
pub fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value[field].as_str()
}

/// The host of a process.
pub fn host_of(process: &str) -> &str {
    process.split('.').next().unwrap_or(process)
}

/// Whether this is a client, by its host's name.
pub fn is_client(process: &str) -> bool {
    is_numbered(host_of(process), 'c')
}

/// Whether this is one of the lock's servers, by its host's name.
pub fn is_server(process: &str) -> bool {
    is_numbered(host_of(process), 's')
}

fn is_numbered(host: &str, letter: char) -> bool {
    host.strip_prefix(letter).is_some_and(|rest| {
        (1..=4).contains(&rest.len())
            && rest.chars().all(|c| c.is_ascii_digit())
            && !rest.starts_with('0')
    })
}
