//! The Docker daemon: where it listens, whether it can be used, and what it is.

mod bounded;

use std::env;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as Reply;
use serde::Serialize;

use crate::replies::unusable;
use crate::silence::{self, PATIENCE};
use crate::{Error, Progress};

/// How long the daemon may take to begin its answer to a request that is no question about itself.
pub(crate) const REQUEST_LIMIT: Duration = Duration::from_secs(120);

/// The lowest API version that will do: Docker Engine 20.10, the oldest that was tried.
const API_NEEDED: (u32, u32) = (1, 41);

/// A daemon that answers, and what it says of itself.
#[derive(Clone, Debug)]
pub struct Engine {
    docker: Docker,
    facts: EngineFacts,
}

/// What a daemon says of itself. Empty or zero where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EngineFacts {
    /// Where it listens: `unix:///var/run/docker.sock`.
    pub address: String,
    /// The daemon's version: `20.10.24`.
    pub version: String,
    /// The highest API version that it speaks: `1.41`.
    pub api_version: String,
    /// How it stores images: `overlay2`, `fuse-overlayfs`, …
    pub storage_driver: String,
    /// Where it stores them.
    pub root_dir: String,
    /// The operating system that containers run on.
    pub operating_system: String,
    /// Its kernel.
    pub kernel: String,
    /// Its processor architecture: `x86_64`.
    pub architecture: String,
    /// How many processors it has.
    pub processors: i64,
    /// Its memory, in bytes.
    pub memory_bytes: i64,
    /// Whether the daemon runs without root's rights.
    pub rootless: bool,
}

impl Engine {
    /// The client for it.
    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// What it says of itself.
    pub fn facts(&self) -> &EngineFacts {
        &self.facts
    }
}

