//! What a history tells ahead: the operations that will have observed something, which no order can do without.
//!
//! A state from which one of them cannot come to be a step ([`Model::outlook`]) need not be gone on from; and states that are all
//! overwritten before anything is observed of them are one. Of a string that is appended to and read, whole orders of appends
//! are left out that way as soon as a read is near that shows another, or a put that nobody reads before.

use super::front::Configuration;
use super::script::{Event, Script, Window};
use super::steps::Steps;
use crate::models::{Effect, Model, Outlook};

/// So many observations, those that return next, are held against a state.
const NEAR: usize = 4;

/// The observations that are certain, in the order of their returns, and what may overwrite between them.
pub(super) struct Ahead {
    observations: Vec<Observation>,
    /// Of each event: the first observation that returns there or later.
    next: Vec<u32>,
    /// The calls that overwrite, with the events at which they begin, in their order.
    overwriting: Vec<(usize, u32)>,
}

/// An operation that observes, with the events at which it begins and returns.
struct Observation {
    call: u32,
    invoked: usize,
    returned: usize,
    /// Those that begin before it returns, and return later.
    beside: Vec<u32>,
}

/// What is to become of a configuration.
pub(super) enum Prospect {
    Open,
    /// It is overwritten before anything is observed of it, for this call to observe what it does.
    Overwritten(u32),
    Lost,
}

/// What is seen from a configuration.
pub(super) struct View<'a> {
    pub(super) window: &'a Window,
    pub(super) script: &'a Script,
    /// For a model that [looks ahead](Model::LOOKS_AHEAD).
    pub(super) ahead: Option<&'a Ahead>,
}

impl Ahead {
    /// For a model that looks ahead, where these calls are certain.
    pub(super) fn of<M: Model>(script: &Script, certain: &[bool]) -> Option<Ahead> {
        if !M::LOOKS_AHEAD {
            return None;
        }
        let mut invoked = vec![0; certain.len()];
        let mut in_flight: Vec<u32> = Vec::new();
        let (mut observations, mut next, mut overwriting) = (Vec::new(), Vec::new(), Vec::new());
        for (at, event) in script.events.iter().enumerate() {
            next.push(observations.len() as u32);
            let (Event::Invoke(call) | Event::Return(call)) = *event;
            let begins = *event == Event::Invoke(call);
            match script.call(call).effect {
                Effect::Observes if certain[call as usize] && begins => {
                    invoked[call as usize] = at;
                    in_flight.push(call);
                }
                Effect::Observes if certain[call as usize] => {
                    in_flight.retain(|other| *other != call);
                    observations.push(Observation {
                        call,
                        invoked: invoked[call as usize],
                        returned: at,
                        beside: in_flight.clone(),
                    });
                }
                Effect::Overwrites if begins => overwriting.push((at, call)),
                _ => {}
            }
        }
        Some(Ahead {
            observations,
            next,
            overwriting,
        })
    }

    /// The last event that anything was seen of up to an event.
    pub(super) fn seen_from(&self, event: usize) -> usize {
        let after = &self.observations[self.next[event] as usize..];
        let near = &after[..after.len().min(NEAR)];
        near.last().map_or(event, |seen| seen.returned)
    }

    /// What is to become of a configuration at the view's place.
    pub(super) fn prospect<M: Model, const WORDS: usize>(
        &self,
        steps: &Steps<'_, M>,
        configuration: &Configuration<WORDS>,
        view: &View<'_>,
    ) -> Prospect {
        let from = self.next[view.window.at] as usize;
        let near = self.observations[from..].iter().zip(from..).take(NEAR);
        let mut first = None;
        for (seen, at) in near.filter(|(seen, _)| view.wants(configuration, seen)) {
            let outlook = self.outlook_for(seen, steps, configuration, view);
            if outlook == Outlook::Lost {
                return Prospect::Lost;
            }
            first = first.or(Some((outlook, at)));
        }
        let Some((Outlook::Overwritten, at)) = first else {
            return Prospect::Open;
        };
        // Whoever may observe before that: also those that this configuration does not need, for another one may.
        let seen = &self.observations[at];
        let earlier = self.observations[from..at].iter().map(|seen| seen.call);
        let none_observes = earlier.chain(seen.beside.iter().copied()).all(|call| {
            let kind = view.script.call(call).kind;
            let outlook = steps.outlook(configuration.state, kind, &mut std::iter::empty());
            outlook == Outlook::Lost
        });
        match none_observes {
            true => Prospect::Overwritten(seen.call),
            false => Prospect::Open,
        }
    }

    /// What is to become of a state for an observation to be made that is wanted.
    fn outlook_for<M: Model, const WORDS: usize>(
        &self,
        seen: &Observation,
        steps: &Steps<'_, M>,
        configuration: &Configuration<WORDS>,
        view: &View<'_>,
    ) -> Outlook {
        let open = view
            .window
            .calls()
            .filter(|call| call.effect == Effect::Overwrites && configuration.open.has(call.slot));
        let to_come = self
            .overwriting
            .partition_point(|(at, _)| *at < view.window.at);
        let to_come = self.overwriting[to_come..]
            .iter()
            .take_while(|(at, _)| *at < seen.returned)
            .map(|&(_, call)| view.script.call(call));
        let mut overwriting = open.copied().chain(to_come).map(|call| call.kind);
        let kind = view.script.call(seen.call).kind;
        steps.outlook(configuration.state, kind, &mut overwriting)
    }
}

impl View<'_> {
    /// Whether a configuration has yet to come to an observation.
    fn wants<const WORDS: usize>(
        &self,
        configuration: &Configuration<WORDS>,
        seen: &Observation,
    ) -> bool {
        let in_flight = seen.invoked < self.window.at;
        !in_flight || configuration.owed.has(self.script.call(seen.call).slot)
    }
}
