//! Whether two clients have competed for a lock: an acquire of one was in flight while another held.

use std::collections::{BTreeMap, BTreeSet};

use histories::{Event, Function, Kind, host_of};

/// What of clients' acquires and holds is known by now. Events of one process come in their order, those of two do not.
#[derive(Default)]
pub struct Competition {
    /// What each process is in the middle of.
    open: BTreeMap<String, Open>,
    /// Acquires and holds that are over, until two of them have met.
    asked: Vec<Span>,
    held: Vec<Span>,
    granted: BTreeSet<String>,
    met: bool,
}

#[derive(Default)]
struct Open {
    asks: Option<Span>,
    holds: Option<Span>,
}

/// From when to when a client asked for a lock, or held it.
#[derive(Clone, Debug)]
struct Span {
    host: String,
    lock: String,
    from: u64,
    to: u64,
}

impl Span {
    fn meets(&self, other: &Span) -> bool {
        let at_once = self.from < other.to && other.from < self.to;
        at_once && self.lock == other.lock && self.host != other.host
    }
}

impl Competition {
    /// Whether two clients were granted a lock, and one of two asked for it while the other held it.
    pub fn took_place(&self) -> bool {
        self.met && self.granted.len() > 1
    }

    /// Takes in what a client did.
    pub fn take_in(&mut self, event: &Event<'_>) {
        let open = self.open.entry(event.process.to_string()).or_default();
        let (mut asked, mut held) = (None, None);
        match (event.f, event.kind) {
            (Function::Acquire, Kind::Invoke) => {
                held = open.holds.take();
                open.asks = Some(Span {
                    host: host_of(&event.process).to_owned(),
                    lock: event.lock.as_deref().unwrap_or_default().to_owned(),
                    from: event.t,
                    to: u64::MAX,
                });
            }
            (Function::Acquire, kind) => {
                // Whoever is turned away for another reason may not have reached the service.
                let is_refused = kind == Kind::Fail && event.error.as_deref() != Some("busy");
                asked = open.asks.take().filter(|_| !is_refused);
                open.holds = asked.clone().filter(|_| kind == Kind::Ok).map(|ask| Span {
                    from: event.t,
                    to: event.validity.unwrap_or(u64::MAX),
                    ..ask
                });
            }
            (Function::Release, Kind::Invoke) | (Function::Lost | Function::Exit, _) => {
                held = open.holds.take();
            }
            _ => {}
        }
        if let Some(hold) = &open.holds {
            self.granted.insert(hold.host.clone());
        }
        let over = |span: Option<Span>| {
            span.map(|span| Span {
                to: span.to.min(event.t),
                ..span
            })
        };
        self.compare(over(asked), over(held));
    }

    /// Compares what is over with all that was over before.
    fn compare(&mut self, asked: Option<Span>, held: Option<Span>) {
        if self.met {
            return;
        }
        self.asked.extend(asked.clone());
        self.held.extend(held.clone());
        let found = |span: Option<Span>, others: &[Span]| {
            span.is_some_and(|span| others.iter().any(|other| span.meets(other)))
        };
        self.met = found(asked, &self.held) || found(held, &self.asked);
        if self.met {
            self.asked.clear();
            self.held.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether these events are of clients that competed: time, process, function, kind, validity.
    fn competed(events: &[(u64, &str, Function, Kind, Option<u64>)]) -> bool {
        competed_with("busy", events)
    }

    /// The same with this error of what fails.
    fn competed_with(
        error: &'static str,
        events: &[(u64, &str, Function, Kind, Option<u64>)],
    ) -> bool {
        let mut competition = Competition::default();
        for (t, process, f, kind, validity) in events {
            let mut event = Event::new(*t, *process, 1, *kind, *f);
            event.lock = Some("a-lock".into());
            event.validity = *validity;
            event.error = (*kind == Kind::Fail).then(|| error.into());
            competition.take_in(&event);
        }
        competition.took_place()
    }

    const ASK: (Function, Kind) = (Function::Acquire, Kind::Invoke);
    const GRANTED: (Function, Kind) = (Function::Acquire, Kind::Ok);
    const BUSY: (Function, Kind) = (Function::Acquire, Kind::Fail);
    const RELEASE: (Function, Kind) = (Function::Release, Kind::Invoke);

    fn at(
        t: u64,
        process: &'static str,
        (f, kind): (Function, Kind),
    ) -> (u64, &'static str, Function, Kind, Option<u64>) {
        let validity = ((f, kind) == GRANTED).then_some(t + 10);
        (t, process, f, kind, validity)
    }

    #[test]
    fn a_client_that_waits_while_another_holds_competes() {
        assert!(competed(&[
            at(1, "c1", ASK),
            at(2, "c1", GRANTED),
            at(3, "c2", ASK),
            at(5, "c1", RELEASE),
            at(6, "c2", GRANTED),
        ]));
        // The same as its files are read one after the other.
        assert!(competed(&[
            at(3, "c2", ASK),
            at(4, "c2", BUSY),
            at(13, "c2", ASK),
            at(14, "c2", GRANTED),
            at(1, "c1", ASK),
            at(2, "c1", GRANTED),
            at(5, "c1", RELEASE),
        ]));
    }

    #[test]
    fn clients_that_never_meet_do_not_compete() {
        let one_after_the_other = [
            at(1, "c1", ASK),
            at(2, "c1", GRANTED),
            at(5, "c1", RELEASE),
            at(5, "c2", ASK),
            at(6, "c2", GRANTED),
            at(7, "c2", RELEASE),
        ];
        assert!(!competed(&one_after_the_other));
        let when_the_lease_was_over = [
            at(1, "c1", ASK),
            at(2, "c1", GRANTED),
            at(12, "c2", ASK),
            at(13, "c2", GRANTED),
            at(14, "c1", RELEASE),
        ];
        assert!(!competed(&when_the_lease_was_over));
        let its_own_second_life = [
            at(1, "c1", ASK),
            at(2, "c1", GRANTED),
            at(3, "c1.2", ASK),
            at(4, "c1.2", BUSY),
            at(5, "c1", RELEASE),
            at(6, "c2", ASK),
            at(7, "c2", GRANTED),
        ];
        assert!(!competed(&its_own_second_life));
    }

    #[test]
    fn one_that_does_not_reach_the_service_is_no_competitor() {
        let events = [
            at(1, "c1", ASK),
            at(2, "c1", GRANTED),
            at(3, "c2", ASK),
            at(4, "c2", BUSY),
            at(5, "c1", RELEASE),
            at(6, "c2", ASK),
            at(7, "c2", GRANTED),
        ];
        assert!(competed(&events));
        assert!(!competed_with("connection refused", &events));
    }

    #[test]
    fn one_that_is_never_granted_is_no_competitor() {
        assert!(!competed(&[
            at(1, "c1", ASK),
            at(2, "c1", GRANTED),
            at(3, "c2", ASK),
            at(4, "c2", BUSY),
            at(5, "c1", RELEASE),
        ]));
    }
}
