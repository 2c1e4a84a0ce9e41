//! A strict reader of one TOML table: it remembers which keys were asked for and complains about all others.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Problem;
use super::length::Length;
use super::place::Lines;
use crate::validation::ranges::LONGEST_MS;
use crate::words::{instead, known};

/// A value and where it stands, in bytes of the file.
#[derive(Clone, Debug)]
pub(super) struct Found<T> {
    pub value: T,
    pub at: Range<usize>,
}

/// All that was found wrong with a file so far.
pub(super) struct Problems<'f> {
    file: &'f str,
    lines: Lines<'f>,
    found: RefCell<Vec<(usize, Problem)>>,
}

impl<'f> Problems<'f> {
    pub fn new(file: &'f str, text: &'f str) -> Self {
        Problems {
            file,
            lines: Lines::new(text),
            found: RefCell::default(),
        }
    }

    pub fn add(&self, at: &Range<usize>, message: impl Into<String>) {
        let (line, column) = self.place(at.start);
        let problem = Problem {
            file: self.file.to_owned(),
            line,
            column,
            message: message.into(),
        };
        self.found.borrow_mut().push((at.start, problem));
    }

    /// Adds what a rule says against what stands there, if anything; gives what is right.
    pub fn judge<T>(&self, at: &Range<usize>, judged: Result<T, String>) -> Option<T> {
        judged.map_err(|message| self.add(at, message)).ok()
    }

    /// Line and column, counted from 1, of a byte of the file.
    pub fn place(&self, byte: usize) -> (usize, usize) {
        self.lines.place(byte)
    }

    /// The problems in the order of the file.
    pub fn into_sorted(self) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|(byte, _)| *byte);
        found.into_iter().map(|(_, problem)| problem).collect()
    }
}

/// A table that is being read.
pub(super) struct Table<'t> {
    entries: &'t DeTable<'t>,
    /// Where the table stands.
    pub at: Range<usize>,
    /// What the table is, for messages: "a fault".
    what: String,
    known: Vec<String>,
    problems: &'t Problems<'t>,
}

impl<'t> Table<'t> {
    pub fn new(
        entries: &'t DeTable<'t>,
        at: Range<usize>,
        what: impl Into<String>,
        problems: &'t Problems<'t>,
    ) -> Self {
        Table {
            entries,
            at,
            what: what.into(),
            known: Vec::new(),
            problems,
        }
    }

