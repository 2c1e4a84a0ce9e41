//! A history as the events that a search goes through, and the window of calls in flight that goes along.

use super::steps::Kinds;
use crate::linearizability::{History, NEVER};
use crate::models::{Effect, Model};

/// A call begins or returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Invoke(u32),
    Return(u32),
}

/// The events of a history up to some position, and a slot for each call in flight.
pub(super) struct Script {
    pub(super) events: Vec<Event>,
    /// Of each call: its slot, and what the window needs to know of it.
    calls: Vec<Pending>,
    /// Of each call: whether it took effect for certain.
    pub(super) certain: Vec<bool>,
    /// How many slots there are.
    pub(super) slots: u32,
    /// Whether any call never returns.
    pub(super) has_lasting: bool,
}

/// A call in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) slot: u32,
    pub(super) kind: u32,
    pub(super) effect: Effect,
    returned: u32,
}

impl Pending {
    /// Whether it never returns.
    pub(super) fn is_lasting(&self) -> bool {
        self.returned == NEVER
    }
}

impl Script {
    /// The events up to and including the position `until`. A call that has not returned by then is not certain.
    pub(super) fn new<M: Model>(
        history: &History<M::Operation>,
        kinds: &Kinds<'_, M>,
        until: u32,
    ) -> Script {
        let calls = history.calls();
        let pending =
            |(call, &kind): (&crate::linearizability::Call<M::Operation>, &u32)| Pending {
                slot: u32::MAX,
                kind,
                effect: kinds.effect(kind),
                returned: if call.returned <= until {
                    call.returned
                } else {
                    NEVER
                },
            };
        let mut script = Script {
            events: Vec::with_capacity(2 * calls.len()),
            calls: calls.iter().zip(&kinds.of_call).map(pending).collect(),
            certain: calls
                .iter()
                .map(|call| call.certain && call.returned <= until)
                .collect(),
            slots: 0,
            has_lasting: false,
        };
        let began = calls.partition_point(|call| call.invoked <= until);
        script.order(
            &calls[..began]
                .iter()
                .map(|call| call.invoked)
                .collect::<Vec<_>>(),
        );
        script.give_slots();
        script
    }

    /// Puts invocations and returns into one order. What was only observed, or not, by who never came back is left out.
    fn order(&mut self, invoked: &[u32]) {
        let mut returns: Vec<(u32, u32)> = Vec::with_capacity(invoked.len());
        for (at, call) in self.calls[..invoked.len()].iter().enumerate() {
            if call.returned != NEVER {
                returns.push((call.returned, at as u32));
            }
        }
        returns.sort_unstable();
        let mut returns = returns.into_iter().peekable();
        for (at, &invoked) in invoked.iter().enumerate() {
            while let Some((_, returning)) = returns.next_if(|(returned, _)| *returned < invoked) {
                self.events.push(Event::Return(returning));
            }
            let call = &self.calls[at];
            if call.returned != NEVER || call.effect != Effect::Observes {
                self.events.push(Event::Invoke(at as u32));
                self.has_lasting |= call.returned == NEVER;
            }
        }
        self.events
            .extend(returns.map(|(_, returning)| Event::Return(returning)));
    }

    fn give_slots(&mut self) {
        let mut free = Vec::new();
        for event in &self.events {
            match *event {
                Event::Invoke(call) => {
                    self.calls[call as usize].slot = free.pop().unwrap_or_else(|| {
                        self.slots += 1;
                        self.slots - 1
                    });
                }
                Event::Return(call) => free.push(self.calls[call as usize].slot),
            }
        }
    }

    pub(super) fn call(&self, call: u32) -> Pending {
        self.calls[call as usize]
    }
}

/// The calls in flight between two events.
#[derive(Clone, Default)]
pub(super) struct Window {
    /// How many events are behind.
    pub(super) at: usize,
    /// Those that return, the first to return first.
    returning: Vec<Pending>,
    /// Those that never return, the first to begin first.
    lasting: Vec<Pending>,
}

impl Window {
    /// The calls in flight: those that return first, those that never return last.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Pending> {
        self.returning.iter().chain(&self.lasting)
    }

    /// The calls in flight that return, the first to return first.
    pub(super) fn returning(&self) -> &[Pending] {
        &self.returning
    }

    /// Goes past the next event.
    pub(super) fn forward(&mut self, script: &Script) {
        match script.events[self.at] {
            Event::Invoke(call) => self.enter(script.call(call)),
            Event::Return(call) => {
                // It is the first, or one of several that return at the same position.
                let slot = script.call(call).slot;
                let place = self
                    .returning
                    .iter()
                    .position(|pending| pending.slot == slot);
                self.returning
                    .remove(place.expect("what returns is in flight"));
            }
        }
        self.at += 1;
    }

    /// Goes back before the last event.
    pub(super) fn back(&mut self, script: &Script) {
        self.at -= 1;
        match script.events[self.at] {
            Event::Return(call) => self.returning.insert(0, script.call(call)),
            Event::Invoke(call) => {
                let slot = script.call(call).slot;
                if self.lasting.last().is_some_and(|last| last.slot == slot) {
                    self.lasting.pop();
                } else {
                    self.returning.retain(|pending| pending.slot != slot);
                }
            }
        }
    }

    fn enter(&mut self, call: Pending) {
        if call.is_lasting() {
            self.lasting.push(call);
        } else {
            let place = self
                .returning
                .partition_point(|other| other.returned < call.returned);
            self.returning.insert(place, call);
        }
    }
}
