//! Clients that a fault killed, and that went on for a while after that was asked for.

use crate::grants::Grants;
use crate::operations::{Acquire, Record};
use crate::sentences::{self, Clock};

/// A grant of a lock that came while a client that was being killed held it, and that it outlived. When it died nobody knows;
/// its hold ends for certain no later than when that was asked for, and it had not ended.
pub(super) fn outlived_by(record: &Record, grants: &Grants) -> Option<String> {
    if record.killed.is_empty() {
        return None;
    }
    let mut granted: Vec<&Acquire> = record
        .acquires
        .iter()
        .filter(|acquire| acquire.granted())
        .collect();
    granted.sort_unstable_by_key(|acquire| (acquire.lock, acquire.call.completed));
    // By place: the next one that is of another process.
    let mut next_other = vec![granted.len(); granted.len()];
    for at in (1..granted.len()).rev() {
        let same = granted[at - 1].call.process == granted[at].call.process;
        next_other[at - 1] = if same { next_other[at] } else { at };
    }
    for &(row, given_up) in &record.killed {
        let held = &record.acquires[row as usize];
        let lived = record.processes[held.call.process as usize].last_deed;
        let until = lived.min(given_up).min(grants.valid_until[row as usize]);
        let first = granted.partition_point(|other| {
            (other.lock, other.call.completed) <= (held.lock, held.end.at)
        });
        let other = match granted.get(first) {
            Some(other) if other.call.process == held.call.process => next_other[first],
            _ => first,
        };
        let during = |other: &&&Acquire| other.lock == held.lock && other.call.completed < until;
        if let Some(other) = granted.get(other).filter(during) {
            let clock = Clock::telling(until - held.end.at);
            return Some(format!(
                "{} was granted {} at {}, while {} held it, which was being killed from {} on and lived until {}",
                sentences::holder(record, other),
                sentences::lock(record, held.lock),
                clock.at(other.call.completed),
                sentences::holder(record, held),
                clock.at(held.end.at),
                clock.at(lived),
            ));
        }
    }
    None
}
