//! The processes of a host: those with a name, commands that run to their end, and orphans. All are reaped here.

use std::collections::HashMap;
use std::io::{self, PipeWriter};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use super::output::Logs;
use super::proc;
use super::protocol::{Command, Notice, Status};
use super::spawn::Spawner;
use super::{ENV_AGENT, ENV_LIFE, lock, monotonic_ns};

/// How a process ended, and when it was reaped.
#[derive(Clone, Debug)]
struct End {
    how: String,
}

/// A name and what was started under it last.
struct Named {
    command: Command,
    life: u32,
    pid: i32,
    /// Whether this life was to be ended.
    asked: bool,
    meant: Meant,
    /// How often that changed.
    changes: u64,
    end: Option<End>,
}

/// What this agent means a process to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// It runs.
    Runs,
    /// It is being stopped or let go on.
    Changes,
    /// It stands still.
    Stands,
}

/// A process that is meant to run, or to stand still. It is equal to one seen before if this agent has not touched it
/// since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its name.
    pub name: String,
    /// Its process id.
    pub pid: i32,
    /// Whether it is meant to stand still.
    pub stands: bool,
    changes: u64,
}

#[derive(Default)]
struct Table {
    named: HashMap<String, Named>,
    /// Commands that run to their end, by process id, and how they ended.
    runs: HashMap<i32, Option<End>>,
}

/// The processes of a host.
pub struct Processes {
    /// Excludes starting and reaping: a child must not be reaped before it is in the table, nor before the library that
    /// started it knows whether the program could be executed. It may be held for as long as a start takes, so that
    /// nothing that only asks or signals takes it.
    births_and_deaths: Mutex<()>,
    table: Mutex<Table>,
    ended: Condvar,
    spawner: Spawner,
    socket: PathBuf,
    /// Their output.
    pub logs: Logs,
}

impl Processes {
    /// No processes yet; those to come find their agent at `socket`.
    pub fn new(socket: PathBuf) -> io::Result<Processes> {
        Ok(Processes {
            births_and_deaths: Mutex::default(),
            table: Mutex::default(),
            ended: Condvar::new(),
            spawner: Spawner::new()?,
            socket,
            logs: Logs::default(),
        })
    }

    /// Starts a process under a name for its first life, or, without a command, what was started under it last for one
    /// more; its process id, and when.
    pub fn start(&self, name: &str, command: Option<Command>) -> Result<(i32, u64), String> {
        check_name(name)?;
        let _exclusive = lock(&self.births_and_deaths);
        let (command, life) = {
            let table = lock(&self.table);
            let last = table.named.get(name);
            if let Some(last) = last.filter(|last| last.end.is_none()) {
                return Err(format!("it runs already, as process {}", last.pid));
            }
            match (command, last) {
                (Some(command), _) => (command, 1),
                (None, Some(last)) => (last.command.clone(), last.life + 1),
                (None, None) => return Err("nothing was ever started under this name".to_owned()),
            }
        };
        let log = self.logs.of(name);
        let (stdout, stderr) = log.intake(&command.alarms).and_then(twice).map_err(text)?;
        let more = [
            (ENV_AGENT, self.socket.display().to_string()),
            (ENV_LIFE, life.to_string()),
        ];
        let at_ns = monotonic_ns();
        let pid = self
            .spawner
            .start(&command, &more, stdout, stderr)
            .map_err(text)?;
        let started = Named {
            command,
            life,
            pid,
            asked: false,
            meant: Meant::Runs,
            changes: 0,
            end: None,
        };
        lock(&self.table).named.insert(name.to_owned(), started);
        Ok((pid, at_ns))
    }

    /// Starts a command that runs to its end; its process id. Its end has to be fetched by [`Processes::end_of_run`].
    pub fn start_run(
        &self,
        command: &Command,
        stdout: PipeWriter,
        stderr: PipeWriter,
    ) -> io::Result<i32> {
        let _exclusive = lock(&self.births_and_deaths);
        let more = [(ENV_AGENT, self.socket.display().to_string())];
        let pid = self.spawner.start(command, &more, stdout, stderr)?;
        lock(&self.table).runs.insert(pid, None);
        Ok(pid)
    }

    /// Whether the command has ended.
    pub fn has_ended(&self, pid: i32) -> bool {
        !matches!(lock(&self.table).runs.get(&pid), Some(None))
    }

    /// Waits until the command has ended and forgets it; how it ended, or `None` if that takes until `deadline`.
    pub fn end_of_run(&self, pid: i32, deadline: Instant) -> Option<String> {
        let mut table = lock(&self.table);
        loop {
            if let Some(Some(end)) = table.runs.get(&pid) {
                let how = end.how.clone();
                table.runs.remove(&pid);
                return Some(how);
            }
            table = self.wait(table, deadline)?;
        }
    }

