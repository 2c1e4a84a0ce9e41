//! Holds packets by a netfilter queue and a process of ours, the [`holder`](super::holder).
//!
//! The rules stand in a chain of our own, which one rule in OUTPUT leads to while the fault lasts; no other rule is
//! ever touched. They bypass the queue when nobody listens: a holder that died makes no partition of a delay, and its
//! figures no longer move.

use std::time::Duration;

use containers::agent::Agent;
use containers::agent::protocol::{Command, Signal};

use super::holder::Figures;
use super::{Traffic, change, complaint, look};
use crate::faults::FaultError;
use crate::hands::Hands;

/// Between two looks at whether the holder has come up, or has gone.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How long it may take to come up, or to go.
const COMING_AND_GOING: Duration = Duration::from_secs(5);

/// Queues are numbered from here, one a step of the plan.
const FIRST_QUEUE: usize = 100;

/// A queue, its rules and its holder in one host.
pub(crate) struct NfQueue {
    host: String,
    traffic: Traffic,
    /// The fault that the holder belongs to, as `fault-process` knows it.
    fault: &'static str,
    delay: Duration,
    queue: usize,
    /// Names chain, process and file.
    name: String,
}

impl NfQueue {
    /// Nothing is there yet.
    pub fn new(
        host: &str,
        step: usize,
        fault: &'static str,
        traffic: Traffic,
        delay: Duration,
    ) -> NfQueue {
        NfQueue {
            host: host.to_owned(),
            traffic,
            fault,
            delay,
            queue: FIRST_QUEUE + step,
            name: format!("fencepost-{fault}-{step}"),
        }
    }

    /// Why it cannot be used in a host; `None` if it can.
    pub fn lacks(agent: &mut Agent) -> Option<String> {
        complaint(agent, &["iptables", "-w", "-n", "-L", "OUTPUT"])
    }

    /// Starts the holder and fills the chain, which nothing leads to yet.
    pub fn prepare(&self, hands: &mut Hands) -> Result<(), FaultError> {
        let _ = look(hands, &self.host, &["rm", "-f", &self.file()])?;
        let started = hands.act(&self.host, |agent| agent.start(&self.name, self.holder()))?;
        if started.is_some() {
            self.await_holder(hands, |figures, _| figures.is_some())?;
        }
        change(hands, &self.host, &["iptables", "-w", "-N", &self.name])?;
        let queue = self.queue.to_string();
        let to: Vec<String> = self.traffic.to.iter().map(|to| to.to_string()).collect();
        let to = to.join(",");
        let port = self.traffic.port.map(|port| port.to_string());
        let sides: &[&str] = match &port {
            Some(_) => &["--dport", "--sport"],
            None => &[""],
        };
        for side in sides {
            let mut rule = vec!["iptables", "-w", "-A", &self.name];
            if !to.is_empty() {
                rule.extend(["-d", &to]);
            }
            if let Some(port) = &port {
                rule.extend(["-p", "tcp", side, port]);
            }
            rule.extend(["-j", "NFQUEUE", "--queue-num", &queue, "--queue-bypass"]);
            change(hands, &self.host, &rule)?;
        }
        Ok(())
    }

    /// Leads the traffic into the chain.
    pub fn lead(&self, hands: &mut Hands) -> Result<(), FaultError> {
        change(hands, &self.host, &self.leading("-I"))
    }

    /// What the holder did, as it says itself; `None` if it says nothing.
    pub fn figures(&self, hands: &mut Hands) -> Result<Option<Figures>, FaultError> {
        let ran = look(hands, &self.host, &["cat", &self.file()])?;
        Ok(serde_json::from_str(&ran.stdout).ok())
    }

    /// How many packets the rules sent to the queue, as the kernel counts them.
    pub fn packets_queued(&self, hands: &mut Hands) -> Result<u64, FaultError> {
        let listing = ["iptables", "-w", "-v", "-x", "-n", "-L", &self.name];
        let ran = look(hands, &self.host, &listing)?;
        let first_of_line = |line: &str| line.split_whitespace().next()?.parse::<u64>().ok();
        Ok(ran.stdout.lines().filter_map(first_of_line).sum())
    }

