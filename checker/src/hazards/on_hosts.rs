//! Times on hosts, among which those that meet a time are found without looking at all others.

use std::collections::HashMap;
use std::ops::Range;

use crate::segment_tree::SegmentTree;

/// Things that each last for a time, on one host or on all.
pub(crate) struct OnHosts<T> {
    of_all: Times<T>,
    of_hosts: HashMap<String, Times<T>>,
}

/// Those of one host, by their beginnings.
struct Times<T> {
    from: Vec<u64>,
    until: SegmentTree<u64>,
    things: Vec<T>,
}

impl<T> OnHosts<T> {
    /// `time` gives the host of a thing, from when it is there, and until when.
    pub(crate) fn new(
        things: impl IntoIterator<Item = T>,
        time: impl Fn(&T) -> (Option<String>, u64, u64),
    ) -> OnHosts<T> {
        let mut of_hosts: HashMap<Option<String>, Vec<(u64, u64, T)>> = HashMap::new();
        for thing in things {
            let (host, from, until) = time(&thing);
            of_hosts.entry(host).or_default().push((from, until, thing));
        }
        OnHosts {
            of_all: Times::new(of_hosts.remove(&None).unwrap_or_default()),
            of_hosts: of_hosts
                .into_iter()
                .filter_map(|(host, things)| Some((host?, Times::new(things))))
                .collect(),
        }
    }

    /// Those on a host that are there at some instant of this time, both ends included: of all hosts, then of this one, each
    /// by their beginnings.
    pub(crate) fn meeting(&self, host: &str, from: u64, until: u64) -> impl Iterator<Item = &T> {
        let of_host = self.of_hosts.get(host);
        let both = [Some(&self.of_all), of_host].into_iter().flatten();
        both.flat_map(move |times| times.meeting(from, until))
    }

    /// The one of `meeting` that begins first.
    pub(crate) fn first_meeting(&self, host: &str, from: u64, until: u64) -> Option<u64> {
        let of_host = self.of_hosts.get(host);
        let both = [Some(&self.of_all), of_host].into_iter().flatten();
        both.filter_map(|times| {
            let first = times.next(0..times.begun_by(until), from)?;
            Some(times.from[first])
        })
        .min()
    }
}

impl<T> Times<T> {
    fn new(mut things: Vec<(u64, u64, T)>) -> Times<T> {
        things.sort_by_key(|&(from, ..)| from);
        Times {
            from: things.iter().map(|&(from, ..)| from).collect(),
            until: SegmentTree::of(things.iter().map(|&(_, until, _)| until)),
            things: things.into_iter().map(|(.., thing)| thing).collect(),
        }
    }

    fn begun_by(&self, t: u64) -> usize {
        self.from.partition_point(|&from| from <= t)
    }

    fn next(&self, among: Range<usize>, from: u64) -> Option<usize> {
        self.until.find(among, from)
    }

    fn meeting(&self, from: u64, until: u64) -> impl Iterator<Item = &T> {
        let end = self.begun_by(until);
        let mut at = 0;
        std::iter::from_fn(move || {
            let found = self.next(at..end, from)?;
            at = found + 1;
            Some(&self.things[found])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_scan_finds() {
        let time = |n: u64| {
            let (from, length) = (n * 7 % 23, n * n % 9);
            (["a", "b", ""][n as usize % 3], from, from + length)
        };
        let all: Vec<_> = (0..40).map(time).collect();
        let on_hosts = OnHosts::new(all.clone(), |&(host, from, until)| {
            let host = (!host.is_empty()).then(|| host.to_owned());
            (host, from, until)
        });
        for from in 0..30 {
            for until in from..32 {
                let here = |&&(host, began, ended): &&(&str, u64, u64)| {
                    host != "b" && began <= until && from <= ended
                };
                let mut scanned: Vec<_> = all.iter().filter(here).collect();
                let mut found: Vec<_> = on_hosts.meeting("a", from, until).collect();
                scanned.sort();
                found.sort();
                assert_eq!(found, scanned);
                let first = scanned.iter().map(|(_, began, _)| *began).min();
                assert_eq!(on_hosts.first_meeting("a", from, until), first);
            }
        }
    }
}
