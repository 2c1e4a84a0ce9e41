//! Standard output and standard error, whose readers may go away at any time: that never ends a call early, and never
//! makes its status better. Nothing that they get is obeyed by a terminal but our own newlines and colours: what is
//! shown goes through a [`Page`] or [`visible`].

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use histories::visible;
use nix::errno::Errno;
use nix::sys::stat::{SFlag, fstat};

use crate::exit::Exit;
use crate::report::Page;

/// The first failure of standard output. Nothing is written to it afterwards: a result with a gap is none.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// See [`has_hung_up`].
static HUNG_UP: AtomicBool = AtomicBool::new(false);

/// Writes a line of a result to standard output.
pub fn say(line: impl Into<Page>) {
    let line = line.into().into_text() + "\n";
    // What could not be written is remembered.
    let _ = Results.write_all(line.as_bytes());
}

/// Writes a line to standard error, which nobody has to read.
pub fn tell(line: impl Display) {
    tried(writeln!(io::stderr(), "{}", visible(&line.to_string())));
}

/// Standard error for lines of the log, each of which comes as a whole.
pub struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        tell(String::from_utf8_lossy(line).trim_end());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Heeds what became of writing to standard error.
pub fn tried(written: io::Result<()>) {
    if let Err(error) = written {
        heed_hang_up(&error, io::stderr());
    }
}

/// Whether nobody gets any more of the result.
fn is_lost() -> bool {
    LOST.get().is_some()
}

/// Whether a terminal that was written to is gone.
pub fn has_hung_up() -> bool {
    HUNG_UP.load(Ordering::Relaxed)
}

/// The status that the output itself leads to. A reader that went away had what it wanted; a terminal that is gone takes
/// its user along; anything else, such as a full disk, keeps a result from those who wait for it.
pub fn status() -> Exit {
    match LOST.get() {
        _ if has_hung_up() => Exit::Interrupted,
        None => Exit::Kept,
        Some(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Kept,
        Some(error) => {
            tell(format_args!("fencepost: write to standard output: {error}"));
            Exit::Unavailable
        }
    }
}

/// Standard output as a writer that never fails.
pub struct Results;

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !is_lost() {
            let mut output = io::stdout().lock();
            heed_loss(output.write_all(bytes).and_then(|()| output.flush()));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Heeds what became of writing to standard output.
pub fn heed_loss(written: io::Result<()>) {
    if let Err(error) = written {
        heed_hang_up(&error, io::stdout());
        // Only the first failure counts.
        let _ = LOST.set(error);
    }
}

fn heed_hang_up(error: &io::Error, stream: impl AsFd) {
    // A terminal that has hung up is no terminal any more to isatty(3), but still a device; a file has a bad disk.
    let is_device = || {
        let kind = |mode| SFlag::from_bits_truncate(mode) & SFlag::S_IFMT;
        fstat(stream).is_ok_and(|stat| kind(stat.st_mode) == SFlag::S_IFCHR)
    };
    if error.raw_os_error() == Some(Errno::EIO as i32) && is_device() {
        HUNG_UP.store(true, Ordering::Relaxed);
    }
}
