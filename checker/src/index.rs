//! Finds an operation by its id.

use crate::names::Map;

/// How many ids share a block. Ids are handed out nearly in sequence, so that blocks are nearly full.
const BLOCK: usize = 16;

/// What an id stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Known {
    /// No operation has it.
    #[default]
    Unused,
    /// An operation of another function than those below.
    Other,
    /// A row of the acquires.
    Acquire(u32),
    /// A row of the writes.
    Write(u32),
}

/// By operation id: what it stands for.
#[derive(Default)]
pub(crate) struct Index {
    /// By the block's number: where it stands.
    places: Map<u64, usize>,
    blocks: Vec<[Known; BLOCK]>,
}

impl Index {
    pub(crate) fn get(&self, op: u64) -> Known {
        let (number, at) = place(op);
        let block = self.places.get(&number).map(|&place| &self.blocks[place]);
        block.map_or(Known::Unused, |block| block[at])
    }

    pub(crate) fn set(&mut self, op: u64, known: Known) {
        let (number, at) = place(op);
        let new = self.blocks.len();
        let place = *self.places.entry(number).or_insert(new);
        if place == new {
            self.blocks.push([Known::Unused; BLOCK]);
        }
        self.blocks[place][at] = known;
    }
}

fn place(op: u64) -> (u64, usize) {
    let block = BLOCK as u64;
    (op / block, (op % block) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stands_for_what_it_was_set_to() {
        let ids = [0, 15, 16, 10_000_001, u64::MAX];
        let mut index = Index::default();
        for (row, id) in (0..).zip(ids) {
            assert_eq!(index.get(id), Known::Unused);
            index.set(id, Known::Acquire(row));
        }
        index.set(16, Known::Other);
        let known = ids.map(|id| index.get(id));
        let [acquire, write] = [Known::Acquire, Known::Write];
        assert_eq!(
            known,
            [acquire(0), acquire(1), Known::Other, acquire(3), acquire(4)]
        );
        assert_ne!(known[0], write(0));
    }
}
