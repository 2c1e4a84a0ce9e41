//! Reading a history, one event at a time, from a file that may end anywhere.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::ReadError;
use crate::line::{self, Cut, Found, Source};
use crate::writer::hexadecimal;
use crate::{Event, FORMAT_VERSION, Footer, Function, Header, version_1};

/// The longest id of a run, in bytes; a UUID has 36.
const RUN_MAX: usize = 64;

/// Streams a history, from a file by default, plain or compressed as its first bytes tell. It holds one line at a time.
///
/// Lines that a crash cut off are dropped and told of by [`Reader::ending`]; see the crate's documentation for what is
/// an error.
pub struct Reader<R: BufRead = BufReader<File>> {
    source: Source<R>,
    line: Vec<u8>,
    header: Header,
    events: u64,
    /// Of every byte so far.
    digest: Sha256,
    seal: Option<Seal>,
    state: State,
}

/// Whether a history is as it was when it was closed. It is no signature: who edits one on purpose can seal it anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Seal {
    /// Its digest fits.
    Sealed,
    /// Its digest does not.
    Edited,
    /// It was closed without a digest, as version 1 did.
    Unsealed,
    /// It was never closed.
    Cut,
}

impl fmt::Display for Seal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Seal::Sealed => "sealed",
            Seal::Edited => "edited",
            Seal::Unsealed => "unsealed",
            Seal::Cut => "cut",
        })
    }
}

/// How far a reader is.
#[derive(Debug)]
enum State {
    Reading,
    Ended(Ending),
    Failed,
}

/// What a glance at an event's line tells of its function.
pub(crate) enum Glance {
    Is(Function),
    Unclear,
}

/// How a history ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With its footer, which counts the events that were read.
    Complete {
        /// How many.
        events: u64,
    },
    /// Without, as a crash left it, or a run that goes on.
    Truncated {
        /// How many events could be read: all those whose lines are whole.
        events: u64,
        /// How it stops.
        why: Cut,
    },
}

impl Ending {
    /// How many events the history has.
    pub fn events(&self) -> u64 {
        match self {
            Ending::Complete { events } | Ending::Truncated { events, .. } => *events,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Complete { events } => write!(f, "complete, {events} events"),
            Ending::Truncated { events, why } => {
                write!(f, "truncated after {events} events: {why}")
            }
        }
    }
}

impl Reader {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// Every [`ReadError`] but those of events and footers.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Reader::start(Source::open(path.as_ref())?)
    }
}

