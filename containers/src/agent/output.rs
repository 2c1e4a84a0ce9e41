//! The output of processes: pumped from a pipe into `<folder>/<process>.log`, kept while no folder is known.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use super::alarm::Alarm;
use super::{STACK, files, lock};

/// How much of the latest output is kept for whoever asks.
const TAIL: usize = 8 * 1024;

/// How much is kept for the first folder; what a server writes while it starts is a hundredth of it.
const EARLY: usize = 4 * 1024 * 1024;

/// The logs of all processes that were ever started.
#[derive(Default)]
pub struct Logs {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    folder: Option<PathBuf>,
    logs: BTreeMap<String, Arc<Log>>,
}

impl Logs {
    /// The log of the processes of this name.
    pub fn of(&self, process: &str) -> Arc<Log> {
        let mut state = lock(&self.state);
        if let Some(log) = state.logs.get(process) {
            return Arc::clone(log);
        }
        let path = state.folder.as_ref().map(|folder| path_in(folder, process));
        let log = Arc::new(Log {
            sink: Mutex::new(Sink {
                path,
                ..Sink::default()
            }),
        });
        state.logs.insert(process.to_owned(), Arc::clone(&log));
        log
    }

    /// From now on all output goes to files in `folder`, and with it what came before any folder was known.
    pub fn switch(&self, folder: &Path) -> io::Result<()> {
        files::make_folder(folder)?;
        let mut state = lock(&self.state);
        for (process, log) in &state.logs {
            lock(&log.sink).switch(path_in(folder, process))?;
        }
        state.folder = Some(folder.to_path_buf());
        Ok(())
    }

    /// The alarm of the processes of this name: the first line in which they said that somebody else laid hands on them.
    pub fn alarm(&self, process: &str) -> Option<String> {
        let log = Arc::clone(lock(&self.state).logs.get(process)?);
        let sink = lock(&log.sink);
        sink.alarm.heard().map(str::to_owned)
    }

    /// The last whole lines that the processes of this name wrote.
    pub fn tail(&self, process: &str) -> Option<String> {
        let log = Arc::clone(lock(&self.state).logs.get(process)?);
        let sink = lock(&log.sink);
        Some(last_lines(&sink.recent))
    }
}

/// Writes to the container's own log. Nobody may be reading it any more, which must not end a process's pump.
fn tell(what: impl Display) {
    let _ = writeln!(io::stderr(), "agent: {what}");
}

fn path_in(folder: &Path, process: &str) -> PathBuf {
    folder.join(format!("{process}.log"))
}

fn last_lines(recent: &[u8]) -> String {
    let from = recent.len().saturating_sub(TAIL);
    let text = String::from_utf8_lossy(&recent[from..]).into_owned();
    match text.split_once('\n') {
        Some((_, whole)) if from > 0 => whole.to_owned(),
        _ => text,
    }
}

/// Where the output of one process goes.
pub struct Log {
    sink: Mutex<Sink>,
}

impl Log {
    /// The end of a new pipe into this log. What comes out of it is logged by a thread of its own, until nobody
    /// holds the pipe any more. `alarms` are the phrases that count from now on.
    pub fn intake(self: &Arc<Self>, alarms: &[String]) -> io::Result<PipeWriter> {
        let (reader, writer) = pipe()?;
        lock(&self.sink).alarm = Alarm::new(alarms);
        let log = Arc::clone(self);
        thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || log.pump(reader))?;
        Ok(writer)
    }

    fn pump(&self, mut reader: PipeReader) {
        let mut chunk = [0; 8 * 1024];
        loop {
            match reader.read(&mut chunk) {
                Ok(0) => return,
                Ok(read) => lock(&self.sink).take(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return tell(format_args!("a process's output is lost: {error}")),
            }
        }
    }
}

#[derive(Default)]
struct Sink {
    /// Absent until a folder is known.
    path: Option<PathBuf>,
    /// Opened when there is something to write.
    file: Option<File>,
    /// What came before a folder was known.
    early: Vec<u8>,
    /// What came last, a little more than [`TAIL`] of it.
    recent: Vec<u8>,
    alarm: Alarm,
    /// How many bytes could not be kept.
    lost: usize,
}

impl Sink {
    fn take(&mut self, output: &[u8]) {
        self.alarm.listen(output);
        self.recent.extend_from_slice(output);
        if self.recent.len() > 4 * TAIL {
            self.recent.drain(..self.recent.len() - TAIL);
        }
        if self.path.is_some() {
            // A full disk must not stop the process by a full pipe: its output is dropped, and the log will say so.
            if let Err(error) = self.write(output) {
                self.lost += output.len();
                tell(format_args!(
                    "{} bytes of output are lost: {error}",
                    output.len()
                ));
            }
        } else if self.early.len() + output.len() <= EARLY {
            self.early.extend_from_slice(output);
        } else {
            self.lost += output.len();
        }
    }

    fn switch(&mut self, path: PathBuf) -> io::Result<()> {
        self.file = None;
        self.path = Some(path);
        let early = std::mem::take(&mut self.early);
        if early.is_empty() {
            return Ok(());
        }
        self.write(&early)
    }

    fn write(&mut self, output: &[u8]) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(files::append_to(path)?),
        };
        if self.lost > 0 {
            writeln!(file, "[agent: {} bytes were lost here]", self.lost)?;
            self.lost = 0;
        }
        file.write_all(output)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn output_goes_to_the_folder_of_the_moment_and_nothing_early_is_lost() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (root.path().join("1/logs"), root.path().join("2"));
        let logs = Logs::default();
        let log = logs.of("server");
        lock(&log.sink).take(b"early\n");
        logs.switch(&first).unwrap();
        lock(&log.sink).take(b"one\n");
        logs.switch(&second).unwrap();
        lock(&log.sink).take(b"two\n");
        let late = logs.of("client");
        lock(&late.sink).take(b"hello\n");
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(first.join("server.log")), "early\none\n");
        assert_eq!(read(second.join("server.log")), "two\n");
        assert_eq!(read(second.join("client.log")), "hello\n");
        assert!(
            !first.join("client.log").exists(),
            "only what wrote has a log"
        );
        assert_eq!(logs.tail("server").unwrap(), "early\none\ntwo\n");
    }

    #[test]
    fn a_tail_is_bounded_and_of_whole_lines() {
        let logs = Logs::default();
        let log = logs.of("server");
        for line in 0..10_000 {
            lock(&log.sink).take(format!("line {line}\n").as_bytes());
        }
        let tail = logs.tail("server").unwrap();
        assert!(tail.len() <= TAIL && tail.len() > TAIL - 20);
        assert!(tail.starts_with("line ") && tail.ends_with("line 9999\n"));
        assert!(lock(&log.sink).recent.len() <= 4 * TAIL);
    }

    #[test]
    fn output_that_cannot_be_written_is_dropped_and_the_log_says_so() {
        let root = tempfile::tempdir().unwrap();
        let logs = Logs::default();
        logs.switch(root.path()).unwrap();
        let log = logs.of("server");
        let path = root.path().join("server.log");
        fs::create_dir(&path).unwrap();
        lock(&log.sink).take(b"12345");
        fs::remove_dir(&path).unwrap();
        lock(&log.sink).take(b"67\n");
        let found = fs::read_to_string(path).unwrap();
        assert_eq!(found, "[agent: 5 bytes were lost here]\n67\n");
    }
}
