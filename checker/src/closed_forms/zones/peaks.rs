//! A row of numbers in which the next one that is high enough is found fast.

use std::ops::Range;

/// Numbers, all 0 at first. Each inner node of the tree has the higher one of its two children.
pub(super) struct Peaks {
    leaves: usize,
    tree: Vec<u32>,
}

impl Peaks {
    pub(super) fn new(length: usize) -> Peaks {
        let leaves = length.next_power_of_two();
        Peaks {
            leaves,
            tree: vec![0; 2 * leaves],
        }
    }

    pub(super) fn set(&mut self, at: usize, number: u32) {
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
    pub(super) fn find(&self, range: Range<usize>, least: u32) -> Option<usize> {
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
            let mut peaks = Peaks::new(length);
            let mut row = vec![0; length];
            for step in 0..60 {
                let at = step * 7 % length;
                row[at] = (step * step % 11) as u32;
                peaks.set(at, row[at]);
                for from in 0..length {
                    for to in from..=length {
                        let least = (step % 12) as u32;
                        let scanned = (from..to).find(|&at| row[at] >= least);
                        assert_eq!(peaks.find(from..to, least), scanned);
                    }
                }
            }
        }
    }
}
