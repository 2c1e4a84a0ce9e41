//! Max segment tree: finds the next element that is a bound or more in O(log n).

use std::ops::Range;

/// Numbers, all 0 at first. Each inner node of the tree has the higher one of its two children.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentTree<T> {
    leaves: usize,
    tree: Vec<T>,
}

impl<T: Copy + Ord + Default> SegmentTree<T> {
    pub(crate) fn new(length: usize) -> SegmentTree<T> {
        let leaves = length.next_power_of_two();
        SegmentTree {
            leaves,
            tree: vec![T::default(); 2 * leaves],
        }
    }

    /// Of these numbers, in O(n).
    pub(crate) fn of(numbers: impl ExactSizeIterator<Item = T>) -> SegmentTree<T> {
        let mut made = SegmentTree::new(numbers.len());
        for (leaf, number) in made.tree[made.leaves..].iter_mut().zip(numbers) {
            *leaf = number;
        }
        for node in (1..made.leaves).rev() {
            made.tree[node] = made.tree[2 * node].max(made.tree[2 * node + 1]);
        }
        made
    }

    pub(crate) fn set(&mut self, at: usize, number: T) {
        let mut node = at + self.leaves;
        self.tree[node] = number;
        while node > 1 {
            let higher = self.tree[node].max(self.tree[node ^ 1]);
            node /= 2;
            if self.tree[node] == higher {
                return;
            }
            self.tree[node] = higher;
        }
    }

    /// The first place in a range whose number is at least so high.
    pub(crate) fn find(&self, range: Range<usize>, least: T) -> Option<usize> {
        if range.is_empty() || self.tree[1] < least {
            return None;
        }
        let mut node = range.start + self.leaves;
        loop {
            // Up to the largest part of the row that begins here.
            node >>= node.trailing_zeros();
            if self.tree[node] >= least {
                break;
            }
            node += 1;
            if node.is_power_of_two() {
                return None;
            }
        }
        while node < self.leaves {
            node *= 2;
            if self.tree[node] < least {
                node += 1;
            }
        }
        Some(node - self.leaves).filter(|at| range.contains(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_scan_finds() {
        for length in 1..20 {
            let mut tree = SegmentTree::new(length);
            let mut row = vec![0u32; length];
            for step in 0..60 {
                let at = step * 7 % length;
                row[at] = (step * step % 11) as u32;
                tree.set(at, row[at]);
                for from in 0..length {
                    for to in from..=length {
                        let least = (step % 12) as u32;
                        let scanned = (from..to).find(|&at| row[at] >= least);
                        assert_eq!(tree.find(from..to, least), scanned);
                        let made = SegmentTree::of(row.iter().copied());
                        assert_eq!(made.find(from..to, least), scanned);
                    }
                }
            }
        }
    }
}
