//! Who made a thing, in a label on it: so that what the dead left can be told from what is in use.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::Error;

/// The label that all we make in Docker carries, images too; its value means nothing.
pub const LABEL: &str = "fencepost";

/// The label that names the run that a thing belongs to.
pub const LABEL_RUN: &str = "fencepost.run";

/// The label that names the process that made it: an [`Owner`].
pub const LABEL_OWNER: &str = "fencepost.owner";

/// A process, named so that no other ever has the same name: its id, when it started, the boot and the process
/// namespace in which that was. As text: `<pid>:<start>:<boot id>:<namespace>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    /// Field 22 of `/proc/<pid>/stat`, in clock ticks since the boot.
    started: u64,
    boot: String,
    /// The inode of `/proc/<pid>/ns/pid`: a process id means nothing outside its namespace.
    namespace: u64,
}

impl Owner {
    /// This process.
    ///
    /// # Errors
    /// [`Error::Io`] where `/proc` cannot be read.
    pub fn current() -> Result<Owner, Error> {
        let pid = std::process::id();
        let stat = Path::new("/proc/self/stat");
        let started = fs::read_to_string(stat).map_err(|error| Error::io(stat, error))?;
        let started = start_time(&started)
            .ok_or_else(|| Error::io(stat, std::io::ErrorKind::InvalidData.into()))?;
        Ok(Owner {
            pid,
            started,
            boot: boot_id()?,
            namespace: namespace()?,
        })
    }

    /// Reads a label's value; nothing where it is none of ours.
    pub fn parse(label: &str) -> Option<Owner> {
        let mut parts = label.split(':');
        let owner = Owner {
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            boot: parts.next().filter(|boot| !boot.is_empty())?.to_owned(),
            namespace: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// Whether the process still lives, or may: only what is proven dead is not alive, so that nobody's things are taken
    /// away under them. Proof is another boot, an id that no process has, or a start that is known and another.
    ///
    /// One in another process namespace of the same boot cannot be seen from here, and one of another user only by its
    /// id where `/proc` is mounted with `hidepid`.
    pub fn is_alive(&self) -> bool {
        match (boot_id(), namespace()) {
            (Ok(boot), _) if boot != self.boot => false,
            (Ok(_), Ok(namespace)) if namespace == self.namespace => {
                !proves_death(self.started, has_process(self.pid), || stat_of(self.pid))
            }
            _ => true,
        }
    }
}

/// What `/proc/<pid>/stat` tells of a process: its state and when it started.
#[derive(Clone, Copy, Debug)]
struct Stat {
    state: char,
    started: u64,
}

/// Whether a process that started at `started` is proven dead, by whether its id is in use (nothing where that cannot be
/// told) and what is to be read of whoever has that id now.
fn proves_death(started: u64, in_use: Option<bool>, stat: impl FnOnce() -> Option<Stat>) -> bool {
    match in_use {
        Some(false) => true,
        Some(true) | None => stat().is_some_and(|stat| {
            // One that only waits to be reaped does nothing any more.
            stat.started != started || matches!(stat.state, 'Z' | 'X')
        }),
    }
}

/// Whether a process of this id is there, which the kernel answers for those of others too, `hidepid` or not.
fn has_process(pid: u32) -> Option<bool> {
    // 0 and below would mean groups of processes.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    match kill(Pid::from_raw(pid), None) {
        Ok(()) | Err(Errno::EPERM) => Some(true),
        Err(Errno::ESRCH) => Some(false),
        Err(_) => None,
    }
}

impl Owner {
    /// Whether the machine has not been booted since.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}:{}",
            self.pid, self.started, self.boot, self.namespace
        )
    }
}

/// The labels for all that a run makes in Docker: containers, networks, volumes.
///
/// # Errors
/// [`Error::Io`] where `/proc` cannot be read.
pub fn labels(run: &str) -> Result<HashMap<String, String>, Error> {
    Ok(HashMap::from([
        (LABEL.to_owned(), "1".to_owned()),
        (LABEL_RUN.to_owned(), run.to_owned()),
        (LABEL_OWNER.to_owned(), Owner::current()?.to_string()),
    ]))
}

/// What can be read of a process; nothing where there is none, or where it is hidden.
fn stat_of(pid: u32) -> Option<Stat> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(Stat {
        state: after_name(&stat)?.trim_start().chars().next()?,
        started: start_time(&stat)?,
    })
}

