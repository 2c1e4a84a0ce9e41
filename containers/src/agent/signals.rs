//! Signals to whole families of processes, each watched until it shows.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

use super::priority::Urged;
use super::proc::Stat;
use super::{monotonic_ns, proc};

/// How long a signal may take to show. A thread in an uninterruptible call stops only after it.
pub const BOUND: Duration = Duration::from_secs(5);

/// How long a thread in an uninterruptible call (`D`) is waited for. It stops before it returns to its program, so that
/// the pause has taken hold all the same; and a parent in vfork(2) may be in that state until its stopped child goes on.
const UNINTERRUPTIBLE: Duration = Duration::from_millis(100);

/// How long a family that is to be killed may take to stop before.
const STOP_BEFORE_KILL: Duration = Duration::from_millis(200);

/// The pause between two looks, at first and at most; it doubles.
const LOOK_PAUSE: Duration = Duration::from_micros(20);
const LOOK_PAUSE_MAX: Duration = Duration::from_micros(250);

/// What became of a signal.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Whether there was any process to signal.
    pub found: bool,
    /// Before the first `kill`, in nanoseconds of CLOCK_MONOTONIC.
    pub sent_ns: u64,
    /// When it first showed on every thread; `None` if it did not within the bound.
    pub shown_ns: Option<u64>,
    /// The states that were seen last.
    pub states: String,
}

/// The members of a family that have had a signal.
struct Signalled {
    root: i32,
    signal: Signal,
    /// Process id and start time of each.
    known: HashSet<(i32, u64)>,
    /// Those that are to stop have to run once more to do so.
    urged: Urged,
}

impl Signalled {
    fn new(root: i32, signal: Signal) -> Signalled {
        Signalled {
            root,
            signal,
            known: HashSet::new(),
            urged: Urged::default(),
        }
    }

    /// Signals the root alone, before anything is looked up that takes long: it is most often the whole family.
    fn root_first(&mut self) {
        if let Some(root) = proc::stat(self.root) {
            self.add(root);
        }
    }

    /// Signals those members that have not had it; whether there were any.
    fn more(&mut self) -> bool {
        let known = self.known.len();
        for member in proc::family(self.root) {
            self.add(member);
        }
        self.known.len() > known
    }

    fn add(&mut self, member: Stat) {
        if member.state == 'Z' || !self.known.insert((member.pid, member.started)) {
            return;
        }
        if self.signal == Signal::SIGSTOP {
            self.urged.add(member.pid);
        }
        send(member.pid, self.signal);
    }

    /// The states of all threads of all members. The process id of one that is gone may be another's by now.
    fn states(&self) -> String {
        let mut states = String::new();
        for (pid, started) in &self.known {
            if proc::stat(*pid).is_some_and(|process| process.started == *started) {
                proc::add_states(*pid, &mut states);
            }
        }
        states
    }
}

/// A process that is gone already needs no signal.
fn send(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// The states of all threads of a family.
pub fn states(root: i32) -> String {
    let mut states = String::new();
    for member in proc::family(root) {
        proc::add_states(member.pid, &mut states);
    }
    states
}

/// Stops a family.
///
/// A member may fork until the moment at which it stops, so that a family has stopped when all known members had, and a
/// look for others *after* that found none.
pub fn stop(root: i32) -> Shown {
    stop_within(root, BOUND).0
}

fn stop_within(root: i32, bound: Duration) -> (Shown, Signalled) {
    let sent_ns = monotonic_ns();
    let mut family = Signalled::new(root, Signal::SIGSTOP);
    family.root_first();
    let mut states = String::new();
    let mut looked_for_others = false;
    let shown_ns = poll(bound, || {
        states = family.states();
        let seen_ns = monotonic_ns();
        let patient = seen_ns - sent_ns < UNINTERRUPTIBLE.as_nanos() as u64;
        let has_stopped = |state| state == 'T' || state == 'D' && !patient;
        let stopped = states.chars().all(has_stopped);
        let any_more = (stopped || !looked_for_others) && family.more();
        looked_for_others = true;
        (stopped && !any_more).then_some(seen_ns)
    });
    let shown = Shown {
        found: !family.known.is_empty(),
        sent_ns,
        shown_ns,
        states,
    };
    (shown, family)
}

/// Lets a stopped family go on.
pub fn proceed(root: i32) -> Shown {
    let sent_ns = monotonic_ns();
    let mut family = Signalled::new(root, Signal::SIGCONT);
    family.more();
    let mut states = String::new();
    let shown_ns = poll(BOUND, || {
        states = family.states();
        let seen_ns = monotonic_ns();
        (!states.contains('T') && !family.more()).then_some(seen_ns)
    });
    Shown {
        found: !family.known.is_empty(),
        sent_ns,
        shown_ns,
        states,
    }
}

/// Kills a family. It is stopped first, so that no member does anything more once another is dead, nor forks while
/// it is being killed: as when a machine loses power.
pub fn end(root: i32) -> Shown {
    let (stopped, mut family) = stop_within(root, STOP_BEFORE_KILL);
    for (pid, _) in &family.known {
        send(*pid, Signal::SIGKILL);
    }
    family.signal = Signal::SIGKILL;
    let mut states = String::new();
    let shown_ns = poll(BOUND, || {
        states = family.states();
        let seen_ns = monotonic_ns();
        (states.is_empty() && !family.more()).then_some(seen_ns)
    });
    Shown {
        shown_ns,
        states,
        ..stopped
    }
}

/// Kills all descendants of this process, those too that come while it does, and waits for nothing.
pub fn end_descendants() {
    let own = getpid().as_raw();
    let mut known = HashSet::new();
    loop {
        let known_before = known.len();
        for member in proc::family(own) {
            if member.pid != own && known.insert((member.pid, member.started)) {
                send(member.pid, Signal::SIGKILL);
            }
        }
        if known.len() == known_before {
            return;
        }
    }
}

/// Asks a family to end, and waits for nothing.
pub fn terminate(root: i32) -> Shown {
    let sent_ns = monotonic_ns();
    let found = Signalled::new(root, Signal::SIGTERM).more();
    Shown {
        found,
        sent_ns,
        shown_ns: Some(monotonic_ns()),
        states: states(root),
    }
}

/// Asks again and again until there is an answer; `None` if that takes longer than `bound`.
fn poll<T>(bound: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + bound;
    let mut pause = LOOK_PAUSE;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LOOK_PAUSE_MAX);
    }
}
