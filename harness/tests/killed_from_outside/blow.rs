//! What somebody else does to a host of a run.

use std::path::Path;

use containers::agent::Agent;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::run::docker;

/// How somebody else ends something of a host.
#[derive(Clone, Copy, Debug)]
pub enum Blow {
    /// SIGKILL to its server or client.
    Process,
    /// SIGTERM to it: it ends in good order.
    Asked,
    /// SIGKILL to one of the processes that its server has started.
    Child,
    /// The sessions of its clients ended, by the Postgres server's own command.
    Sessions,
    /// SIGSTOP to its server or client.
    Stop,
    /// SIGSTOP to one of the processes that its server has started.
    StopChild,
    /// SIGKILL to its agent, from outside the container.
    Agent,
    /// `docker kill`.
    Kill,
    /// `docker rm -f`.
    Remove,
    /// `docker pause`.
    Pause,
    /// SIGSTOP to its agent.
    Freeze,
    /// `docker network disconnect`.
    CutOff,
}

/// Strikes; false where only root could.
pub fn strike(container: &str, host: &str, blow: Blow) -> bool {
    match blow {
        Blow::Process | Blow::Asked | Blow::Child | Blow::Stop | Blow::StopChild => {
            let process = if host.starts_with('c') {
                "client"
            } else {
                "server"
            };
            let site = container.trim_end_matches(&format!("-{host}"));
            let socket = format!("/tmp/{site}/hosts/{host}/{host}.sock");
            let mut agent = Agent::connect(Path::new(&socket)).unwrap();
            let pid = agent.look(process).unwrap().pid.unwrap();
            let signal = match blow {
                Blow::Asked => "TERM",
                Blow::Stop | Blow::StopChild => "STOP",
                _ => "KILL",
            };
            let command = match blow {
                // Fields 1 and 4 of `stat` are a process's own id and its parent's.
                Blow::Child | Blow::StopChild => format!(
                    "cat /proc/[0-9]*/stat | while read own name state parent rest; do \
                     if [ $parent = {pid} ]; then kill -{signal} $own; break; fi; done"
                ),
                _ => format!("kill -{signal} {pid}"),
            };
            docker(&["exec", container, "sh", "-c", &command]);
        }
        Blow::Sessions => {
            let terminate = "select pg_terminate_backend(pid) from pg_stat_activity \
                             where backend_type = 'client backend' and pid <> pg_backend_pid()";
            let psql = ["psql", "-h", "127.0.0.1", "-U", "postgres", "-c", terminate];
            docker(&[&["exec", container][..], &psql].concat());
        }
        Blow::Agent => {
            let pid = docker(&["inspect", "--format", "{{.State.Pid}}", container]);
            let pid = Pid::from_raw(pid.trim().parse().unwrap());
            return kill(pid, Signal::SIGKILL).is_ok();
        }
        Blow::Kill => drop(docker(&["kill", container])),
        Blow::Remove => drop(docker(&["rm", "--force", container])),
        Blow::Pause => drop(docker(&["pause", container])),
        Blow::Freeze => drop(docker(&["kill", "--signal", "STOP", container])),
        Blow::CutOff => {
            let network = container.trim_end_matches(&format!("-{host}"));
            docker(&["network", "disconnect", "--force", network, container]);
        }
    }
    true
}
