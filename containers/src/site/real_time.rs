//! Real time for agents, where the kernel grants none to a container.
//!
//! A kernel that was built with RT_GROUP_SCHED gives real time to a control group (version 1) only out of a budget, which
//! Docker leaves at nothing. The topmost group has one. Where we may, we move agents there, and what they start with them;
//! only which processes share processor time changes by that, and it ends with the processes. On a busy machine a
//! pause takes hold in half a millisecond then, and else in up to ten.

use std::fs;
use std::path::Path;

/// Where the topmost group of the processor controller is mounted.
const TOPMOST: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// Lets a process have real time by moving it; whether that was possible.
pub fn allow(pid: i32) -> bool {
    TOPMOST.iter().map(Path::new).any(|group| {
        // The file's being there tells that the kernel keeps such budgets.
        group.join("cpu.rt_runtime_us").exists()
            && fs::write(group.join("cgroup.procs"), pid.to_string()).is_ok()
    })
}
