//! The course of one planned fault: wait for its trigger, inject, gather evidence, wait for its end, heal.

mod waiting;

use std::time::Duration;

use containers::agent::monotonic_ns;
use histories::{Function, Kind, PlannedFault, When};
use serde_json::json;

use crate::board::Haste;
use crate::engine::Engine;
use crate::faults::{self, Evidence, FaultError, Patience, Strike, Target, Why};
use crate::hands::Hands;
use crate::recorder::Record;
use crate::trigger::Trigger;
use histories::LEADER;

/// Between two looks for evidence that shows at once or not at all, and for healing.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Between two looks for evidence that may take long to show: each starts a program in the host.
const LOOK_NOW_AND_THEN: Duration = Duration::from_millis(50);

/// How long it may take until healing shows: a server that starts again and finds its leader.
const HEALING: Duration = Duration::from_secs(20);

/// Why nothing was injected though the trigger came.
const NO_TURN: &str = "the run ended before its turn came";

/// See the module.
pub(crate) struct Course<'a> {
    engine: &'a Engine,
    step: usize,
    planned: &'a PlannedFault,
    /// What it strikes, resolved.
    on: String,
    /// With these it injects and looks.
    hands: Hands,
    /// With these it heals, whatever became of the others; never tied.
    healing: Hands,
}

/// Why the fault ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Due,
    TooLong,
    RunEnds(Haste),
}

/// A fault that was injected.
struct InPlace {
    strike: Box<dyn Strike>,
    triggered_ns: u64,
    at_ns: u64,
    /// Whether the outcome of the injection is recorded.
    recorded: bool,
    /// What kept evidence from being looked for, the last time.
    error: Option<FaultError>,
}

