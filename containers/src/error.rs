//! All that can go wrong with Docker, images, hosts and their agents, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error as Reply;

use crate::agent::AgentError;
use crate::replies;

/// What went wrong, where, and what to do next: fragments that fit "failed: …".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing listens where Docker should.
    #[error(
        "no Docker daemon answers at {address} ({reason}): start it (`systemctl start docker`, or Docker Desktop), \
         or set DOCKER_HOST to where it listens"
    )]
    NoDaemon {
        /// Where it was looked for.
        address: String,
        /// What the connection attempt said.
        reason: String,
    },
    /// The socket is there, and this user may not use it.
    #[error(
        "no permission to use the Docker socket {address}: add yourself to its group \
         (`sudo usermod -aG docker $USER`, then log in again), or run as root"
    )]
    NoPermission {
        /// The socket.
        address: String,
    },
    /// Something listens where Docker should, and does not answer as Docker does.
    #[error(
        "what answers at {address} is not Docker, or not well: {reason}; see `docker info` and the daemon's log \
         (`journalctl -u docker`), or set DOCKER_HOST to where Docker listens"
    )]
    NotDocker {
        /// Where it listens.
        address: String,
        /// What is wrong with its answer.
        reason: String,
    },
    /// Docker answered before, and went away in the middle.
    #[error(
        "Docker went away while {doing} ({reason}, at {address}): see its log (`journalctl -u docker`), and start it again \
         (`systemctl start docker`, or Docker Desktop)"
    )]
    Lost {
        /// What it was asked.
        doing: String,
        /// What became of the connection.
        reason: String,
        /// Where it listened.
        address: String,
    },
    /// `DOCKER_HOST` names something that cannot be spoken to.
    #[error(
        "DOCKER_HOST={address} is of no use ({reason}): unset it, or set it to unix:///path/to/docker.sock"
    )]
    BadAddress {
        /// The value of `DOCKER_HOST`.
        address: String,
        /// Why not.
        reason: String,
    },
    /// The daemon is older than what this build speaks.
    #[error(
        "the Docker daemon is too old: version {version} speaks API {api}, and {needed} is needed: \
         install Docker Engine 20.10 or later"
    )]
    TooOld {
        /// The daemon's version.
        version: String,
        /// The highest API version that it speaks.
        api: String,
        /// The lowest API version that will do.
        needed: String,
    },
    /// The daemon did not answer in time.
    #[error(
        "Docker did not answer within {} s while {doing}: the daemon hangs or the machine is overloaded; \
         see `docker info` and the daemon's log (`journalctl -u docker`)", waited.as_secs()
    )]
    Slow {
        /// What it was asked.
        doing: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A name, an address or a port is in use.
    #[error(
        "{doing}: a name, an address or a port is in use by something else ({reason}): \
         see `docker ps -a` and `docker network ls`; `fencepost clean` removes what dead runs of ours left"
    )]
    Taken {
        /// What was being done.
        doing: String,
        /// What Docker said.
        reason: String,
    },
    /// No room on a disk.
    #[error(
        "{doing}: the disk is full ({reason}): make room there; where it is Docker's, `fencepost clean --images` removes our \
         outdated images, and `docker system df` shows what else Docker holds"
    )]
    DiskFull {
        /// What was being done.
        doing: String,
        /// What the system said.
        reason: String,
    },
    /// Docker refused for another reason.
    #[error("{doing}: {reason}")]
    Docker {
        /// What was being done.
        doing: String,
        /// What Docker said.
        reason: String,
    },
    /// No base image can be had.
    #[error(
        "no base image to build on: {reasons}. One of these helps: access to a registry that has {wanted}; \
         `docker load` of an image of Debian trixie and FENCEPOST_BASE=<its name>; or root, and mmdebstrap or apt on \
         this machine, to bootstrap one from Debian packages"
    )]
    NoBase {
        /// The image that was wanted.
        wanted: String,
        /// What was tried, and how each attempt failed.
        reasons: String,
    },
    /// This machine cannot make a base image itself.
    #[error("a bootstrap from Debian's packages failed: {reason}")]
    Bootstrap {
        /// Why not.
        reason: String,
    },
    /// An image does not build.
    #[error("image `{stage}` does not build: {reason}{}", quoted(output))]
    Build {
        /// The stage of the Dockerfile.
        stage: String,
        /// What Docker said.
        reason: String,
        /// The last lines that the build wrote.
        output: String,
    },
    /// A program cannot be made ready to run in a container.
    #[error("cannot bundle {} for the containers: {reason}", exe.display())]
    Bundle {
        /// The program.
        exe: PathBuf,
        /// Why not.
        reason: String,
    },
    /// An agent refused, failed or cannot be reached.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A host does not come up.
    #[error("host {host} {reason}")]
    Host {
        /// The host.
        host: String,
        /// What it does.
        reason: String,
    },
    /// No server says that it leads.
    #[error("no server leads: {answers}")]
    NoLeader {
        /// What each of them said.
        answers: String,
    },
    /// Nobody waits any more for what was being started.
    #[error("the start was given up")]
    Cancelled,
    /// A server does not come up, or answers what it should not.
    #[error("host {host}: {service} {reason}")]
    Service {
        /// The host.
        host: String,
        /// The service.
        service: &'static str,
        /// What it does.
        reason: String,
    },
    /// Not all that was to be removed could be.
    #[error(
        "not all could be removed: {what}; removed: {removed}. Try `fencepost clean`, or `docker rm -f`"
    )]
    Left {
        /// What is left, and why.
        what: String,
        /// What was removed.
        removed: String,
    },
    /// What was started could not be removed, or Docker may still start some of it.
    #[error(
        "{met}. What was started may be left behind{why}: once Docker answers again, `fencepost clean` removes it"
    )]
    LeftBehind {
        /// What went wrong.
        met: Box<Error>,
        /// Why that keeps it from being removed, where it does not say so itself: ` (…)`.
        why: String,
    },
    /// A host, or what it is there for, ended in the middle, and nothing that was planned had ended it.
    #[error("host {host} ended: {how}{log}")]
    HostEnded {
        /// The host.
        host: String,
        /// How.
        how: String,
        /// The last lines of its log, and where that is.
        log: String,
    },
    /// This process may open no more files.
    #[error(
        "{doing}: too many open files ({source}): raise the limit (`ulimit -n 4096`), or run fewer clients or `--jobs` at once"
    )]
    TooFewDescriptors {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// This process may start no more threads.
    #[error(
        "{doing}: no more threads can be started ({source}): raise the limit of processes (`ulimit -u`) or of memory \
         (`ulimit -v`), or run fewer `--jobs` at once"
    )]
    TooFewThreads {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file or folder could not be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The end of a build's output, to stand behind the reason.
fn quoted(output: &str) -> String {
    match output {
        "" => String::new(),
        output => format!("\nthe last lines of its output:\n{output}"),
    }
}

/// Whether the process, or the machine, may open no more files.
pub fn is_limit_of_files(error: &io::Error) -> bool {
    let limits = [nix::errno::Errno::EMFILE, nix::errno::Errno::ENFILE];
    let limit = |errno: &nix::errno::Errno| error.raw_os_error() == Some(*errno as i32);
    limits.iter().any(limit)
}

impl Error {
    /// Makes an error of what Docker answered while something was `doing`, which reads like "creating network x".
    pub fn docker(doing: impl Into<String>, reply: Reply) -> Error {
        let doing = doing.into();
        if let Some(lost) = replies::lost(&doing, &reply) {
            return lost;
        }
        let reason = replies::words(&reply);
        // Its own words may be cut.
        let lower = reply.to_string().to_lowercase();
        if lower.contains("no space left on device") {
            return Error::DiskFull { doing, reason };
        }
        let taken = [
            "already in use",
            "already allocated",
            "already exists",
            "pool overlaps",
            "non-overlapping",
        ];
        if taken.iter().any(|sign| lower.contains(sign)) {
            return Error::Taken { doing, reason };
        }
        Error::Docker { doing, reason }
    }

    /// Makes an error of what the system answered when a thread was to be started while something was `doing`.
    pub fn thread(doing: impl Into<String>, source: io::Error) -> Error {
        let doing = doing.into();
        Error::TooFewThreads { doing, source }
    }

    /// The error of something that began with `self`, after which `left` kept what was started from being removed.
    pub(crate) fn and_left(self, left: Error) -> Error {
        let behind = |met: Error, why: String| Error::LeftBehind {
            met: Box::new(met),
            why,
        };
        match (self, left) {
            (known @ Error::LeftBehind { .. }, _) => known,
            (Error::Cancelled, left) if left.leaves_something() => left,
            (Error::Cancelled, left) => behind(left, String::new()),
            // What came later of the same daemon says no more.
            (met, _) if met.is_of_daemon() => behind(met, String::new()),
            (met, left) => behind(met, format!(" ({left})")),
        }
    }

    /// Whether the daemon itself is of no use, so that asking it for something else would meet the same.
    pub fn is_of_daemon(&self) -> bool {
        matches!(
            self,
            Error::NoDaemon { .. }
                | Error::NotDocker { .. }
                | Error::Lost { .. }
                | Error::NoPermission { .. }
                | Error::Slow { .. }
                | Error::LeftBehind { .. }
        )
    }

    /// Whether something that was started is still there, or may be.
    pub fn leaves_something(&self) -> bool {
        matches!(self, Error::LeftBehind { .. } | Error::Left { .. })
    }

    /// Makes an error of what the system answered about a file or folder; a full disk gets its own, and so does a limit of
    /// open files.
    pub fn io(path: impl AsRef<Path>, source: io::Error) -> Error {
        let path = path.as_ref().to_path_buf();
        if is_limit_of_files(&source) {
            let doing = format!("opening {}", path.display());
            return Error::TooFewDescriptors { doing, source };
        }
        if source.kind() == io::ErrorKind::StorageFull {
            let doing = format!("writing {}", path.display());
            return Error::DiskFull {
                doing,
                reason: source.to_string(),
            };
        }
        Error::Io { path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status_code: u16, message: &str) -> Error {
        Error::docker(
            "starting host s1",
            Reply::DockerResponseServerError {
                status_code,
                message: message.to_owned(),
            },
        )
    }

    #[test]
    fn what_is_in_use_is_said_to_be() {
        for message in [
            "Conflict. The container name \"/s1\" is already in use by container \"0a\".",
            "network with name fencepost-0 already exists",
            "driver failed programming external connectivity: Bind for 0.0.0.0:80 failed: port is already allocated",
            "failed to listen on TCP socket: address already in use",
            "Pool overlaps with other one on this address space",
            "could not find an available, non-overlapping IPv4 address pool among the defaults",
        ] {
            let error = answered(409, message);
            assert!(matches!(error, Error::Taken { .. }), "{error:?}");
            assert!(
                error.to_string().contains(message)
                    && error.to_string().contains("fencepost clean"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_full_disk_is_told_from_other_failures() {
        let error = answered(
            500,
            "mkdir /var/lib/docker/overlay2/0: no space left on device",
        );
        assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
        let error = Error::io("/tmp/x", io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
        let error = answered(500, "something else");
        assert!(matches!(error, Error::Docker { .. }), "{error:?}");
    }

    #[test]
    fn a_limit_of_open_files_is_said_to_be_one() {
        let met = || io::Error::from_raw_os_error(nix::errno::Errno::EMFILE as i32);
        for error in [
            Error::io("/tmp/x", met()),
            Error::docker("listing containers", Reply::from(met())),
        ] {
            assert!(
                matches!(error, Error::TooFewDescriptors { .. }),
                "{error:?}"
            );
            assert!(error.to_string().contains("ulimit -n"), "{error}");
        }
    }

    #[test]
    fn what_is_left_behind_is_told_with_what_went_wrong_first() {
        let slow = || Error::docker("listing containers", Reply::RequestTimeoutError);
        let lost = || Error::docker("starting host s1", Reply::from(broken()));
        let left = |met: Error, left: Error| met.and_left(left).to_string();
        let of_a_host = || Error::Host {
            host: "s1".to_owned(),
            reason: "has no image".to_owned(),
        };
        for (told, first, besides) in [
            (left(lost(), slow()), "starting host s1", ""),
            (
                left(lost(), lost().and_left(slow())),
                "starting host s1",
                "",
            ),
            (left(Error::Cancelled, slow()), "listing containers", ""),
            (
                left(Error::Cancelled, lost().and_left(slow())),
                "starting host s1",
                "",
            ),
            (left(of_a_host(), slow()), "host s1 has no image", "listing"),
        ] {
            assert!(told.contains(first) && told.contains(besides), "{told}");
            assert_eq!(told.matches("`fencepost clean`").count(), 1, "{told}");
            assert!(!told.contains("given up"), "{told}");
        }
    }

    fn broken() -> io::Error {
        io::Error::from(io::ErrorKind::ConnectionReset)
    }

    #[test]
    fn a_daemon_that_is_lost_or_slow_is_no_answer() {
        let error = Error::docker("starting host s1", Reply::RequestTimeoutError);
        assert!(matches!(error, Error::Slow { .. }), "{error:?}");
        let error = Error::docker("starting host s1", Reply::from(broken()));
        assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    }
}
