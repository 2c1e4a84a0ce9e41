//! Jepsen's `history.edn`, and Porcupine's logs of maps: operations as maps of EDN.

use std::io::BufRead;

use super::edn::{Mistake, Parser, Stop};
use super::operation::Operation;
use super::text::{End, Text};
use super::{Entry, Keys};
use crate::error::{Place, ReadError};
use crate::line::{Cut, Source};
use crate::reader::Ending;

/// Streams a sequence of operations, of which it holds one at a time: a vector, a list, or one after another.
pub(crate) struct Jepsen<R: BufRead> {
    text: Text<R>,
    sequence: Sequence,
    keys: Keys,
    /// Whether values are pairs of a key and a value, once that is known.
    keyed: Option<bool>,
    has_keys_apart: bool,
    events: u64,
    state: State,
}

enum State {
    Reading,
    Ended(Ending),
    Failed,
}

/// What holds the operations.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sequence {
    /// That is not known yet.
    Unknown,
    /// Nothing: they stand one after another.
    Bare,
    /// Brackets, which are open, and this one closes.
    Within(u8),
    /// Brackets, which are closed.
    Closed,
}

/// What comes next, and at which bytes of the text.
enum Step {
    /// White and comments up to where the text is known.
    Space(usize),
    Opened(u8, usize),
    Closed(usize),
    Operation(Operation, usize, usize),
}

/// What a history has next.
enum Next {
    /// An operation, at these bytes of the text.
    Operation(Operation, usize, usize),
    Wrong(Mistake),
    End(Ending),
}

impl<R: BufRead> Jepsen<R> {
    /// Reads up to the first operation, to see whether it has a key of its own.
    pub(crate) fn start(source: Source<R>) -> Result<Self, ReadError> {
        let mut jepsen = Jepsen {
            text: Text::new(source),
            sequence: Sequence::Unknown,
            keys: Keys::Guess,
            keyed: None,
            has_keys_apart: false,
            events: 0,
            state: State::Reading,
        };
        // What is wrong there is told when the operation is asked for.
        if let Next::Operation(operation, ..) = jepsen.operation()? {
            jepsen.has_keys_apart = operation.has_key();
        }
        Ok(jepsen)
    }

    pub(crate) fn has_keys_apart(&self) -> bool {
        self.has_keys_apart
    }

    pub(crate) fn set_keys(&mut self, keys: Keys) {
        self.keys = keys;
    }

    pub(crate) fn ending(&self) -> Option<Ending> {
        match self.state {
            State::Ended(ending) => Some(ending),
            State::Reading | State::Failed => None,
        }
    }

    pub(crate) fn place(&self) -> Place {
        self.text.place()
    }

