//! A connection to an agent: one request after another, each answered within its own bound.

use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::lines::Lines;
use super::protocol::{Command, Lookout, Reply, Request, Rule, Signal, Status};
use super::watch::Watch;

/// How long an agent may take for a request that has no bound of its own, and beyond the bound for one that has.
const SLACK: Duration = Duration::from_secs(10);

/// The pause between two looks whether the agent is known to stand still, so that its answer need not be waited for.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// What went wrong between us and an agent. The host is named as its socket is: `s1`.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Nothing answers at the socket.
    #[error(
        "host {host}: no agent answers at {} ({source}): the host is gone or not up yet; see `docker ps -a` and \
         `docker logs` of its container", socket.display()
    )]
    Unreachable {
        /// The host.
        host: String,
        /// Where it was looked for.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// This process may open no more files, connections among them.
    #[error(
        "host {host}: too many open files ({source}): raise the limit (`ulimit -n 4096`), or run fewer clients or \
         `--jobs` at once"
    )]
    TooFewDescriptors {
        /// The host.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// The agent did not answer in time. Nothing more can be asked over this connection.
    #[error("host {host}: no answer to `{request}` within {} ms", waited.as_millis())]
    TimedOut {
        /// The host.
        host: String,
        /// What was asked.
        request: String,
        /// How long the answer was waited for.
        waited: Duration,
    },
    /// The connection broke or was closed.
    #[error(
        "host {host}: the connection to the agent broke at `{request}` ({source}); the host may be gone"
    )]
    Broken {
        /// The host.
        host: String,
        /// What was asked.
        request: String,
        /// What the system said.
        source: io::Error,
    },
    /// The agent answered something that does not belong to the question: it is of another build.
    #[error(
        "host {host}: `{request}` was answered by `{answer}`: the agent is of another build than this program"
    )]
    Unexpected {
        /// The host.
        host: String,
        /// What was asked.
        request: String,
        /// What came.
        answer: String,
    },
    /// The agent says that it could not do it.
    #[error("host {host}: `{request}` failed: {error}")]
    Failed {
        /// The host.
        host: String,
        /// What was asked.
        request: String,
        /// Why not.
        error: String,
    },
}

/// A process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its process id inside the host.
    pub pid: i32,
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
}

/// A signal was sent, and this is what showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signalled {
    /// Before the first `kill`, in nanoseconds of CLOCK_MONOTONIC.
    pub sent_ns: u64,
    /// When it first showed on all of them, in nanoseconds of CLOCK_MONOTONIC.
    pub shown_ns: u64,
    /// How the processes were then.
    pub status: Status,
}

/// A command ran to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code; absent where a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Ran {
    /// How it ended and what it wrote, in one line for a message.
    pub fn said(&self) -> String {
        let ended = match self.code {
            Some(code) => format!("exit status {code}"),
            None => "killed".to_owned(),
        };
        let words = [self.stdout.trim(), self.stderr.trim()].join(" ");
        match words.trim() {
            "" => ended,
            words => format!("{ended}: {}", words.replace('\n', " | ")),
        }
    }
}

/// A connection to one host's agent. Requests are answered in order, so a slow one holds up only its own connection.
#[derive(Debug)]
pub struct Agent {
    host: String,
    lines: Lines,
    /// Set by whoever watches it, if anybody does: it stands still.
    stands_still: Arc<AtomicBool>,
}

impl Agent {
    /// Connects to the agent that listens at `socket`, whose file name is the host's name.
    pub fn connect(socket: &Path) -> Result<Agent, AgentError> {
        let host = socket.file_stem().map_or_else(
            || socket.display().to_string(),
            |stem| stem.to_string_lossy().into_owned(),
        );
        match UnixStream::connect(socket) {
            Ok(stream) => Ok(Agent {
                host,
                lines: Lines::new(stream),
                stands_still: Arc::default(),
            }),
            Err(source) if crate::error::is_limit_of_files(&source) => {
                Err(AgentError::TooFewDescriptors { host, source })
            }
            Err(source) => Err(AgentError::Unreachable {
                host,
                socket: socket.to_path_buf(),
                source,
            }),
        }
    }

    /// The same connection, over which no answer is waited for once this says that the agent stands still.
    pub fn unless(self, stands_still: Arc<AtomicBool>) -> Agent {
        Agent {
            stands_still,
            ..self
        }
    }

    /// The name of the host that this is connected to.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The process id of the agent as this process sees it; nothing where it cannot be seen.
    pub fn pid(&self) -> Option<i32> {
        self.lines.peer().filter(|pid| *pid > 0)
    }

