//! Faults of the network, made inside a host on the packets that leave it.
//!
//! [`Traffic`] says which packets. Two means are there to hold them: [`netem`], a queueing discipline of the kernel,
//! and [`nfqueue`], a process of ours that the kernel hands every packet and that gives it back later. Many kernels (of
//! clouds, of WSL, of CI runners) lack the first.

pub(crate) mod holder;
pub(crate) mod netem;
pub(crate) mod nfqueue;

use std::net::Ipv4Addr;
use std::time::Duration;

use containers::agent::{Agent, Ran};

use crate::faults::FaultError;
use crate::hands::Hands;

/// How long `tc` and `iptables` may take; some milliseconds are usual.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Packets that leave a host; all but those to itself where nothing is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Only those to one of these addresses; empty for all.
    pub to: Vec<Ipv4Addr>,
    /// Only those of TCP to this port, or from it.
    pub port: Option<u16>,
}

/// Runs a program in a host to look at something.
fn look(hands: &mut Hands, host: &str, argv: &[&str]) -> Result<Ran, FaultError> {
    hands.observe(host, |agent| agent.run(argv.iter().copied(), TIMEOUT))
}

/// Runs a program in a host to change something; an error if it fails. Does nothing with tied hands.
fn change(hands: &mut Hands, host: &str, argv: &[&str]) -> Result<(), FaultError> {
    let ran = hands.act(host, |agent| agent.run(argv.iter().copied(), TIMEOUT))?;
    match ran {
        Some(ran) if ran.code != Some(0) => Err(failed(host, argv, &ran)),
        _ => Ok(()),
    }
}

/// Tries a program in a host: what it complains of; `None` if it succeeds.
fn complaint(agent: &mut Agent, argv: &[&str]) -> Option<String> {
    match agent.run(argv.iter().copied(), TIMEOUT) {
        Ok(ran) if ran.code == Some(0) => None,
        Ok(ran) => Some(failed(agent.host(), argv, &ran).to_string()),
        Err(error) => Some(error.to_string()),
    }
}

fn failed(host: &str, argv: &[&str], ran: &Ran) -> FaultError {
    let said = [ran.stderr.trim(), ran.stdout.trim()];
    let said = said.into_iter().find(|said| !said.is_empty());
    FaultError::Command {
        host: host.to_owned(),
        command: argv.join(" "),
        reason: match said {
            Some(said) => said.to_owned(),
            None => format!("exit status {:?}", ran.code),
        },
    }
}
