//! What a run is to be: the lock, the storage, and what goes wrong.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::MS;
use crate::contracts;

/// The kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With expiry, the client extends it now and then.
    Lease,
    /// With expiry, renewed in the background.
    Renewed,
    /// Without expiry.
    Session,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    Nothing,
    /// `c1` stops for longer than its lease.
    LongPause,
    /// `c1` stops for a moment.
    ShortPause,
    /// `c1` is killed and started again.
    Crash,
    /// `c1` is killed and started again at once.
    ClientRestart,
    /// `c1` works for longer than its lease.
    LongWork,
    /// The storage stops for longer than a lease.
    StoragePause,
    /// The server's clock is stepped ahead, and back.
    ClockStep,
    /// The server is killed and forgets.
    Restart,
    /// `c1`'s packets to the storage are held for longer than its lease.
    Delay,
    /// `c1`'s packets to the lock's server are held for longer than its lease.
    CutOff,
    /// `c1` stands still for longer than its lease, and nobody planned it.
    Stall,
    /// The storage does.
    StorageStall,
}

const TROUBLES: [Trouble; 13] = [
    Trouble::Nothing,
    Trouble::LongPause,
    Trouble::ShortPause,
    Trouble::Crash,
    Trouble::ClientRestart,
    Trouble::LongWork,
    Trouble::StoragePause,
    Trouble::ClockStep,
    Trouble::Restart,
    Trouble::Delay,
    Trouble::CutOff,
    Trouble::Stall,
    Trouble::StorageStall,
];

/// A run that is to be.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The seed.
    pub seed: u64,
    /// The kind of lock.
    pub kind: Kind,
    /// Whether grants have tokens.
    pub tokens: bool,
    /// Whether the storage refuses writes with a lower token than it has seen.
    pub fenced: bool,
    /// How many clients there are.
    pub clients: u64,
    /// The TTL in milliseconds.
    pub ttl_ms: u64,
    /// What goes wrong.
    pub trouble: Trouble,
    /// Under which of `c1`'s grants.
    pub nth: u64,
    /// How many rounds each client has before and after.
    pub rounds: u64,
    /// Whether the end of a killed client is recorded.
    pub tells_of_kills: bool,
    /// Whether writes say what they are based on.
    pub tells_bases: bool,
    /// Whether a healing says what it heals, beside its step.
    pub tells_of_heals: bool,
    /// Whether evidence says when the fault took hold.
    pub tells_when: bool,
    /// How clients end.
    pub end: &'static str,
}

impl Setup {
    /// Draws one.
    pub fn draw(rng: &mut ChaCha8Rng, seed: u64) -> Self {
        let kind = [Kind::Lease, Kind::Lease, Kind::Renewed, Kind::Session][rng.random_range(0..4)];
        let tokens = rng.random_bool(0.6);
        Setup {
            seed,
            kind,
            tokens,
            fenced: tokens && rng.random_bool(0.6),
            clients: rng.random_range(2..=4),
            ttl_ms: 300,
            trouble: TROUBLES[rng.random_range(0..TROUBLES.len())],
            nth: 2,
            rounds: 2,
            tells_of_kills: rng.random_bool(0.5),
            tells_bases: rng.random_bool(0.9),
            tells_of_heals: rng.random_bool(0.8),
            tells_when: rng.random_bool(0.5),
            end: ["exit 0", "exit 0", "signal 9, as asked"][rng.random_range(0..3)],
        }
    }

    /// The TTL in nanoseconds.
    pub fn ttl(&self) -> u64 {
        self.ttl_ms * MS
    }

    /// How long the trouble lasts, in milliseconds.
    pub fn lasts_ms(&self) -> u64 {
        match self.trouble {
            Trouble::ShortPause => self.ttl_ms / 10,
            Trouble::LongPause
            | Trouble::LongWork
            | Trouble::StoragePause
            | Trouble::Delay
            | Trouble::CutOff
            | Trouble::Stall
            | Trouble::StorageStall => 2 * self.ttl_ms,
            Trouble::Crash | Trouble::ClientRestart => 50,
            _ => 100,
        }
    }

    /// By how much the clock is stepped, in milliseconds.
    pub fn step_ms(&self) -> u64 {
        10 * self.ttl_ms
    }

