//! How threads are scheduled: the agent's before whatever else runs in the machine, and a client's likewise while it is
//! being stopped, so that a pause takes hold at once on a busy machine too.
//!
//! Real time serves best, but a container often may not have it, and nice counts only among the processes of a container.
//! What is left is a short slice (Linux 6.12 and later, for everybody; earlier kernels take no notice): a thread that
//! asks for little at a time runs as soon as it wakes.

use std::fs;
use std::io;

use nix::libc;

/// The lowest real-time priority: above every ordinary thread, below all that an administrator gave one on purpose.
const REAL_TIME_PRIORITY: u32 = 1;

/// The niceness, where real time is not allowed and CAP_SYS_NICE is there.
const NICE: i32 = -10;

/// The slice, in nanoseconds: enough for a whole pause, and a third of the usual. With the shortest that the kernel grants,
/// 0.1 ms, a pause on a busy machine was interrupted in the middle and took 4 ms longer.
const SLICE_NS: u64 = 500_000;

/// Schedules the calling thread as early as the host's capabilities allow, and says how it runs now: `rr 1`,
/// `nice -10, slice 0.5 ms`, `slice 0.5 ms` or `normal`. What the thread starts is scheduled as usual.
pub fn raise() -> String {
    let mut usual = attributes();
    usual.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
    if set(0, &real_time(usual)).is_ok() {
        return format!("rr {REAL_TIME_PRIORITY}");
    }
    if set(0, &early(usual)).is_ok() {
        return format!("nice {NICE}, slice 0.5 ms");
    }
    let mut wanted = usual;
    wanted.sched_runtime = SLICE_NS;
    match set(0, &wanted) {
        Ok(()) => "slice 0.5 ms".to_owned(),
        Err(_) => "normal".to_owned(),
    }
}

/// The attributes of a thread that runs before all ordinary ones.
fn real_time(usual: libc::sched_attr) -> libc::sched_attr {
    libc::sched_attr {
        sched_policy: libc::SCHED_RR as u32,
        sched_priority: REAL_TIME_PRIORITY,
        sched_nice: 0,
        sched_runtime: 0,
        ..usual
    }
}

/// The attributes of an ordinary thread that runs early.
fn early(usual: libc::sched_attr) -> libc::sched_attr {
    libc::sched_attr {
        sched_nice: usual.sched_nice.min(NICE),
        sched_runtime: SLICE_NS,
        ..usual
    }
}

/// Threads that run as early as possible until this is dropped; then as before, but for a slice of their own, which
/// becomes the usual one.
#[derive(Default)]
pub struct Urged {
    threads: Vec<(i32, libc::sched_attr)>,
}

impl Urged {
    /// Urges all threads of a process on. Those that it may not are left as they are.
    pub fn add(&mut self, pid: i32) {
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            return;
        };
        for thread in threads.flatten() {
            let Some(Ok(thread)) = thread.file_name().to_str().map(str::parse) else {
                continue;
            };
            let Some(mut usual) = get(thread).ok().filter(is_ordinary) else {
                continue;
            };
            usual.sched_runtime = 0;
            if set(thread, &real_time(usual)).is_ok() || set(thread, &early(usual)).is_ok() {
                self.threads.push((thread, usual));
            }
        }
    }
}

impl Drop for Urged {
    fn drop(&mut self) {
        for (thread, usual) in &self.threads {
            // A thread that is gone needs nothing any more.
            let _ = set(*thread, usual);
        }
    }
}

fn is_ordinary(attributes: &libc::sched_attr) -> bool {
    attributes.sched_policy == libc::SCHED_OTHER as u32
}

/// What a new thread has, unless it inherits other attributes.
fn attributes() -> libc::sched_attr {
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

/// A thread's attributes; thread 0 is the calling one.
#[expect(unsafe_code, reason = "neither std nor nix offers sched_getattr(2)")]
fn get(thread: i32) -> io::Result<libc::sched_attr> {
    let mut found = attributes();
    // SAFETY: the kernel writes at most `size` bytes, which is how many `found` has, and `found` lives through the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            thread,
            &raw mut found,
            found.size,
            0,
        )
    };
    checked(answer).map(|()| found)
}

/// Changes a thread's attributes; thread 0 is the calling one.
#[expect(unsafe_code, reason = "neither std nor nix offers sched_setattr(2)")]
fn set(thread: i32, wanted: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the kernel reads `size` bytes, which is how many `wanted` has.
    checked(unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            thread,
            std::ptr::from_ref(wanted),
            0,
        )
    })
}

fn checked(answer: libc::c_long) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_urged_is_scheduled_as_before_afterwards() {
        let thread = nix::unistd::gettid().as_raw();
        let before = get(thread).unwrap();
        let mut urged = Urged::default();
        urged.add(std::process::id() as i32);
        let Some(_) = urged.threads.iter().find(|(urged, _)| *urged == thread) else {
            println!("skipped: a lower niceness needs CAP_SYS_NICE");
            return;
        };
        let during = get(thread).unwrap();
        assert!(during.sched_policy == libc::SCHED_RR as u32 || during.sched_nice == NICE);
        drop(urged);
        let after = get(thread).unwrap();
        assert_eq!(after.sched_policy, before.sched_policy);
        assert_eq!(after.sched_nice, before.sched_nice);
        assert_eq!(after.sched_runtime, before.sched_runtime);
    }

    #[test]
    fn what_a_raised_thread_starts_is_scheduled_as_usual() {
        let usual = get(0).unwrap();
        std::thread::spawn(move || {
            raise();
            let child = std::thread::spawn(|| get(0).unwrap()).join().unwrap();
            assert_eq!(child.sched_policy, usual.sched_policy);
            assert_eq!(child.sched_nice, usual.sched_nice);
            assert_eq!(child.sched_runtime, usual.sched_runtime);
        })
        .join()
        .unwrap();
    }
}