    /// The process id of what was started last under a name.
    pub fn pid_of(&self, name: &str) -> Result<i32, String> {
        let table = lock(&self.table);
        let named = table.named.get(name);
        named
            .map(|named| named.pid)
            .ok_or_else(|| "nothing was ever started under this name".to_owned())
    }

    /// The process id of what was started last under a name, whose end is about to be brought about.
    pub fn about_to_end(&self, name: &str) -> Result<i32, String> {
        let pid = self.pid_of(name)?;
        if let Some(named) = lock(&self.table).named.get_mut(name) {
            named.asked = true;
        }
        Ok(pid)
    }

    /// Notes what this agent means a process to do from now on.
    pub fn note(&self, pid: i32, meant: Meant) {
        let mut table = lock(&self.table);
        let mut named = table.named.values_mut();
        if let Some(named) = named.find(|named| named.pid == pid && named.end.is_none()) {
            named.meant = meant;
            named.changes += 1;
        }
    }

    /// The processes with a name that are left as they are, and not asked to end.
    pub fn left(&self) -> Vec<Left> {
        let table = lock(&self.table);
        let named = table.named.iter();
        named
            .filter(|(_, named)| named.end.is_none() && !named.asked)
            .filter(|(_, named)| named.meant != Meant::Changes)
            .map(|(name, named)| Left {
                name: name.clone(),
                pid: named.pid,
                stands: named.meant == Meant::Stands,
                changes: named.changes,
            })
            .collect()
    }

    /// How a process and its descendants are, given their states.
    pub fn status(&self, name: &str, states: String) -> Status {
        let table = lock(&self.table);
        let named = table.named.get(name);
        Status {
            pid: named.map(|named| named.pid),
            states,
            ended: named.and_then(|named| named.end.as_ref().map(|end| end.how.clone())),
        }
    }

    /// Waits until the process is known to have ended; false if that takes until `deadline`.
    pub fn await_end(&self, pid: i32, deadline: Instant) -> bool {
        let mut table = lock(&self.table);
        let lives = |table: &Table| {
            let mut named = table.named.values();
            named.any(|named| named.pid == pid && named.end.is_none())
        };
        while lives(&table) {
            match self.wait(table, deadline) {
                Some(again) => table = again,
                None => return false,
            }
        }
        true
    }

    /// Waits for the next end of any process; `None` if that takes until `deadline`.
    fn wait<'a>(
        &self,
        table: std::sync::MutexGuard<'a, Table>,
        deadline: Instant,
    ) -> Option<std::sync::MutexGuard<'a, Table>> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return None;
        }
        let waited = self.ended.wait_timeout(table, left);
        Some(waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0)
    }

    /// Reaps every child that has ended; a notice for each that had a name.
    pub fn reap(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        while let Some((pid, how)) = next_ended() {
            let _exclusive = lock(&self.births_and_deaths);
            let mut table = lock(&self.table);
            let end = End { how };
            let at_ns = monotonic_ns();
            if let Some(run) = table.runs.get_mut(&pid) {
                *run = Some(end.clone());
            }
            let mut named = table.named.iter_mut();
            if let Some((name, named)) =
                named.find(|(_, named)| named.pid == pid && named.end.is_none())
            {
                notices.push(Notice::Ended {
                    process: name.clone(),
                    life: named.life,
                    at_ns,
                    ended: end.how.clone(),
                    asked: named.asked,
                });
                named.end = Some(end);
            }
            // Only now may its process id go to another: the table has it as ended. A failure means that the library
            // that started it has reaped it, as its program could not be executed.
            let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
            self.ended.notify_all();
        }
        notices
    }
}

/// A child that has ended and is still there, and how it ended.
fn next_ended() -> Option<(i32, String)> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    loop {
        return match waitid(Id::All, flags) {
            Ok(WaitStatus::Exited(pid, code)) => Some((pid.as_raw(), format!("exit {code}"))),
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                Some((pid.as_raw(), format!("signal {}", signal as i32)))
            }
            Ok(_) | Err(Errno::ECHILD) => None,
            Err(Errno::EINTR) => continue,
            // A real-time signal ended it, for which the library has no name.
            Err(_) => proc::ended_child().map(|pid| (pid, "signal of real time".to_owned())),
        };
    }
}

/// A name is part of a file's name.
fn check_name(name: &str) -> Result<(), String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(allowed) {
        return Err(format!(
            "`{name}` is no name for a process: letters, digits, `-`, `_` and `.` only"
        ));
    }
    Ok(())
}

fn twice(writer: PipeWriter) -> io::Result<(PipeWriter, PipeWriter)> {
    Ok((writer.try_clone()?, writer))
}

fn text(error: io::Error) -> String {
    error.to_string()
}
