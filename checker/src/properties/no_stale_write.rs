//! `no-stale-write`: once the storage has served a grant, it accepts no write of an earlier one.
//!
//! Which of two grants of a lock is later: the one that began after the other's acquire had returned; where neither did,
//! the one with the higher token. (Where tokens and real time contradict each other, real time wins here, and
//! `token-order` reports it.)
//!
//! Along the versions of a document it is enough to know, of the grants served so far, the one that began last, and for
//! each instant the highest token of those that had not returned by then: the suffix maxima of a Fenwick tree (Fenwick,
//! "A new data structure for cumulative frequency tables", 1994, with maxima for sums). O(n log n).

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use crate::grants::Cuts;
use crate::names::NONE;
use crate::operations::NEVER;
use crate::properties::{Case, Finding, Property, witness};
use crate::sentences::{self, Clock};
use crate::verdict::Witness;

pub(super) const PROPERTY: Property = Property {
    name: "no-stale-write",
    summary: "violated when the storage accepted a write of a grant after it had served a later grant",
    silent: |case| {
        let under_grant = case.record.writes.iter().any(|write| write.grant != NONE);
        case.no_locks()
            .or((!under_grant).then_some("no write was made under a grant"))
    },
    judge,
};

/// An accepted write under a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Served {
    document: u32,
    lock: u32,
    version: u64,
    write: u32,
    /// When its grant can have begun at the earliest.
    began: u64,
    /// When its grant's acquire had returned.
    returned: u64,
    token: Option<u64>,
    /// When it is known that the write was accepted.
    known_at: u64,
    /// From when on its grant is left aside.
    cut: u64,
}

impl Served {
    /// Whether its grant is later than that of another.
    fn is_later_than(&self, other: &Served) -> bool {
        let after = |one: &Served, other: &Served| other.returned < one.began;
        after(self, other)
            || (!after(other, self) && other.token.is_some() && self.token > other.token)
    }
}

fn judge(case: &Case<'_>, cuts: &Cuts) -> Finding {
    let record = case.record;
    let mut served: Vec<Served> = case
        .storage
        .in_its_own_order()
        .filter_map(|accepted| {
            let write = &record.writes[accepted.write as usize];
            // An acquire of unknown outcome proves no grant, and one that is not there has no place in their order.
            let acquire = record
                .acquire(write.grant)
                .filter(|acquire| acquire.lock != NONE && acquire.granted())?;
            Some(Served {
                document: accepted.document,
                lock: acquire.lock,
                version: accepted.version,
                write: accepted.write,
                began: case.grants.began[write.grant as usize],
                returned: acquire.call.returned(),
                token: acquire.token,
                known_at: write.call.known_at(),
                cut: cuts.of(write.grant, write.call.op),
            })
        })
        .collect();
    served.sort_unstable();
    let mut stale = Vec::new();
    for of_lock in served.chunk_by(|a, b| (a.document, a.lock) == (b.document, b.lock)) {
        let mut latest = Latest::new(of_lock);
        // Of writes that share a version nobody knows the order.
        for group in of_lock.chunk_by(|a, b| a.version == b.version) {
            stale.extend(
                group
                    .iter()
                    .filter(|write| write.known_at < write.cut)
                    .filter_map(|write| Some((*write, latest.later_than(write)?))),
            );
            group.iter().for_each(|write| latest.serve(*write));
        }
    }
    let returned = |(write, _): &&(Served, Served)| {
        (
            record.writes[write.write as usize].call.returned(),
            write.document,
            write.version,
        )
    };
    match stale.iter().min_by_key(returned) {
        Some((write, later)) => Finding::violated(describe(case, write, later), stale.len() as u64),
        None => case
            .unsettled()
            .map_or_else(Finding::holds, Finding::unknown),
    }
}

/// The grants of one lock that a document has served so far, as far as it takes to find a later one.
struct Latest {
    began_last: Option<Served>,
    /// The instants at which grants returned, ordered.
    returns: Vec<u64>,
    /// A Fenwick tree over `returns` from the latest to the earliest: the write of the highest token.
    highest: Vec<Option<Served>>,
    /// Those that are left aside from some time on, by that time.
    for_a_time: BTreeMap<(u64, u32), Served>,
}

