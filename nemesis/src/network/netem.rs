//! Holds packets by `netem`, a queueing discipline of the kernel.
//!
//! The host's device gets a `prio` root once, with a band for each fault, and keeps it: taking a root away drops what
//! is in it. A fault hangs a `netem` below its band and a filter that leads its traffic there. When it heals, filter
//! and `netem` go. What was held then is dropped, since the kernel cannot give it back early, and TCP sends it again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use containers::agent::Agent;
use serde::Deserialize;

use super::{Traffic, change, complaint, look};
use crate::faults::FaultError;
use crate::hands::Hands;

/// Docker calls the device of a container's first network so.
const DEVICE: &str = "eth0";

/// Bands 1 to 3 are for traffic that no fault touches; the others for one step of the plan each.
const FIRST_BAND: usize = 4;

/// The most bands that `prio` has.
const BANDS: usize = 16;

/// Where `prio` sends packets by their type of service, as it does by default.
const PRIOMAP: &str = "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1";

/// The longest delay that `tc` takes for `netem`, which counts in 32 bits of 64 ns, is a little longer.
const LONGEST: Duration = Duration::from_secs(270);

/// How many packets `netem` may hold.
const PACKETS_MAX: &str = "100000";

/// A band of the device of one host.
pub(crate) struct Netem {
    host: String,
    traffic: Traffic,
    delay: Duration,
    band: usize,
}

/// What the kernel says of a queueing discipline (`tc -s -j qdisc show`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Figures {
    handle: String,
    /// Packets that were held and went on.
    #[serde(default)]
    pub packets: u64,
    /// Packets that are held now.
    #[serde(default)]
    pub qlen: u64,
    /// Packets that were dropped.
    #[serde(default)]
    pub drops: u64,
}

impl Netem {
    /// Nothing is there yet. `None` if there is no band for the step, or the delay is longer than `netem` can.
    pub fn new(host: &str, step: usize, traffic: Traffic, delay: Duration) -> Option<Netem> {
        let band = FIRST_BAND + step;
        (band <= BANDS && delay <= LONGEST).then(|| Netem {
            host: host.to_owned(),
            traffic,
            delay,
            band,
        })
    }

    /// Why it cannot be used in a host; `None` if it can. The loopback is used to find out, and left as it was.
    pub fn lacks(agent: &mut Agent) -> Option<String> {
        // Two that try it in one host at once would take it from each other.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let root = "tc qdisc add dev lo root handle 1: prio";
        let netem = "tc qdisc add dev lo parent 1:1 netem delay 1ms";
        let undo = "tc qdisc del dev lo root";
        let mut complaint = |command: &str| {
            let argv: Vec<&str> = command.split(' ').collect();
            complaint(agent, &argv)
        };
        if let Some(lacks) = complaint(root) {
            return Some(lacks);
        }
        let lacks = complaint(netem);
        complaint(undo).or(lacks)
    }

    /// Hangs a `netem` below the band, which nothing leads to yet.
    pub fn prepare(&self, hands: &mut Hands) -> Result<(), FaultError> {
        let shown = look(
            hands,
            &self.host,
            &["tc", "qdisc", "show", "dev", DEVICE, "root"],
        )?;
        if !shown.stdout.contains("qdisc prio 1:") {
            let bands = BANDS.to_string();
            let mut root: Vec<&str> = vec!["tc", "qdisc", "replace", "dev", DEVICE, "root"];
            root.extend(["handle", "1:", "prio", "bands", &bands, "priomap"]);
            root.extend(PRIOMAP.split(' '));
            change(hands, &self.host, &root)?;
        }
        let (parent, handle) = (self.class(), self.handle());
        let delay = format!("{}ms", self.delay.as_millis());
        let mut netem = vec!["tc", "qdisc", "replace", "dev", DEVICE, "parent", &parent];
        netem.extend([
            "handle",
            &handle,
            "netem",
            "limit",
            PACKETS_MAX,
            "delay",
            &delay,
        ]);
        change(hands, &self.host, &netem)
    }

    /// Leads the traffic to the band.
    pub fn lead(&self, hands: &mut Hands) -> Result<(), FaultError> {
        for matches in self.matches() {
            let (class, priority) = (self.class(), self.band.to_string());
            let mut filter = vec!["tc", "filter", "add", "dev", DEVICE, "parent", "1:"];
            filter.extend(["protocol", "ip", "prio", &priority, "u32"]);
            filter.extend(matches.split(' '));
            filter.extend(["flowid", &class]);
            change(hands, &self.host, &filter)?;
        }
        Ok(())
    }