impl<'a> Course<'a> {
    pub fn new(engine: &'a Engine, step: usize) -> Course<'a> {
        let planned = &engine.plan.faults[step];
        let hands = |tied| Hands::new(engine.hosts.clone(), engine.board.clone(), tied);
        Course {
            engine,
            step,
            planned,
            on: planned.on.clone(),
            hands: hands(engine.sabotage),
            healing: hands(false),
        }
    }

    /// Runs to its end; the run's end is one.
    pub fn run(mut self) {
        // Closes the step even on a panic, so that no client stays held for it.
        let _closed = Closed {
            engine: self.engine,
            step: self.step,
        };
        let early = (self.planned.on != LEADER).then(|| self.begin());
        let Some(trigger) = self.await_trigger() else {
            let never_came = self.never_came();
            self.give_up_waiting(early, never_came);
            return;
        };
        let strike = early.unwrap_or_else(|| {
            self.on = self.engine.hosts.leader()?;
            self.begin()
        });
        let Some(follows) = self.await_turn() else {
            self.give_up_waiting(Some(strike), NO_TURN.to_owned());
            return;
        };
        if let Some(mut in_place) = self.inject(strike, &trigger, follows) {
            let ending = self.last(&mut in_place);
            self.heal(in_place, ending);
        }
    }

    fn begin(&mut self) -> Result<Box<dyn Strike>, FaultError> {
        let fault = faults::find(&self.planned.fault).ok_or_else(|| {
            FaultError::Plan(format!("no fault is called `{}`", self.planned.fault))
        })?;
        let target = Target {
            step: self.step,
            process: self.engine.hosts.process(&self.on),
            host: self.on.clone(),
            with: self.planned.with.clone(),
        };
        self.healing.reach_for(&self.on)?;
        fault.begin(&target, &mut self.hands)
    }

    /// The run ends, and this is why nothing was injected, unless the fault could not begin.
    fn give_up_waiting(&mut self, early: Option<Result<Box<dyn Strike>, FaultError>>, why: String) {
        let mut error = why;
        match early {
            Some(Ok(mut strike)) => self.undo(strike.as_mut()),
            Some(Err(cause)) => error = cause.to_string(),
            None => {}
        }
        self.record_given_up(error);
    }

    /// Gives the fault up without having begun: because of this, or because the run ends.
    pub fn never_start(self, because: Option<String>) {
        let _closed = Closed {
            engine: self.engine,
            step: self.step,
        };
        let ended = || match self.has_come() {
            true => NO_TURN.to_owned(),
            false => self.never_came(),
        };
        self.record_given_up(because.unwrap_or_else(ended));
    }

    fn record_given_up(&self, error: String) {
        let now_ns = monotonic_ns();
        self.record(now_ns, Function::Inject, Kind::Invoke, None, None, None);
        self.record(
            now_ns,
            Function::Inject,
            Kind::Fail,
            None,
            None,
            Some(error),
        );
    }

    fn inject(
        &mut self,
        strike: Result<Box<dyn Strike>, FaultError>,
        trigger: &Trigger,
        follows: bool,
    ) -> Option<InPlace> {
        // A client that waits at its point does so since then; other triggers leave the clients free to go on.
        let invoked_ns = match (&self.planned.when, trigger) {
            (When::Point { .. }, Trigger::Reached(reached)) if !follows => reached.reached_ns,
            _ => monotonic_ns(),
        };
        let engine = strike.as_ref().ok().map(|strike| strike.engine());
        self.record(
            invoked_ns,
            Function::Inject,
            Kind::Invoke,
            engine,
            None,
            None,
        );
        let mut strike = match strike {
            Ok(strike) => strike,
            Err(error) => {
                self.record_not_injected(Kind::Fail, None, &error);
                return None;
            }
        };
        match strike.inject(&mut self.hands, trigger) {
            Ok(at_ns) => {
                // What held already, as a client does that waits at its point, counts from when its turn came.
                let at_ns = at_ns.max(invoked_ns);
                self.engine.in_place(self.step, at_ns);
                Some(InPlace {
                    strike,
                    triggered_ns: trigger.at_ns(),
                    at_ns,
                    recorded: false,
                    error: None,
                })
            }
            Err(error) => {
                // What was tried may have come halfway.
                let kind = if self.hands.acted() {
                    Kind::Info
                } else {
                    Kind::Fail
                };
                self.undo(strike.as_mut());
                self.record_not_injected(kind, engine, &error);
                None
            }
        }
    }

    fn record_not_injected(&self, kind: Kind, engine: Option<&'static str>, error: &FaultError) {
        let error = Some(error.to_string());
        self.record(monotonic_ns(), Function::Inject, kind, engine, None, error);
    }

    /// Heals a strike of which nothing will be recorded.
    fn undo(&mut self, strike: &mut dyn Strike) {
        if strike.heals(Why::RunEnds)
            && let Err(error) = strike.heal(&mut self.healing)
        {
            tracing::warn!(
                "cannot undo `{}` on {}: {error}",
                self.planned.fault,
                self.on
            );
        }
    }

    /// Waits until the fault has to end, and gathers the evidence meanwhile.
    fn last(&mut self, in_place: &mut InPlace) -> Ending {
        let (give_up_ns, pause) = match in_place.strike.patience() {
            Patience::For(patience) => (Some(monotonic_ns() + nanos(patience)), LOOK_AGAIN),
            Patience::WhileItLasts | Patience::ToItsEnd => (None, LOOK_NOW_AND_THEN),
        };
        let looks = in_place.strike.patience() != Patience::ToItsEnd;
        loop {
            if looks && !in_place.recorded && !self.look(in_place) {
                let give_up = give_up_ns.is_some_and(|give_up_ns| monotonic_ns() >= give_up_ns);
                if give_up {
                    self.record_no_evidence(in_place);
                }
            }
            let look_ns = (looks && !in_place.recorded).then(|| monotonic_ns() + nanos(pause));
            if let Some(ending) = self.await_ending(in_place, look_ns) {
                return ending;
            }
        }
    }

    /// Looks for evidence, and records it; whether there was any.
    fn look(&mut self, in_place: &mut InPlace) -> bool {
        match in_place.strike.shown(&mut self.hands) {
            Ok(Some(evidence)) => {
                self.record_injected(in_place, Kind::Ok, evidence, None);
                true
            }
            Ok(None) => {
                in_place.error = None;
                false
            }
            Err(error) => {
                in_place.error = Some(error);
                false
            }
        }
    }

    fn record_no_evidence(&mut self, in_place: &mut InPlace) {
        let why = "nothing shows that it took hold";
        let error = match in_place.error.take() {
            Some(error) => format!("{why}: {error}"),
            None => why.to_owned(),
        };
        self.record_injected(in_place, Kind::Info, Evidence::new(), Some(error));
    }

    fn record_injected(
        &mut self,
        in_place: &mut InPlace,
        kind: Kind,
        mut evidence: Evidence,
        error: Option<String>,
    ) {
        let recorder = &self.engine.recorder;
        let latency_us = in_place.at_ns.saturating_sub(in_place.triggered_ns) / 1_000;
        evidence.insert(
            "triggered_ns".to_owned(),
            json!(recorder.since_base(in_place.triggered_ns)),
        );
        evidence.insert(
            "took_hold_ns".to_owned(),
            json!(recorder.since_base(in_place.at_ns)),
        );
        evidence.insert("latency_us".to_owned(), json!(latency_us));
        let engine = Some(in_place.strike.engine());
        self.record(
            monotonic_ns(),
            Function::Inject,
            kind,
            engine,
            Some(evidence),
            error,
        );
        in_place.recorded = true;
    }

    fn heal(&mut self, mut in_place: InPlace, ending: Ending) {
        if !in_place.recorded && !self.look(&mut in_place) {
            self.record_no_evidence(&mut in_place);
        }
        let why = match ending {
            Ending::Due | Ending::TooLong => Why::Planned,
            Ending::RunEnds(_) => Why::RunEnds,
        };
        if !in_place.strike.heals(why) {
            return;
        }
        let engine = Some(in_place.strike.engine());
        let healed_ns = monotonic_ns();
        self.record(healed_ns, Function::Heal, Kind::Invoke, engine, None, None);
        let healed = in_place.strike.heal(&mut self.healing);
        self.engine.over(self.step);
        let over = healed.and_then(|()| self.await_over(in_place.strike.as_mut(), ending));
        let (kind, mut evidence, error) = match over {
            Ok(Some(evidence)) => (Kind::Ok, evidence, None),
            Ok(None) => (
                Kind::Info,
                Evidence::new(),
                Some("nothing shows that it is over".to_owned()),
            ),
            Err(error) => (Kind::Info, Evidence::new(), Some(error.to_string())),
        };
        let lasted_ms = healed_ns.saturating_sub(in_place.at_ns) as f64 / 1e6;
        evidence.insert("lasted_ms".to_owned(), json!(lasted_ms));
        let (kind, error) = match ending {
            Ending::TooLong => (Kind::Info, Some(self.too_long(error))),
            _ => (kind, error),
        };
        self.record(
            monotonic_ns(),
            Function::Heal,
            kind,
            engine,
            Some(evidence),
            error,
        );
    }

    fn record(
        &self,
        at_ns: u64,
        f: Function,
        kind: Kind,
        engine: Option<&'static str>,
        evidence: Option<Evidence>,
        error: Option<String>,
    ) {
        let record = Record {
            step: self.step,
            f,
            kind,
            fault: &self.planned.fault,
            on: &self.on,
            does: &self.planned.does,
            engine,
            evidence,
            error,
        };
        self.engine.recorder.record(at_ns, record);
    }
}

/// Closes its step when it goes, so that no client stays held for a course that has ended.
struct Closed<'a> {
    engine: &'a Engine,
    step: usize,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.engine.close(self.step);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
