//! The search for an order of a history's calls, for any model.
//!
//! Both searches go through one graph: its nodes are configurations between two events, each a state of the model and what
//! became of the calls in flight. [`breadth_first`] has all configurations of one moment and forgets the earlier ones;
//! where they become many, [`depth_first`] goes on from there beside it, and whoever is done first has the answer.

mod ahead;
mod breadth_first;
mod core;
mod depth_first;
mod front;
mod graph;
mod limits;
mod over;
mod script;
mod slots;
mod steps;

use std::sync::atomic::{AtomicBool, Ordering};

use ahead::Ahead;
use breadth_first::BreadthFirst;
use graph::Graph;
use script::{Event, Script};
use steps::{Kinds, Steps};

pub use limits::Limits;

use super::{Decision, History, NEVER, Violation};
use crate::models::Model;

/// From so many configurations at one moment on, the depth-first search goes along.
const WIDE: usize = 512;

/// From so many configurations at one moment on, it is not tried any longer to refute a history lavishly.
const WIDEST_LAVISH: usize = 16 * WIDE;

/// More calls in flight than this are not searched.
const MOST_IN_FLIGHT: u32 = 4096;

/// How a search ends.
enum End {
    /// There is an order of all events.
    Through,
    /// No configuration gets past this event.
    Dead(usize),
    /// None would get past this event even if more were possible than is; there may be none before it.
    Refuted(usize),
    /// There are too many configurations to go on alone.
    Wide,
    /// A limit was passed.
    Limit(String),
    /// The other search was done first.
    Stopped,
}

/// What keeps a search from going on.
struct Leash<'a> {
    limits: Limits<'a>,
    /// Set when the search beside this one is done.
    done: Option<&'a AtomicBool>,
}

impl Leash<'_> {
    /// Whether the search has to end, having looked at so many configurations and keeping so many bytes.
    fn pulled(&self, configurations: u64, bytes: usize) -> Option<End> {
        if self.done.is_some_and(|done| done.load(Ordering::Relaxed)) {
            return Some(End::Stopped);
        }
        self.limits.passed(configurations, bytes).map(End::Limit)
    }

    /// Tells the other search if this end is an answer.
    fn after(&self, end: End) -> End {
        if let (Some(done), End::Through | End::Dead(_)) = (self.done, &end) {
            done.store(true, Ordering::Relaxed);
        }
        end
    }
}

/// Calls a function of a search with as many words as the calls in flight need.
macro_rules! with_words {
    ($sought:ident . $function:ident ($($argument:expr),*), $too_many:expr) => {
        match $sought.script.slots {
            0..=64 => $sought.$function::<1>($($argument),*),
            65..=128 => $sought.$function::<2>($($argument),*),
            129..=512 => $sought.$function::<8>($($argument),*),
            513..=MOST_IN_FLIGHT => $sought.$function::<64>($($argument),*),
            many => $too_many(many),
        }
    };
}

/// Searches for an order of the calls, and if there is none, for the few calls that prove it.
pub(super) fn search<M: Model>(
    model: &M,
    history: &History<M::Operation>,
    limits: &Limits<'_>,
) -> Decision {
    let sought = Sought::new(model, history, NEVER, limits);
    with_words!(sought.decide(), |many| Decision::Unknown {
        reason: format!("{many} calls are in flight at once, and {MOST_IN_FLIGHT} is the most"),
        reached: 0,
    })
}

/// The violation that is known, with calls that prove it whatever the others did, if some are found within the limits.
pub(super) fn prove<M: Model>(
    model: &M,
    history: &History<M::Operation>,
    known: Violation,
    limits: &Limits<'_>,
) -> Violation {
    let sought = Sought::new(model, history, known.prefix, limits);
    match with_words!(sought.core(known.prefix), |_| None) {
        None => known,
        Some(calls) => Violation {
            // Others than the sentence tells of may prove more.
            sentence: known
                .sentence
                .filter(|_| known.calls.iter().all(|call| calls.contains(call))),
            calls,
            alone: false,
            prefix: known.prefix,
        },
    }
}

/// What is searched.
struct Sought<'a, M: Model> {
    model: &'a M,
    history: &'a History<M::Operation>,
    kinds: Kinds<'a, M>,
    script: Script,
    limits: &'a Limits<'a>,
}

impl<'a, M: Model> Sought<'a, M> {
    /// The history up to a position.
    fn new(
        model: &'a M,
        history: &'a History<M::Operation>,
        until: u32,
        limits: &'a Limits<'a>,
    ) -> Self {
        let kinds = Kinds::new(model, history.calls().iter().map(|call| &call.operation));
        Sought {
            model,
            history,
            script: Script::new(history, &kinds, until),
            kinds,
            limits,
        }
    }

    fn violated<const WORDS: usize>(&self, prefix: u32) -> Decision {
        Decision::Violated(Violation {
            calls: self.core::<WORDS>(prefix).unwrap_or_else(|| {
                // With all that is certain there is no order: that is what was found.
                let calls = self.history.calls().iter().enumerate();
                let certain = calls.filter(|(_, call)| call.certain && call.returned <= prefix);
                certain.map(|(at, _)| at).collect()
            }),
            alone: false,
            prefix,
            sentence: None,
        })
    }

    fn core<const WORDS: usize>(&self, prefix: u32) -> Option<Vec<usize>> {
        core::core::<M, WORDS>(self.model, &self.kinds, self.history, prefix, self.limits)
    }

