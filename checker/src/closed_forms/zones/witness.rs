//! The fewest calls that break a rule, and how.

use super::clusters::{Clusters, UNWRITTEN};
use super::times::{BEGINNING, Times};
use super::{Access, Accessed};
use crate::linearizability::{History, NEVER};
use crate::models::Datum;
use crate::names::{Map, NONE};

/// Judges a few calls of a history, with all others free to have happened or not.
pub(super) struct Evidence<'h, M: Accessed> {
    model: &'h M,
    history: &'h History<M::Operation>,
    times: &'h Times,
    clusters: &'h Clusters,
}

/// Why calls have no order.
pub(super) enum Reason {
    /// The call found what nothing wrote.
    Unwritten(u32),
    /// Two cas found the same value.
    Rivals(u32, u32),
    /// The first call was over before the second one began, which belongs to an earlier value or wrote what it found.
    Reversed(u32, u32),
    /// Each of two chains must come before the other.
    Crossed(Chain, Chain),
}

/// The ends of a chain's zone.
pub(super) struct Chain {
    /// The rank of the earliest return, and its call; [`NONE`] for the initial value.
    first: (u32, u32),
    /// The rank before the latest invocation, and its call.
    last: (u32, u32),
}

impl<'h, M: Accessed> Evidence<'h, M> {
    pub(super) fn new(
        model: &'h M,
        history: &'h History<M::Operation>,
        times: &'h Times,
        clusters: &'h Clusters,
    ) -> Evidence<'h, M> {
        Evidence {
            model,
            history,
            times,
            clusters,
        }
    }

    /// Leaves out calls, as long as the rest breaks a rule.
    pub(super) fn reduce(&self, mut calls: Vec<u32>) -> Vec<u32> {
        calls.sort_unstable();
        calls.dedup();
        debug_assert!(self.judge(&calls).is_some(), "{calls:?} break a rule");
        let mut at = 0;
        while at < calls.len() {
            let call = calls.remove(at);
            if self.judge(&calls).is_none() {
                calls.insert(at, call);
                at += 1;
            }
        }
        calls
    }

    /// The rule that calls break together with what must have written the values that they found.
    pub(super) fn judge(&self, calls: &[u32]) -> Option<Reason> {
        let mut next: Map<u32, u32> = Map::default();
        let mut roots = Vec::new();
        for &call in calls {
            let mut cluster = self.clusters.of[call as usize];
            loop {
                if cluster == UNWRITTEN {
                    return Some(Reason::Unwritten(call));
                }
                let parent = self.clusters.parent(cluster);
                if parent == NONE {
                    roots.push(cluster);
                    break;
                }
                match next.insert(parent, cluster) {
                    // From here on the way was gone before.
                    Some(known) if known == cluster => break,
                    Some(rival) => {
                        let writer = |cluster| self.clusters.writer(cluster);
                        return Some(Reason::Rivals(writer(rival), writer(cluster)));
                    }
                    None => cluster = parent,
                }
            }
        }
        roots.sort_unstable();
        roots.dedup();
        let mut chains = Vec::new();
        for root in roots {
            match self.chain(calls, root, &next) {
                Ok(chain) => chains.push(chain),
                Err(reason) => return Some(reason),
            }
        }
        crossed(chains)
    }

    /// The zone of a chain with these calls in it, unless their order is reversed.
    fn chain(&self, calls: &[u32], root: u32, next: &Map<u32, u32>) -> Result<Chain, Reason> {
        let mut chain = Chain {
            first: (NEVER, NONE),
            last: (0, NONE),
        };
        let mut cluster = Some(root);
        while let Some(at) = cluster {
            let writer = self.clusters.writer(at);
            if writer == NONE {
                chain.first = (BEGINNING, NONE);
            } else {
                self.extend(&mut chain, &[writer])?;
            }
            let found = |&call: &u32| self.clusters.of[call as usize] == at && call != writer;
            let reads: Vec<u32> = calls.iter().copied().filter(found).collect();
            self.extend(&mut chain, &reads)?;
            cluster = next.get(&at).copied();
        }
        Ok(chain)
    }

    /// Adds calls that must come after all others in a chain.
    fn extend(&self, chain: &mut Chain, calls: &[u32]) -> Result<(), Reason> {
        let rank = |call: u32| self.times.ranks[call as usize];
        let before = |call: u32| self.times.before[call as usize];
        let (last, last_call) = chain.last;
        if let Some(&call) = calls.iter().find(|&&call| rank(call) <= last) {
            return Err(Reason::Reversed(call, last_call));
        }
        for &call in calls {
            chain.first = chain.first.min((rank(call), call));
            chain.last = chain.last.max((before(call), call));
        }
        Ok(())
    }

    fn call(&self, call: u32) -> String {
        let call = &self.history.calls()[call as usize];
        format!("{} ({})", self.model.describe(&call.operation), call.id)
    }

    /// A reason, as a sentence.
    pub(super) fn tell(&self, reason: &Reason) -> String {
        let call = |call| self.call(call);
        match *reason {
            Reason::Unwritten(reader) => {
                format!("{} needs a value that nothing wrote", call(reader))
            }
            Reason::Rivals(one, other) => {
                let (one, other) = (call(one), call(other));
                format!("{one} and {other} cannot both have found what was there only once")
            }
            Reason::Reversed(later, earlier) => {
                let cluster = self.clusters.of[earlier as usize];
                let why = if self.clusters.writer(cluster) == earlier {
                    "without which it could not have been".to_owned()
                } else {
                    self.not_again(self.value(earlier))
                };
                let (later, earlier) = (call(later), call(earlier));
                format!("{later} was over before {earlier} began, {why}")
            }
            Reason::Crossed(ref one, ref other) => self.tell_crossed(one, other),
        }
    }

    fn tell_crossed(&self, one: &Chain, other: &Chain) -> String {
        // Best said around one call, and never around the initial value, which no call wrote.
        let fits = |around: &Chain, inside: &Chain| {
            around.first.1 == NONE || (inside.first.1 != NONE && inside.first.1 == inside.last.1)
        };
        let (around, inside) = if fits(one, other) {
            (one, other)
        } else {
            (other, one)
        };
        let call = |call| self.call(call);
        let (end, start) = (call(around.last.1), call(inside.first.1));
        let gone = self.gone(around);
        match (around.first.1, inside.first.1 == inside.last.1) {
            (NONE, _) => format!("{start} was over before {end} began, {gone}"),
            (first, true) => format!(
                "{} was over before {start} began, and that before {end} began, {gone}",
                call(first)
            ),
            (first, false) => format!(
                "{} was over before {} began, and {start} before {end} began, {gone}",
                call(first),
                call(inside.last.1)
            ),
        }
    }

    /// What would have had to happen for the last call of a chain's zone.
    fn gone(&self, chain: &Chain) -> String {
        let (first, last) = (self.value(chain.first.1), self.value(chain.last.1));
        if first == last {
            return self.not_again(last);
        }
        let [first, last] = [first, last].map(|value| self.model.describe_state(&value));
        format!("and only cas led from {first} to {last}")
    }

    fn not_again(&self, value: Datum) -> String {
        format!(
            "and nothing wrote {} again",
            self.model.describe_state(&value)
        )
    }

    /// The value that a call wrote or, if it wrote none, found; the initial one for no call.
    fn value(&self, call: u32) -> Datum {
        if call == NONE {
            return self.model.initial();
        }
        match self
            .model
            .access(&self.history.calls()[call as usize].operation)
        {
            Access::Read(value) | Access::Write(value) | Access::Cas { new: value, .. } => value,
            Access::Other => self.model.initial(),
        }
    }
}

/// The first two chains each of which must come before the other.
fn crossed(mut chains: Vec<Chain>) -> Option<Reason> {
    while let Some(one) = chains.pop() {
        let rival = chains
            .iter()
            .position(|other| one.first.0 <= other.last.0 && other.first.0 <= one.last.0);
        if let Some(rival) = rival {
            return Some(Reason::Crossed(chains.swap_remove(rival), one));
        }
    }
    None
}
