//! `delay`: packets that leave a host are held for a while, all of them or those to one host or port.
//!
//! By `netem` where the kernel has it, else by a netfilter queue; the evidence says which. When the fault ends, what is
//! held goes on its way at once (with `netem`: is sent again by TCP). A delay shows only when there is a packet to
//! hold.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use containers::agent::{Agent, monotonic_ns};
use histories::{Deed, Effect, Expectation, Shows};
use serde_json::{Map, Value, json};

use super::{Evidence, Fault, FaultError, Lasting, Parameter, Patience, Strike, Takes, Target};
use crate::hands::Hands;
use crate::hosts::Hosts;
use crate::network::Traffic;
use crate::network::holder;
use crate::network::netem::{self, Netem};
use crate::network::nfqueue::NfQueue;
use crate::trigger::Trigger;
use histories::{Role, SERVERS};

/// See the module.
pub struct Delay;

const NAME: &str = "delay";

impl Fault for Delay {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "hold the packets that leave a host for a while: all, or those to one host or port"
    }

    fn does(&self, with: &Map<String, Value>) -> Vec<Effect> {
        let to = with.get("to").and_then(Value::as_str);
        vec![Effect {
            effect: Deed::DelaysPackets,
            to: to.map(str::to_owned),
            each_ms: with.get("delay_ms").and_then(Value::as_u64),
        }]
    }

    fn shows(&self, _with: &Map<String, Value>) -> Shows {
        super::shows("packets", Expectation::at_least(1.0))
    }

    fn strikes(&self) -> &'static [Role] {
        &[Role::Client, Role::Server, Role::Storage]
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "delay",
                takes: Takes::Length,
                needed: true,
                summary: "how long each packet is held, like `delay = \"2 ttl\"`",
            },
            Parameter {
                name: "to",
                takes: Takes::Host,
                needed: false,
                summary: "only packets to this host, like `to = \"storage\"`, or to all of the lock's `servers`",
            },
            Parameter {
                name: "port",
                takes: Takes::Port,
                needed: false,
                summary: "only TCP packets to or from this port, like `port = 5432`",
            },
        ]
    }

    fn lasting(&self) -> Lasting {
        Lasting::Open
    }

    fn available(&self, agent: &mut Agent) -> Result<&'static str, String> {
        let Some(no_netem) = Netem::lacks(agent) else {
            return Ok("netem");
        };
        match NfQueue::lacks(agent) {
            None => Ok("nfqueue"),
            Some(no_nfqueue) => Err(format!("{no_netem}; {no_nfqueue}")),
        }
    }

    fn process(&self, arguments: &[String]) -> Result<(), FaultError> {
        let read = || {
            let [queue, delay_ms, figures] = arguments else {
                return None;
            };
            let delay = Duration::from_millis(delay_ms.parse().ok()?);
            Some((queue.parse().ok()?, delay, Path::new(figures)))
        };
        let (queue, delay, figures) = read().ok_or_else(|| {
            FaultError::Plan("its arguments are QUEUE DELAY_MS FIGURES_FILE".to_owned())
        })?;
        holder::run(queue, delay, figures)
    }

    fn begin(&self, target: &Target, hands: &mut Hands) -> Result<Box<dyn Strike>, FaultError> {
        let delay_ms = target
            .number("delay_ms")?
            .ok_or_else(|| target.lacks("delay_ms"))?;
        let delay = Duration::from_millis(delay_ms.unsigned_abs());
        let port = target.number("port")?.map(|port| {
            u16::try_from(port).map_err(|_| FaultError::Plan(format!("{port} is no port")))
        });
        let traffic = Traffic {
            to: destinations(target, hands.hosts())?,
            port: port.transpose()?,
        };
        let host = target.host.as_str();
        let engine = hands.look(host, |agent| self.available(agent))?;
        let engine = engine.map_err(FaultError::Unavailable)?;
        let netem =
            Netem::new(host, target.step, traffic.clone(), delay).filter(|_| engine == "netem");
        let means = match netem {
            Some(netem) => Means::Netem(netem),
            None => Means::NfQueue(NfQueue::new(host, target.step, NAME, traffic, delay)),
        };
        let mut delaying = Delaying {
            means,
            delay_ms: delay.as_millis() as u64,
            last_netem: None,
            leads: false,
            died: None,
        };
        if let Err(error) = delaying.prepare(hands) {
            // What is half made must not stay.
            let _ = delaying.heal(hands);
            return Err(error);
        }
        Ok(Box::new(delaying))
    }
}