impl Latest {
    fn new(writes: &[Served]) -> Latest {
        let fenced = writes
            .iter()
            .filter(|write| write.token.is_some() && write.cut == NEVER);
        let mut returns: Vec<u64> = fenced.map(|write| write.returned).collect();
        returns.sort_unstable();
        returns.dedup();
        Latest {
            began_last: None,
            highest: vec![None; returns.len()],
            returns,
            for_a_time: BTreeMap::new(),
        }
    }

    /// How many of the `returns` are at `instant` or later.
    fn since(&self, instant: u64) -> usize {
        self.returns.len() - self.returns.partition_point(|&returned| returned < instant)
    }

    /// A write that was served under a later grant, and is not left aside when this one was accepted.
    fn later_than(&self, write: &Served) -> Option<Served> {
        let for_a_time = self
            .for_a_time
            .range((Excluded((write.known_at, NONE)), Unbounded));
        let mut for_a_time = for_a_time.map(|(_, later)| *later);
        self.later_for_good(write)
            .or_else(|| for_a_time.find(|later| later.is_later_than(write)))
    }

    fn later_for_good(&self, write: &Served) -> Option<Served> {
        if let Some(last) = self.began_last.filter(|last| write.returned < last.began) {
            return Some(last);
        }
        let token = write.token?;
        let mut highest: Option<Served> = None;
        let mut at = self.since(write.began);
        while at > 0 {
            highest = higher(highest, self.highest[at - 1]);
            at &= at - 1;
        }
        highest.filter(|highest| highest.token > Some(token))
    }

    fn serve(&mut self, write: Served) {
        if write.cut != NEVER {
            self.for_a_time.insert((write.cut, write.write), write);
            return;
        }
        if self.began_last.is_none_or(|last| write.began > last.began) {
            self.began_last = Some(write);
        }
        if write.token.is_none() {
            return;
        }
        let mut at = self.since(write.returned);
        while at <= self.highest.len() {
            self.highest[at - 1] = higher(self.highest[at - 1], Some(write));
            at += at & at.wrapping_neg();
        }
    }
}

/// The one of two writes that has the higher token.
fn higher(one: Option<Served>, other: Option<Served>) -> Option<Served> {
    let token = |write: Option<Served>| write.and_then(|write| write.token);
    if token(other) > token(one) {
        other
    } else {
        one
    }
}

fn describe(case: &Case<'_>, stale: &Served, later: &Served) -> Witness {
    let record = case.record;
    let (write, served) = (
        &record.writes[stale.write as usize],
        &record.writes[later.write as usize],
    );
    let when = if write.call.ok() {
        format!(" at {}", Clock::telling(1_000_000).at(write.call.completed))
    } else {
        String::new()
    };
    let successor = record
        .acquire(served.grant)
        .map(|acquire| sentences::holder(record, acquire))
        .unwrap_or_default();
    let sentence = format!(
        "the storage accepted {} as version {} of {}{when} although it had already served a later grant, that of {}: version {} is its write (op {})",
        sentences::write(record, write),
        stale.version,
        sentences::document(record, stale.document),
        successor,
        later.version,
        served.call.op,
    );
    let events = vec![
        record.grant_events(write.grant),
        record.grant_events(served.grant),
        record.write_events(later.write),
        record.write_events(stale.write),
    ];
    witness(sentence, vec![served.call.op, write.call.op], events)
}

#[cfg(test)]
mod tests {
    use super::PROPERTY;
    use crate::timeline::timeline;

    const NAME: &str = PROPERTY.name;

    /// c1 is paused between its read and its write; c2 takes the lock over and writes.
    fn paused(tokens: [&str; 2], last: &str) -> crate::timeline::Timeline {
        let [first, second] = tokens;
        timeline(&format!(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310 {first}
             400 c2 acquire#2
             402 c2 acquire#2 ok validity=700 {second}
             410 c2 write#3 grant=2 based_on=0 value=b
             412 c2 write#3 ok version=1
             500 c1 write#4 grant=1 based_on=0 value=a
             {last}"
        ))
    }

    #[test]
    fn identifies_a_stale_write_with_and_without_tokens() {
        let witness = paused(["token=3", "token=4"], "502 c1 write#4 ok version=2").witness(NAME);
        assert_eq!(witness.operations, [3, 4]);
        assert_eq!(
            witness.sentence,
            "the storage accepted c1's write (op 4, grant 1, token 3) as version 2 of document `d` at 0.502 s although it \
             had already served a later grant, that of c2 (grant 2, token 4): version 1 is its write (op 3)"
        );
        paused(["", ""], "502 c1 write#4 ok version=2").witness(NAME);
        // Real time outranks tokens.
        paused(["token=9", "token=4"], "502 c1 write#4 ok version=2").witness(NAME);
    }

