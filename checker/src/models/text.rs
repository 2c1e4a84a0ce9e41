//! Strings that grow at their end, as states of a search: cheap to copy, to append to and to tell apart.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::successors;
use std::sync::Arc;

/// The modulus of the hashes, a Mersenne prime.
const MODULUS: u64 = (1 << 61) - 1;

/// What a byte's place is worth in a hash: any number below the modulus without a pattern.
const BASE: u64 = 0x0e37_79b9_7f4a_7c15;

/// A string, made of the pieces that were appended one after another.
///
/// It shares all but its last piece with the string that it was made from. Two are equal when their bytes are, however
/// they are cut into pieces. The hash of the whole follows from that of the pieces (Karp and Rabin, "Efficient randomized
/// pattern-matching algorithms", 1987), so that most unequal strings are told apart without looking at their bytes.
#[derive(Clone, Default)]
pub struct Text(Option<Arc<Node>>);

/// A string that others are made of.
#[derive(Clone)]
pub(super) struct Piece {
    bytes: Arc<str>,
    hash: u64,
    /// The base to the power of the length.
    power: u64,
}

struct Node {
    before: Option<Arc<Node>>,
    bytes: Arc<str>,
    /// Of all bytes up to here.
    length: usize,
    hash: u64,
}

impl Piece {
    pub(super) fn new(text: &str) -> Piece {
        let (mut hash, mut power) = (0, 1);
        for byte in text.bytes() {
            hash = (product(hash, BASE) + u64::from(byte) + 1) % MODULUS;
            power = product(power, BASE);
        }
        Piece {
            bytes: text.into(),
            hash,
            power,
        }
    }
}

impl Text {
    /// This string, followed by another.
    pub(super) fn append(&self, piece: &Piece) -> Text {
        if piece.bytes.is_empty() {
            return self.clone();
        }
        let (length, hash) = self.summary();
        Text(Some(Arc::new(Node {
            before: self.0.clone(),
            bytes: piece.bytes.clone(),
            length: length + piece.bytes.len(),
            hash: (product(hash, piece.power) + piece.hash) % MODULUS,
        })))
    }

    /// Whether another string begins with this one.
    pub(super) fn begins(&self, other: &str) -> bool {
        let mut end = self.summary().0;
        let mut pieces = successors(self.0.as_ref(), |&node| node.before.as_ref());
        end <= other.len()
            && pieces.all(|piece| {
                let start = end - piece.bytes.len();
                let same = other.as_bytes()[start..end] == *piece.bytes.as_bytes();
                end = start;
                same
            })
    }

    /// The length and the hash.
    fn summary(&self) -> (usize, u64) {
        self.0
            .as_ref()
            .map_or((0, 0), |node| (node.length, node.hash))
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.summary() == other.summary() && same_bytes(self.0.as_ref(), other.0.as_ref())
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.summary().1);
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = successors(self.0.as_ref(), |&node| node.before.as_ref()).collect();
        nodes
            .iter()
            .rev()
            .try_for_each(|node| f.write_str(&node.bytes))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// A string of a million pieces would overflow the stack if each dropped the one before.
impl Drop for Node {
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut node) = before.and_then(Arc::into_inner) {
            before = node.before.take();
        }
    }
}

/// Whether two strings of one length have the same bytes. They are compared from the end, until they share what is left.
fn same_bytes(one: Option<&Arc<Node>>, other: Option<&Arc<Node>>) -> bool {
    let (Some(mut one), Some(mut other)) = (one, other) else {
        return one.is_none() && other.is_none();
    };
    let (mut end, mut other_end) = (one.bytes.len(), other.bytes.len());
    loop {
        if Arc::ptr_eq(one, other) && end == other_end {
            return true;
        }
        let common = end.min(other_end);
        let (rest, other_rest) = (end - common, other_end - common);
        if one.bytes.as_bytes()[rest..end] != other.bytes.as_bytes()[other_rest..other_end] {
            return false;
        }
        (end, other_end) = (rest, other_rest);
        match (end, one.before.as_ref()) {
            (0, Some(before)) => (one, end) = (before, before.bytes.len()),
            // Their lengths are equal: the other one ends here too.
            (0, None) => return true,
            _ => {}
        }
        if let (0, Some(before)) = (other_end, other.before.as_ref()) {
            (other, other_end) = (before, before.bytes.len());
        }
    }
}

fn product(one: u64, other: u64) -> u64 {
    (u128::from(one) * u128::from(other) % u128::from(MODULUS)) as u64
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;
    use crate::names::Map;

    fn text(pieces: &[&str]) -> Text {
        pieces.iter().fold(Text::default(), |text, piece| {
            text.append(&Piece::new(piece))
        })
    }

    #[test]
    fn equal_bytes_are_equal_however_they_are_cut() {
        let cuts: [&[&str]; 5] = [
            &["abcd"],
            &["a", "bcd"],
            &["ab", "", "cd"],
            &["abc", "d"],
            &["a", "b", "c", "d"],
        ];
        let hasher = Map::<Text, ()>::default();
        let hash = |text: &Text| hasher.hasher().hash_one(text);
        for one in cuts.map(text) {
            for other in cuts.map(text) {
                assert_eq!(one, other);
                assert_eq!(hash(&one), hash(&other));
            }
            assert_eq!(one.to_string(), "abcd");
        }
    }

    #[test]
    fn other_bytes_are_not() {
        let texts = [&[][..], &["a"], &["ab"], &["b", "a"], &["a", "a"], &["\0"]].map(text);
        for (at, one) in texts.iter().enumerate() {
            for (place, other) in texts.iter().enumerate() {
                assert_eq!(one == other, at == place);
            }
        }
    }

    #[test]
    fn bytes_decide_where_hashes_agree() {
        let node = |bytes: &str, before: &Text| {
            Text(Some(Arc::new(Node {
                before: before.0.clone(),
                bytes: bytes.into(),
                length: before.summary().0 + bytes.len(),
                hash: 7,
            })))
        };
        let (a, b) = (text(&["a"]), text(&["b"]));
        assert_eq!(node("c", &a), node("c", &text(&["a"])));
        assert_eq!(node("c", &a), node("ac", &Text::default()));
        assert_ne!(node("c", &a), node("c", &b));
        assert_ne!(node("c", &a), node("bc", &Text::default()));
        assert_ne!(node("c", &a), node("d", &a));
    }

    #[test]
    fn a_long_string_is_dropped_and_compared() {
        let piece = Piece::new("x");
        let long = || (0..200_000).fold(Text::default(), |text, _| text.append(&piece));
        assert_eq!(long(), long());
    }
}
