//! All that can go wrong with Docker, images, hosts and their agents, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error as Reply;

use crate::agent::AgentError;
use crate::docker;

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
        "{doing}: the disk is full ({reason}): make room (`fencepost clean --images` removes our outdated images, \
         `docker system df` shows what else Docker holds)"
    )]
    DiskFull {
        /// What was being done.
        doing: String,
        /// What the system said.
        reason: String,
    },
    /// Docker refused for another reason.
    #[error("{doing}: {source}")]
    Docker {
        /// What was being done.
        doing: String,
        /// What Docker said.
        source: Reply,
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

/// What Docker said, without what the client puts around it.
pub(crate) fn words(reply: &Reply) -> String {
    match reply {
        Reply::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        Reply::DockerStreamError { error } => error.trim().to_owned(),
        other => other.to_string(),
    }
}

impl Error {
    /// Makes an error of what Docker answered while something was `doing`, which reads like "creating network x".
    pub fn docker(doing: impl Into<String>, reply: Reply) -> Error {
        let doing = doing.into();
        if let Some(unanswered) = docker::unanswered(&doing, &reply) {
            return unanswered;
        }
        let reason = words(&reply);
        let lower = reason.to_lowercase();
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
        Error::Docker {
            doing,
            source: reply,
        }
    }

    /// Makes an error of what the system answered about a file or folder; a full disk gets its own.
    pub fn io(path: impl AsRef<Path>, source: io::Error) -> Error {
        let path = path.as_ref().to_path_buf();
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
    fn a_daemon_that_is_lost_or_slow_is_no_answer() {
        let error = Error::docker("starting host s1", Reply::RequestTimeoutError);
        assert!(matches!(error, Error::Slow { .. }), "{error:?}");
        let broken = io::Error::from(io::ErrorKind::ConnectionReset);
        let error = Error::docker("starting host s1", Reply::from(broken));
        assert!(matches!(error, Error::NoDaemon { .. }), "{error:?}");
    }
}
