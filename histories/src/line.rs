//! The lines of a file, plain or compressed, and where it stops.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, Error as _};

use crate::error::{Place, ReadError};
use crate::{Event, Function, open_regular, quick, visible};

/// The longest line that is written or read, in bytes. It keeps a damaged file from filling the memory.
pub(crate) const LONGEST_LINE: usize = 16 << 20;

/// How much is read from a file, or taken out of the decoder, at once, in bytes.
const BLOCK: usize = 256 << 10;

/// What reading a line came to.
#[derive(Debug)]
pub(crate) enum Found {
    /// A line that ends in a newline, which was taken off.
    Line,
    /// The rest of the file, which is no whole line, and why it is not.
    Cut(Cut),
    /// Nothing: the line before was the last one.
    End,
}

/// Why a history has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It ends after a whole line, but that line is no footer: the run goes on, or it was killed.
    NoFooter,
    /// Its last line is not whole; that line was dropped.
    PartialLine,
    /// The compressed stream ends too early; what could be decompressed of a last line was dropped.
    PartialStream,
    /// Jepsen's vector or list of operations is never closed.
    Unclosed,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cut::NoFooter => "there is no footer",
            Cut::PartialLine => "the last line is not whole, and was dropped",
            Cut::PartialStream => "the compressed stream ends too early",
            Cut::Unclosed => "the vector or list that holds the operations is not closed",
        })
    }
}

/// A file's bytes: the first four, read ahead to tell what they are, and the others.
type Bytes<R> = Chain<Cursor<Vec<u8>>, R>;

/// A file's text, as it stands there or decompressed.
enum Input<R: BufRead> {
    Plain(Bytes<R>),
    Zstd(Box<BufReader<zstd::Decoder<'static, Bytes<R>>>>),
}

/// A file's text, of which the beginning may have been looked at.
struct Ahead<R: BufRead> {
    /// What was looked at.
    start: Vec<u8>,
    /// How much of that was read since.
    at: usize,
    rest: Input<R>,
}

/// What comes next in a file.
pub(crate) enum Chunk<'a> {
    /// Some of its bytes, at least one.
    Bytes(&'a [u8]),
    /// Nothing: a compressed stream that is not whole says so.
    End(Option<Cut>),
}

/// Where lines come from.
pub(crate) struct Source<R: BufRead> {
    input: Ahead<R>,
    path: Option<PathBuf>,
    /// How many whole lines were read.
    line: u64,
}

impl Source<BufReader<File>> {
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        open_regular(path)
            .and_then(|file| Ahead::new(BufReader::with_capacity(BLOCK, file)))
            .map(|input| Source {
                input,
                path: Some(path.to_owned()),
                line: 0,
            })
            .map_err(|source| {
                let place = Place {
                    path: Some(path.to_owned()),
                    ..Place::default()
                };
                ReadError::Io { place, source }
            })
    }
}

impl<R: BufRead> Source<R> {
    pub(crate) fn new(input: R) -> Result<Self, ReadError> {
        let input = Ahead::new(input).map_err(|source| ReadError::Io {
            place: Place::default(),
            source,
        })?;
        Ok(Source {
            input,
            path: None,
            line: 0,
        })
    }

    /// Puts the next line into `line`, which is emptied first.
    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>) -> Result<Found, ReadError> {
        line.clear();
        let mut limited = (&mut self.input).take(LONGEST_LINE as u64 + 1);
        match limited.read_until(b'\n', line) {
            Ok(0) => return Ok(Found::End),
            Ok(_) => {}
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => {
                return Ok(Found::Cut(Cut::PartialStream));
            }
            Err(cause) => return Err(self.failed(cause)),
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            self.line += 1;
            Ok(Found::Line)
        } else if line.len() > LONGEST_LINE {
            self.line += 1;
            Err(ReadError::TooLong {
                place: self.place(0),
            })
        } else {
            Ok(Found::Cut(Cut::PartialLine))
        }
    }

    /// Whether nothing follows the lines that were read.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, ReadError> {
        match self.input.fill_buf() {
            Ok(rest) => Ok(rest.is_empty()),
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => Ok(true),
            Err(cause) => Err(self.failed(cause)),
        }
    }

    /// Shows the file's first bytes to `decide` until it decides, with the word whether there are no others. They are read
    /// again afterwards. `decide` has to decide at the end.
    pub(crate) fn look<T>(
        &mut self,
        mut decide: impl FnMut(&[u8], bool) -> Option<T>,
    ) -> Result<T, ReadError> {
        let mut ended = false;
        loop {
            if let Some(decision) = decide(&self.input.start, ended) {
                return Ok(decision);
            }
            let chunk = match self.input.rest.fill_buf() {
                Ok(chunk) => chunk,
                Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => &[],
                Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
                Err(cause) => return Err(self.failed(cause)),
            };
            let length = chunk.len().min(BLOCK);
            ended = length == 0;
            self.input.start.extend_from_slice(&chunk[..length]);
            self.input.rest.consume(length);
        }
    }

    /// Hands what comes next to `take`, in blocks of any size: for formats that have no lines.
    pub(crate) fn chunk<T>(&mut self, take: impl FnOnce(Chunk<'_>) -> T) -> Result<T, ReadError> {
        loop {
            match self.input.fill_buf() {
                Ok([]) => return Ok(take(Chunk::End(None))),
                Ok(bytes) => {
                    let bytes = &bytes[..bytes.len().min(BLOCK)];
                    let length = bytes.len();
                    self.line += newlines(bytes);
                    let taken = take(Chunk::Bytes(bytes));
                    self.input.consume(length);
                    return Ok(taken);
                }
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(take(Chunk::End(Some(Cut::PartialStream))));
                }
                Err(cause) => return Err(self.failed(cause)),
            }
        }
    }

    /// How many whole lines were read.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The file.
    pub(crate) fn file(&self) -> Place {
        Place {
            path: self.path.clone(),
            line: 0,
            column: 0,
        }
    }

    /// A place in the line that was read last.
    pub(crate) fn place(&self, column: usize) -> Place {
        Place {
            path: self.path.clone(),
            line: self.line,
            column: column as u64,
        }
    }

    /// The line that was read last, as text.
    pub(crate) fn text<'l>(&self, line: &'l [u8]) -> Result<&'l str, ReadError> {
        str::from_utf8(line).map_err(|error| ReadError::NotUtf8 {
            place: self.place(error.valid_up_to() + 1),
        })
    }

    /// What is wrong with the line that was read last.
    pub(crate) fn broken(&self, error: &serde_json::Error) -> ReadError {
        let mut message = error.to_string();
        // The line that serde_json counts is always the first: each was given to it by itself.
        if let Some(at) = message.rfind(" at line ") {
            message.truncate(at);
        }
        ReadError::Broken {
            place: self.place(error.column().max(1)),
            message: visible(&message).into_owned(),
        }
    }

    /// Why the line after the one that was read last cannot be had.
    fn failed(&self, source: io::Error) -> ReadError {
        let place = Place {
            line: self.line + 1,
            ..self.file()
        };
        let from_decoder =
            matches!(self.input.rest, Input::Zstd(_)) && source.raw_os_error().is_none();
        if from_decoder {
            ReadError::Damaged { place, source }
        } else {
            ReadError::Io { place, source }
        }
    }
}

