//! Lines over a Unix socket, each waited for within a bound.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

/// How much is read from the socket at a time.
const CHUNK: usize = 16 * 1024;

/// See the module. A wait that takes too long loses nothing what came of a line that is not whole yet.
#[derive(Debug)]
pub struct Lines {
    stream: UnixStream,
    /// What came and was not handed out.
    pending: Vec<u8>,
    /// How much of `pending` is known to hold no end of line.
    searched: usize,
}

impl Lines {
    /// Lines over this socket.
    pub fn new(stream: UnixStream) -> Lines {
        Lines {
            stream,
            pending: Vec::new(),
            searched: 0,
        }
    }

    /// The process id of the other side; 0 where it is in a namespace that cannot be seen from here.
    pub fn peer(&self) -> Option<i32> {
        let credentials = getsockopt(&self.stream, PeerCredentials).ok()?;
        Some(credentials.pid())
    }

    /// Sends a line, which ends as a line does; an error if it is not taken within `bound`.
    pub fn send(&mut self, line: &[u8], bound: Duration) -> io::Result<()> {
        self.stream.set_write_timeout(Some(bound))?;
        self.stream.write_all(line)
    }

    /// The next line without its end; `None` if it was not whole within `bound`.
    pub fn next(&mut self, bound: Option<Duration>) -> io::Result<Option<String>> {
        let until = bound.map(|bound| Instant::now() + bound);
        loop {
            if let Some(line) = self.whole_line() {
                return String::from_utf8(line).map(Some).map_err(io::Error::other);
            }
            if !self.readable(until)? {
                return Ok(None);
            }
            let mut chunk = [0; CHUNK];
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.pending.extend_from_slice(&chunk[..read]),
            }
        }
    }

    fn whole_line(&mut self) -> Option<Vec<u8>> {
        let fresh = &self.pending[self.searched..];
        let Some(at) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.pending.len();
            return None;
        };
        let rest = self.pending.split_off(self.searched + at + 1);
        let mut line = std::mem::replace(&mut self.pending, rest);
        self.searched = 0;
        line.pop();
        Some(line)
    }

    /// Waits until there is something to read; false when that took too long.
    fn readable(&self, until: Option<Instant>) -> io::Result<bool> {
        loop {
            let timeout = match until {
                None => PollTimeout::NONE,
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    // Rounded up, so that the last millisecond is not spent in a busy loop.
                    let ms = left.as_micros().div_ceil(1000);
                    PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX)
                }
            };
            let mut polled = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, timeout) {
                Ok(0) if until.is_some_and(|until| Instant::now() >= until) => return Ok(false),
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Closes the socket, so that nothing more can be sent or received.
    pub fn close(&self) {
        // A socket that is gone already is as closed as it can be.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
