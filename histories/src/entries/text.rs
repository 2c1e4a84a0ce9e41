//! A text that is read bit by bit, where forms may end anywhere: no more of it is kept than the form that is read.

use std::io::BufRead;

use super::edn::Mistake;
use crate::error::{Place, ReadError};
use crate::line::{Chunk, Cut, LONGEST_LINE, Source, newlines};

/// A file's text from the form that is read on, as far as it is known.
pub(crate) struct Text<R: BufRead> {
    source: Source<R>,
    known: String,
    /// Where in `known` the next form is looked for.
    at: usize,
    /// Where in `known` the form that was passed last stands.
    form: (usize, usize),
    /// The first bytes of a character whose others are not known yet, or bytes that are no character.
    bytes: Vec<u8>,
    /// Whether `bytes` begins with what is no character.
    is_damaged: bool,
    end: Option<End>,
    /// How many lines end before `at`.
    lines: u64,
    /// How many lines end before the form that was passed last.
    form_lines: u64,
    /// How many bytes of the line in which `known` begins stand before it.
    column: usize,
}

/// How a file ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// Its compressed stream is not whole.
    pub(crate) cut: Option<Cut>,
    /// Its last character is not whole.
    pub(crate) within_character: bool,
}

impl<R: BufRead> Text<R> {
    pub(crate) fn new(source: Source<R>) -> Self {
        Text {
            source,
            known: String::new(),
            at: 0,
            form: (0, 0),
            bytes: Vec::new(),
            is_damaged: false,
            end: None,
            lines: 0,
            form_lines: 0,
            column: 0,
        }
    }

    /// What is known of the text after the form that was passed last.
    #[inline]
    pub(crate) fn rest(&self) -> &str {
        &self.known[self.at..]
    }

    /// The form that was passed last.
    #[inline]
    pub(crate) fn form(&self) -> &str {
        &self.known[self.form.0..self.form.1]
    }

    /// How the text ends, once all of it is known.
    pub(crate) fn end(&self) -> Option<End> {
        self.end
    }

    /// Passes a form that stands at these bytes of the rest, and all before it.
    #[inline]
    pub(crate) fn pass(&mut self, start: usize, end: usize) {
        let (before, form) = self.rest().as_bytes()[..end].split_at(start);
        let (before, within) = (newlines(before), newlines(form));
        self.form = (self.at + start, self.at + end);
        self.form_lines = self.lines + before;
        self.lines += before + within;
        self.at += end;
    }

    /// Learns more of the text: at least as much as was known of the rest, so that a long form is not read over and over
    /// again in small steps. The form that was passed last is forgotten. At the end there is no more.
    pub(crate) fn learn(&mut self) -> Result<(), ReadError> {
        self.forget();
        if self.known.len() > LONGEST_LINE {
            let place = self.place_of(0);
            return Err(ReadError::TooLong { place });
        }
        if self.is_damaged {
            let place = self.place_of(self.known.len());
            return Err(ReadError::NotUtf8 { place });
        }
        let wanted = self.known.len() * 2 + 1;
        while self.end.is_none() && !self.is_damaged && self.known.len() < wanted {
            let (known, bytes) = (&mut self.known, &mut self.bytes);
            let taken = self.source.chunk(|chunk| match chunk {
                Chunk::Bytes(chunk) => Ok(decode(chunk, bytes, known)),
                Chunk::End(cut) => Err(cut),
            })?;
            match taken {
                Ok(is_damaged) => self.is_damaged = is_damaged,
                Err(cut) => {
                    self.end = Some(End {
                        cut,
                        within_character: !self.bytes.is_empty(),
                    });
                }
            }
        }
        Ok(())
    }

    fn forget(&mut self) {
        let passed = &self.known.as_bytes()[..self.at];
        match passed.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => self.column = self.at - newline - 1,
            None => self.column += self.at,
        }
        self.known.drain(..self.at);
        self.at = 0;
        self.form = (0, 0);
    }

    /// The file.
    pub(crate) fn file(&self) -> Place {
        self.source.file()
    }

    /// The line in which the form that was passed last begins, counted from 1.
    pub(crate) fn line(&self) -> u64 {
        self.form_lines + 1
    }

    /// Where the form that was passed last begins.
    pub(crate) fn place(&self) -> Place {
        self.place_after(self.form_lines, self.form.0, 0)
    }

    /// What is wrong at a byte of the form that was passed last.
    #[cold]
    pub(crate) fn wrong_form(&self, mistake: Mistake) -> ReadError {
        ReadError::Broken {
            place: self.place_after(self.form_lines, self.form.0, mistake.at),
            message: mistake.message.into_owned(),
        }
    }

    /// What is wrong at a byte of the rest.
    #[cold]
    pub(crate) fn wrong_rest(&self, mistake: Mistake) -> ReadError {
        ReadError::Broken {
            place: self.place_of(mistake.at),
            message: mistake.message.into_owned(),
        }
    }

    /// The place of a byte of the rest.
    fn place_of(&self, at: usize) -> Place {
        self.place_after(self.lines, self.at, at)
    }

    /// The place of the byte `start + at`, where so many lines end before `start`.
    fn place_after(&self, lines: u64, start: usize, at: usize) -> Place {
        let known = self.known.as_bytes();
        let line = known[..start + at].iter().rposition(|byte| *byte == b'\n');
        let column = match line {
            Some(newline) => start + at - newline,
            None => self.column + start + at + 1,
        };
        Place {
            line: lines + newlines(&known[start..start + at]) + 1,
            column: column as u64,
            ..self.file()
        }
    }
}

/// Puts the text of `left` and of a chunk after it into `known`; `left` keeps what is no whole character. Whether that can
/// be none, whatever follows it.
fn decode(chunk: &[u8], left: &mut Vec<u8>, known: &mut String) -> bool {
    if left.is_empty()
        && let Ok(text) = str::from_utf8(chunk)
    {
        known.push_str(text);
        return false;
    }
    left.extend_from_slice(chunk);
    let (length, is_damaged) = match str::from_utf8(left) {
        Ok(text) => (text.len(), false),
        Err(error) => (error.valid_up_to(), error.error_len().is_some()),
    };
    known.push_str(str::from_utf8(&left[..length]).unwrap_or_default());
    left.drain(..length);
    is_damaged
}

#[cfg(test)]
impl<R: BufRead> Text<R> {
    /// How many bytes are kept.
    pub(super) fn capacity(&self) -> usize {
        self.known.capacity()
    }
}
