//! What crosses an agent's Unix socket: one JSON line a [`Request`], one JSON line a [`Reply`], in order.
//!
//! Any number of connections may be open; each is served by a thread of its own, so that a slow request on one never
//! holds up another. After [`Request::Watch`] a connection carries [`Notice`]s only.
//!
//! All times are CLOCK_MONOTONIC nanoseconds of the machine, which all its containers share.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What an agent is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
pub enum Request {
    /// Are you there? Answered by [`Reply::Here`].
    Hello,
    /// From now on the output of every process goes to `<directory>/<process>.log`.
    LogTo {
        /// A folder as the host sees it.
        directory: PathBuf,
    },
    /// What did a process write last? Answered by [`Reply::Tail`].
    Tail {
        /// Its name.
        process: String,
    },
    /// Start a process under a name; refused while one of that name lives. Answered by [`Reply::Started`].
    Start {
        /// The name by which other requests mean it: `server`, `client`, or a fault's helper.
        process: String,
        /// What to start.
        command: Command,
    },
    /// Start a process again, as it was started last, with `FENCEPOST_LIFE` one higher. Answered by [`Reply::Started`].
    Restart {
        /// Its name.
        process: String,
    },
    /// Send a signal to a process and all its descendants, and wait until it shows. Answered by [`Reply::Signalled`].
    Signal {
        /// Its name.
        process: String,
        /// The signal.
        signal: Signal,
    },
    /// How is a process? Answered by [`Reply::Status`].
    Look {
        /// Its name.
        process: String,
    },
    /// Run a command to its end inside the host. Answered by [`Reply::Ran`].
    Run {
        /// What to run.
        command: Command,
        /// When to kill it and all its descendants, in milliseconds. It then has no exit code, and the last line of its
        /// standard error says so.
        timeout_ms: u64,
    },
    /// Put a file in place by an atomic rename; folders are made. Answered by [`Reply::Done`].
    Put {
        /// Where, as the host sees it.
        path: PathBuf,
        /// What it holds.
        content: String,
    },
    /// From now on these rules hold, and no others. Answered by [`Reply::Done`].
    Arm {
        /// The rules, found by their `rule`.
        rules: Vec<Rule>,
    },
    /// Let the client go on that [`Action::Hold`] holds. Answered by [`Reply::Done`], also where nobody is held.
    Proceed {
        /// The rule that holds it.
        rule: u32,
    },
    /// Which rules hold a client now? Answered by [`Reply::Held`].
    Held,
    /// From now on this connection carries the host's [`Notice`]s, those since the last [`Request::Arm`] included.
    Watch {
        /// What the agent looks out for, for as long as this watches, beside what it learns anyhow.
        lookout: Lookout,
    },
    /// By a client: it is at what `rule` names. Answered by [`Reply::Done`] when it may go on.
    Reached {
        /// The rule.
        rule: u32,
        /// When the client got there.
        reached_ns: u64,
        /// When the operation whose completion this is was invoked; `reached_ns` itself for a point.
        invoked_ns: u64,
        /// The operation, in the client's own numbering.
        op: u64,
    },
}

/// A program with all that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments. The program `fencepost` is our own, started through its own loader.
    pub argv: Vec<String>,
    /// Added to the agent's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The user to run as, root if absent.
    #[serde(default)]
    pub user: Option<String>,
    /// What its output says when somebody else has laid hands on it: any of these in a line is a [`Notice::Touched`].
    #[serde(default)]
    pub alarms: Vec<String>,
}

/// The signals that faults need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// SIGSTOP; shows as state `T` of every thread. One in an uninterruptible call (`D`) is waited for 100 ms: it stops
    /// before it returns to its program.
    Stop,
    /// SIGCONT; shows as no state `T`.
    Continue,
    /// SIGKILL; shows as gone.
    Kill,
    /// SIGTERM; not waited for.
    Terminate,
}

/// What a client and its agent do when the client reaches something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Names the rule, unique in a host.
    pub rule: u32,
    /// What the client has to reach.
    pub at: At,
    /// What the agent does then.
    pub action: Action,
}

