//! Writing a history as the run goes.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::WriteError;
use crate::line::LONGEST_LINE;
use crate::{Event, FORMAT_VERSION, Footer, Header};

/// How many bytes are gathered before the file gets them without being asked to.
const BLOCK: usize = 64 << 10;

/// The level of compression: zstd's own choice.
const LEVEL: i32 = zstd::DEFAULT_COMPRESSION_LEVEL;

/// Streams a history to a file or to anything else that takes bytes.
///
/// What was flushed survives the end of the process, however it ends, and reads as a truncated history. So does the
/// rest where a writer is merely dropped, unless it compresses. Only [`Writer::finish`] makes the history complete.
pub struct Writer<W: Write = File> {
    output: Output<W>,
    path: Option<PathBuf>,
    line: Vec<u8>,
    events: u64,
    /// Of every byte so far.
    digest: Sha256,
    /// Whether a write failed, perhaps within a line.
    failed: bool,
}

enum Output<W: Write> {
    Plain(BufWriter<W>),
    Zstd(zstd::Encoder<'static, BufWriter<W>>),
}

/// The header as it stands in the file.
#[derive(Serialize)]
struct StampedHeader<'a> {
    #[serde(flatten)]
    header: &'a Header,
    /// The build that wrote it: what to look for when an older build cannot read it.
    build: &'static str,
}

impl Writer<File> {
    /// Begins a history in a file, compressed if its name ends in `.zst`. A file that is there already is replaced.
    ///
    /// # Errors
    /// [`WriteError::Io`] with the path.
    pub fn create(path: impl AsRef<Path>, header: &Header) -> Result<Self, WriteError> {
        let path = path.as_ref();
        let failed = |source| WriteError::Io {
            path: Some(path.to_owned()),
            source,
        };
        let header = header_line(header).map_err(failed)?;
        let file = File::create(path).map_err(failed)?;
        Writer::begin(
            file,
            Some(path.to_owned()),
            Writer::compresses(path),
            &header,
        )
    }

    /// Whether a file of this name is compressed.
    pub(crate) fn compresses(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "zst")
    }
}

impl<W: Write> Writer<W> {
    /// Begins a history in `output`, uncompressed. The header is stamped with the version of this build's format.
    ///
    /// # Errors
    /// [`WriteError::Io`] without a path.
    pub fn new(output: W, header: &Header) -> Result<Self, WriteError> {
        let header = header_line(header).map_err(|source| WriteError::Io { path: None, source })?;
        Writer::begin(output, None, false, &header)
    }

    /// Begins a history with a header's line as it is.
    pub(crate) fn begin(
        output: W,
        path: Option<PathBuf>,
        compressed: bool,
        header: &[u8],
    ) -> Result<Self, WriteError> {
        let output = BufWriter::with_capacity(BLOCK, output);
        let output = if compressed {
            match compressing(output) {
                Ok(encoder) => Output::Zstd(encoder),
                Err(source) => return Err(WriteError::Io { path, source }),
            }
        } else {
            Output::Plain(output)
        };
        let mut writer = Writer {
            output,
            path,
            line: Vec::new(),
            events: 0,
            digest: Sha256::new(),
            failed: false,
        };
        writer.put(0, header)?;
        Ok(writer)
    }

    /// Writes one event. It is safe from a crash once it is flushed.
    ///
    /// # Errors
    /// [`WriteError::Io`], after which nothing more can be written ([`WriteError::GivenUp`]), or [`WriteError::TooLong`].
    pub fn write(&mut self, event: &Event<'_>) -> Result<(), WriteError> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let result = match serde_json::to_writer(&mut line, event) {
            Ok(()) => self.put(event.op, &line),
            Err(error) => Err(self.io(error.into())),
        };
        self.line = line;
        result.map(|()| self.events += 1)
    }

    /// Writes one event's line as it is.
    pub(crate) fn write_line(&mut self, line: &[u8]) -> Result<(), WriteError> {
        self.put(0, line).map(|()| self.events += 1)
    }

    /// How many events were written.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Hands everything that was written to the operating system; a reader finds it from then on.
    ///
    /// # Errors
    /// As for [`Writer::write`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.check()?;
        self.output.flush().map_err(|source| self.io(source))
    }

    /// Ends the history with its footer, and gives back what it was written to.
    ///
    /// # Errors
    /// As for [`Writer::write`].
    pub fn finish(mut self) -> Result<W, WriteError> {
        let footer = serde_json::to_vec(&Footer {
            events: self.events,
            sha256: Some(hexadecimal(&self.digest.clone().finalize())),
        })
        .map_err(|error| self.io(error.into()))?;
        self.put(0, &footer)?;
        let ended = match self.output {
            Output::Plain(output) => output.into_inner(),
            Output::Zstd(encoder) => match encoder.finish() {
                Ok(output) => output.into_inner(),
                Err(source) => {
                    return Err(WriteError::Io {
                        path: self.path,
                        source,
                    });
                }
            },
        };
        ended.map_err(|error| WriteError::Io {
            path: self.path,
            source: error.into_error(),
        })
    }

    /// Writes a line and its newline.
    fn put(&mut self, op: u64, line: &[u8]) -> Result<(), WriteError> {
        self.check()?;
        if line.len() > LONGEST_LINE {
            return Err(WriteError::TooLong {
                path: self.path.clone(),
                op,
                bytes: line.len(),
            });
        }
        self.digest.update(line);
        self.digest.update(b"\n");
        let written = self
            .output
            .write_all(line)
            .and_then(|()| self.output.write_all(b"\n"));
        written.map_err(|source| self.io(source))
    }

    fn check(&self) -> Result<(), WriteError> {
        if self.failed {
            Err(WriteError::GivenUp {
                path: self.path.clone(),
            })
        } else {
            Ok(())
        }
    }

    fn io(&mut self, source: io::Error) -> WriteError {
        self.failed = true;
        WriteError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

impl<W: Write> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("path", &self.path)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Plain(output) => output.write(bytes),
            Output::Zstd(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Plain(output) => output.flush(),
            Output::Zstd(output) => output.flush(),
        }
    }
}

