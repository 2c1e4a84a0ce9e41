//! Names and values, each kept once and meant by a number from then on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// A hash map that behaves the same in every process.
pub(crate) type Map<K, V> = HashMap<K, V, FixedState>;

/// Stands where a row or a name is absent.
pub(crate) const NONE: u32 = u32::MAX;

/// Texts, numbered from 0 in the order in which they were first met.
pub(crate) struct Names {
    text: String,
    ends: Vec<usize>,
    /// The text met last of those that share a hash.
    latest: Map<u64, u32>,
    /// The text met before it with the same hash, or [`NONE`].
    earlier: Vec<u32>,
    /// The text asked for last, which is often the next one too.
    asked: u32,
}

impl Default for Names {
    fn default() -> Names {
        Names {
            text: String::new(),
            ends: Vec::new(),
            latest: Map::default(),
            earlier: Vec::new(),
            asked: NONE,
        }
    }
}

impl Names {
    /// The number of a text, a new one if it was not met before.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if self.asked == NONE || self.text(self.asked) != text {
            self.asked = self.find_or_add(text);
        }
        self.asked
    }

    fn find_or_add(&mut self, text: &str) -> u32 {
        let hash = self.latest.hasher().hash_one(text);
        let number = self.ends.len() as u32;
        let mut earlier = NONE;
        match self.latest.entry(hash) {
            Entry::Vacant(vacant) => drop(vacant.insert(number)),
            Entry::Occupied(mut latest) => {
                let mut candidate = *latest.get();
                while candidate != NONE {
                    if text_at(&self.text, &self.ends, candidate) == text {
                        return candidate;
                    }
                    candidate = self.earlier[candidate as usize];
                }
                earlier = latest.insert(number);
            }
        }
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.earlier.push(earlier);
        number
    }

    /// The text of a number; the empty text for [`NONE`].
    pub(crate) fn text(&self, number: u32) -> &str {
        if number == NONE {
            return "";
        }
        text_at(&self.text, &self.ends, number)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many texts there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

fn text_at<'t>(text: &'t str, ends: &[usize], number: u32) -> &'t str {
    let at = number as usize;
    let start = if at == 0 { 0 } else { ends[at - 1] };
    &text[start..ends[at]]
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
}
