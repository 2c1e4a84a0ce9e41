//! One builder at a time for a user, so that two that start together do not build the same images twice.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use crate::{Error, Progress};

/// How often a lock that another holds is asked for again.
const RETRY: Duration = Duration::from_millis(200);

/// The lock, held until this is dropped or the process dies: an abstract socket address, which only one can bind and
/// which leaves no file behind.
pub(super) struct Lock {
    #[expect(dead_code, reason = "it is the open socket that holds the lock")]
    socket: UnixListener,
}

/// Waits for the lock, saying so.
///
/// Only spares work: builders that did not wait for each other would end with the same images.
///
/// # Errors
/// [`Error::Io`] where the address cannot be bound for another reason than that it is.
pub(super) async fn wait(progress: &dyn Progress) -> Result<Lock, Error> {
    wait_for(
        &format!("fencepost-images-{}", nix::unistd::geteuid()),
        progress,
    )
    .await
}

/// Asks again and again, so that the wait ends when the future is dropped.
async fn wait_for(name: &str, progress: &dyn Progress) -> Result<Lock, Error> {
    let failed = |error| Error::io(format!("@{name}"), error);
    let address = SocketAddr::from_abstract_name(name).map_err(failed)?;
    let mut told = false;
    loop {
        match UnixListener::bind_addr(&address) {
            Ok(socket) => return Ok(Lock { socket }),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(failed(error)),
            Err(_) if told => {}
            Err(_) => {
                progress.step("waiting for another fencepost that builds images");
                told = true;
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Gives the lock back as soon as it is told that somebody waits for it.
    struct Release(Mutex<Option<Lock>>);

    impl Progress for Release {
        fn step(&self, what: &str) {
            assert!(what.contains("waiting for another fencepost"), "{what}");
            let held = self.0.lock().expect("nobody panicked").take();
            assert!(held.is_some(), "told twice");
        }

        fn detail(&self, _line: &str) {}
    }

    #[tokio::test]
    async fn the_second_says_that_it_waits_and_goes_on_when_the_first_is_done() {
        let name = format!("fencepost-test-{}", std::process::id());
        let progress = Release(Mutex::new(Some(
            wait_for(&name, &()).await.expect("it is free"),
        )));
        wait_for(&name, &progress)
            .await
            .expect("the first gave it back");
        assert!(
            progress.0.lock().expect("nobody panicked").is_none(),
            "the second did not wait"
        );
    }
}