    pub(crate) fn line(&self) -> u64 {
        self.text.line()
    }

    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        if !matches!(self.state, State::Reading) {
            return Ok(None);
        }
        self.state = State::Failed; // Whatever leaves this function by `?` stays so.
        let operation = loop {
            let (operation, start, end) = match self.operation()? {
                Next::Operation(operation, start, end) => (operation, start, end),
                Next::Wrong(mistake) => return Err(self.text.wrong_rest(mistake)),
                Next::End(ending) => {
                    self.state = State::Ended(ending);
                    return Ok(None);
                }
            };
            self.text.pass(start, end);
            self.events += 1;
            if operation.is_of_client(self.text.form()) {
                break operation;
            }
        };
        let keyed = self.is_keyed(&operation)?;
        let line = self.text.line();
        match operation.entry(self.text.form(), keyed) {
            Ok(entry) => {
                self.state = State::Reading;
                Ok(Some(Entry { line, ..entry }))
            }
            Err(mistake) => Err(self.text.wrong_form(mistake)),
        }
    }

    /// Whether the history's values are pairs: the first operation of a client tells.
    fn is_keyed(&mut self, operation: &Operation) -> Result<bool, ReadError> {
        if let Some(keyed) = self.keyed {
            return Ok(keyed);
        }
        let keyed = match self.keys {
            Keys::Yes => true,
            Keys::No => false,
            Keys::Guess => match operation.tells_key(self.text.form()) {
                Ok(keyed) => keyed,
                Err(mistake) => return Err(self.text.wrong_form(mistake)),
            },
        };
        self.keyed = Some(keyed);
        Ok(keyed)
    }

    /// What comes next in the rest of the text; it is not passed yet.
    fn operation(&mut self) -> Result<Next, ReadError> {
        loop {
            let ended = self.text.end();
            match step(self.text.rest(), self.sequence, ended.is_some()) {
                Ok(Step::Operation(operation, start, end)) => {
                    if self.sequence == Sequence::Unknown {
                        self.sequence = Sequence::Bare;
                    }
                    return Ok(Next::Operation(operation, start, end));
                }
                Ok(Step::Space(end)) => self.text.pass(end, end),
                Ok(Step::Opened(closing, end)) => {
                    self.sequence = Sequence::Within(closing);
                    self.text.pass(end, end);
                }
                Ok(Step::Closed(end)) => {
                    self.sequence = Sequence::Closed;
                    self.text.pass(end, end);
                }
                Err(Stop::Wrong(mistake)) => return Ok(Next::Wrong(mistake)),
                Err(Stop::Ends) => match ended {
                    None => self.text.learn()?,
                    Some(end) => match unclosed(self.text.rest()) {
                        Some(mistake) => return Ok(Next::Wrong(mistake)),
                        None => return Ok(Next::End(self.ending_at(end))),
                    },
                },
            }
        }
    }

    /// How the history ends where the text does.
    fn ending_at(&self, end: End) -> Ending {
        let events = self.events;
        let partial = !self.text.rest().is_empty() || end.within_character;
        let why = match (end.cut, self.sequence) {
            (Some(cut), _) => cut,
            _ if partial => Cut::PartialLine,
            (_, Sequence::Within(_)) => Cut::Unclosed,
            _ => return Ending::Complete { events },
        };
        Ending::Truncated { events, why }
    }
}

fn step(rest: &str, sequence: Sequence, whole: bool) -> Result<Step, Stop> {
    let mut parser = Parser::new(rest, 0, whole);
    parser.space()?;
    let start = parser.at();
    let Some(byte) = parser.peek() else {
        return if start > 0 {
            Ok(Step::Space(start))
        } else {
            Err(Stop::Ends)
        };
    };
    match (sequence, byte) {
        (Sequence::Unknown, b'[') => Ok(Step::Opened(b']', start + 1)),
        (Sequence::Unknown, b'(') => Ok(Step::Opened(b')', start + 1)),
        (Sequence::Within(closing), _) if byte == closing => Ok(Step::Closed(start + 1)),
        (Sequence::Closed, _) => parser.wrong(
            start,
            "there is more after the vector or list that holds the operations",
        ),
        _ => {
            // A bracket ends it: what the text's end cuts off is not whole.
            let mut parser = Parser::new(rest, start, false);
            let operation = Operation::pass(&mut parser)?;
            Ok(Step::Operation(operation, start, parser.at()))
        }
    }
}

/// What is wrong with a form that is still open at the end of the file although other operations follow it: it was not
/// cut off, for the bracket or the quote that would close it is missing in the middle.
fn unclosed(rest: &str) -> Option<Mistake> {
    const BEGINNINGS: [&str; 7] = [
        "{:process ",
        "{:type ",
        "{:f ",
        "{:index ",
        "{:time ",
        "#jepsen.history.Op",
        "#knossos.op.Op",
    ];
    // Comments before the form are no lines of it.
    let mut parser = Parser::new(rest, 0, true);
    let start = parser.space().map_or(0, |()| parser.at());
    let form = &rest[start..];
    let begins = |line: &str| {
        let line = line.trim_start();
        BEGINNINGS.iter().any(|start| line.starts_with(start))
    };
    form.lines().skip(1).any(begins).then(|| Mistake {
        at: start,
        message: "a bracket or a quote that opens in this form is never closed".into(),
    })
}

#[cfg(test)]
mod tests;