    /// Asks whether the agent is there; answers how its threads are scheduled (`rr 1`, `nice -10, slice 0.5 ms`, `slice 0.5 ms`,
    /// `normal`), which decides how soon a pause takes hold on a busy machine. No answer within `timeout` is an error.
    pub fn hello(&mut self, timeout: Duration) -> Result<String, AgentError> {
        match self.ask(Request::Hello, timeout)? {
            Reply::Here { scheduling } => Ok(scheduling),
            other => Err(self.unexpected("hello", &other)),
        }
    }

    /// From now on the output of every process of the host goes to `<directory>/<process>.log`, a folder as the host
    /// sees it.
    pub fn log_to(&mut self, directory: &Path) -> Result<(), AgentError> {
        let directory = directory.to_path_buf();
        self.done(Request::LogTo { directory })
    }

    /// The end of what a process wrote, at most 8 KiB of whole lines, wherever its log goes.
    pub fn tail(&mut self, process: &str) -> Result<String, AgentError> {
        let process = process.to_owned();
        match self.ask(Request::Tail { process }, SLACK)? {
            Reply::Tail { text } => Ok(text),
            other => Err(self.unexpected("tail", &other)),
        }
    }

    /// Starts a process under a name; an error while one of that name lives.
    pub fn start(&mut self, process: &str, command: Command) -> Result<Started, AgentError> {
        let process = process.to_owned();
        self.started(Request::Start { process, command })
    }

    /// Starts a process again as it was started last, with its life one higher; an error while one of that name lives.
    pub fn restart(&mut self, process: &str) -> Result<Started, AgentError> {
        let process = process.to_owned();
        self.started(Request::Restart { process })
    }

    /// Sends a signal to a process and all its descendants and waits until it shows.
    pub fn signal(&mut self, process: &str, signal: Signal) -> Result<Signalled, AgentError> {
        let process = process.to_owned();
        match self.ask(Request::Signal { process, signal }, SLACK)? {
            Reply::Signalled {
                sent_ns,
                shown_ns,
                status,
            } => Ok(Signalled {
                sent_ns,
                shown_ns,
                status,
            }),
            other => Err(self.unexpected("signal", &other)),
        }
    }

    /// How a process is now; an error if none was ever started under the name.
    pub fn look(&mut self, process: &str) -> Result<Status, AgentError> {
        let process = process.to_owned();
        match self.ask(Request::Look { process }, SLACK)? {
            Reply::Status(status) => Ok(status),
            other => Err(self.unexpected("look", &other)),
        }
    }

    /// Runs a program as root to its end; it is killed if it takes longer than `timeout`.
    pub fn run<A>(&mut self, argv: A, timeout: Duration) -> Result<Ran, AgentError>
    where
        A: IntoIterator,
        A::Item: Into<String>,
    {
        let argv = argv.into_iter().map(Into::into).collect();
        let command = Command {
            argv,
            ..Command::default()
        };
        self.run_command(command, timeout)
    }

    /// Runs a command to its end. If it takes longer than `timeout` it is killed with all its descendants, has no exit
    /// code, and the last line of its standard error says so.
    pub fn run_command(&mut self, command: Command, timeout: Duration) -> Result<Ran, AgentError> {
        let timeout_ms = timeout.as_millis() as u64;
        let request = Request::Run {
            command,
            timeout_ms,
        };
        match self.ask(request, timeout + SLACK)? {
            Reply::Ran {
                code,
                stdout,
                stderr,
            } => Ok(Ran {
                code,
                stdout,
                stderr,
            }),
            other => Err(self.unexpected("run", &other)),
        }
    }

    /// Puts a file in place by an atomic rename, world-readable; its folders are made.
    pub fn put(
        &mut self,
        path: impl AsRef<Path>,
        content: impl Into<String>,
    ) -> Result<(), AgentError> {
        self.done(Request::Put {
            path: path.as_ref().to_path_buf(),
            content: content.into(),
        })
    }

    /// From now on these rules hold in the host, and no others; notices so far are forgotten, held clients let go.
    pub fn arm(&mut self, rules: Vec<Rule>) -> Result<(), AgentError> {
        self.done(Request::Arm { rules })
    }

    /// Lets the client go on that `rule` holds; does nothing where nobody is held.
    pub fn proceed(&mut self, rule: u32) -> Result<(), AgentError> {
        self.done(Request::Proceed { rule })
    }

    /// The rules that hold a client now.
    pub fn held(&mut self) -> Result<Vec<u32>, AgentError> {
        match self.ask(Request::Held, SLACK)? {
            Reply::Held { rules } => Ok(rules),
            other => Err(self.unexpected("held", &other)),
        }
    }

    /// Turns the connection into one that carries the host's notices, those since the last [`Agent::arm`] included.
    pub fn watch(self) -> Result<Watch, AgentError> {
        self.watch_and_look_out(Lookout::None)
    }

    /// As [`Agent::watch`], and the agent looks out for more for as long as this watches.
    pub fn watch_and_look_out(mut self, lookout: Lookout) -> Result<Watch, AgentError> {
        self.send(&Request::Watch { lookout }, "watch")?;
        Ok(Watch::new(self.host, self.lines))
    }

