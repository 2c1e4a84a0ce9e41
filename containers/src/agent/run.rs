//! Commands that run to their end.

use std::io::{self, PipeReader, Read, pipe};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::processes::Processes;
use super::protocol::{Command, Reply};
use super::signals;

/// How often a command with open pipes is looked at: a process that it left behind may hold them open for ever.
const LOOK: u16 = 50;

/// How much of each output is kept; the rest is read and dropped.
const KEPT: usize = 16 * 1024 * 1024;

/// Runs a command to its end, or kills it with its descendants after `timeout`.
pub fn run(processes: &Processes, command: &Command, timeout: Duration) -> io::Result<Reply> {
    let deadline = Instant::now() + timeout;
    let (stdout, stdout_end) = pipe()?;
    let (stderr, stderr_end) = pipe()?;
    let pid = processes.start_run(command, stdout_end, stderr_end)?;
    let mut outputs = [Output::new(stdout), Output::new(stderr)];
    while outputs.iter().any(|output| output.open) && Instant::now() < deadline {
        let ended = processes.has_ended(pid);
        // What it wrote before its end is in the pipes by now, so one look after the end has all of it.
        let found = read_some(&mut outputs, if ended { 0 } else { LOOK })?;
        if ended && !found {
            break;
        }
    }
    let mut end = processes.end_of_run(pid, deadline);
    let late = end.is_none();
    if late {
        signals::end(pid);
        end = processes.end_of_run(pid, Instant::now() + signals::BOUND);
    }
    let [stdout, mut stderr] = outputs.map(|output| output.text());
    if late {
        stderr.push_str(&format!("\nkilled after {} ms\n", timeout.as_millis()));
    }
    let code = end.and_then(|how| how.strip_prefix("exit ")?.parse().ok());
    Ok(Reply::Ran {
        code: code.filter(|_| !late),
        stdout,
        stderr,
    })
}

/// One output of a command.
struct Output {
    pipe: PipeReader,
    open: bool,
    read: Vec<u8>,
}

impl Output {
    fn new(pipe: PipeReader) -> Output {
        Output {
            pipe,
            open: true,
            read: Vec::new(),
        }
    }

    fn text(self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }
}

/// Waits up to `wait_ms` for output and reads it; whether there was any.
fn read_some(outputs: &mut [Output; 2], wait_ms: u16) -> io::Result<bool> {
    let mut open: Vec<&mut Output> = outputs.iter_mut().filter(|output| output.open).collect();
    let mut polled: Vec<PollFd> = open
        .iter()
        .map(|output| PollFd::new(output.pipe.as_fd(), PollFlags::POLLIN))
        .collect();
    match poll(&mut polled, PollTimeout::from(wait_ms)) {
        Ok(0) | Err(Errno::EINTR) => return Ok(false),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let ready: Vec<bool> = polled
        .iter()
        .map(|polled| polled.any().unwrap_or(false))
        .collect();
    for (output, _) in open.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
        let mut chunk = [0; 16 * 1024];
        match output.pipe.read(&mut chunk)? {
            0 => output.open = false,
            read if output.read.len() + read <= KEPT => {
                output.read.extend_from_slice(&chunk[..read]);
            }
            _ => {}
        }
    }
    Ok(true)
}