/// What a client can reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// A named point of its nth grant, counted from 1; reached once.
    Point {
        /// The point.
        point: String,
        /// The grant.
        nth_grant: u64,
    },
    /// The completion of any operation of this kind; reached again and again, and the client never waits.
    Event {
        /// The function, as in the history.
        f: String,
        /// The completion, as in the history.
        outcome: String,
    },
}

/// What an agent does when its client reaches something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// SIGSTOP the client before it is answered, then send the notice.
    Stop,
    /// Send the notice; answer the client at [`Request::Proceed`].
    Hold,
    /// Send the notice and answer at once.
    Tell,
}

/// What an agent answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reply")]
pub enum Reply {
    /// It was done.
    Done,
    /// It is there.
    Here {
        /// How the agent's threads are scheduled: `rr 1` (real time), `nice -10, slice 0.5 ms`, `slice 0.5 ms` or `normal`.
        scheduling: String,
    },
    /// The end of what a process wrote.
    Tail {
        /// At most 8 KiB, of whole lines.
        text: String,
    },
    /// A process was started.
    Started {
        /// Its process id inside the host.
        pid: i32,
        /// When.
        at_ns: u64,
    },
    /// A signal was sent.
    Signalled {
        /// Before the first `kill`.
        sent_ns: u64,
        /// When it first showed on all of them.
        shown_ns: u64,
        /// How the processes are now.
        status: Status,
    },
    /// Whom [`Action::Hold`] keeps waiting now.
    Held {
        /// The rules by which, in the order in which the clients came.
        rules: Vec<u32>,
    },
    /// How a process is.
    Status(Status),
    /// A command ran.
    Ran {
        /// Its exit code; absent where a signal ended it.
        code: Option<i32>,
        /// What it wrote to standard output.
        stdout: String,
        /// What it wrote to standard error.
        stderr: String,
    },
    /// It could not be done.
    Failed {
        /// What, and why.
        error: String,
    },
}

/// How a process and its descendants are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The process id inside the host, of the last one started under the name.
    pub pid: Option<i32>,
    /// The states of all its threads and those of its descendants, as in `/proc/<pid>/stat`, one letter each: `TTT`.
    /// Empty when it is gone.
    pub states: String,
    /// How it ended: `exit 0`, `signal 9`.
    pub ended: Option<String>,
}

/// What an agent looks out for because somebody watches for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lookout {
    /// Nothing.
    None,
    /// Processes that stand still or go on where they should not, or give the alarm, so that there is a
    /// [`Notice::Touched`].
    Stops,
    /// These, and the host's own heartbeat, so that there are [`Notice::Stalled`] too.
    StopsAndStalls,
}

/// What somebody else did to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// It was stopped.
    Stopped,
    /// It goes on, though this agent has stopped it.
    Proceeds,
    /// It says so itself, in this line of its output.
    Alarm(String),
}

/// What an agent tells whoever watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "notice")]
pub enum Notice {
    /// A client reached what a rule names.
    Reached {
        /// The rule.
        rule: u32,
        /// When the client got there.
        reached_ns: u64,
        /// When the operation was invoked.
        invoked_ns: u64,
        /// The operation.
        op: u64,
        /// With [`Action::Stop`]: when state `T` first showed on every thread of the client.
        stopped_ns: Option<u64>,
        /// With [`Action::Stop`]: the states that were seen then.
        states: String,
    },
    /// The agent is there, and there was nothing to tell for a while. Told to those for whom it looks out.
    Alive,
    /// A process ended.
    Ended {
        /// Its name.
        process: String,
        /// Its `FENCEPOST_LIFE`.
        life: u32,
        /// When it was reaped.
        at_ns: u64,
        /// How: `exit 0`, `signal 9`.
        ended: String,
        /// Whether this agent was asked to end it ([`Signal::Kill`], [`Signal::Terminate`]). What ends without that
        /// ended by itself or was killed from outside, be its host the target of a planned fault or not.
        asked: bool,
    },
    /// Somebody else than this agent laid hands on a process, or on one that it has started. It is told once.
    Touched {
        /// Its name.
        process: String,
        /// When that was seen.
        at_ns: u64,
        /// What was done to it.
        touch: Touch,
    },
    /// The agent's heartbeat came late: the host stood still, or was starved.
    Stalled {
        /// When the heartbeat came.
        at_ns: u64,
        /// How long there had been none.
        stalled_ns: u64,
    },
}
