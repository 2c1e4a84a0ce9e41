//! Answers that contradict a delay of packets: they came sooner than delayed packets can.

use std::collections::HashMap;

use histories::{Deed, Effect, PlannedFault, Role, SERVERS, host_of};

use super::act::Act;
use super::served::{by_lock, by_storage};
use super::{Faults, does};
use crate::operations::{Call, NEVER, Record};

/// What was answered soon: when it was asked for, in order, and when it was answered.
type Soon = Vec<(u64, u64)>;

/// What was answered to clients sooner than some planned fault holds up their packets, by their hosts.
#[derive(Default)]
pub(super) struct Prompt {
    by_lock: HashMap<String, Soon>,
    by_storage: HashMap<String, Soon>,
    /// The lock's server, if it has one alone.
    only_server: Option<String>,
}

impl Prompt {
    pub(super) fn of(
        record: &Record,
        planned: &[PlannedFault],
        only_server: Option<String>,
    ) -> Prompt {
        let effects = planned.iter().flat_map(|fault| &fault.does);
        let Some(longest) = effects.filter_map(soonest).max() else {
            return Prompt::default();
        };
        let soon = |calls: &mut dyn Iterator<Item = &Call>| {
            let mut by_host: HashMap<String, Soon> = HashMap::new();
            for call in calls.filter(|call| call.completed - call.invoked < longest) {
                let host = host_of(record.process(call)).to_owned();
                let of_host = by_host.entry(host).or_default();
                of_host.push((call.invoked, call.completed));
            }
            for of_host in by_host.values_mut() {
                of_host.sort_unstable();
            }
            by_host
        };
        Prompt {
            by_lock: soon(&mut by_lock(record)),
            by_storage: soon(&mut by_storage(record)),
            only_server,
        }
    }

    /// What was answered to a client's host by those to whom an effect holds its packets up.
    fn to_those(&self, host: &str, effect: &Effect) -> impl Iterator<Item = &(u64, u64)> {
        let to = effect.to.as_deref();
        let is_lock = to.is_none_or(|to| to == SERVERS || Some(to) == self.only_server.as_deref());
        let is_storage = to.is_none_or(|to| Role::of(to) == Some(Role::Storage));
        let of_lock = self.by_lock.get(host).filter(|_| is_lock);
        let of_storage = self.by_storage.get(host).filter(|_| is_storage);
        of_lock.into_iter().chain(of_storage).flatten()
    }
}

/// The soonest that an answer can come whose packets an effect holds up, in nanoseconds; half of what it should be, as no
/// clock is perfect.
fn soonest(effect: &Effect) -> Option<u64> {
    let each_ms = effect
        .each_ms
        .filter(|_| effect.effect == Deed::DelaysPackets)?;
    Some(each_ms.saturating_mul(1_000_000) / 2)
}

impl Faults {
    /// Which client had an answer, and when, sooner than this injection can have let it come.
    pub(super) fn prompt_answer<'a>(&self, at: usize, act: &'a Act) -> Option<(&'a str, u64)> {
        let until = self.healing(at).map_or(NEVER, |heal| heal.invoked);
        let effects = does(&self.plan.planned, act);
        let held_up = effects
            .iter()
            .filter_map(|effect| Some((effect, soonest(effect)?)));
        for (effect, soonest) in held_up.filter(|_| act.took_place()) {
            let clients = act
                .on
                .iter()
                .filter(|host| Role::of(host) == Some(Role::Client));
            for host in clients {
                let is_prompt = |&&(asked, answered): &&(u64, u64)| {
                    act.in_force() < asked && answered < until && answered - asked < soonest
                };
                if let Some(found) = self.prompt.to_those(host, effect).find(is_prompt) {
                    return Some((host, found.1));
                }
            }
        }
        None
    }
}
