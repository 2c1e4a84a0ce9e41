//! The wish to stop, told by Ctrl-C and its like, and heard by everything that waits.

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit::{Exit, Interrupted};

/// Tells whether the run is to stop. Clones hear the same.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for SIGINT, SIGTERM and SIGHUP. The first asks everything to end in good order; `at_second` is what a
    /// second one does before it ends the process at once.
    pub fn on_signals(at_second: impl Fn() + Send + 'static) -> Result<Stop> {
        let (tell, heard) = watch::channel(false);
        let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
        let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
        let mut hang_up = signal(SignalKind::hangup()).context("listen for SIGHUP")?;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hang_up.recv() => {}
                }
                if tell.send_replace(true) {
                    at_second();
                    std::process::exit(i32::from(Exit::Interrupted.code()));
                }
                eprintln!("fencepost: stopping; once more to stop at once");
            }
        });
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
        // The sender lives as long as the runtime; without it nobody can ask any more.
        if heard.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
impl Stop {
    /// One that nobody asks.
    pub fn never() -> Stop {
        Stop(watch::channel(false).1)
    }
}
