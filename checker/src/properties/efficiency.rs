//! `efficiency`: never violated. It counts what the lock cost, and how often it failed to spare work.

use crate::grants::{Interval, waits_until};
use crate::names::{Map, NONE};
use crate::operations::NEVER;
use crate::properties::{Case, Finding, Property};
use crate::verdict::{Efficiency, Spread};

pub(super) const PROPERTY: Property = Property {
    name: NAME,
    summary: "never violated: it counts jobs run twice, attempts a grant, and the time to take over",
    silent: |case| case.no_locks(),
    judge: |_, _| Finding::holds(),
};

/// The name of the property whose figures stand in [`crate::Verdict::efficiency`].
pub(crate) const NAME: &str = "efficiency";

/// Counts.
pub(crate) fn measure(case: &Case<'_>) -> Efficiency {
    let asked = || {
        case.record
            .acquires
            .iter()
            .filter(|acquire| acquire.lock != NONE)
    };
    let attempts = asked().count() as u64;
    let grants = asked().filter(|acquire| acquire.granted()).count();
    let mut take_overs = take_overs(case);
    take_overs.sort_unstable();
    Efficiency {
        attempts,
        attempts_per_grant: (grants > 0).then(|| attempts as f64 / grants as f64),
        jobs_run_twice: jobs_run_twice(case),
        writes_rejected: case
            .record
            .writes
            .iter()
            .filter(|write| write.rejected)
            .count() as u64,
        longest_wait_ms: longest_wait(case).map(|ns| ns as f64 / 1e6),
        take_overs: take_overs.len() as u64,
        take_over_ms: spread(&take_overs),
    }
}

/// How often a grant tried to write from a version from which another grant had tried to: their jobs were the same.
fn jobs_run_twice(case: &Case<'_>) -> u64 {
    let writes = case
        .record
        .writes
        .iter()
        .filter(|write| write.grant != NONE);
    let mut jobs: Vec<(u32, u64, u32)> = writes
        .filter_map(|write| Some((write.document, write.based_on?, write.grant)))
        .collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
        .map(|same| same.len() as u64 - 1)
        .sum()
}

/// How long each grant came after the end of the hold before it, in nanoseconds, where its client was waiting by then.
///
/// The hold before ended when its client ceased to believe in it, or, if that was later than the next grant, when its
/// validity was over.
fn take_overs(case: &Case<'_>) -> Vec<u64> {
    let asked_since = asked_since(case);
    let mut valid_until: Map<u32, u64> = Map::default();
    for hold in &case.grants.certain {
        valid_until.insert(hold.grant, hold.end);
    }
    let took_over = |pair: &[Interval]| {
        let [before, next] = [pair[0], pair[1]];
        let until = if before.end <= next.start {
            Some(before.end)
        } else {
            valid_until.get(&before.grant).copied()
        };
        let until = until.filter(|&until| before.lock == next.lock && until <= next.start)?;
        (asked_since[next.grant as usize] <= until).then(|| next.start - until)
    };
    let granted = case.grants.beliefs.iter().filter(|belief| belief.granted);
    let granted: Vec<Interval> = granted.copied().collect();
    granted.windows(2).filter_map(took_over).collect()
}

/// The longest time from a client's first attempt of several to the answer of its last, in nanoseconds. A client that
/// starves is no violation, and is told of here.
fn longest_wait(case: &Case<'_>) -> Option<u64> {
    let since = asked_since(case);
    let acquires = case.record.acquires.iter().zip(since);
    let asked = acquires.filter(|(acquire, _)| acquire.lock != NONE);
    let waited = asked.map(|(acquire, since)| waits_until(case.record, &acquire.call) - since);
    waited.max()
}

/// By acquire: since when its client had been asking for the lock, one attempt after another.
fn asked_since(case: &Case<'_>) -> Vec<u64> {
    let mut first_attempt: Map<(u32, u32), u64> = Map::default();
    let mut since = Vec::with_capacity(case.record.acquires.len());
    for acquire in &case.record.acquires {
        let key = (acquire.call.process, acquire.lock);
        let first = first_attempt
            .get(&key)
            .copied()
            .unwrap_or(acquire.call.invoked);
        since.push(first);
        if acquire.granted() {
            first_attempt.remove(&key);
        } else if acquire.call.completed != NEVER {
            first_attempt.insert(key, first);
        }
    }
    since
}

fn spread(sorted_ns: &[u64]) -> Option<Spread> {
    let ms = |at: usize| sorted_ns[at] as f64 / 1e6;
    let last = sorted_ns.len().checked_sub(1)?;
    Some(Spread {
        min: ms(0),
        median: ms(last / 2),
        max: ms(last),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::timeline;

    #[test]
    fn counts_attempts_repeated_jobs_and_take_overs() {
        let verdict = timeline(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310 token=1
             20 c2 acquire#2
             21 c2 acquire#2 fail error=busy
             314 c2 acquire#3
             315 c2 acquire#3 ok validity=600 token=2
             320 c2 write#4 grant=3 token=2 based_on=0 value=b
             321 c2 write#4 ok version=1
             322 c2 release#5 grant=3
             323 c2 release#5 ok
             330 c1 write#6 grant=1 token=1 based_on=0 value=a
             331 c1 write#6 fail error=rejected
             340 c1 acquire#7
             341 c1 acquire#7 ok validity=640 token=3",
        )
        .fenced()
        .verdict();
        let expected = Efficiency {
            attempts: 4,
            attempts_per_grant: Some(4.0 / 3.0),
            jobs_run_twice: 1,
            writes_rejected: 1,
            longest_wait_ms: Some(295.0),
            // c1's lease ended at 310 ms and c2, which was waiting, had it at 315 ms; at 322 ms nobody was waiting.
            take_overs: 1,
            take_over_ms: Some(Spread {
                min: 5.0,
                median: 5.0,
                max: 5.0,
            }),
        };
        assert_eq!(verdict.efficiency, Some(expected));
        assert_eq!(
            verdict.property(NAME).unwrap().outcome,
            crate::Outcome::Holds
        );
    }

    #[test]
    fn the_median_is_the_lower_one() {
        let spread = spread(&[1_000_000, 2_000_000, 30_000_000, 40_000_000]).unwrap();
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 2.0, 40.0));
        assert_eq!(super::spread(&[]), None);
    }
}
