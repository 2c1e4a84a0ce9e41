//! The wish to stop, told by Ctrl-C and its like, and heard by everything that waits.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::{Exit, Interrupted};
use crate::limits;

/// Tells whether the call is to stop. Clones hear the same.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for SIGINT, SIGTERM, SIGQUIT and SIGHUP, on a thread of its own, until the process ends. The first asks everything
    /// to end in good order, once `at_first` has run; `at_second` is what a second one does before it ends the process at
    /// once. A terminal that goes away is told of more than once, so that SIGHUP is never the second.
    pub fn on_signals(
        at_first: impl Fn() + Send + 'static,
        at_second: impl Fn() + Send + 'static,
    ) -> Result<Stop> {
        let (tell, heard) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .context("start the listener for signals")?;
        let mut signals = {
            let _inside = runtime.enter();
            Signals::listen()?
        };
        let listen = async move {
            loop {
                let hung_up = signals.next().await;
                if !tell.send_replace(true) {
                    at_first();
                } else if !hung_up {
                    at_second();
                    end_at_once();
                }
            }
        };
        limits::start("listening for signals", move || runtime.block_on(listen))?;
        Ok(Stop(heard))
    }

    /// Whether it is time to stop.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// An error once it is time to stop.
    pub fn check(&self) -> Result<()> {
        if self.is_asked() {
            Err(Interrupted.into())
        } else {
            Ok(())
        }
    }

    /// Waits until it is time to stop.
    pub async fn asked(&self) {
        let mut heard = self.0.clone();
        // The sender lives as long as the process; without it nobody can ask any more.
        if heard.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Ends the process as interrupted.
pub fn end_at_once() {
    std::process::exit(i32::from(Exit::Interrupted.code()));
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Ctrl-\. Who presses it wants an end, and not what a run leaves behind.
    quit: Signal,
    /// None where the caller has it ignored, as nohup(1) does.
    hang_up: Option<Signal>,
}

impl Signals {
    fn listen() -> Result<Signals> {
        let hang_up = if ignores_hang_up() {
            None
        } else {
            Some(signal(SignalKind::hangup()).context("listen for SIGHUP")?)
        };
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt()).context("listen for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("listen for SIGTERM")?,
            quit: signal(SignalKind::quit()).context("listen for SIGQUIT")?,
            hang_up,
        })
    }

    /// Waits for the next signal; whether it was SIGHUP.
    async fn next(&mut self) -> bool {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => false,
            _ = self.terminate.recv() => false,
            _ = self.quit.recv() => false,
            _ = hang_up => true,
        }
    }
}

/// Whether this process was started with SIGHUP ignored.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, SignalKind::hangup())
}

/// Whether a process whose `/proc/<pid>/status` this is ignores a signal: bit n - 1 of the mask is signal n.
fn ignores(status: &str, signal: SignalKind) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw_value() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, SignalKind::hangup()));
        assert!(!ignores(status, SignalKind::interrupt()));
        assert!(!ignores("", SignalKind::hangup()));
    }
}
