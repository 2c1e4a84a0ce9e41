//! The model that a history's operations make plain.

use std::collections::BTreeSet;

use histories::Kind as EntryKind;
use histories::entries::{Entry, Value};

use super::list::{Kind, kinds};

/// What was seen of a history's operations.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    functions: BTreeSet<String>,
    tokens: bool,
    validities: bool,
}

impl Seen {
    /// Takes notice of an entry.
    pub fn add(&mut self, entry: &Entry<'_>) {
        if matches!(&*entry.f, "lost" | "renewed") && entry.grant.is_some() {
            return; // A remark on a grant is no operation.
        }
        if !self.functions.contains(&*entry.f) {
            self.functions.insert(entry.f.to_string());
        }
        if entry.kind == EntryKind::Ok && matches!(&*entry.f, "acquire" | "lock") {
            let told = |names: [&str; 2]| names.iter().any(|name| entry.value.get(name).is_some());
            let is_token = matches!(entry.value, Value::Integer(_));
            self.tokens |= entry.token.is_some() || is_token || told(["fence", "token"]);
            self.validities |= entry.validity.is_some() || told(["validity", "expires"]);
        }
    }

    /// The operations that were seen, for an error's words.
    pub fn functions(&self) -> String {
        let functions: Vec<String> = self.functions.iter().map(|f| format!("`{f}`")).collect();
        functions.join(", ")
    }

    /// The model that has just these operations; of locks, the one that has what their grants come with. `None` where no
    /// model has them, or a history of locks and documents leaves open which of them is meant.
    pub fn model(&self) -> Option<&'static Kind> {
        let has = |f: &str| self.functions.contains(f);
        let lock = has("acquire") || has("lock");
        let name = match () {
            () if self.functions.is_empty() => return None,
            () if lock && self.validities => "lease-mutex",
            () if lock && self.tokens => "fenced-mutex",
            () if lock => "owner-aware-mutex",
            () if has("get") || has("put") || has("append") => "map",
            () if has("cas") => "cas-register",
            () => "register",
        };
        let kind = kinds().iter().find(|kind| kind.name == name)?;
        let known = |f: &String| kind.functions.contains(&f.as_str());
        self.functions.iter().all(known).then_some(kind)
    }
}

#[cfg(test)]
mod tests {
    use histories::entries::Entries;

    use super::*;

    fn guessed(history: &str) -> Option<&'static str> {
        let mut entries = Entries::new(history.as_bytes()).expect("a history");
        let mut seen = Seen::default();
        while let Some(entry) = entries.next().expect("entries") {
            seen.add(&entry);
        }
        seen.model().map(|kind| kind.name)
    }

    #[test]
    fn operations_tell_their_model() {
        let one = |f: &str, value: &str| format!("{{:process 0 :type :ok :f :{f} :value {value}}}");
        for (history, model) in [
            (one("read", "1"), Some("register")),
            (
                one("write", "1") + &one("cas", "[1 2]"),
                Some("cas-register"),
            ),
            (
                one("acquire", "nil") + &one("release", "nil"),
                Some("owner-aware-mutex"),
            ),
            (one("lock", "nil"), Some("owner-aware-mutex")),
            (one("acquire", "7"), Some("fenced-mutex")),
            (
                one("acquire", "{:client \"a\" :fence 7}"),
                Some("fenced-mutex"),
            ),
            (one("acquire", "{:client \"a\"}"), Some("owner-aware-mutex")),
            (one("acquire", "{:validity 7}"), Some("lease-mutex")),
            (one("get", "\"\"") + &one("append", "\"\""), Some("map")),
            (one("enqueue", "1"), None),
            (one("read", "1") + &one("acquire", "nil"), None),
            ("[]".to_owned(), None),
        ] {
            assert_eq!(guessed(&history), model, "{history}");
        }
    }
}