    #[test]
    fn spares_a_rejected_write_and_one_that_came_first() {
        timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310 token=3
             400 c2 acquire#2
             402 c2 acquire#2 ok validity=700 token=4
             410 c2 write#3 grant=2 token=4 based_on=0 value=b
             412 c2 write#3 ok version=1
             500 c1 write#4 grant=1 token=3 based_on=0 value=a
             502 c1 write#4 fail error=rejected",
        )
        .fenced()
        .holds(NAME);
        let late = "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310
             14 c1 write#4 grant=1 value=a
             400 c2 acquire#2
             402 c2 acquire#2 ok validity=700
             410 c2 write#3 grant=2 value=b";
        timeline(&format!(
            "{late}\n412 c2 write#3 ok version=2\n500 c1 write#4 ok version=1"
        ))
        .holds(NAME);
        timeline(&format!(
            "{late}\n412 c2 write#3 ok version=1\n500 c1 write#4 ok version=2"
        ))
        .witness(NAME);
    }

    #[test]
    fn the_log_settles_writes_whose_outcome_nobody_learned() {
        let log = |rows: &str, entries: u32| {
            paused(
                ["", ""],
                &format!(
                    "502 c1 write#4 info\n900 storage log#9\n{rows}\n902 storage log#9 ok entries={entries}"
                ),
            )
        };
        let (first, second) = (
            "901 storage accepted#3 ok version=1",
            "901 storage accepted#4 ok version=2",
        );
        let witness = log(&format!("{first}\n{second}"), 2).witness(NAME);
        assert!(
            !witness.sentence.contains(" at "),
            "nobody knows when: {}",
            witness.sentence
        );
        log(first, 1).holds(NAME);
        // Some rows are lacking: what stands there counts, what does not is open.
        log(&format!("{first}\n{second}"), 3).witness(NAME);
        assert!(
            log(first, 2)
                .reason(NAME)
                .contains("c1's write (op 4, grant 1) was accepted")
        );
    }

    #[test]
    fn a_read_settles_a_write_whose_outcome_nobody_learned() {
        let read = "502 c1 write#4 info\n600 c2 read#5 grant=2\n602 c2 read#5 ok version=2";
        paused(["", ""], &format!("{read} value=a")).witness(NAME);
        paused(["", ""], &read.replace("version=2", "version=1 value=b")).reason(NAME);
    }

    #[test]
    fn tokens_order_grants_that_were_asked_for_together() {
        let together = |first: u32, second: u32| {
            timeline(&format!(
                "10 c1 acquire#1
                 11 c2 acquire#2
                 12 c1 acquire#1 ok validity=30 token={first}
                 14 c2 acquire#2 ok validity=30 token={second}
                 16 c1 write#3 grant=1 value=a
                 17 c1 write#3 ok version=1
                 18 c2 write#4 grant=2 value=b
                 19 c2 write#4 ok version=2"
            ))
        };
        together(1, 2).holds(NAME);
        together(2, 1).witness(NAME);
    }

    #[test]
    fn a_waiter_is_later_than_the_holder_that_it_waited_for() {
        let waits = |held_until: u32| {
            timeline(&format!(
                "10 c2 acquire#2
                 11 c1 acquire#1
                 12 c1 acquire#1 ok validity={held_until}
                 320 c2 acquire#2 ok validity=600
                 330 c2 write#3 grant=2 value=b
                 331 c2 write#3 ok version=1
                 400 c1 write#4 grant=1 value=a
                 401 c1 write#4 ok version=2"
            ))
        };
        waits(310).witness(NAME);
        // Where c1's hold overlaps c2's, or is certain of nothing, nobody knows which came first.
        waits(330).spares(NAME);
        waits(12).holds(NAME);
    }

    #[test]
    fn an_acquire_of_unknown_outcome_proves_no_grant() {
        let history = timeline(
            "10 c2 acquire#2
             12 c2 acquire#2 ok validity=100
             13 c2 write#3 grant=2 value=b
             14 c2 write#3 ok version=1
             200 c1 acquire#1
             202 c1 acquire#1 info
             203 c1 write#4 grant=1 value=a
             204 c1 write#4 ok version=2
             205 c2 write#5 grant=2 value=c
             206 c2 write#5 ok version=3",
        );
        history.spares(NAME);
    }
}