    /// The host that is struck.
    pub fn on(&self) -> &'static str {
        match self.trouble {
            Trouble::ClockStep | Trouble::Restart => "s1",
            Trouble::StoragePause => "storage",
            _ => "c1",
        }
    }

    /// The fault's name.
    pub fn fault(&self) -> Option<&'static str> {
        match self.trouble {
            Trouble::Nothing | Trouble::Stall | Trouble::StorageStall => None,
            Trouble::LongPause | Trouble::ShortPause | Trouble::StoragePause => Some("pause"),
            Trouble::Crash => Some("crash"),
            Trouble::LongWork => Some("long-work"),
            Trouble::ClockStep => Some("clock-step"),
            Trouble::Restart | Trouble::ClientRestart => Some("restart"),
            Trouble::Delay | Trouble::CutOff => Some("delay"),
        }
    }

    fn delayed_to(&self) -> &'static str {
        match self.trouble {
            Trouble::CutOff => "servers",
            _ => "storage",
        }
    }

    /// What the fault does.
    pub fn does(&self) -> Value {
        match self.trouble {
            Trouble::LongPause | Trouble::ShortPause | Trouble::StoragePause => {
                json!([{"effect": "stops"}])
            }
            Trouble::Crash => json!([{"effect": "kills"}]),
            Trouble::LongWork => json!([{"effect": "holds-work"}]),
            Trouble::Restart | Trouble::ClientRestart => json!([{"effect": "restarts"}]),
            Trouble::ClockStep => json!([{"effect": "clock-forward"}]),
            Trouble::Delay | Trouble::CutOff => {
                let to = self.delayed_to();
                json!([{"effect": "delays-packets", "to": to, "each_ms": 100 * self.ttl_ms}])
            }
            Trouble::Nothing | Trouble::Stall | Trouble::StorageStall => json!([]),
        }
    }

    fn shows(&self) -> Value {
        match self.trouble {
            Trouble::LongPause | Trouble::ShortPause | Trouble::StoragePause => {
                json!({"states": {"only": "T"}})
            }
            Trouble::Crash => json!({"ended": {}}),
            Trouble::LongWork => json!({"completed_meanwhile": {"equals": 0}}),
            Trouble::Restart | Trouble::ClientRestart => {
                json!({"pid": {"differs_from": "pid_before"}})
            }
            Trouble::ClockStep => {
                let step = self.step_ms();
                json!({"measured_step_ms": {"near": step, "within": step / 2}})
            }
            Trouble::Delay | Trouble::CutOff => json!({"packets": {"at_least": 1}}),
            Trouble::Nothing | Trouble::Stall | Trouble::StorageStall => json!({}),
        }
    }

    /// What shows that it took hold.
    pub fn evidence(&self) -> Value {
        match self.trouble {
            Trouble::LongPause | Trouble::ShortPause | Trouble::StoragePause => {
                json!({"states": "TT", "latency_us": 400})
            }
            Trouble::Crash => json!({"ended": "signal_9", "pid": 219}),
            Trouble::LongWork => json!({"completed_meanwhile": 0}),
            Trouble::Restart | Trouble::ClientRestart => json!({"pid": 2, "pid_before": 1}),
            Trouble::ClockStep => json!({"measured_step_ms": self.step_ms() + 3}),
            Trouble::Delay | Trouble::CutOff => json!({"packets": 4}),
            Trouble::Nothing | Trouble::Stall | Trouble::StorageStall => json!({}),
        }
    }

    fn with(&self) -> Value {
        match self.trouble {
            Trouble::ClockStep => json!({"step_ms": self.step_ms()}),
            Trouble::Delay | Trouble::CutOff => {
                json!({"to": self.delayed_to(), "delay_ms": 100 * self.ttl_ms})
            }
            _ => json!({}),
        }
    }

    fn faults(&self) -> Value {
        let Some(fault) = self.fault() else {
            return json!([]);
        };
        json!([{
            "fault": fault,
            "on": self.on(),
            "when": {"trigger": "point", "client": "c1", "point": "before-write", "nth_grant": self.nth},
            "until": {"after_ms": self.lasts_ms()},
            "with": self.with(),
            "does": self.does(),
            "shows": self.shows(),
        }])
    }

    /// The header of the history.
    pub fn header(&self) -> Value {
        let mut plan = json!({
            "scenario": "simulated", "topology": "one", "storage": "register", "controls": [],
            "lock": format!("{:?}", self.kind).to_lowercase(),
            "policy": if self.fenced { "fenced" } else { "unfenced" },
            "seed": self.seed, "clients": self.clients, "ttl_ms": self.ttl_ms,
            "progress_bound_ms": 4 * self.ttl_ms, "limit_ms": 60_000,
            "workload": {"name": "document", "work_ms": 5, "rest_ms": 20, "retry_ms": 15, "rounds": self.rounds},
            "faults": self.faults(),
        });
        if self.fenced {
            plan["write_condition"] = "token".into();
        }
        let contract = match self.kind {
            Kind::Session => contracts::of_a_session(),
            _ => contracts::of_a_lease(self.fenced),
        };
        json!({
            "fencepost": 2, "run": "019ad1f0-6c00-7b3a-9d51-2f6f0c8e4a17", "started": "2025-11-30T01:20:00Z",
            "seed": self.seed, "plan": plan, "servers": {"s1": "1.0", "storage": "1.0"}, "images": {}, "machine": {},
            "build": "0.1.0", "contract": contract, "heartbeat_ms": 5,
        })
    }
}