/// Field 22 of a line of `/proc/<pid>/stat`, see proc_pid_stat(5).
fn start_time(stat: &str) -> Option<u64> {
    // The state, which comes first after the name, is field 3.
    after_name(stat)?
        .split_ascii_whitespace()
        .nth(22 - 3)?
        .parse()
        .ok()
}

/// What follows the name, which stands in parentheses and may hold spaces and parentheses itself.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, fields)| fields)
}

fn boot_id() -> Result<String, Error> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let id = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    Ok(id.trim().to_owned())
}

fn namespace() -> Result<u64, Error> {
    use std::os::unix::fs::MetadataExt as _;
    let path = Path::new("/proc/self/ns/pid");
    Ok(fs::metadata(path)
        .map_err(|error| Error::io(path, error))?
        .ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_reads_back() {
        let owner = Owner::current().expect("this process");
        assert_eq!(Owner::parse(&owner.to_string()), Some(owner));
    }

    #[test]
    fn what_is_no_label_of_ours_is_nothing() {
        for odd in [
            "",
            "1",
            "1:2",
            "1:2:boot",
            "1:2::3",
            "x:2:boot:3",
            "1:x:boot:3",
            "1:2:boot:3:4",
            "-1:2:boot:3",
        ] {
            assert_eq!(Owner::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_process_is_alive() {
        assert!(Owner::current().expect("this process").is_alive());
    }

    #[test]
    fn an_ended_process_is_dead() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat");
        let started = stat_of(child.id()).expect("it runs").started;
        let owner = Owner {
            pid: child.id(),
            started,
            ..Owner::current().expect("this process")
        };
        assert!(owner.is_alive());
        drop(child.stdin.take());
        child.wait().expect("its end");
        assert!(!owner.is_alive());
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("sleep");
        let started = stat_of(child.id()).expect("it runs").started;
        let owner = Owner {
            pid: child.id(),
            started,
            ..Owner::current().expect("this process")
        };
        child.kill().expect("it can be killed");
        // Waits until it is dead and leaves it unreaped.
        let id = nix::sys::wait::Id::Pid(nix::unistd::Pid::from_raw(child.id() as i32));
        let flags = nix::sys::wait::WaitPidFlag::WEXITED | nix::sys::wait::WaitPidFlag::WNOWAIT;
        nix::sys::wait::waitid(id, flags).expect("its end");
        assert!(!owner.is_alive());
        child.wait().expect("it can be reaped");
    }

    #[test]
    fn only_proof_makes_a_process_dead() {
        let stat = |state, started| Some(Stat { state, started });
        let cases = [
            // The kernel knows the id; /proc shows its owner, another, a corpse, or (hidepid) nothing.
            (Some(true), stat('S', 7), false),
            (Some(true), stat('S', 8), true),
            (Some(true), stat('Z', 7), true),
            (Some(true), None, false),
            // No process has the id, whatever /proc showed a moment ago.
            (Some(false), stat('S', 7), true),
            (Some(false), None, true),
            // The kernel does not say.
            (None, stat('S', 7), false),
            (None, stat('S', 8), true),
            (None, None, false),
        ];
        for (in_use, seen, dead) in cases {
            let found = proves_death(7, in_use, || seen);
            assert_eq!(found, dead, "in use: {in_use:?}, seen: {seen:?}");
        }
    }

    #[test]
    fn an_id_is_asked_for_and_never_a_group() {
        assert_eq!(has_process(std::process::id()), Some(true));
        assert_eq!(has_process(1), Some(true), "of another user or not");
        for odd in [0, i32::MAX as u32 + 1, u32::MAX] {
            assert_eq!(has_process(odd), None);
        }
        // Above the highest that Linux gives (PID_MAX_LIMIT).
        assert_eq!(has_process(5_000_000), Some(false));
    }

    #[test]
    fn another_process_under_the_same_id_is_not_the_owner() {
        let current = Owner::current().expect("this process");
        assert!(
            !Owner {
                started: current.started - 1,
                ..current
            }
            .is_alive()
        );
    }

    #[test]
    fn an_owner_of_another_boot_is_dead() {
        let current = Owner::current().expect("this process");
        assert!(
            !Owner {
                boot: "another".to_owned(),
                ..current
            }
            .is_alive()
        );
    }

    #[test]
    fn an_owner_that_cannot_be_seen_counts_as_alive() {
        let current = Owner::current().expect("this process");
        assert!(
            Owner {
                namespace: 1,
                started: 0,
                ..current
            }
            .is_alive()
        );
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let fields = (3..=52)
            .map(|field| field.to_string())
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(start_time(&format!("7 (a) b (c) {fields}")), Some(22));
    }
}