    /// Whether the key stands here; says nothing about whether it may.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Those of these keys that stand here, with their places.
    pub fn all_of<'k>(&mut self, keys: &[&'k str]) -> Vec<Found<&'k str>> {
        self.known.extend(keys.iter().map(|key| (*key).to_owned()));
        let stands = |key: &&'k str| {
            let (name, _) = self.entries.get_key_value(*key)?;
            Some(Found {
                value: *key,
                at: name.span(),
            })
        };
        keys.iter().filter_map(stands).collect()
    }

    /// Whether there are keys that nobody has asked for so far.
    pub fn has_strangers(&self) -> bool {
        self.entries.keys().any(|key| {
            !self
                .known
                .iter()
                .any(|known| known.as_str() == key.get_ref())
        })
    }

    /// What the table is, for messages.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The value of a key, of whatever type.
    fn value(&mut self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.known.push(key.to_owned());
        self.entries.get(key)
    }

    /// The value of a key if it is of the right type; complains if it is not.
    fn typed<T>(
        &mut self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&'t DeValue<'t>) -> Option<T>,
    ) -> Option<Found<T>> {
        let value = self.value(key)?;
        let at = value.span();
        match read(value.get_ref()) {
            Some(value) => Some(Found { value, at }),
            None => {
                let found = describe(value.get_ref());
                let message = format!("`{key}` of {} must be {wanted}, not {found}", self.what);
                self.problems.add(&at, message);
                None
            }
        }
    }

    pub fn text(&mut self, key: &str) -> Option<Found<String>> {
        let found = self.typed(key, "a text", |value| value.as_str().map(str::to_owned))?;
        if found.value.trim().is_empty() {
            let message = format!("`{key}` of {} is empty", self.what);
            self.problems.add(&found.at, message);
            return None;
        }
        Some(found)
    }

    /// A text that has to be one of `names`, which are called `kind` in messages.
    pub fn name(&mut self, key: &str, kind: &str, names: &[&str]) -> Option<Found<String>> {
        let found = self.text(key)?;
        self.check_name(&found, kind, names).then_some(found)
    }

    /// Whether a text is one of `names`; complains if it is not.
    pub fn check_name(&self, found: &Found<String>, kind: &str, names: &[&str]) -> bool {
        self.judge(&found.at, known(kind, &found.value, names))
            .is_some()
    }

    pub fn whole(&mut self, key: &str, range: &RangeInclusive<u64>) -> Option<Found<u64>> {
        let (least, most) = (range.start(), range.end());
        let wanted = format!("a whole number from {least} to {most}");
        self.typed(key, &wanted, |value| {
            let integer = value.as_integer()?;
            let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
            range.contains(&number).then_some(number)
        })
    }

    /// A length of time that is within a range of milliseconds, for a TTL of `ttl_ms`.
    pub fn length(
        &mut self,
        key: &str,
        ttl_ms: u64,
        range: &RangeInclusive<u64>,
    ) -> Option<Found<Length>> {
        let found = self.signed_length(key, ttl_ms)?;
        let ms = found.value.ms(ttl_ms);
        if u64::try_from(ms).is_ok_and(|ms| range.contains(&ms)) {
            return Some(found);
        }
        let least = match range.start() {
            0 => "must not be negative".to_owned(),
            least => format!("must be {least}ms or more"),
        };
        let message = format!("`{key}` of {} {least}, not `{}`", self.what, found.value);
        self.problems.add(&found.at, message);
        None
    }

    /// A length of time, forwards or back, of an hour at most.
    pub fn signed_length(&mut self, key: &str, ttl_ms: u64) -> Option<Found<Length>> {
        let found = self.typed(
            key,
            "a length of time like \"500ms\" or \"2 ttl\"",
            |value| value.as_str().map(str::to_owned),
        )?;
        let complaint = match Length::parse(&found.value) {
            Ok(length) if length.ms(ttl_ms).unsigned_abs() <= LONGEST_MS => {
                return Some(Found {
                    value: length,
                    at: found.at,
                });
            }
            Ok(length) => format!("`{length}` is longer than an hour"),
            Err(complaint) => complaint,
        };
        self.problems
            .add(&found.at, format!("`{key}` of {}: {complaint}", self.what));
        None
    }

    /// A list of texts, none of them twice.
    pub fn texts(&mut self, key: &str) -> Vec<Found<String>> {
        let wanted = "a list of texts like [\"…\", \"…\"]";
        let Some(list) = self.typed(key, wanted, DeValue::as_array) else {
            return Vec::new();
        };
        let mut texts: Vec<Found<String>> = Vec::new();
        let mut seen = HashSet::new();
        for item in list.value.iter() {
            let at = item.span();
            match item.get_ref().as_str() {
                Some(text) if !seen.insert(text) => {
                    self.problems
                        .add(&at, format!("`{text}` stands twice in `{key}`"));
                }
                Some(text) => texts.push(Found {
                    value: text.to_owned(),
                    at,
                }),
                None => {
                    let found = describe(item.get_ref());
                    let message =
                        format!("`{key}` of {} must be {wanted}; here is {found}", self.what);
                    self.problems.add(&at, message);
                }
            }
        }
        texts
    }

    pub fn table(
        &mut self,
        key: &str,
        what: impl Into<String>,
        example: &str,
    ) -> Option<Table<'t>> {
        let problems = self.problems;
        let found = self.typed(key, &format!("a table like {example}"), DeValue::as_table)?;
        Some(Table::new(found.value, found.at, what, problems))
    }

    /// The tables of `[[key]]`; `what` names one of them by its number, counted from 1.
    pub fn tables(&mut self, key: &str, what: impl Fn(usize) -> String) -> Vec<Table<'t>> {
        let problems = self.problems;
        let wanted = format!("a list of tables, each headed [[{key}]]");
        let Some(list) = self.typed(key, &wanted, DeValue::as_array) else {
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (index, item) in list.value.iter().enumerate() {
            match item.get_ref().as_table() {
                Some(table) => {
                    tables.push(Table::new(table, item.span(), what(index + 1), problems))
                }
                None => {
                    let found = describe(item.get_ref());
                    let message = format!("`{key}` must be {wanted}; here is {found}");
                    problems.add(&item.span(), message);
                }
            }
        }
        tables
    }

    /// Complains that a key is missing, unless it stands here (and was wrong already).
    pub fn needs<T>(&self, key: &str, example: &str, found: Option<T>) -> Option<T> {
        if found.is_none() && !self.has(key) {
            let message = format!("{} lacks `{key}`: {example}", self.what);
            self.problems.add(&self.at, message);
        }
        found
    }

    pub fn complain(&self, at: &Range<usize>, message: impl Into<String>) {
        self.problems.add(at, message);
    }

    pub fn judge<T>(&self, at: &Range<usize>, judged: Result<T, String>) -> Option<T> {
        self.problems.judge(at, judged)
    }

    /// Complains about every key that nobody asked for.
    pub fn finish(self) {
        let mut known = self.known;
        known.sort();
        known.dedup();
        for key in self.entries.keys() {
            let name: &str = key.get_ref();
            if !known.iter().any(|known| known == name) {
                let message = format!(
                    "unknown key `{name}` in {}; {}",
                    self.what,
                    instead(name, &known)
                );
                self.problems.add(&key.span(), message);
            }
        }
    }
}

/// A value as a message names it: `the text "2"`.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{text}\""),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(truth) => format!("{truth}"),
        DeValue::Datetime(time) => format!("the time {time}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
