//! How the agent's threads are scheduled: before whatever else runs in the machine, so that a pause takes hold at once.

use std::io;

use nix::libc;

/// The lowest real-time priority: above every ordinary thread, below all that an administrator gave one on purpose.
const REAL_TIME_PRIORITY: i32 = 1;

/// The fallback, where real time is not allowed.
const NICE: i32 = -10;

/// Schedules the calling thread as early as the host's capabilities allow (CAP_SYS_NICE), and says how it runs now.
/// What the thread starts is scheduled as usual.
pub fn raise() -> String {
    if schedule(libc::SCHED_RR, REAL_TIME_PRIORITY).is_ok() {
        format!("rr {REAL_TIME_PRIORITY}")
    } else if schedule(libc::SCHED_OTHER, 0).is_ok() && renice().is_ok() {
        format!("nice {NICE}")
    } else {
        "normal".to_owned()
    }
}

#[expect(
    unsafe_code,
    reason = "neither std nor nix offers sched_setscheduler(2)"
)]
fn schedule(policy: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: thread 0 is the calling one, and `parameters` lives through the call, which only reads it.
    let answer =
        unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &parameters) };
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[expect(unsafe_code, reason = "neither std nor nix offers setpriority(2)")]
fn renice() -> io::Result<()> {
    // SAFETY: plain numbers go in; 0 is the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
