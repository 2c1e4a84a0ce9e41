//! Lines and columns of a text, found at once however long its lines are.

/// So many bytes are counted through at most to find a column.
const BLOCK: usize = 256;

/// Where the lines of a text begin, and how many characters are before each block of it.
pub(super) struct Lines<'t> {
    text: &'t str,
    /// The first byte of each line.
    starts: Vec<usize>,
    /// The characters before each [`BLOCK`] of bytes.
    before: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub fn new(text: &'t str) -> Lines<'t> {
        let newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        let blocks = text.as_bytes().chunks(BLOCK);
        let before = blocks.scan(0, |characters, block| {
            let before = *characters;
            *characters += count(block);
            Some(before)
        });
        Lines {
            text,
            starts: std::iter::once(0).chain(newlines).collect(),
            before: before.collect(),
        }
    }

    /// Line and column in characters, both counted from 1, of a byte of the text.
    pub fn place(&self, byte: usize) -> (usize, usize) {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= byte);
        let start = self.starts[line - 1];
        (line, self.characters(byte) - self.characters(start) + 1)
    }

    /// The characters that begin before a byte.
    fn characters(&self, byte: usize) -> usize {
        let block = byte / BLOCK;
        let before = self.before.get(block).copied();
        match before {
            Some(before) => before + count(&self.text.as_bytes()[block * BLOCK..byte]),
            // The text ends with a whole block, and the byte is the one after it.
            None => self.before.last().map_or(0, |before| {
                before + count(&self.text.as_bytes()[(block - 1) * BLOCK..])
            }),
        }
    }
}

/// The characters that begin in these bytes of UTF-8.
fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_place_is_as_counted(text in "[a\nü時]{0,600}") {
            let lines = Lines::new(&text);
            for (byte, _) in text.char_indices().chain([(text.len(), ' ')]) {
                let before = &text[..byte];
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
                prop_assert_eq!(lines.place(byte), (line, column));
            }
        }
    }
}
