//! The words that sentences for people are made of.

use crate::operations::{Acquire, NEVER, Record, Why, Write};

/// A duration in nanoseconds as milliseconds, finer where it is short: `198.4 ms`, `0.003 ms`.
pub(crate) fn ms(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    match ns {
        10_000_000.. => format!("{ms:.1} ms"),
        1_000.. => format!("{ms:.3} ms"),
        _ => format!("{ms:.6} ms"),
    }
}

/// Writes instants so finely that two of them which lie `apart` nanoseconds apart differ.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    decimals: usize,
}

impl Clock {
    pub(crate) fn telling(apart: u64) -> Clock {
        let decimals = match apart {
            0 | 1_000_000.. => 3,
            1_000.. => 6,
            _ => 9,
        };
        Clock { decimals }
    }

    /// An instant as seconds of the run: `1.532 s`.
    pub(crate) fn at(self, t: u64) -> String {
        format!("{:.*} s", self.decimals, t as f64 / 1e9)
    }
}

/// `1st`, `2nd`, `3rd`, `4th`, …
pub(crate) fn ordinal(n: u64) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// `1 write`, `2 writes`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A grant with its client: `c1 (grant 10000007, token 3)`.
pub(crate) fn holder(record: &Record, acquire: &Acquire) -> String {
    let client = record.process(&acquire.call);
    match acquire.token {
        Some(token) => format!("{client} (grant {}, token {token})", acquire.call.op),
        None => format!("{client} (grant {})", acquire.call.op),
    }
}

/// A write with its client and its grant: `c1's write (op 12, grant 7, token 3)`.
pub(crate) fn write(record: &Record, write: &Write) -> String {
    let mut words = format!(
        "{}'s write (op {}",
        record.process(&write.call),
        write.call.op
    );
    if let Some(acquire) = record.acquire(write.grant) {
        words += &format!(", grant {}", acquire.call.op);
        if let Some(token) = acquire.token.or(write.token) {
            words += &format!(", token {token}");
        }
    }
    words + ")"
}

/// Until when a grant was held, and what ended that: `until 1.742 s, when it gave it back`.
pub(crate) fn until(acquire: &Acquire, end: u64, clock: Clock) -> String {
    let why = match acquire.end.why {
        _ if end == NEVER => return "to the end of the history".to_owned(),
        _ if end == acquire.server_died => "when its server was killed",
        _ if end > acquire.end.at => "by its last act",
        _ if end != acquire.end.at => "when its validity was over",
        Why::StillHolds => "when its validity was over",
        Why::Released => "when it gave it back",
        Why::Lost => "when it learned that it had lost it",
        Why::NotExtended => "when it was told that it was lost",
        Why::Rejected => "when a write of it was rejected",
        Why::NotHeld => "when it was told that it did not hold it",
        Why::Crashed => "when it was crashed",
        Why::Exited => "when it ended",
        Why::Unclear => "when it may have been told otherwise",
        Why::CutOff => "the last that the history has of it",
    };
    format!("until {}, {why}", clock.at(end))
}

/// The name of a lock in a sentence: ``lock `l` ``.
pub(crate) fn lock(record: &Record, lock: u32) -> String {
    format!("lock `{}`", record.locks.text(lock))
}

/// The name of a document in a sentence: ``document `d` ``.
pub(crate) fn document(record: &Record, document: u32) -> String {
    format!("document `{}`", record.documents.text(document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_instants_are_as_fine_as_they_need_to_be() {
        assert_eq!(
            [ms(198_400_000), ms(3_250_000), ms(3_000), ms(7)],
            ["198.4 ms", "3.250 ms", "0.003 ms", "0.000007 ms"]
        );
        assert_eq!(Clock::telling(5_000_000).at(1_532_000_000), "1.532 s");
        assert_ne!(
            Clock::telling(1).at(1_532_000_000),
            Clock::telling(1).at(1_532_000_001)
        );
    }

    #[test]
    fn ordinals_read_well() {
        let words: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 112]
            .into_iter()
            .map(ordinal)
            .collect();
        assert_eq!(
            words,
            [
                "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"
            ]
        );
    }
}