/// The addresses of the host that is named, or of all servers; none where all packets are meant.
fn destinations(target: &Target, hosts: &dyn Hosts) -> Result<Vec<Ipv4Addr>, FaultError> {
    let names = match target.text("to")? {
        None => Vec::new(),
        Some(SERVERS) => hosts.servers(),
        Some(host) => vec![host.to_owned()],
    };
    let address = |name: &String| {
        let address = hosts.address(name);
        address.ok_or_else(|| FaultError::Plan(format!("no host is called `{name}`")))
    };
    names.iter().map(address).collect()
}

/// By what packets are held.
enum Means {
    Netem(Netem),
    NfQueue(NfQueue),
}

struct Delaying {
    means: Means,
    delay_ms: u64,
    /// What the kernel said of the `netem` last, before it was taken away.
    last_netem: Option<netem::Figures>,
    /// Whether traffic was led there, and not away again.
    leads: bool,
    /// What became of the process that holds the packets, if it did not last as long as the fault.
    died: Option<String>,
}

impl Delaying {
    fn prepare(&mut self, hands: &mut Hands) -> Result<(), FaultError> {
        match &self.means {
            Means::Netem(netem) => netem.prepare(hands),
            Means::NfQueue(queue) => queue.prepare(hands),
        }
    }

    fn evidence(&self, packets: u64) -> Evidence {
        let mut evidence = Evidence::new();
        evidence.insert("delay_ms".to_owned(), json!(self.delay_ms));
        evidence.insert("packets".to_owned(), json!(packets));
        evidence
    }
}

impl Strike for Delaying {
    fn engine(&self) -> &'static str {
        match self.means {
            Means::Netem(_) => "netem",
            Means::NfQueue(_) => "nfqueue",
        }
    }

    fn inject(&mut self, hands: &mut Hands, _trigger: &Trigger) -> Result<u64, FaultError> {
        match &self.means {
            Means::Netem(netem) => netem.lead(hands)?,
            Means::NfQueue(queue) => queue.lead(hands)?,
        }
        self.leads = true;
        Ok(monotonic_ns())
    }

    fn patience(&self) -> Patience {
        Patience::WhileItLasts
    }

    fn shown(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        let (packets, holding) = match &self.means {
            Means::Netem(netem) => match netem.figures(hands)? {
                Some(figures) => (figures.packets + figures.qlen, figures.qlen),
                None => return Ok(None),
            },
            Means::NfQueue(queue) => match queue.figures(hands)? {
                Some(figures) => (figures.packets, figures.holding),
                None => return Ok(None),
            },
        };
        if packets == 0 {
            return Ok(None);
        }
        let mut evidence = self.evidence(packets);
        evidence.insert("holding".to_owned(), json!(holding));
        if let Means::NfQueue(queue) = &self.means {
            evidence.insert(
                "packets_queued".to_owned(),
                json!(queue.packets_queued(hands)?),
            );
        }
        Ok(Some(evidence))
    }

    fn heal(&mut self, hands: &mut Hands) -> Result<(), FaultError> {
        match &self.means {
            Means::Netem(netem) => {
                let figures = netem.figures(hands)?;
                self.last_netem = figures.or(self.last_netem.take());
                netem.remove(hands)
            }
            Means::NfQueue(queue) => {
                if std::mem::take(&mut self.leads) {
                    self.died = queue.holder_died(hands)?;
                }
                queue.remove(hands)
            }
        }
    }

    fn over(&mut self, hands: &mut Hands) -> Result<Option<Evidence>, FaultError> {
        match &self.means {
            Means::Netem(netem) => {
                if !netem.is_gone(hands)? {
                    return Ok(None);
                }
                let last = self.last_netem.clone().unwrap_or_default();
                let mut evidence = self.evidence(last.packets + last.qlen);
                evidence.insert("dropped_at_end".to_owned(), json!(last.qlen));
                evidence.insert("dropped".to_owned(), json!(last.drops));
                Ok(Some(evidence))
            }
            Means::NfQueue(queue) => {
                if !queue.is_gone(hands)? {
                    return Ok(None);
                }
                if let Some(died) = &self.died {
                    return Err(FaultError::Unavailable(died.clone()));
                }
                let figures = queue.figures(hands)?.unwrap_or_default();
                let mut evidence = self.evidence(figures.packets);
                evidence.insert("released".to_owned(), json!(figures.released));
                evidence.insert("released_at_end".to_owned(), json!(figures.released_at_end));
                evidence.insert("held_us_min".to_owned(), json!(figures.held_us_min));
                evidence.insert("held_us_max".to_owned(), json!(figures.held_us_max));
                Ok(Some(evidence))
            }
        }
    }
}