    /// Leads the traffic past the chain again, removes the chain, and lets the holder give back what it holds and go.
    pub fn remove(&self, hands: &mut Hands) -> Result<(), FaultError> {
        while self.leads(hands)? {
            change(hands, &self.host, &self.leading("-D"))?;
        }
        let there = look(
            hands,
            &self.host,
            &["iptables", "-w", "-n", "-L", &self.name],
        )?;
        if there.code == Some(0) {
            change(hands, &self.host, &["iptables", "-w", "-F", &self.name])?;
            change(hands, &self.host, &["iptables", "-w", "-X", &self.name])?;
        }
        if self.holder_lives(hands)? {
            hands.act(&self.host, |agent| {
                agent.signal(&self.name, Signal::Terminate)
            })?;
            self.await_holder(hands, |_, lives| !lives)?;
        }
        Ok(())
    }

    /// Whether nothing of it is left.
    pub fn is_gone(&self, hands: &mut Hands) -> Result<bool, FaultError> {
        Ok(!self.leads(hands)? && !self.holder_lives(hands)?)
    }

    /// Why nothing was held any more, if the holder has died.
    pub fn holder_died(&self, hands: &mut Hands) -> Result<Option<String>, FaultError> {
        if self.holder_lives(hands)? {
            return Ok(None);
        }
        let said = hands.observe(&self.host, |agent| agent.tail(&self.name));
        let said = said.unwrap_or_default();
        Ok(Some(format!(
            "the process that holds the packets has died: {}",
            said.trim()
        )))
    }

    fn leads(&self, hands: &mut Hands) -> Result<bool, FaultError> {
        Ok(look(hands, &self.host, &self.leading("-C"))?.code == Some(0))
    }

    /// The one rule in OUTPUT, put in (`-I`), looked for (`-C`) or taken out (`-D`).
    fn leading<'a>(&'a self, how: &'a str) -> [&'a str; 9] {
        [
            "iptables", "-w", how, "OUTPUT", "!", "-o", "lo", "-j", &self.name,
        ]
    }

    fn holder(&self) -> Command {
        let arguments = [
            "fencepost".to_owned(),
            "fault-process".to_owned(),
            self.fault.to_owned(),
            self.queue.to_string(),
            self.delay.as_millis().to_string(),
            self.file(),
        ];
        Command {
            argv: arguments.to_vec(),
            ..Command::default()
        }
    }

    fn holder_lives(&self, hands: &mut Hands) -> Result<bool, FaultError> {
        // An agent that never started one says so by an error, which is as good as none that lives.
        let status = hands.observe(&self.host, |agent| agent.look(&self.name));
        Ok(status.is_ok_and(|status| !status.states.is_empty()))
    }

    /// Waits for what the holder is to come to, given its figures and whether it lives.
    fn await_holder(
        &self,
        hands: &mut Hands,
        wanted: impl Fn(Option<&Figures>, bool) -> bool,
    ) -> Result<(), FaultError> {
        let tries = COMING_AND_GOING.as_millis() / LOOK_AGAIN.as_millis();
        for _ in 0..tries {
            let (figures, lives) = (self.figures(hands)?, self.holder_lives(hands)?);
            if wanted(figures.as_ref(), lives) {
                return Ok(());
            }
            if !lives {
                break;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let said = hands.observe(&self.host, |agent| agent.tail(&self.name));
        Err(FaultError::Command {
            host: self.host.clone(),
            command: self.holder().argv.join(" "),
            reason: said.unwrap_or_default().trim().to_owned(),
        })
    }

    /// On a file system in memory that every container has.
    fn file(&self) -> String {
        format!("/dev/shm/{}.json", self.name)
    }
}
