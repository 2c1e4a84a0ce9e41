//! What `/proc` says about processes: who descends from whom, and in which state each thread is.

use std::collections::HashSet;
use std::fs;

use nix::unistd::getpid;

/// A process as `/proc/<pid>/stat` shows it (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its process id.
    pub pid: i32,
    /// Its state: `R`, `S`, `D`, `T`, `t`, `Z`, …
    pub state: char,
    /// Its parent's process id.
    pub parent: i32,
    /// Its session.
    pub session: i32,
    /// When it started, in clock ticks since boot; with `pid` it means one process for ever.
    pub started: u64,
}

/// Reads one process; `None` when it is gone.
pub fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name stands in parentheses and may hold anything, parentheses too: the fields begin after the last one.
fn parse(line: &str) -> Option<Stat> {
    let (pid, rest) = line.split_once(" (")?;
    let fields: Vec<&str> = rest.rsplit_once(") ")?.1.split(' ').collect();
    Some(Stat {
        pid: pid.parse().ok()?,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// All processes.
fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(stat)
        .collect()
}

/// `root`, all its descendants, and whoever is left in the session that it leads: a child whose parent has died no longer
/// descends from it. Groups would not do, as the processes of a Postgres each lead one of their own.
pub fn family(root: i32) -> Vec<Stat> {
    let all = all();
    let mut members: HashSet<i32> = all
        .iter()
        .filter(|process| process.pid == root || process.session == root)
        .map(|process| process.pid)
        .collect();
    loop {
        let known = members.len();
        for process in &all {
            if members.contains(&process.parent) {
                members.insert(process.pid);
            }
        }
        if members.len() == known {
            break;
        }
    }
    all.into_iter()
        .filter(|process| members.contains(&process.pid))
        .collect()
}

/// The process that this agent started and from which `pid` descends, or which it is.
pub fn root_of(pid: i32) -> Option<i32> {
    let own = getpid().as_raw();
    let mut process = stat(pid)?;
    while process.parent != own {
        process = stat(process.parent)?;
    }
    Some(process.pid)
}

/// A child of this agent that has ended and was not reaped.
pub fn ended_child() -> Option<i32> {
    let own = getpid().as_raw();
    all()
        .into_iter()
        .find(|process| process.parent == own && process.state == 'Z')
        .map(|process| process.pid)
}

/// Adds the state of each living thread of a process. A zombie thread is gone: it never runs again.
pub fn add_states(pid: i32, states: &mut String) {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return;
    };
    for thread in threads.flatten() {
        let read = fs::read_to_string(thread.path().join("stat")).ok();
        if let Some(thread) = read.and_then(|line| parse(&line))
            && !matches!(thread.state, 'Z' | 'X')
        {
            states.push(thread.state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = "7 (a) R (b) S 3 7 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9\n";
        let expected = Stat {
            pid: 7,
            state: 'S',
            parent: 3,
            session: 5,
            started: 4711,
        };
        assert_eq!(parse(line), Some(expected));
    }

    #[test]
    fn a_cut_line_is_no_process() {
        assert_eq!(parse("7 (a) S 3"), None);
    }
}