    /// For a client: it is at what `rule` names, in nanoseconds of CLOCK_MONOTONIC. Returns when it may go on, however
    /// long that takes.
    pub fn reached(
        &mut self,
        rule: u32,
        reached_ns: u64,
        invoked_ns: u64,
        op: u64,
    ) -> Result<(), AgentError> {
        let request = Request::Reached {
            rule,
            reached_ns,
            invoked_ns,
            op,
        };
        self.send(&request, "reached")?;
        let reply = self.receive("reached", None)?;
        self.expect_done("reached", reply)
    }

    fn done(&mut self, request: Request) -> Result<(), AgentError> {
        let name = name_of(&request);
        let reply = self.ask(request, SLACK)?;
        self.expect_done(&name, reply)
    }

    fn expect_done(&self, request: &str, reply: Reply) -> Result<(), AgentError> {
        match reply {
            Reply::Done => Ok(()),
            Reply::Failed { error } => Err(AgentError::Failed {
                host: self.host.clone(),
                request: request.to_owned(),
                error,
            }),
            other => Err(self.unexpected(request, &other)),
        }
    }

    fn started(&mut self, request: Request) -> Result<Started, AgentError> {
        let name = name_of(&request);
        match self.ask(request, SLACK)? {
            Reply::Started { pid, at_ns } => Ok(Started { pid, at_ns }),
            other => Err(self.unexpected(&name, &other)),
        }
    }

    fn ask(&mut self, request: Request, bound: Duration) -> Result<Reply, AgentError> {
        let name = name_of(&request);
        self.send(&request, &name)?;
        match self.receive(&name, Some(bound))? {
            Reply::Failed { error } => Err(AgentError::Failed {
                host: self.host.clone(),
                request: name,
                error,
            }),
            reply => Ok(reply),
        }
    }

    fn send(&mut self, request: &Request, name: &str) -> Result<(), AgentError> {
        let sent = serde_json::to_vec(request)
            .map_err(io::Error::other)
            .and_then(|mut line| {
                line.push(b'\n');
                self.lines.send(&line, SLACK)
            });
        sent.map_err(|source| AgentError::Broken {
            host: self.host.clone(),
            request: name.to_owned(),
            source,
        })
    }

    fn receive(&mut self, request: &str, bound: Option<Duration>) -> Result<Reply, AgentError> {
        let asked = Instant::now();
        let line = match bound {
            Some(bound) => self.line_within(bound),
            None => self.lines.next(None),
        };
        let broken = |source| AgentError::Broken {
            host: self.host.clone(),
            request: request.to_owned(),
            source,
        };
        match line.map_err(broken)? {
            Some(line) => serde_json::from_str(&line).map_err(|_| AgentError::Unexpected {
                host: self.host.clone(),
                request: request.to_owned(),
                answer: line,
            }),
            None => {
                // The answer may still come, and would then pass for that to a later question.
                self.lines.close();
                Err(AgentError::TimedOut {
                    host: self.host.clone(),
                    request: request.to_owned(),
                    waited: asked.elapsed(),
                })
            }
        }
    }

    /// The next line, if it comes in time and before the agent is known to stand still.
    fn line_within(&mut self, bound: Duration) -> io::Result<Option<String>> {
        let until = Instant::now() + bound;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.next(Some(left.min(LOOK_PAUSE)))?;
            let given_up = left <= LOOK_PAUSE || self.stands_still.load(Ordering::Relaxed);
            if line.is_some() || given_up {
                return Ok(line);
            }
        }
    }

    fn unexpected(&self, request: &str, answer: &impl fmt::Debug) -> AgentError {
        AgentError::Unexpected {
            host: self.host.clone(),
            request: request.to_owned(),
            answer: format!("{answer:?}"),
        }
    }
}

/// A request as an error names it: what it does, and to what.
fn name_of(request: &Request) -> String {
    match request {
        Request::Hello => "hello".to_owned(),
        Request::LogTo { directory } => format!("log to {}", directory.display()),
        Request::Tail { process } => format!("tail {process}"),
        Request::Start { process, .. } => format!("start {process}"),
        Request::Restart { process } => format!("restart {process}"),
        Request::Signal { process, signal } => format!("{signal:?} {process}").to_lowercase(),
        Request::Look { process } => format!("look {process}"),
        Request::Run { command, .. } => format!("run {}", command.argv.join(" ")),
        Request::Put { path, .. } => format!("put {}", path.display()),
        Request::Arm { rules } => format!("arm {} rules", rules.len()),
        Request::Proceed { rule } => format!("proceed {rule}"),
        Request::Held => "held".to_owned(),
        Request::Watch { .. } => "watch".to_owned(),
        Request::Reached { rule, .. } => format!("reached {rule}"),
    }
}