/// The facts by name, in the order in which a person wants them.
impl IntoIterator for &EngineFacts {
    type Item = (&'static str, String);
    type IntoIter = std::array::IntoIter<Self::Item, 11>;

    fn into_iter(self) -> Self::IntoIter {
        [
            ("version", self.version.clone()),
            ("api-version", self.api_version.clone()),
            ("address", self.address.clone()),
            ("storage-driver", self.storage_driver.clone()),
            ("root-dir", self.root_dir.clone()),
            ("operating-system", self.operating_system.clone()),
            ("kernel", self.kernel.clone()),
            ("architecture", self.architecture.clone()),
            ("processors", self.processors.to_string()),
            ("memory-bytes", self.memory_bytes.to_string()),
            ("rootless", self.rootless.to_string()),
        ]
        .into_iter()
    }
}

/// Connects to the daemon that `DOCKER_HOST` names, else to the one at its usual place, and asks what it is.
///
/// # Errors
/// [`Error::NoDaemon`], [`Error::NotDocker`], [`Error::NoPermission`], [`Error::BadAddress`], [`Error::TooOld`],
/// [`Error::Slow`].
pub async fn engine() -> Result<Engine, Error> {
    engine_telling(&()).await
}

/// The same, for somebody who is told where the daemon keeps them waiting.
///
/// # Errors
/// Those of [`engine`].
pub async fn engine_telling(progress: &dyn Progress) -> Result<Engine, Error> {
    let address = address(env::var("DOCKER_HOST").ok())?;
    let docker = connect(&address)?;
    let asked = "asking for its version";
    let version = greet(PATIENCE, asked, &address, progress, docker.version()).await?;
    let mut facts = EngineFacts {
        version: version.version.unwrap_or_default(),
        api_version: version.api_version.unwrap_or_default(),
        ..EngineFacts::default()
    };
    if facts.api_version.is_empty() {
        return Err(Error::NotDocker {
            address,
            reason: "it does not say which API it speaks".to_owned(),
        });
    }
    if !speaks(&facts.api_version, API_NEEDED) {
        return Err(Error::TooOld {
            version: facts.version,
            api: facts.api_version,
            needed: format!("{}.{}", API_NEEDED.0, API_NEEDED.1),
        });
    }
    let asked = "asking what it is";
    let info = greet(PATIENCE, asked, &address, progress, docker.info()).await?;
    facts.address = address;
    facts.storage_driver = info.driver.unwrap_or_default();
    facts.root_dir = info.docker_root_dir.unwrap_or_default();
    facts.operating_system = info.operating_system.unwrap_or_default();
    facts.kernel = info.kernel_version.unwrap_or_default();
    facts.architecture = info.architecture.unwrap_or_default();
    facts.processors = info.ncpu.unwrap_or_default();
    facts.memory_bytes = info.mem_total.unwrap_or_default();
    facts.rootless = info
        .security_options
        .unwrap_or_default()
        .iter()
        .any(|option| option == "name=rootless");
    Ok(Engine { docker, facts })
}

/// For a test that needs Docker: something if it can be used. Without it, writes `skipped: <reason>` to standard error
/// past the test harness's capture and gives nothing, or panics where the environment variable `CI` is set: there, a
/// test that is skipped is a test that failed.
///
/// # Panics
/// Where `CI` is set and Docker cannot be used.
pub fn docker_or_skip() -> Option<()> {
    let error = match on_a_thread_of_its_own(engine()) {
        Ok(_) => return Some(()),
        Err(error) => error,
    };
    let remark = skipped(env::var_os("CI").is_some_and(|ci| !ci.is_empty()), &error);
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(io::stderr(), "{remark}");
    None
}

fn skipped(ci: bool, error: &Error) -> String {
    assert!(!ci, "this test needs Docker: {error}");
    format!(
        "skipped: {}: {error}",
        std::thread::current().name().unwrap_or("a test")
    )
}

/// The addresses at which testcontainers, which starts our containers, looks for a daemon, in its order. The two must
/// agree on which daemon it is.
fn usual_sockets() -> Vec<PathBuf> {
    let below = |variable: &str, path: &str| {
        env::var_os(variable).map(|folder| PathBuf::from(folder).join(path))
    };
    [
        Some(PathBuf::from("/var/run/docker.sock")),
        below("XDG_RUNTIME_DIR", ".docker/run/docker.sock"),
        below("HOME", ".docker/run/docker.sock"),
        below("HOME", ".docker/desktop/docker.sock"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Where the daemon is looked for, as errors name it.
pub(crate) fn usual_address() -> String {
    address(env::var("DOCKER_HOST").ok()).unwrap_or_default()
}

/// Where to connect to, given the value of `DOCKER_HOST`.
fn address(docker_host: Option<String>) -> Result<String, Error> {
    let Some(address) = docker_host else {
        let sockets = usual_sockets();
        let socket = sockets
            .iter()
            .find(|socket| socket.exists())
            .unwrap_or(&sockets[0]);
        return Ok(format!("unix://{}", socket.display()));
    };
    let reason = match address.split_once("://") {
        _ if address.is_empty() => "it is empty",
        Some(("unix", path)) if path.starts_with('/') => return Ok(address),
        Some(("unix", _)) => "its path is not absolute",
        Some(("tcp" | "http", host)) if is_loopback(host) => return Ok(address),
        Some(("tcp" | "http" | "https" | "ssh", _)) => {
            "the daemon has to be on this machine: hosts are spoken to through sockets in a folder that both share"
        }
        _ => "it is no address that starts with unix://",
    };
    Err(Error::BadAddress {
        address,
        reason: reason.to_owned(),
    })
}

fn is_loopback(host_and_port: &str) -> bool {
    let host = host_and_port
        .trim_end_matches('/')
        .rsplit_once(':')
        .map_or(host_and_port, |(host, _port)| host);
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

fn connect(address: &str) -> Result<Docker, Error> {
    let client = bounded::client(address, REQUEST_LIMIT.as_secs());
    client.map_err(|reply| unusable(address, reply))
}

/// Awaits one of the first answers, those that tell whether the daemon can be used.
async fn greet<T>(
    limit: Duration,
    doing: &str,
    address: &str,
    progress: &dyn Progress,
    answer: impl Future<Output = Result<T, Reply>>,
) -> Result<T, Error> {
    match tokio::time::timeout(limit, silence::telling(progress, answer)).await {
        Ok(answer) => answer.map_err(|reply| unusable(address, reply)),
        Err(_) => Err(Error::Slow {
            doing: doing.to_owned(),
            waited: limit,
        }),
    }
}

/// Whether a version such as `1.41` is at least the one needed; one that cannot be read is taken to be.
fn speaks(api_version: &str, needed: (u32, u32)) -> bool {
    let parts = api_version
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    parts.is_none_or(|version: (u32, u32)| version >= needed)
}

/// Runs a future to its end on a thread and a runtime of its own, so that it may be called from a thread that is one of
/// a runtime, and while a runtime shuts down.
pub(crate) fn on_a_thread_of_its_own<T: Send>(
    work: impl Future<Output = Result<T, Error>> + Send,
) -> Result<T, Error> {
    // The runtime is dropped there too: that must not happen on a thread of another one.
    let run = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::io("a runtime of its own", source))?
            .block_on(work)
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, run);
        let thread = thread.map_err(|source| Error::thread("asking Docker", source))?;
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn greeting_at(address: &str) -> Error {
        let docker = match connect(address) {
            Ok(docker) => docker,
            Err(error) => return error,
        };
        greet(PATIENCE, "asking", address, &(), docker.version())
            .await
            .expect_err("nothing useful listens there")
    }

    #[tokio::test]
    async fn no_socket_says_how_to_start_the_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = greeting_at(&format!("unix://{}/none.sock", folder.path().display())).await;
        assert!(matches!(error, Error::NoDaemon { .. }), "{error:?}");
        assert!(error.to_string().contains("no such socket"), "{error}");
        assert!(
            error.to_string().contains("systemctl start docker"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_socket_that_nobody_serves_is_no_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("docker.sock");
        drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
        let error = greeting_at(&format!("unix://{}", socket.display())).await;
        assert!(
            matches!(&error, Error::NoDaemon { reason, .. } if reason == "connection refused"),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn a_daemon_that_does_not_answer_is_said_to_be_slow() {
        let never = std::future::pending::<Result<(), Reply>>();
        let asked = "asking for its version";
        let error = greet(Duration::ZERO, asked, "unix:///x", &(), never)
            .await
            .expect_err("it never answers");
        assert!(
            error
                .to_string()
                .contains("did not answer within 0 s while asking for its version"),
            "{error}"
        );
    }

    #[test]
    fn docker_host_is_taken_where_it_can_work() {
        for good in [
            "unix:///run/user/1000/docker.sock",
            "tcp://localhost:2375",
            "http://127.0.0.1:2375",
            "tcp://[::1]:1",
        ] {
            assert_eq!(address(Some(good.to_owned())).expect("usable"), good);
        }
        for bad in [
            "",
            "tcp://build-server:2375",
            "ssh://me@there",
            "/var/run/docker.sock",
            "unix://docker.sock",
        ] {
            let error = address(Some(bad.to_owned())).expect_err(bad);
            assert!(matches!(error, Error::BadAddress { .. }), "{error:?}");
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(speaks("1.41", (1, 41)));
        assert!(speaks("1.100", (1, 41)));
        assert!(speaks("2.0", (1, 41)));
        assert!(!speaks("1.9", (1, 41)));
        assert!(speaks("", (1, 41)));
    }

    #[test]
    #[should_panic(expected = "this test needs Docker")]
    fn a_test_without_docker_fails_in_ci() {
        skipped(
            true,
            &Error::NoPermission {
                address: "unix:///x".to_owned(),
            },
        );
    }

    #[test]
    fn a_test_without_docker_says_so_elsewhere() {
        let remark = skipped(
            false,
            &Error::NoPermission {
                address: "unix:///x".to_owned(),
            },
        );
        assert!(
            remark.starts_with(
                "skipped: docker::tests::a_test_without_docker_says_so_elsewhere: no permission"
            ),
            "{remark}"
        );
    }
}
