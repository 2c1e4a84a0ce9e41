//! Writes the history as the run goes: gathers what the clients append to their files and what the nemesis tells.
//!
//! The lines land in `history.jsonl` within [`INTERVAL`] of being recorded and only roughly in order; the file is put
//! in order and closed when the run ends. Until then it reads as a history that a crash cut short, which is what it is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use histories::{Event, Function, Header, Kind, Writer, host_of};

use super::competition::Competition;

/// How often the clients' files are looked at.
const INTERVAL: Duration = Duration::from_millis(5);

/// Records one run.
pub struct Recorder {
    events: mpsc::Sender<Event<'static>>,
    seen: Arc<Mutex<Seen>>,
    finishing: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

/// What the clients have done so far.
#[derive(Default)]
struct Seen {
    /// Accepted writes, by host.
    accepted: BTreeMap<String, u64>,
    competition: Competition,
}

impl Seen {
    fn take_in(&mut self, event: &Event<'_>) {
        if event.kind == Kind::Ok && event.f == Function::Write {
            let host = host_of(&event.process).to_owned();
            *self.accepted.entry(host).or_default() += 1;
        }
        self.competition.take_in(event);
    }
}

impl Recorder {
    /// Begins `history.jsonl` with its header and follows the clients' files from now on.
    pub fn start(history: &Path, header: &Header, client_files: &[PathBuf]) -> Result<Recorder> {
        let mut writer = Writer::create(history, header)?;
        writer.flush()?;
        let tails = client_files
            .iter()
            .map(|path| Tail::open(path))
            .collect::<Result<Vec<_>>>()?;
        let (events, told) = mpsc::channel();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let finishing = Arc::new(AtomicBool::new(false));
        let failed = Arc::new(AtomicBool::new(false));
        let thread = {
            let (seen, finishing, failed) = (seen.clone(), finishing.clone(), failed.clone());
            std::thread::Builder::new()
                .name("recorder".into())
                .spawn(move || {
                    let result = record(writer, tails, &told, &seen, &finishing);
                    failed.store(result.is_err(), Ordering::SeqCst);
                    result
                })
                .context("start the recorder's thread")?
        };
        Ok(Recorder {
            events,
            seen,
            finishing,
            failed,
            thread,
        })
    }

    /// Where others hand in events of their own.
    pub fn sink(&self) -> mpsc::Sender<Event<'static>> {
        self.events.clone()
    }

    /// How many accepted writes each client host has recorded so far: its completed rounds.
    pub fn rounds(&self) -> BTreeMap<String, u64> {
        self.seen().accepted.clone()
    }

    /// Whether two clients have competed for a lock by now.
    pub fn competed(&self) -> bool {
        self.seen().competition.took_place()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether recording has stopped on an error, which [`Recorder::finish`] then returns.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Takes in all that was recorded until now and stops.
    pub fn finish(self) -> Result<()> {
        self.finishing.store(true, Ordering::SeqCst);
        drop(self.events);
        self.thread
            .join()
            .map_err(|_| anyhow!("the recorder's thread panicked"))?
    }
}

fn record(
    mut writer: Writer,
    mut tails: Vec<Tail>,
    told: &mpsc::Receiver<Event<'static>>,
    seen: &Mutex<Seen>,
    finishing: &AtomicBool,
) -> Result<()> {
    loop {
        // Read before the files are, so that the last pass sees all that was there when it was asked to finish.
        let last = finishing.load(Ordering::SeqCst);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        for event in told.try_iter() {
            seen.take_in(&event);
            writer.write(&event)?;
        }
        for tail in &mut tails {
            tail.follow(|event| {
                seen.take_in(event);
                writer.write(event).map_err(Into::into)
            })?;
        }
        drop(seen);
        writer.flush()?;
        if last {
            return Ok(());
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Follows a file that grows by whole lines, as `tail -f` does.
struct Tail {
    path: PathBuf,
    reader: BufReader<File>,
    line: Vec<u8>,
}

impl Tail {
    fn open(path: &Path) -> Result<Tail> {
        let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
        Ok(Tail {
            path: path.to_owned(),
            reader: BufReader::new(file),
            line: Vec::new(),
        })
    }

    /// Hands on every event that has become whole since the last call; the beginning of a line stays for the next.
    fn follow(&mut self, mut each: impl FnMut(&Event<'_>) -> Result<()>) -> Result<()> {
        loop {
            self.reader
                .read_until(b'\n', &mut self.line)
                .with_context(|| format!("read {}", self.path.display()))?;
            if self.line.last() != Some(&b'\n') {
                return Ok(());
            }
            // Without its newline, so that a torn string ends early and not with a letter that it may not have.
            match serde_json::from_slice(self.line.trim_ascii_end()) {
                Ok(event) => each(&event)?,
                // A client that is killed while it writes leaves the beginning of a line, which its next life ends.
                Err(error) if error.is_eof() => {
                    tracing::warn!(
                        "{} has a line that its writer did not live to end",
                        self.path.display()
                    );
                }
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!("an event in {} can't be read", self.path.display())
                    });
                }
            }
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn line(t: u64, kind: Kind, f: Function) -> String {
        serde_json::to_string(&Event::new(t, "c1.2", 7, kind, f)).unwrap() + "\n"
    }

    #[test]
    fn gathers_clients_and_nemesis_and_counts_accepted_writes() {
        let folder = tempfile::tempdir().unwrap();
        let (history, part) = (
            folder.path().join("history.jsonl"),
            folder.path().join("c1.jsonl"),
        );
        let mut client = File::create(&part).unwrap();
        let recorder = Recorder::start(
            &history,
            &crate::runner::tests::header(),
            std::slice::from_ref(&part),
        )
        .unwrap();

        client
            .write_all(line(1, Kind::Invoke, Function::Write).as_bytes())
            .unwrap();
        let whole = line(3, Kind::Ok, Function::Write);
        let (begin, end) = whole.split_at(10);
        client.write_all(begin.as_bytes()).unwrap();
        recorder
            .sink()
            .send(Event::new(
                2,
                histories::NEMESIS,
                1,
                Kind::Invoke,
                Function::Inject,
            ))
            .unwrap();
        client.write_all(end.as_bytes()).unwrap();
        client.write_all(b"{\"t\":4,\"process\":\"c1\n").unwrap();
        let rounds = {
            let sink = recorder.sink();
            drop(sink);
            let seen = recorder.seen.clone();
            recorder.finish().unwrap();
            seen.lock().unwrap().accepted.clone()
        };

        assert_eq!(rounds, BTreeMap::from([("c1".to_owned(), 1)]));
        let text = std::fs::read_to_string(&history).unwrap();
        assert_eq!(
            text.lines().count(),
            4,
            "a header and three events:\n{text}"
        );
    }
}