fn header_line(header: &Header) -> io::Result<Vec<u8>> {
    let header = &Header {
        fencepost: FORMAT_VERSION,
        ..header.clone()
    };
    Ok(serde_json::to_vec(&StampedHeader {
        header,
        build: env!("CARGO_PKG_VERSION"),
    })?)
}

/// A digest as the footer spells it.
pub(crate) fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An encoder whose stream ends in a checksum, so that damage is noticed in what would still be JSON.
fn compressing<W: Write>(output: W) -> io::Result<zstd::Encoder<'static, W>> {
    let mut encoder = zstd::Encoder::new(output, LEVEL)?;
    encoder.include_checksum(true)?;
    Ok(encoder)
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;
    use crate::{Cut, Ending, Function, Kind, Reader};

    fn header() -> Header {
        let saved = include_bytes!("../corpus/v1/paused-client.jsonl");
        Reader::new(&saved[..]).unwrap().header().clone()
    }

    fn event(op: u64) -> Event<'static> {
        Event::new(op, "c1", op, Kind::Invoke, Function::Acquire)
    }

    #[test]
    fn what_was_flushed_can_be_read_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        for (name, why) in [
            ("h.jsonl", Cut::NoFooter),
            ("h.jsonl.zst", Cut::PartialStream),
        ] {
            let path = folder.path().join(name);
            let mut writer = Writer::create(&path, &header()).unwrap();
            for events in 1..10 {
                writer.write(&event(events)).unwrap();
                writer.flush().unwrap();
                let mut reader = Reader::open(&path).unwrap();
                for op in 1..=events {
                    assert_eq!(reader.next().unwrap(), Some(event(op)));
                }
                assert_eq!(reader.next().unwrap(), None);
                assert_eq!(reader.ending(), Some(Ending::Truncated { events, why }));
            }
            std::mem::forget(writer);
        }
    }

    #[test]
    fn a_full_disk_is_told_with_the_path_and_what_to_do() {
        let mut writer = Writer::create("/dev/full", &header()).unwrap();
        writer.write(&event(1)).unwrap();
        let error = writer.flush().unwrap_err();
        let remedy = "cannot write /dev/full (free some space there, or write to another place)";
        assert_eq!(error.to_string(), remedy);
        let source = error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>())
            .unwrap();
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        for error in [
            writer.write(&event(2)),
            writer.flush(),
            writer.finish().map(drop),
        ] {
            assert!(matches!(error, Err(WriteError::GivenUp { path: Some(_) })));
        }

        let writer = Writer::create("/dev/full", &header()).unwrap();
        assert_eq!(writer.finish().unwrap_err().to_string(), remedy);
        let error = Writer::create("/nowhere/h.jsonl", &header()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot write /nowhere/h.jsonl (make its folder first)"
        );
    }

    #[test]
    fn an_event_too_long_to_be_read_is_not_written() {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        let mut long = event(1);
        long.value = Some("x".repeat(LONGEST_LINE).into());
        assert!(matches!(
            writer.write(&long),
            Err(WriteError::TooLong { op: 1, .. })
        ));
        writer.write(&event(2)).unwrap();
        let bytes = writer.finish().unwrap();
        let mut reader = Reader::new(&bytes[..]).unwrap();
        assert_eq!(reader.next().unwrap(), Some(event(2)));
        assert_eq!(reader.next().unwrap(), None);
        assert_eq!(reader.ending(), Some(Ending::Complete { events: 1 }));
    }

    #[test]
    fn the_header_says_which_build_wrote_it_in_which_format() {
        let other = Header {
            fencepost: 99,
            ..header()
        };
        let bytes = Writer::new(Vec::new(), &other).unwrap().finish().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (line, footer) = text.split_once('\n').unwrap();
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(json["fencepost"], FORMAT_VERSION);
        assert_eq!(json["build"], env!("CARGO_PKG_VERSION"));
        let digest = hexadecimal(&Sha256::digest(format!("{line}\n")));
        assert_eq!(
            footer,
            format!("{{\"events\":0,\"sha256\":\"{digest}\"}}\n")
        );
    }
}
