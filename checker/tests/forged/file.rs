//! The text of a history file, made of a header and events.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A history in memory.
#[derive(Clone, Debug)]
pub struct File {
    /// Line 1.
    pub header: Value,
    /// The events.
    pub events: Vec<Value>,
    /// The last line; `None` is the right one.
    pub footer: Option<Value>,
    /// Whether the file has its last line.
    pub has_footer: bool,
}

impl File {
    /// A file that is whole.
    pub fn new(header: Value, events: Vec<Value>) -> Self {
        File {
            header,
            events,
            footer: None,
            has_footer: true,
        }
    }

    /// The format's version.
    pub fn version(&self) -> u64 {
        self.header["fencepost"].as_u64().unwrap_or(1)
    }

    /// The last event's time.
    pub fn end(&self) -> u64 {
        self.events.iter().map(time).max().unwrap_or(0)
    }

    /// Sorts the events as `seal` does.
    pub fn sort(&mut self) {
        self.events.sort_by_cached_key(|event| {
            let process = event["process"].as_str().unwrap_or_default();
            (time(event), process.to_owned())
        });
    }

    /// Everything before the footer.
    fn body(&self) -> String {
        let mut body = format!("{}\n", self.header);
        for event in &self.events {
            body.push_str(&format!("{}\n", in_order(event)));
        }
        body
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = self.body();
        if self.has_footer {
            let footer = self
                .footer
                .clone()
                .unwrap_or_else(|| self.right_footer(&text));
            text.push_str(&format!("{footer}\n"));
        }
        text
    }

    fn right_footer(&self, body: &str) -> Value {
        let mut footer = json!({"events": self.events.len()});
        if self.version() > 1 {
            let digest = Sha256::digest(body.as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            footer["sha256"] = hex.into();
        }
        footer
    }
}

/// When an event was recorded.
pub fn time(event: &Value) -> u64 {
    event["t"].as_u64().unwrap_or_default()
}

/// The fields that every event has come first, as a writer writes them.
fn in_order(event: &Value) -> String {
    let mut rest: Map<String, Value> = event.as_object().cloned().unwrap_or_default();
    let first: Vec<String> = ["t", "process", "op", "type", "f"]
        .iter()
        .filter_map(|field| Some(format!("\"{field}\":{}", rest.remove(*field)?)))
        .collect();
    let rest: Vec<String> = rest
        .iter()
        .map(|(field, value)| format!("{}:{value}", Value::from(field.as_str())))
        .collect();
    format!("{{{}}}", [first, rest].concat().join(","))
}
