//! All configurations at once, event by event: Lowe's just-in-time graph search ("Testing for linearizability", 2017, section 4).
//!
//! What is behind the window is forgotten, so that memory grows with the calls in flight and not with the history.

use super::ahead::{Ahead, View};
use super::front::{Configuration, Front};
use super::graph::{Graph, Place};
use super::over::Over;
use super::script::{Event, Pending, Script, Window};
use super::slots::Slots;
use super::{End, Leash};
use crate::models::{Effect, Model};

/// With fewer states than that nothing is thrown away.
const STATES_KEPT: usize = 4096;

/// For each configuration that there may be between two events, so many may be looked at on the way to the next one.
const BRANCHES: usize = 16;

/// How often, in events, a search asks whether it has to stop.
const EVENTS_BETWEEN_QUESTIONS: usize = 256;

/// A search that has all configurations that the events so far allow.
pub(super) struct BreadthFirst<'m, 's, M: Model, const WORDS: usize> {
    pub(super) graph: Graph<'m, M, WORDS>,
    script: &'s Script,
    pub(super) window: Window,
    pub(super) configurations: Vec<Configuration<WORDS>>,
    /// When states become alike, where that is worth looking at.
    pub(super) over: Option<&'s Over>,
    /// What is observed later, where some calls are certain.
    ahead: Option<Ahead>,
    /// What was found past the return that is looked at.
    found: Front<WORDS>,
    /// What was found before it.
    before: Front<WORDS>,
    /// What is before it and has to be looked at.
    queue: Vec<Configuration<WORDS>>,
}

impl<'m, 's, M: Model, const WORDS: usize> BreadthFirst<'m, 's, M, WORDS> {
    /// A search at the beginning of a history.
    pub(super) fn new(graph: Graph<'m, M, WORDS>, script: &'s Script) -> Self {
        let start = Configuration {
            state: 0,
            owed: Slots::EMPTY,
            open: Slots::EMPTY,
        };
        Self::from(graph, script, Window::default(), vec![start])
    }

    /// A search that goes on from configurations at the window's place.
    pub(super) fn from(
        graph: Graph<'m, M, WORDS>,
        script: &'s Script,
        window: Window,
        configurations: Vec<Configuration<WORDS>>,
    ) -> Self {
        BreadthFirst {
            graph,
            script,
            window,
            configurations,
            over: None,
            ahead: None,
            found: Front::new(),
            before: Front::new(),
            queue: Vec::new(),
        }
    }

    /// Another search that goes on from here.
    pub(super) fn again(&self) -> Self {
        let graph = Graph::new(self.graph.steps.clone());
        Self::from(
            graph,
            self.script,
            self.window.clone(),
            self.configurations.clone(),
        )
    }

    /// Goes on to the event `until`, or to where no configuration is left, or there are more than `wide`.
    pub(super) fn run(
        &mut self,
        until: usize,
        wide: usize,
        certain: &[bool],
        leash: &Leash<'_>,
    ) -> End {
        self.ahead = Ahead::of::<M>(self.script, certain);
        while self.window.at < until {
            if self.configurations.len() > wide {
                return End::Wide;
            }
            if self.window.at.is_multiple_of(EVENTS_BETWEEN_QUESTIONS)
                && let Some(end) = leash.pulled(self.graph.examined, self.bytes())
            {
                return end;
            }
            match self.script.events[self.window.at] {
                Event::Invoke(call) => self.invoke(call, certain[call as usize]),
                Event::Return(call) => {
                    if let Some(end) = self.leave(self.script.call(call), wide, leash) {
                        return end;
                    }
                }
            }
            let at = self.window.at;
            if let Some(over) = self.over.filter(|over| over.ends_with(at)) {
                self.merge(over);
            }
            self.window.forward(self.script);
        }
        End::Through
    }

    /// Lets one state stand for all that are about things that are over with the event that was gone past.
    fn merge(&mut self, over: &Over) {
        let steps = &self.graph.steps;
        let is_over = |state: u32| {
            let thing = steps.about(state);
            thing.is_some_and(|thing| over.is_over(thing, self.window.at))
        };
        let mut stands_for_all = None;
        self.found.clear();
        for configuration in &mut self.configurations {
            if is_over(configuration.state) {
                configuration.state = *stands_for_all.get_or_insert(configuration.state);
            }
            self.found.add(*configuration);
        }
        self.configurations.clear();
        self.configurations.extend(self.found.iter());
    }

    fn invoke(&mut self, call: u32, certain: bool) {
        let pending = self.script.call(call);
        for configuration in &mut self.configurations {
            self.graph.invoke(configuration, pending, certain);
        }
    }

    /// Goes past a return, unless that is the end.
    fn leave(&mut self, returning: Pending, wide: usize, leash: &Leash<'_>) -> Option<End> {
        let open = |configuration: &Configuration<WORDS>| configuration.open.has(returning.slot);
        if !self.configurations.iter().any(open) {
            self.graph.examined += 1;
            return None;
        }
        self.found.clear();
        self.before.clear();
        self.queue.clear();
        for &configuration in &self.configurations {
            if open(&configuration) {
                self.queue.push(configuration);
            }
            if let Some(past) = self.graph.past(configuration, returning) {
                self.found.add(past);
            }
        }
        if returning.effect == Effect::Observes {
            self.queue
                .retain(|configuration| configuration.owed.has(returning.slot));
        }
        if let Some(end) = self.explore(returning, wide, leash) {
            return Some(end);
        }
        if self.found.len() == 0 {
            return Some(End::Dead(self.window.at));
        }
        self.configurations.clear();
        self.configurations.extend(self.found.iter());
        if self.graph.steps.len() >= STATES_KEPT.max(8 * self.configurations.len()) {
            self.forget_states();
        }
        None
    }

    /// Finds all that is past a return, from what is queued before it.
    fn explore(&mut self, returning: Pending, wide: usize, leash: &Leash<'_>) -> Option<End> {
        let most = if self.graph.lavish {
            wide
        } else {
            wide.saturating_mul(BRANCHES)
        };
        let mut at = 0;
        while at < self.queue.len() {
            if at > most {
                return Some(End::Wide);
            }
            let configuration = self.queue[at];
            at += 1;
            if at.is_multiple_of(EVENTS_BETWEEN_QUESTIONS)
                && let Some(end) = leash.pulled(self.graph.examined, self.bytes())
            {
                return Some(end);
            }
            let view = View {
                window: &self.window,
                script: self.script,
                ahead: self.ahead.as_ref(),
            };
            self.graph.branch(
                &configuration,
                returning,
                &view,
                |place, next| match place {
                    Place::Past => drop(self.found.add(next)),
                    Place::Before => {
                        if self.before.add(next) {
                            self.queue.push(next);
                        }
                    }
                },
            );
        }
        None
    }

    /// Throws states away that no configuration is in.
    pub(super) fn forget_states(&mut self) {
        let mut live: Vec<u32> = self
            .configurations
            .iter()
            .map(|configuration| configuration.state)
            .collect();
        live.sort_unstable();
        live.dedup();
        let renumbered = self.graph.steps.keep(&live);
        self.graph.overwritten.clear();
        for configuration in &mut self.configurations {
            configuration.state = renumbered[&configuration.state];
        }
    }

    fn bytes(&self) -> usize {
        let fronts = self.found.len() + self.before.len();
        let configurations = self.configurations.capacity() + self.queue.capacity() + 2 * fronts;
        configurations * size_of::<Configuration<WORDS>>() + self.graph.steps.bytes()
    }
}
