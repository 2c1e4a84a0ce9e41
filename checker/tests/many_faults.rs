//! A plan of thousands of faults is judged in about the time that its length takes: eight times as many take eight times as
//! long, and not sixty-four times.

#[path = "../benches/generator.rs"]
mod generator;

use std::time::Duration;

use checker::{Answer, Checker, Options, Verdict};
use histories::{
    Deed, Effect, Event, Expectation, Function, Header, Kind, NEMESIS, Named, PlannedFault, Seal,
    Until, When,
};
use serde_json::json;

const MS: u64 = 1_000_000;

/// A history in which one kind of fault strikes again and again.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    deed: Deed,
    on: &'static [&'static str],
    /// Whether each fault's trigger and its end are writes of a client; else they are times.
    by_events: bool,
    /// Whether each heals.
    heals: bool,
    /// Whether grants share tokens, so that it matters which faults touch them.
    is_violated: bool,
}

const STOPS: Case = Case {
    name: "a server stops",
    deed: Deed::Stops,
    on: &["s1"],
    by_events: false,
    heals: true,
    is_violated: false,
};

const CASES: &[Case] = &[
    STOPS,
    Case {
        name: "three servers stop in turn, and grants share tokens",
        on: &["s1", "s2", "s3"],
        is_violated: true,
        ..STOPS
    },
    Case {
        name: "a server stops for good",
        heals: false,
        ..STOPS
    },
    Case {
        name: "a server restarts",
        deed: Deed::Restarts,
        heals: false,
        ..STOPS
    },
    Case {
        name: "a client is killed",
        deed: Deed::Kills,
        on: &["c1"],
        ..STOPS
    },
    Case {
        name: "a client's work is held, by events",
        deed: Deed::HoldsWork,
        on: &["c2"],
        by_events: true,
        ..STOPS
    },
];

impl Case {
    fn planned(&self, step: usize) -> PlannedFault {
        let write = Named {
            client: "c3".to_owned(),
            f: "write".to_owned(),
            outcome: "ok".to_owned(),
        };
        let (when, event) = if self.by_events {
            (When::Event(write.clone()), Some(write))
        } else {
            (When::Time { after_ms: 10 }, None)
        };
        let until = Until {
            after_ms: self.heals.then_some(1),
            event: event.filter(|_| self.heals),
            at_most_ms: None,
        };
        PlannedFault {
            fault: "trouble".to_owned(),
            on: self.on[step % self.on.len()].to_owned(),
            with: serde_json::Map::new(),
            does: vec![Effect::of(self.deed)],
            shows: [("shown".to_owned(), Expectation::default())].into(),
            when,
            until,
        }
    }

    fn events(&self, step: usize) -> Vec<Event<'static>> {
        let (op, t) = (2 * step as u64 + 1, (10 + 4 * step as u64) * MS);
        let event = |t, op, kind, f| {
            let mut event = Event::new(t, NEMESIS, op, kind, f);
            event.step = Some(step);
            event.fault = Some("trouble".into());
            event.on = Some(vec![self.on[step % self.on.len()].to_owned()]);
            event.does = Some(vec![Effect::of(self.deed)]);
            event.evidence = json!({"shown": true}).as_object().cloned();
            event
        };
        let mut events = vec![
            event(t, op, Kind::Invoke, Function::Inject),
            event(t + 1, op, Kind::Ok, Function::Inject),
        ];
        if self.heals {
            events.push(event(t + 2 * MS, op + 1, Kind::Invoke, Function::Heal));
            events.push(event(t + 2 * MS + 1, op + 1, Kind::Ok, Function::Heal));
        }
        events
    }

    fn history(&self, faults: usize) -> (Header, Vec<Event<'static>>) {
        let mut header = generator::header(1);
        header.plan.faults = (0..faults).map(|step| self.planned(step)).collect();
        let mut events: Vec<Event<'static>> =
            (0..faults).flat_map(|step| self.events(step)).collect();
        generator::generate(2 * faults as u64, 1, |event| {
            let mut event = event.clone().into_owned();
            let shares = self.is_violated && event.f == Function::Acquire;
            event.token = event
                .token
                .map(|token| if shares { token / 2 } else { token });
            events.push(event);
        });
        events.sort_by_key(|event| event.t);
        (header, events)
    }
}

fn judge(header: &Header, events: &[Event<'_>]) -> Verdict {
    let mut checker = Checker::new(header, Options::default());
    for event in events {
        checker.push(event).expect("an event that is understood");
    }
    checker.finish(Seal::Sealed)
}

/// How long this thread has run on a processor: others use this machine too.
fn processor_time() -> Duration {
    let scheduled = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux");
    let nanoseconds = scheduled.split(' ').next().expect("three numbers");
    Duration::from_nanos(nanoseconds.parse().expect("a number"))
}

/// The least of some times.
fn time(case: &Case, faults: usize) -> Duration {
    let (header, events) = case.history(faults);
    let times = (0..3).map(|_| {
        let begun = processor_time();
        let verdict = judge(&header, &events);
        assert_eq!(verdict.faults.len(), faults);
        assert_eq!(
            verdict.outcome == Answer::Violated,
            case.is_violated,
            "{}: {:?}",
            case.name,
            verdict.assumptions.first()
        );
        processor_time() - begun
    });
    times.min().expect("three times")
}

#[test]
fn eight_times_as_many_faults_do_not_take_much_more_than_eight_times_as_long() {
    for case in CASES {
        let thousand = time(case, 1_000);
        for more in [4, 8] {
            let longer = time(case, more * 1_000);
            let factor = longer.as_secs_f64() / thousand.as_secs_f64();
            assert!(
                factor < 2.5 * more as f64,
                "{}: {more} times as many take {factor:.1} times as long",
                case.name
            );
        }
    }
}
