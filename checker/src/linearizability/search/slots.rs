//! Sets of the calls in flight.

/// How many calls a word of a [`Slots`] has room for.
const WORD: usize = u64::BITS as usize;

/// A set of slots. Each call in flight has one, and gives it back when it returns: the set's size is that of the window over
/// the history, not that of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slots<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Slots<WORDS> {
    pub(super) const EMPTY: Self = Slots([0; WORDS]);

    #[inline]
    pub(super) fn has(&self, slot: u32) -> bool {
        self.0[slot as usize / WORD] >> (slot as usize % WORD) & 1 == 1
    }

    #[inline]
    pub(super) fn insert(&mut self, slot: u32) {
        self.0[slot as usize / WORD] |= 1 << (slot as usize % WORD);
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        self.0[slot as usize / WORD] &= !(1 << (slot as usize % WORD));
    }

    /// Whether all that is in this set is in the other one too.
    #[inline]
    pub(super) fn within(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// Whether there is nothing in it.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}
