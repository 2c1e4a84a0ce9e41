//! The lookout: a thread that sees what no system call tells. The host stood still; or somebody else stopped one of its
//! processes, or let one go on that this agent had stopped; or a process gave the alarm in its output.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::board::Board;
use super::processes::{Left, Processes};
use super::protocol::{Lookout, Notice, Touch};
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
    while !gone.load(Ordering::Relaxed) && !tell_of_a_touch(&shared.processes, &shared.board) {
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
            told = tell_of_a_touch(&shared.processes, &shared.board);
        }
    }
}

/// Whether somebody else has laid hands on a process, which is told then.
fn tell_of_a_touch(processes: &Processes, board: &Board) -> bool {
    let left = processes.left();
    let touched = left
        .iter()
        .find_map(|process| Some((process, touch_of(processes, process)?)));
    if let Some((process, touch)) = &touched {
        board.tell(Notice::Touched {
            process: process.name.clone(),
            at_ns: monotonic_ns(),
            touch: touch.clone(),
        });
    }
    touched.is_some()
}

fn touch_of(processes: &Processes, process: &Left) -> Option<Touch> {
    if let Some(line) = processes.logs.alarm(&process.name) {
        return Some(Touch::Alarm(line));
    }
    let touch = match process.stands {
        true => Touch::Proceeds,
        false => Touch::Stopped,
    };
    // This agent may have touched it between the two looks.
    let is_touched =
        !does_as_meant(process.pid, process.stands) && processes.left().contains(process);
    is_touched.then_some(touch)
}

/// Whether a process and those started under it all stand still, by a signal or in a debugger, or else none of them does.
fn does_as_meant(root: i32, stands: bool) -> bool {
    let moves = |state: char| matches!(state, 'R' | 'S');
    let stands_still = |state: char| matches!(state, 'T' | 't');
    let family = proc::family(root);
    !family.iter().any(|process| match stands {
        true => moves(process.state),
        false => stands_still(process.state),
    })
}
