//! What people read, safe to be sent to a terminal: its colours are ours, and whatever else a terminal would obey is
//! escaped, wherever it comes from.

use std::fmt::{self, Display, Write};

use comfy_table::{ContentArrangement, Table, presets};
use histories::{abridged, visible};

use super::text::Mark;

/// The longest line, in characters: what a file says may be as long as the file.
const LINE_MAX: usize = 4000;

/// Text that grows by what is written to it, and that is escaped as it is written.
#[derive(Debug, Default)]
pub struct Page {
    /// With nothing to obey in it but newlines and our colours.
    text: String,
    color: bool,
}

/// A cell of a table: words, and how they are to be looked upon.
pub type Cell = (String, Mark);

impl Page {
    /// An empty page, with colours or without.
    pub fn new(color: bool) -> Page {
        Page {
            text: String::new(),
            color,
        }
    }

    /// Whether nothing stands there yet.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What a terminal is to get.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Adds words in their colour.
    pub fn paint(&mut self, words: &str, mark: Mark) {
        self.text += &painted(words, mark, self.color);
    }

    /// Adds a table without borders, as wide as the terminal at most.
    pub fn table(&mut self, header: &[&str], rows: Vec<Vec<Cell>>) {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        // A terminal that does not know its width says 0.
        if table.width().is_some_and(|width| width > 0) {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        if !header.is_empty() {
            table.set_header(header.iter().map(|title| visible(title)));
        }
        for row in rows {
            table.add_row(
                row.iter()
                    .map(|(words, mark)| painted(words, *mark, self.color)),
            );
        }
        let lines: Vec<String> = table
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        self.text += &lines.join("\n");
    }
}

/// A newline at an end of what is written is the page's own; one within comes from elsewhere, and would make lines that
/// look like ours.
impl Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text += &abridged(&visible(text), LINE_MAX);
        Ok(())
    }

    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        let text = text.to_string();
        let within = text.trim_matches('\n');
        let before = text.len() - text.trim_start_matches('\n').len();
        let after = text.len() - before - within.len();
        self.text.extend(std::iter::repeat_n('\n', before));
        self.write_str(within)?;
        self.text.extend(std::iter::repeat_n('\n', after));
        Ok(())
    }
}

/// Text of our own that has lines.
impl<T: Display> From<T> for Page {
    fn from(text: T) -> Page {
        let text = text.to_string();
        let lines: Vec<_> = text.split('\n').map(visible).collect();
        Page {
            text: lines.join("\n"),
            color: false,
        }
    }
}

/// A table of words alone.
pub fn table(rows: Vec<Vec<String>>) -> Page {
    let cells = |row: Vec<String>| row.into_iter().map(|words| (words, Mark::None)).collect();
    let mut page = Page::new(false);
    page.table(&[], rows.into_iter().map(cells).collect());
    page
}

fn painted(words: &str, mark: Mark, color: bool) -> String {
    let words = visible(words);
    let words = abridged(&words, LINE_MAX);
    match mark.code() {
        Some(code) if color => format!("\x1b[{code}m{words}\x1b[0m"),
        _ => words.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "\n\x1b[32mholds\x1b[0m\n\u{9b}2J\u{202e}\n";

    #[test]
    fn only_our_colours_and_newlines_are_obeyed() {
        let mut page = Page::new(true);
        writeln!(page, "\n{HOSTILE}: ").unwrap();
        page.paint(HOSTILE, Mark::Good);
        page.table(&[HOSTILE], vec![vec![(HOSTILE.to_owned(), Mark::Bad)]]);
        let text = page.into_text();
        assert_eq!(text.matches("\x1b[32m").count(), 1, "{text:?}");
        assert_eq!(text.matches("\x1b[1;31m").count(), 1, "{text:?}");
        assert_eq!(text.matches('\x1b').count(), 4, "{text:?}");
        let obeyed = text.replace(['\x1b', '\n'], "");
        assert_eq!(visible(&obeyed), obeyed);
        assert!(text.contains("\\u001b[32mholds\\u001b[0m\\u000a\\u009b2J\\u202e"));
    }

    #[test]
    fn text_of_our_own_keeps_its_lines() {
        assert_eq!(Page::from("one\ntwo\x07").into_text(), "one\ntwo\\u0007");
        let mut page = Page::new(true);
        let foreign = "one\ntwo";
        write!(page, "\n\n  {foreign}\n").unwrap();
        assert_eq!(page.into_text(), "\n\n  one\\u000atwo\n");
    }
}