/// How many lines end in these bytes. Counting in bytes, of which 255 cannot overflow one, is what processors do best.
#[inline]
pub(crate) fn newlines(bytes: &[u8]) -> u64 {
    let count = |block: &[u8]| -> u8 { block.iter().map(|byte| u8::from(*byte == b'\n')).sum() };
    bytes.chunks(255).map(|block| u64::from(count(block))).sum()
}

/// Whether a file that starts so is a zstd stream: a frame (RFC 8878, section 3.1.1) or a skippable one (3.1.2), with
/// which parallel compressors start.
fn is_zstd(start: &[u8]) -> bool {
    matches!(
        start,
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18]
    )
}

impl<R: BufRead> Input<R> {
    fn new(mut source: R) -> io::Result<Self> {
        let mut start = Vec::with_capacity(4);
        source.by_ref().take(4).read_to_end(&mut start)?;
        let compressed = is_zstd(&start);
        let whole = Cursor::new(start).chain(source);
        if !compressed {
            return Ok(Input::Plain(whole));
        }
        let decoder = zstd::Decoder::with_buffer(whole)?;
        Ok(Input::Zstd(Box::new(BufReader::with_capacity(
            BLOCK, decoder,
        ))))
    }
}

impl<R: BufRead> Ahead<R> {
    fn new(source: R) -> io::Result<Self> {
        Ok(Ahead {
            start: Vec::new(),
            at: 0,
            rest: Input::new(source)?,
        })
    }
}

impl<R: BufRead> Read for Ahead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.start.get(self.at..) {
            Some(start) if !start.is_empty() => Ok(start),
            _ => self.rest.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        if self.at < self.start.len() {
            self.at += amount;
        } else {
            self.rest.consume(amount);
        }
    }
}

impl<R: BufRead> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::Plain(input) => input.read(buffer),
            Input::Zstd(input) => input.read(buffer),
        }
    }
}

impl<R: BufRead> BufRead for Input<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Input::Plain(input) => input.fill_buf(),
            Input::Zstd(input) => input.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match self {
            Input::Plain(input) => input.consume(amount),
            Input::Zstd(input) => input.consume(amount),
        }
    }
}

/// The event of a line, by the short way where it can be taken.
#[inline]
pub(crate) fn event(line: &str) -> Result<Event<'_>, serde_json::Error> {
    match quick::event(line) {
        Some(event) => Ok(event),
        None => {
            object(line)?;
            serde_json::from_str(line)
        }
    }
}

/// The function of a line's event; `None` for a line that is none.
pub(crate) fn function(line: &str) -> Option<Function> {
    quick::function(line).or_else(|| event(line).ok().map(|event| event.f))
}

/// The header or the footer of a line.
pub(crate) fn owned<T: DeserializeOwned>(line: &str) -> Result<T, serde_json::Error> {
    object(line)?;
    serde_json::from_str(line)
}

/// Refuses an array, from which serde would fill a struct, field by field.
fn object(line: &str) -> Result<(), serde_json::Error> {
    match line.trim_ascii_start().as_bytes().first() {
        Some(b'{') | None => Ok(()),
        Some(_) => Err(serde_json::Error::custom("expected an object `{…}`")),
    }
}
