//! Histories made by chance and by a seed: clients that always have an operation in flight, on an object that does one
//! operation at a time, at an instant within each. The same seed gives the same history for ever.

#![allow(
    dead_code,
    reason = "each test and bench that includes this file uses a part of it"
)]

pub mod lock;
pub mod register;

use std::borrow::Cow;

use histories::Kind;
use histories::entries::{Entry, Value};

/// Splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// What a history is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many operations are begun.
    pub operations: u64,
    /// How many clients have one in flight at any moment.
    pub clients: usize,
    /// How many operations, about, have an outcome that nobody learns.
    pub unknown: u64,
    /// Whether it is broken at one place, in its middle.
    pub broken: bool,
    /// The seed.
    pub seed: u64,
}

/// Numbers entries as lines are numbered.
fn numbered(mut each: impl FnMut(&Entry<'_>)) -> impl FnMut(&Entry<'_>) {
    let mut line = 0;
    move |entry| {
        line += 1;
        let entry = entry.clone();
        each(&Entry { line, ..entry });
    }
}

/// An event of a process without a name.
fn entry<'a>(
    time: u64,
    process: &'a str,
    kind: Kind,
    f: &'static str,
    value: Value<'a>,
) -> Entry<'a> {
    Entry {
        line: 0,
        time: Some(time),
        process: Cow::Borrowed(process),
        op: None,
        kind,
        f: Cow::Borrowed(f),
        key: None,
        value,
        token: None,
        validity: None,
        grant: None,
        error: None,
    }
}
