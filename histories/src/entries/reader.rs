//! The one reader of all formats.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::format;
use super::jepsen::Jepsen;
use super::own::Own;
use super::porcupine::Porcupine;
use super::{Entry, Format};
use crate::Header;
use crate::error::{Place, ReadError};
use crate::line::Source;
use crate::reader::Ending;

/// Whether the values of a [Jepsen](Format::Jepsen) history are pairs `[key value]`, as those of its independent keys are.
/// No other format has such pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// The first operation of a client tells, and all others have to be like it: they are pairs where its value is a
    /// vector or list of two, of which the first is no collection; that of a `cas` has to be `[key [old new]]`. A register
    /// that holds vectors of two is taken for such a history: say [`Keys::No`] for it.
    #[default]
    Guess,
    /// They are.
    Yes,
    /// They are not.
    No,
}

/// Streams a history of any format, from a file by default, plain or compressed, as its first bytes tell. It holds one
/// operation at a time, of at most 16 MiB.
pub struct Entries<R: BufRead = BufReader<File>> {
    inner: Inner<R>,
    /// The latest time so far.
    latest: u64,
    is_sorted: bool,
}

enum Inner<R: BufRead> {
    Own(Box<Own<R>>),
    Jepsen(Box<Jepsen<R>>),
    Porcupine(Box<Porcupine<R>>),
}

impl Entries {
    /// Opens a file, and finds out its format.
    ///
    /// # Errors
    /// As for [`Entries::new`], with the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Entries::start(Source::open(path.as_ref())?)
    }
}

impl<R: BufRead> Entries<R> {
    /// Finds out a stream's format.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Damaged`] when it cannot be read, [`ReadError::Empty`], and
    /// [`ReadError::Unknown`] when it is of no known format; for ours also all that can be wrong with its header.
    pub fn new(source: R) -> Result<Self, ReadError> {
        Entries::start(Source::new(source)?)
    }

    fn start(mut source: Source<R>) -> Result<Self, ReadError> {
        let place = source.file();
        let found = source.look(|start, ended| match (start, ended) {
            ([], true) => Some(None),
            (start, ended) => format::of_start(start, ended).map(Some),
        })?;
        let inner = match found {
            None => return Err(ReadError::Empty { place }),
            Some(Err(why)) => {
                let why = why.to_owned();
                return Err(ReadError::Unknown { place, why });
            }
            Some(Ok(Format::Fencepost)) => Own::start(source)
                .map(|own| Inner::Own(Box::new(own)))
                .map_err(|error| match error {
                    ReadError::Foreign { place, why } => ReadError::Unknown { place, why },
                    other => other,
                })?,
            Some(Ok(Format::PorcupineEtcd)) => Inner::Porcupine(Box::new(Porcupine::new(source))),
            Some(Ok(Format::Jepsen | Format::PorcupineKv)) => {
                Inner::Jepsen(Box::new(Jepsen::start(source)?))
            }
        };
        Ok(Entries {
            inner,
            latest: 0,
            is_sorted: true,
        })
    }

    /// Says whether values are pairs `[key value]`, before the first entry is read; formats that have no such pairs take no
    /// notice.
    #[must_use]
    pub fn with_keys(mut self, keys: Keys) -> Self {
        if let Inner::Jepsen(jepsen) = &mut self.inner {
            jepsen.set_keys(keys);
        }
        self
    }

    /// Tells, too, what ends or prolongs a hold of a lock in a history of ours without an operation that says so, before the
    /// first entry is read. These entries are `info`, belong to no operation, and have the grant that they are about:
    ///
    /// - `lost`: it may have ended from then on, for its client was told so, or has ended itself; or a lock without expiry lost a
    ///   server;
    /// - `renewed`: it was extended in the background, until its `validity`.
    ///
    /// A release that failed because the lock was gone is then one of unknown outcome, and the invocation of an extension has as
    /// its `validity` until when it was asked for.
    #[must_use]
    pub fn with_holds(mut self) -> Self {
        if let Inner::Own(own) = &mut self.inner {
            own.tell_holds();
        }
        self
    }

    /// Where the record of a history of ours does not fit itself, as far as it was read: as a fragment.
    pub fn flaw(&self) -> Option<&str> {
        match &self.inner {
            Inner::Own(own) => own.flaw(),
            Inner::Jepsen(_) | Inner::Porcupine(_) => None,
        }
    }

    /// The header of a history of ours.
    pub fn header(&self) -> Option<&Header> {
        match &self.inner {
            Inner::Own(own) => Some(own.header()),
            Inner::Jepsen(_) | Inner::Porcupine(_) => None,
        }
    }

    /// The history's format.
    pub fn format(&self) -> Format {
        match &self.inner {
            Inner::Own(_) => Format::Fencepost,
            Inner::Jepsen(jepsen) if jepsen.has_keys_apart() => Format::PorcupineKv,
            Inner::Jepsen(_) => Format::Jepsen,
            Inner::Porcupine(_) => Format::PorcupineEtcd,
        }
    }

    /// The next entry, in the order of the file. It borrows from the reader, so that it goes with the next call;
    /// [`Entry::into_owned`] keeps it.
    ///
    /// `None` when there is no other; [`Entries::ending`] then says how the history ends.
    ///
    /// # Errors
    /// When something is broken that is not merely cut off by the file's end, or an operation lacks what every operation has,
    /// with line and column; or when reading fails. After an error there is nothing more.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator's items cannot borrow from the iterator"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        let next = match &mut self.inner {
            Inner::Own(own) => own.next(),
            Inner::Jepsen(jepsen) => jepsen.next(),
            Inner::Porcupine(porcupine) => porcupine.next(),
        };
        if let Ok(Some(Entry {
            time: Some(time), ..
        })) = &next
        {
            self.is_sorted &= self.latest <= *time;
            self.latest = self.latest.max(*time);
        }
        next
    }

    /// Whether no entry so far is of an earlier time than one before it. Entries without a time stand in order.
    pub fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    /// How the history ends; `None` before [`Entries::next`] has given `None`, and after it gave an error. It counts all
    /// events that were read, also those that are no entries, such as the nemesis's.
    pub fn ending(&self) -> Option<Ending> {
        match &self.inner {
            Inner::Own(own) => own.ending(),
            Inner::Jepsen(jepsen) => jepsen.ending(),
            Inner::Porcupine(porcupine) => porcupine.ending(),
        }
    }

    /// The line in which the entry that was given last begins, counted from 1.
    pub fn line(&self) -> u64 {
        match &self.inner {
            Inner::Own(own) => own.line(),
            Inner::Jepsen(jepsen) => jepsen.line(),
            Inner::Porcupine(porcupine) => porcupine.line(),
        }
    }

    /// Where the entry that was given last begins, for whoever finds fault with it. The column is 0 in the formats where an
    /// entry has a line of its own.
    pub fn place(&self) -> Place {
        match &self.inner {
            Inner::Own(own) => own.place(),
            Inner::Jepsen(jepsen) => jepsen.place(),
            Inner::Porcupine(porcupine) => porcupine.place(),
        }
    }
}

impl<R: BufRead> fmt::Debug for Entries<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries")
            .field("format", &self.format())
            .field("place", &self.place())
            .field("ending", &self.ending())
            .finish_non_exhaustive()
    }
}
