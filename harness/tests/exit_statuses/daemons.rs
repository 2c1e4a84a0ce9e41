//! Docker daemons that are none, hang or die, on sockets of their own. The real one is only ever spoken to through them.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// What a daemon does.
#[derive(Clone, Copy, Debug)]
pub enum Daemon {
    /// Takes every connection, and answers nothing.
    Silent,
    /// Answers every request with this, and closes the connection.
    Answers(&'static str),
    /// Is Docker until a request comes that has this in it, and answers nothing from then on.
    HangsAt(&'static str),
    /// Is Docker, but answers no request that has this in it.
    HangsOnlyAt(&'static str),
    /// Is Docker until a request comes that has this in it, and is gone from then on.
    DiesAt(&'static str),
}

/// A daemon that listens until this is dropped.
pub struct Listening {
    folder: tempfile::TempDir,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    connections: Mutex<Vec<UnixStream>>,
    /// Whether it was asked for what it does not do.
    met: AtomicBool,
}

impl Daemon {
    pub fn listen(self) -> Listening {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        // For other users too.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
        let state = Arc::new(State::default());
        let shared = state.clone();
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if self.is_dead(&shared) {
                    return;
                }
                shared.keep(&connection);
                let shared = shared.clone();
                thread::spawn(move || self.serve(connection, &shared));
            }
        });
        Listening { folder, state }
    }

    fn serve(self, mut client: UnixStream, state: &State) {
        match self {
            Daemon::Silent => state.met.store(true, Ordering::SeqCst),
            Daemon::Answers(answer) => {
                // A client that has gone away wants no answer.
                let _ = client.read(&mut [0; 4096]);
                let _ = client.write_all(answer.as_bytes());
                let _ = client.shutdown(Shutdown::Both);
            }
            Daemon::HangsAt(_) | Daemon::HangsOnlyAt(_) | Daemon::DiesAt(_) => {
                let docker = UnixStream::connect("/var/run/docker.sock").unwrap();
                state.keep(&docker);
                thread::scope(|scope| {
                    scope.spawn(|| pass(&docker, &client, |_| !self.hangs(state)));
                    pass(&client, &docker, |request| self.passes(request, state));
                });
            }
        }
    }

    /// Whether a request gets to Docker.
    fn passes(self, request: &[u8], state: &State) -> bool {
        let (Daemon::HangsAt(word) | Daemon::HangsOnlyAt(word) | Daemon::DiesAt(word)) = self
        else {
            return true;
        };
        let met = String::from_utf8_lossy(request).contains(word);
        if met {
            state.met.store(true, Ordering::SeqCst);
        }
        if met && matches!(self, Daemon::DiesAt(_)) {
            state.close();
        }
        !met && !self.hangs(state)
    }

    fn hangs(self, state: &State) -> bool {
        state.met.load(Ordering::SeqCst) && matches!(self, Daemon::HangsAt(_))
    }

    fn is_dead(self, state: &State) -> bool {
        state.met.load(Ordering::SeqCst) && matches!(self, Daemon::DiesAt(_))
    }
}

/// Passes on what comes from one end to the other, as long as it may; then keeps all that comes.
fn pass(mut from: &UnixStream, mut to: &UnixStream, may: impl Fn(&[u8]) -> bool) {
    let mut bytes = [0; 65_536];
    let mut open = true;
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        open = open && may(&bytes[..read]) && to.write_all(&bytes[..read]).is_ok();
    }
    if open {
        let _ = to.shutdown(Shutdown::Write);
    }
}

impl State {
    fn keep(&self, connection: &UnixStream) {
        let connection = connection.try_clone().unwrap();
        self.connections.lock().unwrap().push(connection);
    }

    fn close(&self) {
        for connection in self.connections.lock().unwrap().iter() {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Listening {
    /// The value of `DOCKER_HOST` that leads to it.
    pub fn address(&self) -> String {
        format!("unix://{}/docker.sock", self.folder.path().display())
    }

    /// Waits until it is asked for what it does not do.
    pub fn wait(&self) {
        let limit = Instant::now() + Duration::from_secs(60);
        while !self.state.met.load(Ordering::SeqCst) {
            assert!(Instant::now() < limit, "it was not asked in a minute");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.state.close();
    }
}
