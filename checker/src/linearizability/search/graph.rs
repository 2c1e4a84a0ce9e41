//! From a configuration to those that can follow it: the edges of the graph that both searches go through.
//!
//! A call takes effect as late as possible: only when one that returns needs it (Lowe, "Testing for linearizability", 2017,
//! section 4, *just in time*). What keeps the graph narrow is that of two configurations the one is left out which the other
//! is as good as: whatever can follow it can follow the other. That gives these rules:
//!
//! - A call that leaves the state as it is, is owed no longer: it may have taken effect there and then, and if it is better
//!   off later, it still may.
//! - When a call overwrites the state, no other overwriting call in flight is owed any longer: it may have taken effect just
//!   before, and nobody saw it.
//! - Of equal calls the one that returns first takes effect first.
//! - A call that need not take effect does so only where it changes the state.

use super::ahead::{Prospect, View};
use super::front::Configuration;
use super::script::{Pending, Window};
use super::steps::{FORBIDDEN, Steps};
use crate::models::{Effect, Model};
use crate::names::Map;

/// What is remembered of a kind while the calls in flight are gone through: twice the round in which it was met last, and one
/// more if one of those met in that round was owed. As plain zeros, these cost nothing until they are met: there may be as
/// many kinds as calls, and many short searches.
type Mark = u32;

/// On which side of a return a configuration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Before,
    Past,
}

/// The edges, and what finding them needs.
pub(super) struct Graph<'m, M: Model, const WORDS: usize> {
    pub(super) steps: Steps<'m, M>,
    marks: Vec<Mark>,
    round: Mark,
    /// How many configurations were looked at.
    pub(super) examined: u64,
    /// The state that stands for all that will be overwritten before anything is observed of them, by the place and the call that
    /// wants it so.
    pub(super) overwritten: Map<(usize, u32), u32>,
    /// Whether a call that never returns may take effect any number of times. More is possible then, and much of it is alike:
    /// a history for which even that is not enough is refuted at once, however many outcomes are unknown.
    pub(super) lavish: bool,
}

impl<'m, M: Model, const WORDS: usize> Graph<'m, M, WORDS> {
    pub(super) fn new(steps: Steps<'m, M>) -> Self {
        Graph {
            marks: vec![0; steps.kinds().len()],
            steps,
            round: 0,
            examined: 0,
            overwritten: Map::default(),
            lavish: false,
        }
    }

    /// A call begins.
    #[inline]
    pub(super) fn invoke(
        &mut self,
        configuration: &mut Configuration<WORDS>,
        call: Pending,
        certain: bool,
    ) {
        if !certain && call.effect == Effect::Observes {
            return;
        }
        let seen =
            certain && self.steps.step(configuration.state, call.kind) == configuration.state;
        if !(seen && call.effect == Effect::Observes) {
            configuration.open.insert(call.slot);
        }
        if certain && !seen {
            configuration.owed.insert(call.slot);
        }
    }

    /// When a call returns that is open: what a configuration is after it if it does not owe the call. It has to be
    /// [branched](Self::branch) too, for the call may yet take effect.
    #[inline]
    pub(super) fn past(
        &self,
        mut configuration: Configuration<WORDS>,
        returning: Pending,
    ) -> Option<Configuration<WORDS>> {
        let owed = configuration.owed.has(returning.slot);
        configuration.open.remove(returning.slot);
        (!owed).then_some(configuration)
    }

    /// When a call returns that is open: lets each call that can take effect do so, on its way to that of the one that
    /// returns. `next` gets what is past the return then, and what is still before it.
    pub(super) fn branch(
        &mut self,
        configuration: &Configuration<WORDS>,
        returning: Pending,
        view: &View<'_>,
        mut next: impl FnMut(Place, Configuration<WORDS>),
    ) {
        self.examined += 1;
        self.round = self.round.wrapping_add(2);
        for call in view.window.calls() {
            if self.may_go_first(configuration, call)
                && let Some(to) = self.take(configuration, call, view.window)
                && let Some(to) = self.keep(to, view)
            {
                let released =
                    configuration.owed.has(returning.slot) && !to.owed.has(returning.slot);
                if released || call.slot == returning.slot {
                    let mut past = to;
                    past.open.remove(returning.slot);
                    next(Place::Past, past);
                }
                if to.open.has(returning.slot) {
                    next(Place::Before, to);
                }
            }
        }
    }

    /// A configuration if it is worth going on from, in the state that stands for all that are as good.
    fn keep(
        &mut self,
        mut configuration: Configuration<WORDS>,
        view: &View<'_>,
    ) -> Option<Configuration<WORDS>> {
        let Some(ahead) = view.ahead else {
            return Some(configuration);
        };
        match ahead.prospect(&self.steps, &configuration, view) {
            Prospect::Open => {}
            Prospect::Lost => return None,
            Prospect::Overwritten(wanted) => {
                let place = (view.window.at, wanted);
                let stands_for_all = self.overwritten.entry(place);
                configuration.state = *stands_for_all.or_insert(configuration.state);
            }
        }
        Some(configuration)
    }

    /// Whether no equal call in flight is to be preferred to this one. To be asked of the calls in their order.
    #[inline]
    fn may_go_first(&mut self, configuration: &Configuration<WORDS>, call: &Pending) -> bool {
        if !configuration.open.has(call.slot) || call.effect == Effect::Observes {
            return false;
        }
        let owed = configuration.owed.has(call.slot);
        let mark = &mut self.marks[call.kind as usize];
        if *mark & !1 != self.round {
            *mark = self.round | Mark::from(owed);
            return true;
        }
        let preferred = *mark & 1 == 1 || !owed || call.effect == Effect::Overwrites;
        *mark |= Mark::from(owed);
        !preferred
    }

    /// Lets a call take effect, if it can and that changes anything.
    fn take(
        &mut self,
        from: &Configuration<WORDS>,
        call: &Pending,
        window: &Window,
    ) -> Option<Configuration<WORDS>> {
        let state = self.steps.step(from.state, call.kind);
        if state == FORBIDDEN || state == from.state {
            return None;
        }
        let mut to = *from;
        to.state = state;
        if !(self.lavish && call.is_lasting()) {
            to.open.remove(call.slot);
        }
        to.owed.remove(call.slot);
        self.settle(&mut to, call.effect == Effect::Overwrites, window);
        Some(to)
    }

    /// What the calls in flight need no longer, now that the state is another.
    fn settle(
        &mut self,
        configuration: &mut Configuration<WORDS>,
        overwritten: bool,
        window: &Window,
    ) {
        if configuration.owed.is_empty() {
            return;
        }
        for call in window.returning() {
            if !configuration.owed.has(call.slot) {
                continue;
            }
            if overwritten && call.effect == Effect::Overwrites {
                configuration.owed.remove(call.slot);
            } else if self.steps.step(configuration.state, call.kind) == configuration.state {
                configuration.owed.remove(call.slot);
                if call.effect == Effect::Observes {
                    configuration.open.remove(call.slot);
                }
            }
        }
    }
}
