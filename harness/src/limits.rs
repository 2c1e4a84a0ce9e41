//! Threads and file descriptors, which a machine may refuse: that is told, and is no bug.

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::sync::{Mutex, OnceLock, mpsc};
use std::thread::{self, Builder};

use anyhow::{Context, Result};
use containers::Error;
use tokio::sync::oneshot;

/// The stack of a thread that judges: a search may go as deep as on the main thread.
const STACK: usize = 8 << 20;

/// That there are as many file descriptors left as the first runtime takes, which panics where it gets too few.
pub fn have_descriptors() -> Result<()> {
    let spare: io::Result<Vec<File>> = (0..8).map(|_| File::open("/dev/null")).collect();
    spare.map(drop).context("make ready")
}

/// What a site of ten hosts needs: its start, one that watches each host, the recorder, the faults, and some that wait.
const THREADS_OF_A_SITE: usize = 32;

/// That as many threads can be started as runs on so many sites at once need: starts them, and lets them go. Where one is
/// missing in the middle, Tokio panics or waits for ever.
pub fn have_threads(sites: usize) -> Result<(), Error> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    start_at_once(processors + sites * THREADS_OF_A_SITE)
        .map_err(|source| Error::thread("making ready for the runs", source))
}

fn start_at_once(count: usize) -> io::Result<()> {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    thread::scope(|scope| {
        // Dropped at the end or at the first failure, upon which all that have started end.
        let _open = open;
        for _ in 0..count {
            Builder::new().spawn_scoped(scope, || {
                gate.lock().map(|gate| gate.recv().is_ok()).is_ok()
            })?;
        }
        Ok(())
    })
}

/// What a thread that judges is for, as an error names it.
const JUDGING: &str = "checking a history";

/// Starts a thread that nobody waits for.
pub fn start(doing: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = Builder::new().spawn(work);
    started
        .map(drop)
        .map_err(|source| Error::thread(doing, source))
}

/// What work on a thread of its own, with the stack of a search, comes to. It goes on where nobody waits for it any more.
pub async fn result_of<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (tell, told) = oneshot::channel();
    let work = move || drop(tell.send(work()));
    let started = Builder::new().stack_size(STACK).spawn(work);
    started.map_err(|source| Error::thread(JUDGING, source))?;
    told.await.context("a thread ended early")
}

/// Starts the threads that judge several objects at once. Without it they start at their first use, and panic where they
/// cannot.
pub fn start_pool() -> Result<(), Error> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    let started = STARTED.get_or_init(|| {
        let pool = rayon::ThreadPoolBuilder::new().build_global();
        pool.map_err(|error| error.to_string())
    });
    let failed = started.clone().map_err(io::Error::other);
    failed.map_err(|source| Error::thread(JUDGING, source))
}
