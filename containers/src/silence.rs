//! A daemon that has stopped to answer: noticed by asking it, beside whatever it does for us, whether it is there.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::errors::Error as Reply;
use tokio::time::{sleep, timeout};

use crate::{Engine, Error, Progress};

/// How long the daemon may be silent where nobody is in a hurry; it answers within milliseconds as a rule.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How long it may be silent once somebody wants to end.
pub(crate) const HURRY: Duration = Duration::from_secs(3);

/// How long a removal may take then, whatever the daemon answers: a site of ten hosts takes some six seconds.
const REMOVED_WITHIN: Duration = Duration::from_secs(20);

/// How long it is silent before somebody is told.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// The pause between two questions.
const PAUSE: Duration = Duration::from_secs(1);

/// How often a question may fail in a row before the daemon counts as gone.
const FAILURES: u32 = 3;

const IS_IT_THERE: &str = "asking whether it is there";

/// The error of a daemon that does not answer at all.
pub(crate) fn silent_for(waited: Duration) -> Error {
    Error::Slow {
        doing: IS_IT_THERE.to_owned(),
        waited,
    }
}

/// Whether somebody was told of the wait, since the daemon answered last: sites that start side by side wait for the same.
static TOLD: AtomicBool = AtomicBool::new(false);

/// The outcome of what waits for the daemon; tells of the wait where it becomes long.
pub(crate) async fn telling<T>(progress: &dyn Progress, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    tokio::select! {
        // Where this process itself stood still, both are there.
        biased;
        answer = &mut answer => {
            TOLD.store(false, Ordering::Relaxed);
            return answer;
        }
        () = sleep(TOLD_AFTER) => {}
    }
    if !TOLD.swap(true, Ordering::Relaxed) {
        progress.step("waiting for Docker, which does not answer at the moment");
    }
    answer.await
}

impl Engine {
    /// Waits until the daemon has answered nothing for so long, or is gone; the error that says so.
    pub(crate) async fn silence(&self, limit: Duration, progress: &dyn Progress) -> Error {
        let mut failures = 0;
        loop {
            match timeout(limit, telling(progress, self.docker().ping())).await {
                // Whatever the answer is, it is one.
                Ok(Ok(_) | Err(Reply::DockerResponseServerError { .. })) => failures = 0,
                // It may be about to come back.
                Ok(Err(_)) if failures < FAILURES => failures += 1,
                Ok(Err(reply)) => return Error::docker(IS_IT_THERE, reply),
                Err(_) => return silent_for(limit),
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits for a reason not to wait for a start any longer: `asked`, or a daemon that does not answer.
    pub async fn start_given_up(
        &self,
        asked: impl Future<Output = ()>,
        progress: &dyn Progress,
    ) -> Error {
        tokio::select! {
            () = asked => Error::Cancelled,
            silence = self.silence(PATIENCE, progress) => silence,
        }
    }

    /// The outcome of some work with the daemon, or that it does not answer at all any more.
    ///
    /// # Errors
    /// Those of the work, and [`Error::Slow`].
    pub async fn unless_silent<T>(
        &self,
        progress: &dyn Progress,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            outcome = work => outcome,
            silence = self.silence(PATIENCE, progress) => Err(silence),
        }
    }

    /// Waits for a reason not to wait for a removal any longer. Once `hurry` has come, less is one.
    pub async fn impatience(
        &self,
        hurry: impl Future<Output = ()>,
        progress: &dyn Progress,
    ) -> Error {
        let hurried = async {
            hurry.await;
            tokio::select! {
                silence = self.silence(HURRY, &()) => silence,
                () = sleep(REMOVED_WITHIN) => Error::Slow {
                    doing: "removing what was started".to_owned(),
                    waited: REMOVED_WITHIN,
                },
            }
        };
        tokio::select! {
            silence = self.silence(PATIENCE, progress) => silence,
            slow = hurried => slow,
        }
    }

    /// The outcome of a removal that somebody waits for who wants to end.
    pub(crate) async fn in_a_hurry<T>(
        &self,
        removal: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            outcome = removal => outcome,
            slow = self.impatience(std::future::ready(()), &()) => Err(slow),
        }
    }
}
