//! Certain holds: the times in which the service must take a grant to be held, whatever the order in which it saw the
//! requests.

use crate::grants::{Interval, OverOnArrival};
use crate::operations::{Acquire, Completion, Extend, NEVER, Record};

/// What is found of all grants.
pub(super) struct Holds {
    pub(super) certain: Vec<Interval>,
    pub(super) over_on_arrival: Vec<OverOnArrival>,
    /// By acquire.
    pub(super) valid_until: Vec<u64>,
    /// Overdue times, as (grant, from, until) and ordered by grant: the validity was over, and an extension that was asked
    /// for later succeeded all the same, so that the lease was still there.
    pub(super) overdue: Vec<(u32, u64, u64)>,
    /// By acquire: until when the plan's lease lives at least, whatever validity was told.
    pub(super) lives_until: Vec<u64>,
}

/// `ttl_ns` is how long the plan's leases live.
pub(super) fn holds(record: &Record, ttl_ns: u64) -> Holds {
    // When an extension counts: from its return on, and at the earliest from its request on where its outcome is unknown.
    let counts_from = |extend: &Extend| match extend.call.completion {
        Completion::Ok => extend.call.completed,
        _ => extend.call.invoked,
    };
    let mut extends: Vec<&Extend> = record.extends.iter().collect();
    extends.sort_by_key(|extend| (extend.grant, counts_from(extend)));
    let mut extends = extends.into_iter().peekable();
    let mut holds = Holds {
        certain: Vec::with_capacity(record.acquires.len() / 2),
        over_on_arrival: Vec::new(),
        valid_until: vec![NEVER; record.acquires.len()],
        overdue: Vec::new(),
        lives_until: vec![0; record.acquires.len()],
    };
    let mut own = Vec::new();
    for (grant, acquire) in record.acquires.iter().enumerate() {
        let grant = grant as u32;
        own.clear();
        while let Some(extend) = extends.next_if(|extend| extend.grant <= grant) {
            // What is asked for when the hold is over changes nothing of it.
            if extend.call.invoked < acquire.end.at {
                own.push(extend);
            }
        }
        if acquire.granted() {
            let killed_from = killed_from(record, acquire);
            holds.push(grant, acquire, &own, killed_from);
            holds.lives_until[grant as usize] = lives_until(acquire, &own, ttl_ns);
        }
    }
    holds.certain.sort_unstable();
    holds
}

/// When the client of a grant began to be killed, if that was not done when the grant arrived.
fn killed_from(record: &Record, acquire: &Acquire) -> u64 {
    let returned = acquire.call.completed;
    let crashes = &record.processes[acquire.call.process as usize].crashes;
    let first = crashes.first_done_since(returned);
    first.map_or(NEVER, |crash| crash.invoked)
}

impl Holds {
    /// Adds the certain holds of one grant: one, unless a renewal came when its validity was over.
    ///
    /// Its client began to be killed at `killed_from`, while the grant arrived or later.
    fn push(&mut self, grant: u32, acquire: &Acquire, extends: &[&Extend], killed_from: u64) {
        let (mut start, mut until) = (acquire.call.completed, acquire.validity);
        let mut over = until.min(killed_from);
        // It was given up, or lost, at the instant at which it came.
        if acquire.end.at == start && acquire.end.why.is_told() {
            over = over.min(start);
        }
        if over <= start {
            self.over_on_arrival.push(OverOnArrival {
                lock: acquire.lock,
                over,
                invoked: acquire.call.invoked,
                returned: start,
                grant,
                op: acquire.call.op,
            });
        }
        for extend in extends {
            if extend.renewed && extend.call.completed >= until {
                self.push_one(grant, acquire, start, until);
                start = extend.call.completed;
            }
            if !extend.renewed && extend.call.ok() && until < extend.call.invoked {
                self.overdue.push((grant, until, extend.call.invoked));
            }
            until = valid_after(until, extend);
        }
        self.push_one(grant, acquire, start, until);
        self.valid_until[grant as usize] = until;
    }

    fn push_one(&mut self, grant: u32, acquire: &Acquire, start: u64, until: u64) {
        let end = until.min(acquire.end.at).min(acquire.server_died);
        if start < end {
            self.certain.push(Interval {
                lock: acquire.lock,
                start,
                end,
                grant,
                process: acquire.call.process,
                op: acquire.call.op,
                granted: true,
            });
        }
    }
}

/// The end of a lease at the earliest: four fifths of the TTL that was asked for, counted from the request, or the latest
/// renewal if that is later. A record that tells a shorter validity must not make its client look late.
fn lives_until(acquire: &Acquire, extends: &[&Extend], ttl_ns: u64) -> u64 {
    let least = |asked: u64, ttl_ns: u64| asked.saturating_add(ttl_ns / 5 * 4);
    let mut until = least(acquire.call.invoked, ttl_ns);
    for extend in extends.iter().filter(|extend| extend.call.ok()) {
        let asked_ns = extend
            .ttl_ms
            .map_or(ttl_ns, |ttl_ms| ttl_ms.saturating_mul(1_000_000));
        until = match extend.renewed {
            true => until.max(extend.validity.unwrap_or(0)),
            false => least(extend.call.invoked, asked_ns),
        };
    }
    until
}

/// Until when a grant is valid that was valid until some instant, once an extension has come.
///
/// One that succeeded proves that the grant had not ended when it was asked for: it leaves no gap, however late it
/// returned. One that shortens the validity may have done so since then. One of unknown outcome may have replaced the time
/// that was left by the time that was asked for.
fn valid_after(until: u64, extend: &Extend) -> u64 {
    let Extend {
        call,
        validity,
        ttl_ms,
        ..
    } = extend;
    match call.completion {
        Completion::Ok => validity.map_or(until, |told| told.max(call.invoked)),
        Completion::Info | Completion::Pending => {
            let asked = ttl_ms.map_or(0, |ttl_ms| {
                call.invoked
                    .saturating_add(ttl_ms.saturating_mul(1_000_000))
            });
            until.min(asked.max(call.invoked))
        }
        Completion::Fail => until,
    }
}