    /// What `u32` has to match, one filter each.
    fn matches(&self) -> Vec<String> {
        let hosts: Vec<String> = match self.traffic.to.as_slice() {
            [] => vec!["match u32 0 0".to_owned()],
            hosts => hosts
                .iter()
                .map(|to| format!("match ip dst {to}/32"))
                .collect(),
        };
        let Some(port) = self.traffic.port else {
            return hosts;
        };
        let with_port = |host: &String| {
            ["dport", "sport"].map(|side| {
                format!("{host} match ip protocol 6 0xff match ip {side} {port} 0xffff")
            })
        };
        hosts.iter().flat_map(with_port).collect()
    }

    /// What the kernel says of the `netem`; `None` if it is not there.
    pub fn figures(&self, hands: &mut Hands) -> Result<Option<Figures>, FaultError> {
        let ran = look(
            hands,
            &self.host,
            &["tc", "-s", "-j", "qdisc", "show", "dev", DEVICE],
        )?;
        Ok(find(&ran.stdout, &self.handle()))
    }

    /// Leads the traffic past the band again and removes what hangs below it, with all that it holds.
    pub fn remove(&self, hands: &mut Hands) -> Result<(), FaultError> {
        let priority = self.band.to_string();
        if self.leads(hands)? {
            let mut filter = vec!["tc", "filter", "del", "dev", DEVICE, "parent", "1:"];
            filter.extend(["protocol", "ip", "prio", &priority]);
            change(hands, &self.host, &filter)?;
        }
        if self.figures(hands)?.is_some() {
            let class = self.class();
            change(
                hands,
                &self.host,
                &["tc", "qdisc", "del", "dev", DEVICE, "parent", &class],
            )?;
        }
        Ok(())
    }

    /// Whether nothing of it is left.
    pub fn is_gone(&self, hands: &mut Hands) -> Result<bool, FaultError> {
        Ok(!self.leads(hands)? && self.figures(hands)?.is_none())
    }

    fn leads(&self, hands: &mut Hands) -> Result<bool, FaultError> {
        let priority = self.band.to_string();
        let shown = [
            "tc", "filter", "show", "dev", DEVICE, "parent", "1:", "prio", &priority,
        ];
        Ok(look(hands, &self.host, &shown)?.stdout.contains("flowid"))
    }

    fn class(&self) -> String {
        format!("1:{:x}", self.band)
    }

    fn handle(&self) -> String {
        format!("{:x}0:", self.band)
    }
}

fn find(json: &str, handle: &str) -> Option<Figures> {
    let all: Vec<Figures> = serde_json::from_str(json).ok()?;
    all.into_iter().find(|figures| figures.handle == handle)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn netem(step: usize, to: &[Ipv4Addr], port: Option<u16>, delay: Duration) -> Option<Netem> {
        let traffic = Traffic {
            to: to.to_vec(),
            port,
        };
        Netem::new("c1", step, traffic, delay)
    }

    #[test]
    fn filters_match_each_host_and_each_side_of_the_port() {
        let matches = |to: &[Ipv4Addr], port| {
            let netem = netem(0, to, port, Duration::from_millis(1)).unwrap();
            netem.matches()
        };
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3));
        assert_eq!(matches(&[], None), ["match u32 0 0"]);
        assert_eq!(
            matches(&[a, b], None),
            ["match ip dst 10.0.0.2/32", "match ip dst 10.0.0.3/32"]
        );
        assert_eq!(
            matches(&[a], Some(5432)),
            [
                "match ip dst 10.0.0.2/32 match ip protocol 6 0xff match ip dport 5432 0xffff",
                "match ip dst 10.0.0.2/32 match ip protocol 6 0xff match ip sport 5432 0xffff",
            ]
        );
    }

    #[test]
    fn each_step_has_a_band_of_its_own_while_there_are_any() {
        let second = Duration::from_secs(1);
        let last = netem(12, &[], None, second).unwrap();
        assert_eq!(
            (last.class(), last.handle()),
            ("1:10".to_owned(), "100:".to_owned())
        );
        assert!(netem(13, &[], None, second).is_none());
        assert!(netem(0, &[], None, Duration::from_secs(271)).is_none());
    }

    #[test]
    fn figures_are_found_by_their_handle() {
        let json = r#"[
            {"kind":"prio","handle":"1:","root":true,"packets":9},
            {"kind":"netem","handle":"40:","parent":"1:4","options":{"limit":100000},"bytes":90,"packets":3,"drops":1,"qlen":2}
        ]"#;
        let figures = find(json, "40:").unwrap();
        assert_eq!((figures.packets, figures.qlen, figures.drops), (3, 2, 1));
        assert_eq!(find(json, "50:"), None);
        assert_eq!(find("no json", "40:"), None);
    }
}