    /// Where a history that is refuted at a position stops to be linearizable: there, or before it.
    fn end_before<const WORDS: usize>(&self, refuted: u32) -> u32 {
        let script = Script::new(self.history, &self.kinds, refuted - 1);
        match self.search_in::<WORDS>(&script) {
            End::Dead(event) => self.end_after::<WORDS>(&script, event),
            End::Refuted(event) => self.end_before::<WORDS>(self.position(&script, event)),
            _ => refuted,
        }
    }

    /// Where a history stops to be linearizable that no configuration gets past an event of: there, or at what was seen ahead.
    fn end_after<const WORDS: usize>(&self, script: &Script, dead: usize) -> u32 {
        let Some(ahead) = Ahead::of::<M>(script, &script.certain) else {
            return self.position(script, dead);
        };
        let seen = &script.events[dead..=ahead.seen_from(dead).max(dead)];
        let returns = seen.iter().filter_map(|event| match *event {
            Event::Return(call) => Some(self.history.calls()[call as usize].returned),
            Event::Invoke(_) => None,
        });
        let returns: Vec<u32> = returns.collect();
        let has_order = |&until: &u32| {
            let script = Script::new(self.history, &self.kinds, until);
            !matches!(
                self.search_in::<WORDS>(&script),
                End::Dead(_) | End::Refuted(_)
            )
        };
        let at = returns.partition_point(has_order);
        returns[at.min(returns.len() - 1)]
    }

    fn search_in<const WORDS: usize>(&self, script: &Script) -> End {
        search_with::<M, WORDS>(Steps::new(self.model, &self.kinds), script, self.limits).0
    }

    fn position(&self, script: &Script, event: usize) -> u32 {
        match script.events[event] {
            Event::Invoke(call) => self.history.calls()[call as usize].invoked,
            Event::Return(call) => self.history.calls()[call as usize].returned,
        }
    }

    fn decide<const WORDS: usize>(&self) -> Decision {
        let steps = Steps::new(self.model, &self.kinds);
        match search_with::<M, WORDS>(steps, &self.script, self.limits) {
            (End::Through, _) => Decision::Linearizable,
            (End::Dead(event), _) => {
                self.violated::<WORDS>(self.end_after::<WORDS>(&self.script, event))
            }
            (End::Refuted(event), _) => {
                let refuted = self.position(&self.script, event);
                self.violated::<WORDS>(self.end_before::<WORDS>(refuted))
            }
            (End::Limit(reason), reached) => Decision::Unknown {
                reason,
                reached: self.position(&self.script, reached),
            },
            (End::Wide | End::Stopped, _) => {
                unreachable!("one of two searches has the answer, or both passed a limit")
            }
        }
    }
}

/// How the search ends, and how many events it had behind it then.
fn search_with<M: Model, const WORDS: usize>(
    steps: Steps<'_, M>,
    script: &Script,
    limits: &Limits<'_>,
) -> (End, usize) {
    let leash = Leash {
        limits: *limits,
        done: None,
    };
    let mut broad = BreadthFirst::<M, WORDS>::new(Graph::new(steps), script);
    let end = broad.run(script.events.len(), WIDE, &script.certain, &leash);
    if !matches!(end, End::Wide) {
        return (end, broad.window.at);
    }
    if script.has_lasting
        && let Some(event) = refute_lavishly(&broad, script, &leash)
    {
        return (End::Refuted(event), event);
    }
    race(broad, script, limits)
}

/// The event that no configuration gets past even if calls that never return may take effect any number of times.
fn refute_lavishly<M: Model, const WORDS: usize>(
    from: &BreadthFirst<'_, '_, M, WORDS>,
    script: &Script,
    leash: &Leash<'_>,
) -> Option<usize> {
    let mut lavish = from.again();
    lavish.graph.lavish = true;
    let end = lavish.run(script.events.len(), WIDEST_LAVISH, &script.certain, leash);
    match end {
        End::Dead(event) => Some(event),
        _ => None,
    }
}

/// Goes on broadly and deeply at once, on a thread each: whoever is done first has the answer. Where no thread can be had,
/// goes on broadly alone.
fn race<M: Model, const WORDS: usize>(
    mut broad: BreadthFirst<'_, '_, M, WORDS>,
    script: &Script,
    limits: &Limits<'_>,
) -> (End, usize) {
    let done = AtomicBool::new(false);
    let mut leash = Leash {
        limits: *limits,
        done: Some(&done),
    };
    leash.limits.bytes /= 2;
    let length = script.events.len();
    let deep = broad.again();
    let (broad_end, deep_end) = std::thread::scope(|scope| {
        let search = || leash.after(depth_first::search(deep, script, &leash));
        let deep = std::thread::Builder::new().spawn_scoped(scope, search);
        let broad_end = leash.after(broad.run(length, usize::MAX, &script.certain, &leash));
        (broad_end, deep.map(|deep| deep.join()))
    });
    let deep_end = deep_end.map_or(End::Stopped, |ended| {
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let end = match (broad_end, deep_end) {
        (end @ (End::Through | End::Dead(_)), _) | (_, end @ (End::Through | End::Dead(_))) => end,
        (End::Stopped, end) | (end, _) => end,
    };
    (end, broad.window.at.min(length - 1))
}

#[cfg(test)]
mod tests;
