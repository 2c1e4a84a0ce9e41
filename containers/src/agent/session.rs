//! One connection: reads requests, does them, writes replies. The Stop path lives here; nothing on it waits for anything
//! but the client's threads.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

use super::board::{Armed, Board, Position};
use super::processes::{Meant, Processes};
use super::protocol::{Action, Lookout, Notice, Reply, Request, Signal};
use super::signals::{self, Shown};
use super::{STACK, files, lookout, priority, proc, run};

/// The pause between two signs of life ([`Notice::Alive`]) of an agent that has nothing else to tell: one that is frozen is
/// known by its silence.
pub const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// The longest request: a file's content, in JSON.
const LINE: u64 = 64 * 1024 * 1024;

/// What all connections share.
pub struct Shared {
    /// The host's processes.
    pub processes: Processes,
    /// Rules and notices.
    pub board: Board,
}

/// One connection.
pub struct Session {
    shared: Arc<Shared>,
    stream: UnixStream,
    number: u64,
    scheduling: String,
}

/// What to do after a request.
enum Next {
    Answer(Reply),
    /// Another connection answers, when the client may go on.
    Silence,
    /// The connection carries notices from now on.
    Watch(Lookout),
}

impl Session {
    /// Takes over a connection; `number` is unique among connections. To be called by the thread that serves it.
    pub fn new(shared: Arc<Shared>, stream: UnixStream, number: u64) -> Session {
        Session {
            shared,
            stream,
            number,
            scheduling: priority::raise(),
        }
    }

    /// Serves the connection until the other side closes it.
    pub fn serve(mut self) -> io::Result<()> {
        let served = self.requests();
        self.shared.board.forget(self.number);
        served
    }

    fn requests(&mut self) -> io::Result<()> {
        let mut reader = BufReader::new(self.stream.try_clone()?);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut reader).take(LINE).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            if read as u64 == LINE {
                self.answer(&failed("the request is too long"))?;
                return Ok(());
            }
            let next = match serde_json::from_slice(&line) {
                Ok(request) => self.handle(request),
                Err(error) => Next::Answer(failed(format!("not a request: {error}"))),
            };
            match next {
                Next::Answer(reply) => self.answer(&reply)?,
                Next::Silence => {}
                Next::Watch(lookout) => return self.watch(reader, lookout),
            }
        }
    }

    fn answer(&mut self, reply: &Reply) -> io::Result<()> {
        self.stream.write_all(&line_of(reply)?)
    }

    fn handle(&mut self, request: Request) -> Next {
        let processes = &self.shared.processes;
        let reply = match request {
            Request::Reached {
                rule,
                reached_ns,
                invoked_ns,
                op,
            } => {
                return self.reached(rule, |stopped| Notice::Reached {
                    rule,
                    reached_ns,
                    invoked_ns,
                    op,
                    stopped_ns: stopped.and_then(|shown| shown.shown_ns),
                    states: stopped.map_or_else(String::new, |shown| shown.states.clone()),
                });
            }
            Request::Watch { lookout } => return Next::Watch(lookout),
            Request::Hello => Ok(Reply::Here {
                scheduling: self.scheduling.clone(),
            }),
            Request::LogTo { directory } => done(processes.logs.switch(&directory)),
            Request::Tail { process } => tail(processes, &process),
            Request::Start { process, command } => {
                started(processes.start(&process, Some(command)))
            }
            Request::Restart { process } => started(processes.start(&process, None)),
            Request::Signal { process, signal } => signalled(processes, &process, signal),
            Request::Look { process } => look(processes, &process),
            Request::Run {
                command,
                timeout_ms,
            } => run::run(processes, &command, Duration::from_millis(timeout_ms)).map_err(text),
            Request::Put { path, content } => done(files::put(&path, &content)),
            Request::Arm { rules } => {
                done(line_of(&Reply::Done).map(|answer| self.shared.board.arm(&rules, &answer)))
            }
            Request::Held => Ok(Reply::Held {
                rules: self.shared.board.held(),
            }),
            Request::Proceed { rule } => {
                done(line_of(&Reply::Done).map(|answer| self.shared.board.proceed(rule, &answer)))
            }
        };
        Next::Answer(reply.unwrap_or_else(failed))
    }

    fn reached(&self, rule: u32, notice: impl Fn(Option<&Shown>) -> Notice) -> Next {
        let board = &self.shared.board;
        let Some(armed) = board.armed(rule) else {
            return Next::Answer(failed(format!("rule {rule} is not armed")));
        };
        match armed.action {
            Action::Stop => return self.stop_client(armed, notice),
            Action::Tell => board.tell_of(armed, notice(None)),
            Action::Hold => {
                let held = self
                    .stream
                    .try_clone()
                    .map(|stream| board.hold(armed, notice(None), self.number, rule, stream));
                match held {
                    Ok(true) => return Next::Silence,
                    Ok(false) => {}
                    Err(error) => return Next::Answer(failed(error.to_string())),
                }
            }
        }
        Next::Answer(Reply::Done)
    }

    /// The client is whoever holds the other end of the connection, so that no table has to be asked.
    fn stop_client(&self, armed: Armed, notice: impl Fn(Option<&Shown>) -> Notice) -> Next {
        let peer = getsockopt(&self.stream, PeerCredentials).ok();
        let Some(root) = peer.and_then(|peer| proc::root_of(peer.pid())) else {
            return Next::Answer(failed("the client is not a process of this agent"));
        };
        let shown = stop(&self.shared.processes, root);
        self.shared.board.tell_of(armed, notice(Some(&shown)));
        Next::Answer(Reply::Done)
    }

    /// Writes notices by a thread of its own, while this one waits for the other side to close.
    fn watch(&self, mut reader: BufReader<UnixStream>, lookout: Lookout) -> io::Result<()> {
        let gone = Arc::new(AtomicBool::new(false));
        let mut stream = self.stream.try_clone()?;
        let (shared, reader_gone) = (Arc::clone(&self.shared), Arc::clone(&gone));
        let writer =
            thread::Builder::new()
                .stack_size(STACK)
                .spawn(move || -> io::Result<()> {
                    priority::raise();
                    let mut position = Position::default();
                    let gone = || reader_gone.load(Ordering::Relaxed);
                    while !gone() {
                        let news = shared.board.next(&mut position, ALIVE_EVERY, gone);
                        if news.is_empty() && lookout != Lookout::None {
                            stream.write_all(&line_of(&Notice::Alive)?)?;
                        }
                        for notice in news {
                            stream.write_all(&line_of(&notice)?)?;
                        }
                    }
                    Ok(())
                })?;
        let looking_out = lookout::keep(&self.shared, lookout, &gone);
        let ended = looking_out.and_then(|()| io::copy(&mut reader, &mut io::sink()).map(drop));
        gone.store(true, Ordering::Relaxed);
        self.shared.board.rouse();
        // The writer fails only by the other side's going, and then nobody is there to be told.
        let _ = writer.join();
        ended
    }
}

