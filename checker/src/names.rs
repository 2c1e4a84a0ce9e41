//! Names and values, each kept once and meant by a number from then on.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// A hash map that behaves the same in every process.
pub(crate) type Map<K, V> = HashMap<K, V, FixedState>;

/// Stands where a row or a name is absent.
pub(crate) const NONE: u32 = u32::MAX;

/// Texts, numbered from 0 in the order in which they were first met.
#[derive(Default)]
pub(crate) struct Names {
    text: String,
    ends: Vec<usize>,
    /// The text met last of those that share a hash.
    latest: Map<u64, u32>,
    /// The text met before it with the same hash, or [`NONE`].
    earlier: Vec<u32>,
}

impl Names {
    /// The number of a text, a new one if it was not met before.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        let hash = self.latest.hasher().hash_one(text);
        let latest = self.latest.get(&hash).copied().unwrap_or(NONE);
        let mut candidate = latest;
        while candidate != NONE {
            if self.text(candidate) == text {
                return candidate;
            }
            candidate = self.earlier[candidate as usize];
        }
        let number = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.earlier.push(latest);
        self.latest.insert(hash, number);
        number
    }

    /// The text of a number; the empty text for [`NONE`].
    pub(crate) fn text(&self, number: u32) -> &str {
        let at = number as usize;
        if number == NONE {
            return "";
        }
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    /// How many texts there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

/// A set of operation ids. Ids are handed out nearly in sequence, so that 64 of them share an entry.
#[derive(Default)]
pub(crate) struct Ids {
    blocks: Map<u64, u64>,
}

impl Ids {
    /// Adds an id; false if it was there.
    pub(crate) fn insert(&mut self, id: u64) -> bool {
        let block = self.blocks.entry(id >> 6).or_default();
        let bit = 1 << (id & 63);
        let new = *block & bit == 0;
        *block |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_number() {
        let mut names = Names::default();
        let numbers: Vec<u32> = ["c1", "", "c2", "c1", ""]
            .iter()
            .map(|name| names.number(name))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 0, 1]);
        assert_eq!(
            (
                names.text(0),
                names.text(1),
                names.text(2),
                names.text(NONE)
            ),
            ("c1", "", "c2", "")
        );
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn an_id_is_new_once() {
        let mut ids = Ids::default();
        assert!(
            [0, 63, 64, u64::MAX, 10_000_001]
                .iter()
                .all(|&id| ids.insert(id))
        );
        assert!(
            ![0, 63, 64, u64::MAX, 10_000_001]
                .iter()
                .any(|&id| ids.insert(id))
        );
    }
}
