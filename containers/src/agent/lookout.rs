//! The lookout: a thread that sees what no system call tells. The host stood still, or somebody stopped one of its
//! processes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::board::Board;
use super::processes::Processes;
use super::protocol::{Lookout, Notice};
use super::session::Shared;
use super::{Heartbeat, STACK, monotonic_ns, proc};

/// How far apart two looks at the processes are, in beats: whoever stops one by hand does so for longer.
const BEATS_A_LOOK: u32 = 20;

/// Looks out until the watcher is gone, by a thread that is not raised: one of real time would run while the host's servers
/// are starved, and notice nothing.
pub fn keep(shared: &Arc<Shared>, lookout: Lookout, gone: &Arc<AtomicBool>) -> io::Result<()> {
    let (shared, gone) = (Arc::clone(shared), Arc::clone(gone));
    let (name, watch): (_, fn(&Shared, &AtomicBool)) = match lookout {
        Lookout::None => return Ok(()),
        Lookout::Stops => ("lookout", look),
        Lookout::StopsAndStalls => ("heartbeat", beat_and_look),
    };
    let thread = thread::Builder::new().name(name.to_owned());
    thread
        .stack_size(STACK)
        .spawn(move || watch(&shared, &gone))
        .map(drop)
}

fn look(shared: &Shared, gone: &AtomicBool) {
    const PAUSE: Duration = Heartbeat::INTERVAL.saturating_mul(BEATS_A_LOOK);
    while !gone.load(Ordering::Relaxed) && !tell_of_a_stop(&shared.processes, &shared.board) {
        thread::sleep(PAUSE);
    }
}

fn beat_and_look(shared: &Shared, gone: &AtomicBool) {
    let heartbeat = Heartbeat::new(monotonic_ns());
    let (mut beats, mut told) = (0, false);
    while !gone.load(Ordering::Relaxed) {
        thread::sleep(Heartbeat::INTERVAL);
        let at_ns = monotonic_ns();
        if let Some(stalled_ns) = heartbeat.beat(at_ns) {
            shared.board.tell(Notice::Stalled { at_ns, stalled_ns });
        }
        beats = (beats + 1) % BEATS_A_LOOK;
        if beats == 0 && !told {
            told = tell_of_a_stop(&shared.processes, &shared.board);
        }
    }
}

/// Whether somebody else has stopped a process, which is told then.
fn tell_of_a_stop(processes: &Processes, board: &Board) -> bool {
    let at_large = processes.at_large();
    let mut stopped = at_large.iter().filter(|process| has_stopped(process.pid));
    // This agent may have stopped it between the two looks.
    let stopped = stopped.find(|process| processes.at_large().contains(process));
    if let Some(process) = stopped {
        board.tell(Notice::Stopped {
            process: process.name.clone(),
            at_ns: monotonic_ns(),
        });
    }
    stopped.is_some()
}

/// Whether a process stands still that was started under this one, or itself: by a signal, or in a debugger.
fn has_stopped(root: i32) -> bool {
    let family = proc::family(root);
    family
        .iter()
        .any(|process| matches!(process.state, 'T' | 't'))
}
