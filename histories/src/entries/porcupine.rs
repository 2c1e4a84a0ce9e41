//! Porcupine's logs of a register in etcd, as Jepsen's logger wrote them.

use std::borrow::Cow;
use std::io::BufRead;

use super::edn::{Mistake, Parser, Stop};
use super::operation::kind_of;
use super::{Entry, Value};
use crate::error::{Place, ReadError};
use crate::line::{Found, Source};
use crate::reader::Ending;

/// What the logger puts before an operation.
pub(crate) const LOGGER: &str = "jepsen.util - ";

/// What stands for the value of an operation of which no answer came.
const TIMED_OUT: &str = "timed-out";

/// Streams the operations of a log, a line at a time.
pub(crate) struct Porcupine<R: BufRead> {
    source: Source<R>,
    line: Vec<u8>,
    events: u64,
    state: State,
}

enum State {
    Reading,
    Ended(Ending),
    Failed,
}

impl<R: BufRead> Porcupine<R> {
    pub(crate) fn new(source: Source<R>) -> Self {
        Porcupine {
            source,
            line: Vec::new(),
            events: 0,
            state: State::Reading,
        }
    }

    pub(crate) fn ending(&self) -> Option<Ending> {
        match self.state {
            State::Ended(ending) => Some(ending),
            State::Reading | State::Failed => None,
        }
    }

    pub(crate) fn line(&self) -> u64 {
        self.source.line()
    }

    pub(crate) fn place(&self) -> Place {
        self.source.place(0)
    }

    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        if !matches!(self.state, State::Reading) {
            return Ok(None);
        }
        self.state = State::Failed; // Whatever leaves this function by `?` stays so.
        let events = self.events;
        let start = loop {
            let ending = match self.source.read_line(&mut self.line)? {
                Found::Line => match operation_start(self.source.text(&self.line)?) {
                    Some(start) => break start,
                    None => continue,
                },
                Found::End => Ending::Complete { events },
                Found::Cut(why) => Ending::Truncated { events, why },
            };
            self.state = State::Ended(ending);
            return Ok(None);
        };
        let line = self.source.line();
        match entry(self.source.text(&self.line)?, start) {
            Ok(entry) => {
                self.events += 1;
                self.state = State::Reading;
                Ok(Some(Entry { line, ..entry }))
            }
            Err(mistake) => Err(ReadError::Broken {
                place: self.source.place(mistake.at + 1),
                message: mistake.message.into_owned(),
            }),
        }
    }
}

/// Where a client's operation begins in a line: with a number, right after the logger's name. All else is other output.
fn operation_start(line: &str) -> Option<usize> {
    let start = line.find(LOGGER)? + LOGGER.len();
    let start = start + space(&line[start..]);
    let first = line.as_bytes().get(start)?;
    first.is_ascii_digit().then_some(start)
}

/// How many bytes of white a text begins with.
fn space(text: &str) -> usize {
    text.len() - text.trim_ascii_start().len()
}

fn entry(line: &str, start: usize) -> Result<Entry<'_>, Mistake> {
    let mut words = Words { line, at: start };
    let wrong = |at: usize, message: &'static str| Mistake {
        at,
        message: message.into(),
    };
    let (at, process) = words.next("a process")?;
    if !process.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong(at, "expected a process, which is a number"));
    }
    let (at, kind) = words.next("the type of the operation")?;
    let Some(kind) = kind.strip_prefix(':').and_then(kind_of) else {
        let message = "unknown type, expected `:invoke`, `:ok`, `:fail` or `:info`";
        return Err(wrong(at, message));
    };
    let (at, f) = words.next("what the operation does")?;
    let f = match f.strip_prefix(':') {
        Some(f) if !f.is_empty() => f,
        _ => return Err(wrong(at, "expected what the operation does, as `:read`")),
    };
    let (value, error) = words.values()?;
    Ok(Entry {
        line: 0,
        time: None,
        process: process.into(),
        op: None,
        kind,
        f: f.into(),
        key: None,
        value,
        token: None,
        validity: None,
        grant: None,
        error,
    })
}