fn tail(processes: &Processes, process: &str) -> Result<Reply, String> {
    let text = processes.logs.tail(process);
    text.map(|text| Reply::Tail { text })
        .ok_or_else(|| "nothing was ever started under this name".to_owned())
}

fn look(processes: &Processes, process: &str) -> Result<Reply, String> {
    let states = signals::states(processes.pid_of(process)?);
    Ok(Reply::Status(processes.status(process, states)))
}

fn signalled(processes: &Processes, process: &str, signal: Signal) -> Result<Reply, String> {
    let pid = match signal {
        Signal::Stop | Signal::Continue => processes.pid_of(process)?,
        Signal::Kill | Signal::Terminate => processes.about_to_end(process)?,
    };
    let shown = match signal {
        Signal::Stop => stop(processes, pid),
        Signal::Continue => proceed(processes, pid),
        Signal::Kill => signals::end(pid),
        Signal::Terminate => signals::terminate(pid),
    };
    if signal == Signal::Kill {
        processes.await_end(pid, Instant::now() + signals::BOUND);
    }
    let status = processes.status(process, shown.states);
    let gone = match signal {
        Signal::Stop => status.states.is_empty(),
        // It may have ended by itself since.
        Signal::Continue | Signal::Terminate => !shown.found,
        Signal::Kill => false,
    };
    if gone {
        let how = status.ended.unwrap_or_else(|| "just now".to_owned());
        return Err(format!("it has ended: {how}"));
    }
    let Some(shown_ns) = shown.shown_ns else {
        let waited = signals::BOUND.as_millis();
        return Err(format!(
            "it did not show within {waited} ms; its threads are in the states `{}`",
            status.states
        ));
    };
    Ok(Reply::Signalled {
        sent_ns: shown.sent_ns,
        shown_ns,
        status,
    })
}

/// Stops a process, and notes it, so that nobody else is taken to have done it.
fn stop(processes: &Processes, pid: i32) -> Shown {
    processes.note(pid, Meant::Changes);
    let shown = signals::stop(pid);
    if shown.shown_ns.is_some() {
        processes.note(pid, Meant::Stands);
    }
    shown
}

/// Lets it go on, likewise.
fn proceed(processes: &Processes, pid: i32) -> Shown {
    processes.note(pid, Meant::Changes);
    let shown = signals::proceed(pid);
    if shown.shown_ns.is_some() {
        processes.note(pid, Meant::Runs);
    }
    shown
}

fn started(started: Result<(i32, u64), String>) -> Result<Reply, String> {
    started.map(|(pid, at_ns)| Reply::Started { pid, at_ns })
}

fn done(result: io::Result<()>) -> Result<Reply, String> {
    result.map(|()| Reply::Done).map_err(text)
}

fn text(error: io::Error) -> String {
    error.to_string()
}

fn failed(error: impl Into<String>) -> Reply {
    Reply::Failed {
        error: error.into(),
    }
}

fn line_of(message: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
