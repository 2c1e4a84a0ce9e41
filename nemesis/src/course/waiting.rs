//! What a course waits for: its trigger, the end of its fault, and that it shows that the fault is over.

use containers::agent::monotonic_ns;
use histories::When;

use super::{Course, Ending, HEALING, InPlace, LOOK_AGAIN, nanos};
use crate::board::{Haste, State, Wait, phrase, standing};
use crate::faults::{Evidence, FaultError, Strike};
use crate::trigger::Trigger;

impl Course<'_> {
    /// Waits for the trigger; `None` if the run ends before.
    pub(super) fn await_trigger(&self) -> Option<Trigger> {
        let stopping = |state: &State| state.stopping().map(|_| None);
        match &self.planned.when {
            When::Time { after_ms } => {
                let due_ns = self.engine.due_ns(*after_ms);
                let stopped = self
                    .engine
                    .board
                    .wait(Some(due_ns), |state| state.stopping());
                stopped.is_none().then_some(Trigger::Time { due_ns })
            }
            When::Point { client, .. } => {
                let rule = self.trigger_rule()?;
                let check = |state: &State| {
                    state
                        .at_point(client, rule)
                        .map(Some)
                        .or_else(|| stopping(state))
                };
                self.engine.board.wait(None, check)?
            }
            When::Event(named) => {
                let rule = self.trigger_rule()?;
                let check = |state: &State| {
                    let after = state.after_others(&named.client, rule, self.step);
                    after.map(Some).or_else(|| stopping(state))
                };
                self.engine.board.wait(None, check)?
            }
        }
    }

    /// Waits until those faults of the same trigger are in place, or given up, that stand before this one in the plan;
    /// whether there are any. `None` if the run ends before.
    pub(super) fn await_turn(&self) -> Option<bool> {
        let before = self.engine.rules.before(self.step);
        let check = |state: &State| {
            // The last ones first: they strike in order, and the first that is not in place settles it.
            let begun = before.iter().rev().all(|step| state.is_begun(*step));
            let follows = begun.then_some(!before.is_empty());
            follows.map(Some).or_else(|| state.stopping().map(|_| None))
        };
        self.engine.board.wait(None, check)?
    }

    /// The number of the rule that tells of the trigger; none for a time.
    fn trigger_rule(&self) -> Option<u32> {
        let armed = self.engine.rules.of_trigger(self.step)?;
        Some(armed.rule.rule)
    }

    /// Whether the trigger has come, of a fault that was not begun.
    pub(super) fn has_come(&self) -> bool {
        match &self.planned.when {
            When::Time { after_ms } => self.engine.due_ns(*after_ms) <= monotonic_ns(),
            When::Point { client, .. } => self.trigger_rule().is_some_and(|rule| {
                let reached = |state: &State| state.at_point(client, rule).is_some();
                self.engine.board.look(reached)
            }),
            // It would have been begun by then.
            When::Event(_) => false,
        }
    }

    /// Why nothing was injected, when the run has ended before the trigger came.
    pub(super) fn never_came(&self) -> String {
        let what = match &self.planned.when {
            When::Time { after_ms } => format!("the run ended before {after_ms} ms were over"),
            When::Point {
                client,
                point,
                nth_grant,
            } => format!("`{client}` never reached `{point}` of grant {nth_grant}"),
            When::Event(named) => format!(
                "after the earlier faults nothing showed that {}",
                phrase(named)
            ),
        };
        let unwatched = |state: &State| state.unwatched_clients().join("; ");
        let unwatched = self.engine.board.look(unwatched);
        match unwatched.as_str() {
            "" => format!("the trigger never came: {what}"),
            _ => format!("the trigger never came: {what} ({unwatched})"),
        }
    }

    /// Waits until the fault has to end; `None` if it does not until `look_ns`.
    pub(super) fn await_ending(&self, in_place: &InPlace, look_ns: Option<u64>) -> Option<Ending> {
        self.engine
            .board
            .wait_for(look_ns, |state| self.ending(state, in_place))
    }

    /// Why the fault ends now, or else when that may change without news.
    fn ending(&self, state: &State, in_place: &InPlace) -> Result<Ending, Option<u64>> {
        if let Some(haste) = state.stopping()
            && (haste != Haste::ClientsFirst || !self.engine.waits_for_clients(self.step))
        {
            return Ok(Ending::RunEnds(haste));
        }
        if self.engine.is_momentary(self.step) {
            return if in_place.recorded {
                Ok(Ending::Due)
            } else {
                Err(None)
            };
        }
        let until = &self.planned.until;
        let event_came = until.event.as_ref().is_some_and(|named| {
            let armed = self.engine.rules.of_until(self.step);
            armed.is_some_and(|armed| {
                state.completed_since(&named.client, armed.rule.rule, in_place.at_ns)
            })
        });
        let mut together = self.engine.together(self.step).iter().rev();
        match standing(until, event_came, in_place.at_ns, monotonic_ns()) {
            Wait::Nothing if together.all(|step| state.is_begun(*step)) => Ok(Ending::Due),
            Wait::TooLong => Ok(Ending::TooLong),
            Wait::UntilNs(at_ns) => Err(Some(at_ns)),
            Wait::Nothing | Wait::News => Err(None),
        }
    }

    /// Waits until it shows that the fault is over.
    pub(super) fn await_over(
        &mut self,
        strike: &mut dyn Strike,
        ending: Ending,
    ) -> Result<Option<Evidence>, FaultError> {
        let until_ns = monotonic_ns() + nanos(HEALING);
        let mut hurry = ending == Ending::RunEnds(Haste::AtOnce);
        loop {
            let over = strike.over(&mut self.healing)?;
            if over.is_some() || hurry || monotonic_ns() >= until_ns {
                return Ok(over);
            }
            let look_ns = Some(monotonic_ns() + nanos(LOOK_AGAIN));
            let at_once = |state: &State| (state.stopping() == Some(Haste::AtOnce)).then_some(());
            hurry = self.engine.board.wait(look_ns, at_once).is_some();
        }
    }

    /// Why a fault was ended that waited for an event; `error` is what its healing met.
    pub(super) fn too_long(&self, error: Option<String>) -> String {
        let until = &self.planned.until;
        let at_most_ms = until.at_most_ms.unwrap_or_default();
        let waited_for = until.event.as_ref().map(phrase).unwrap_or_default();
        let message = format!("{at_most_ms} ms were over before {waited_for}");
        match error {
            Some(error) => format!("{message}; {error}"),
            None => message,
        }
    }
}