impl<R: BufRead> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.source.place(0);
        f.debug_struct("Reader")
            .field("place", &place)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads the header from a stream; what follows it is read by [`Reader::next`].
    ///
    /// # Errors
    /// Every [`ReadError`] but those of events and footers.
    pub fn new(source: R) -> Result<Self, ReadError> {
        Reader::start(Source::new(source)?)
    }

    pub(crate) fn start(mut source: Source<R>) -> Result<Self, ReadError> {
        let mut line = Vec::new();
        let header = read_header(&mut source, &mut line)?;
        let mut digest = Sha256::new();
        digest.update(&line);
        digest.update(b"\n");
        Ok(Reader {
            source,
            line,
            header,
            events: 0,
            digest,
            seal: None,
            state: State::Reading,
        })
    }

    /// Line 1.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The line that was read last, counted from 1, the header's being 1: for whoever finds fault with its event.
    pub fn line(&self) -> u64 {
        self.source.line()
    }

    /// How the history ends; `None` before [`Reader::next`] has given `None`, and after it gave an error.
    pub fn ending(&self) -> Option<Ending> {
        match self.state {
            State::Ended(ending) => Some(ending),
            State::Reading | State::Failed => None,
        }
    }

    /// Whether the history is as it was when it was closed; `None` as long as [`Reader::ending`] is.
    pub fn seal(&self) -> Option<Seal> {
        match self.ending()? {
            Ending::Complete { .. } => self.seal,
            Ending::Truncated { .. } => Some(Seal::Cut),
        }
    }

    /// The next event, in the order of the file: sorted by time in a sealed history, only nearly so in another one.
    /// It borrows from the reader's line, so that it goes with the next call; [`Event::into_owned`] keeps it.
    ///
    /// `None` when there is no other; [`Reader::ending`] then says how the history ends.
    ///
    /// # Errors
    /// When a line is broken that is not the file's last, or the footer does not fit, or reading fails. After an error
    /// there is nothing more.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator's items cannot borrow from the iterator"
    )]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        if !self.advance()? {
            return Ok(None);
        }
        self.event()
    }

    /// Goes to the next event whose function is wanted, as far as a glance at its line tells, for [`Reader::event`] to read. The others
    /// are read, too, and counted. `None` where there is no other.
    pub(crate) fn seek(
        &mut self,
        wanted: impl Fn(Function) -> bool,
    ) -> Result<Option<Glance>, ReadError> {
        while self.advance()? {
            match self.source.text(&self.line).ok().and_then(line::function) {
                None => return Ok(Some(Glance::Unclear)),
                Some(function) if wanted(function) => return Ok(Some(Glance::Is(function))),
                Some(_) if self.event()?.is_none() => break,
                Some(_) => {}
            }
        }
        Ok(None)
    }

    /// Reads a line. False when that is no event, and the history ends.
    fn advance(&mut self) -> Result<bool, ReadError> {
        if !matches!(self.state, State::Reading) {
            return Ok(false);
        }
        self.state = State::Failed; // Whatever leaves this function by `?` stays so.
        match self.source.read_line(&mut self.line)? {
            Found::Line if is_footer(&self.line) => return self.end_with_footer().map(|()| false),
            Found::Line => {
                self.digest.update(&self.line);
                self.digest.update(b"\n");
            }
            Found::Cut(why) => {
                self.end_truncated(why);
                return Ok(false);
            }
            Found::End => {
                self.end_truncated(Cut::NoFooter);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The event of the line that was read last.
    #[inline]
    pub(crate) fn event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        let text = self.source.text(&self.line)?;
        match line::event(text) {
            Ok(event) => {
                self.events += 1;
                self.state = State::Reading;
                Ok(Some(event))
            }
            Err(error) if error.is_eof() && self.source.is_at_end()? => {
                let (events, why) = (self.events, Cut::PartialLine);
                self.state = State::Ended(Ending::Truncated { events, why });
                Ok(None)
            }
            Err(error) => Err(self.source.broken(&error)),
        }
    }

    /// Where the line stands that was read last.
    pub(crate) fn place(&self) -> crate::Place {
        self.source.place(0)
    }

    /// The line that was read last as it stands in the file, without its newline.
    pub(crate) fn last_line(&self) -> &[u8] {
        &self.line
    }

    fn end_truncated(&mut self, why: Cut) {
        let events = self.events;
        self.state = State::Ended(Ending::Truncated { events, why });
    }

    /// The line that was read last is the footer: it has to count what was read, and to be the last.
    fn end_with_footer(&mut self) -> Result<(), ReadError> {
        let text = self.source.text(&self.line)?;
        let footer = match line::owned::<Footer>(text) {
            Ok(footer) => footer,
            Err(error) if error.is_eof() && self.source.is_at_end()? => {
                self.end_truncated(Cut::PartialLine);
                return Ok(());
            }
            Err(error) => return Err(self.source.broken(&error)),
        };
        let digest = hexadecimal(&self.digest.clone().finalize());
        self.seal = Some(match footer.sha256 {
            None if self.header.fencepost < 2 => Seal::Unsealed,
            // Whoever writes version 2 writes a digest.
            None => Seal::Edited,
            Some(told) if told == digest => Seal::Sealed,
            Some(_) => Seal::Edited,
        });
        let (counted, found) = (footer.events, self.events);
        if counted != found {
            return Err(ReadError::Miscounted {
                place: self.source.place(0),
                counted,
                found,
            });
        }
        let ending = match self.source.read_line(&mut self.line)? {
            Found::End => Ending::Complete { events: found },
            // All events are there, yet nothing shows that the stream is undamaged: its checksum comes last.
            Found::Cut(why @ Cut::PartialStream) if self.line.is_empty() => {
                Ending::Truncated { events: found, why }
            }
            Found::Cut(_) | Found::Line => {
                let mut place = self.source.file();
                place.line = found + 3; // The header, the events, the footer, and then this.
                return Err(ReadError::AfterFooter { place });
            }
        };
        self.state = State::Ended(ending);
        Ok(())
    }
}

/// A footer is told from an event by its first key, which no event begins with.
fn is_footer(line: &[u8]) -> bool {
    let key = line
        .trim_ascii_start()
        .strip_prefix(b"{")
        .map(<[u8]>::trim_ascii_start);
    key.is_some_and(|key| key.starts_with(b"\"events\""))
}

/// What every version of the format has in its header.
#[derive(Deserialize)]
struct AnyHeader {
    fencepost: Option<u64>,
    build: Option<String>,
}

/// Reads line 1, and leaves it in `line`.
fn read_header<R: BufRead>(
    source: &mut Source<R>,
    line: &mut Vec<u8>,
) -> Result<Header, ReadError> {
    let place = source.file();
    let foreign = |why: &str| ReadError::Foreign {
        place: source.file(),
        why: why.to_owned(),
    };
    let no_object = "it does not begin with a JSON object in a line of its own";
    let (no_object, no_version) = (
        foreign(no_object),
        foreign("its first line has no field `fencepost`"),
    );
    let found = match source.read_line(line) {
        Ok(Found::End) => return Err(ReadError::Empty { place }),
        Err(ReadError::TooLong { .. }) if !line.trim_ascii_start().starts_with(b"{") => {
            return Err(no_object);
        }
        other => other?,
    };
    let cut = matches!(found, Found::Cut(_));
    match line.trim_ascii_start().first() {
        None if cut => return Err(ReadError::HeaderCut { place }),
        Some(b'{') => {}
        Some(_) | None => return Err(no_object),
    }
    let text = source.text(line);
    let any = text.as_ref().ok();
    match any.and_then(|text| line::owned::<AnyHeader>(text).ok()) {
        Some(AnyHeader {
            fencepost: None | Some(0),
            ..
        }) => Err(no_version),
        _ if cut => Err(ReadError::HeaderCut { place }),
        Some(AnyHeader {
            fencepost: Some(version),
            build,
        }) if version > u64::from(FORMAT_VERSION) => Err(ReadError::Newer {
            place,
            version,
            build,
        }),
        _ => header_of(text?, source),
    }
}

/// The header of a history whose version is known.
fn header_of<R: BufRead>(text: &str, source: &Source<R>) -> Result<Header, ReadError> {
    let mut header: Header = line::owned(text).map_err(|error| source.broken(&error))?;
    if !is_run_id(&header.run) {
        return Err(ReadError::Broken {
            place: source.place(0),
            message: format!(
                "`run` has to be an id of letters, digits and `-`, not {:?}",
                header.run
            ),
        });
    }
    if header.fencepost == 1 {
        version_1::complete(&mut header);
    }
    Ok(header)
}

/// Whether a run can be called so: its directory is, and no path.
fn is_run_id(run: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=RUN_MAX).contains(&run.len()) && run.bytes().all(is_plain)
}

#[cfg(test)]
mod tests;