/// The words of a line that are not read yet.
struct Words<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    /// The next word and its place.
    fn next(&mut self, wanted: &str) -> Result<(usize, &'a str), Mistake> {
        let start = self.at + space(&self.line[self.at..]);
        let rest = &self.line[start..];
        if rest.is_empty() {
            return Err(Mistake {
                at: start.saturating_sub(1),
                message: format!("the line ends before {wanted}").into(),
            });
        }
        let length = rest.find(|c: char| c.is_ascii_whitespace());
        let word = &rest[..length.unwrap_or(rest.len())];
        self.at = start + word.len();
        Ok((start, word))
    }

    /// The value, and what went wrong, if that follows it or stands in its place: all there is to the end of the line.
    fn values(&self) -> Result<(Value<'a>, Option<Cow<'a, str>>), Mistake> {
        let mut parser = Parser::new(self.line, self.at, true);
        let mut value = || {
            parser.space()?;
            let start = parser.at();
            match parser.peek() {
                None => Ok(None),
                Some(_) => Ok(Some((parser.value()?, parser.since(start), start))),
            }
        };
        let mut three = || Ok([value()?, value()?, value()?]);
        let too_short = |message: &'static str| Mistake {
            at: self.line.len() - 1,
            message: message.into(),
        };
        match three() {
            Ok([Some((Value::Keyword(name), ..)), None, _]) if name == TIMED_OUT => {
                Ok((Value::Nil, Some(name)))
            }
            Ok([Some((value, ..)), None, _]) => Ok((value, None)),
            Ok([Some((value, ..)), Some((error, written, _)), None]) => match error {
                Value::Keyword(error) | Value::Text(error) => Ok((value, Some(error))),
                _ => Ok((value, Some(written.into()))),
            },
            Ok([_, _, Some((_, _, at))]) => Err(Mistake {
                at,
                message: "there is more after the value and the error".into(),
            }),
            Ok([None, ..]) => Err(too_short("the line ends before a value")),
            Err(Stop::Ends) => Err(too_short("the line ends within its value")),
            Err(Stop::Wrong(mistake)) => Err(mistake),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::entries::{Entries, Format};
    use crate::line::Cut;

    fn read(text: &str) -> Result<(Vec<Entry<'static>>, Ending), ReadError> {
        let mut entries = Entries::new(text.as_bytes())?;
        assert_eq!(entries.format(), Format::PorcupineEtcd);
        let mut read = Vec::new();
        while let Some(entry) = entries.next()? {
            assert!(matches!(entry.process, Cow::Borrowed(_)));
            read.push(entry.into_owned());
        }
        Ok((read, entries.ending().unwrap()))
    }

    #[test]
    fn operations_with_tabs_and_with_spaces() {
        let text = "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n\
             INFO  jepsen.util - 12  :ok :cas  [1 2]\r\n\
             INFO  jepsen.util - 0 :info :read :timed-out\n\
             INFO  jepsen.util - 3 :fail :write 4 [:error \"x\"]\n\
             INFO  jepsen.util - 3 :fail :write 4 :refused\n";
        let (entries, ending) = read(text).unwrap();
        assert_eq!(ending, Ending::Complete { events: 5 });
        let told: Vec<_> = entries
            .iter()
            .map(|entry| {
                (
                    &*entry.process,
                    entry.kind,
                    &*entry.f,
                    entry.value.to_string(),
                    entry.error.as_deref(),
                )
            })
            .collect();
        let expected = [
            ("0", Kind::Invoke, "read", "nil".to_owned(), None),
            ("12", Kind::Ok, "cas", "[1 2]".to_owned(), None),
            ("0", Kind::Info, "read", "nil".to_owned(), Some("timed-out")),
            (
                "3",
                Kind::Fail,
                "write",
                "4".to_owned(),
                Some("[:error \"x\"]"),
            ),
            ("3", Kind::Fail, "write", "4".to_owned(), Some("refused")),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn other_output_is_left_out() {
        let text = "INFO  jepsen.core - Worker 0 starting\n\n\
             INFO  jepsen.util - :nemesis :info :start nil\n\
             INFO  jepsen.util - done :invoke\n\
             WARN  jepsen.util - 0\t:invoke\t:read\tnil\n\
             java.lang.Exception: 0 :invoke :read\n";
        let (entries, ending) = read(text).unwrap();
        assert_eq!((entries.len(), ending), (1, Ending::Complete { events: 1 }));
    }

    #[test]
    fn a_broken_operation_is_told_with_its_place() {
        let first = "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n";
        for (rest, expected) in [
            ("0\t:invoked\t:read\tnil", "line 2, column 23: unknown type"),
            ("0\tinvoke\t:read\tnil", "line 2, column 23: unknown type"),
            (
                "0:invoke\t:read\tnil",
                "line 2, column 21: expected a process",
            ),
            (
                "0\t:invoke\tread\tnil",
                "line 2, column 31: expected what the operation does",
            ),
            (
                "0\t:invoke\t:\tnil",
                "line 2, column 31: expected what the operation does",
            ),
            (
                "0\t:invoke\t:read",
                "line 2, column 35: the line ends before a value",
            ),
            (
                "0\t:invoke",
                "line 2, column 29: the line ends before what the operation does",
            ),
            ("0", "line 2, column 21: the line ends before the type"),
            (
                "0\t:invoke\t:cas\t[1 2",
                "line 2, column 39: the line ends within its value",
            ),
            (
                "0\t:invoke\t:cas\t[1 2}",
                "line 2, column 40: expected `]`, found `}`",
            ),
            (
                "0\t:invoke\t:read\t1 2 3",
                "line 2, column 41: there is more after",
            ),
        ] {
            let error = read(&format!("{first}INFO  jepsen.util - {rest}\n{first}")).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}\n{rest}");
        }
    }

    #[test]
    fn a_log_that_is_cut_anywhere_gives_its_whole_lines() {
        let line = "INFO  jepsen.util - 0\t:invoke\t:cas\t[1 12]\n";
        let text = line.repeat(2);
        for at in LOGGER.len() + 6..text.len() {
            let (entries, ending) = read(&text[..at]).unwrap();
            let events = (at / line.len()) as u64;
            assert_eq!(entries.len() as u64, events);
            let why = Cut::PartialLine;
            let expected = match at % line.len() {
                0 => Ending::Complete { events },
                _ => Ending::Truncated { events, why },
            };
            assert_eq!(ending, expected);
        }
    }
}
