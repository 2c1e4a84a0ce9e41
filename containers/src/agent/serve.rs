//! The agent itself: the first process of a host, which reaps all others and serves its socket until it is told to end.

use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::getpid;

use super::board::Board;
use super::processes::Processes;
use super::session::{Session, Shared};
use super::{STACK, priority, signals};

/// How long the agent waits before it accepts again where the system has no room for one more connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Is the agent of this host: listens at `socket` and returns only if it cannot start. SIGTERM ends it, and with it
/// all processes of the host.
///
/// It is meant to be process 1. Where it is not, it adopts orphans as process 1 would. It has to be called by the
/// process's first thread before there are others, as all have to block the signals that this one waits for.
pub fn serve(socket: &Path) -> io::Result<Infallible> {
    let awaited: SigSet = [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT]
        .into_iter()
        .collect();
    awaited.thread_block()?;
    prctl::set_child_subreaper(true)?;
    let shared = Arc::new(Shared {
        processes: Processes::new(socket.to_path_buf())?,
        board: Board::default(),
    });
    let listener = listen(socket)?;
    let served = Arc::clone(&shared);
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || accept(&listener, &served))?;
    priority::raise();
    loop {
        match awaited.wait()? {
            Signal::SIGCHLD => {
                for notice in shared.processes.reap() {
                    shared.board.tell(notice);
                }
            }
            _ => end(socket),
        }
    }
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    let explained = |error: io::Error| {
        let text = format!("cannot listen at {}: {error}", socket.display());
        io::Error::new(error.kind(), text)
    };
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(explained(error)),
        _ => {}
    }
    let listener = UnixListener::bind(socket).map_err(explained)?;
    // Whoever may enter the folder may talk to the agent: the user who started the run, though the agent is root.
    fs::set_permissions(socket, Permissions::from_mode(0o666)).map_err(explained)?;
    Ok(listener)
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    let mut number = 0;
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(_) => {
                thread::sleep(ACCEPT_PAUSE);
                continue;
            }
        };
        number += 1;
        let shared = Arc::clone(shared);
        // A panic ends that thread alone and closes its connection. Where no thread can be had, the connection closes
        // likewise, and the other side learns of it by that.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || {
            // The other side's going away is an end like any other.
            let _ = Session::new(shared, stream, number).serve();
        });
    }
}

/// Ends all processes of the host, and the agent.
fn end(socket: &Path) -> ! {
    // As process 1 the agent takes all others with it.
    if getpid().as_raw() != 1 {
        signals::end_descendants();
    }
    // Whoever started the host removes what is left.
    let _ = fs::remove_file(socket);
    process::exit(0)
}
