//! The few calls that prove a violation.
//!
//! A set of calls is a *core* when these have no order even if all others were free to have happened or not: their ends
//! stay, and of each it is only said that it may have taken effect. This is weaker than what the history says, so that what
//! a core shows is true of the history; and since "or not" is among what is allowed, the core by itself has no order either.
//! The search knows such calls already: an operation of unknown outcome is one.

use std::cell::Cell;

use super::breadth_first::BreadthFirst;
use super::front::Configuration;
use super::graph::Graph;
use super::over::Over;
use super::script::{Event, Script, Window};
use super::steps::{Kinds, Steps};
use super::{End, Leash, Limits};
use crate::linearizability::History;
use crate::models::Model;

/// Where more configurations than these are possible if nothing is certain, more has to be certain.
const WIDEST: usize = 512;

/// So many configurations may be looked at to find whether a call can be left out, and [some more](EACH_EVENT) for each event.
const CONFIGURATIONS_EACH: u64 = 10_000;

/// And so many in all: a core that could be smaller is better than one that comes too late.
const CONFIGURATIONS_IN_ALL: u64 = 150_000;

/// How many configurations an event adds to what may be looked at: a long proof is to be found too.
const EACH_EVENT: u64 = 16;

/// In so many orders it is tried to leave calls out.
const ORDERS: u64 = 8;

/// A place in the history, with all that can be there if nothing before it was certain.
struct Start<'m, M: Model, const WORDS: usize> {
    window: Window,
    configurations: Vec<Configuration<WORDS>>,
    steps: Steps<'m, M>,
}

/// A core, as indices of calls in rising order, of a history that stops to be linearizable at a position; none if that
/// cannot be refuted with few configurations from any start, the history's beginning included.
pub(super) fn core<M: Model, const WORDS: usize>(
    model: &M,
    kinds: &Kinds<'_, M>,
    history: &History<M::Operation>,
    prefix: u32,
    limits: &Limits<'_>,
) -> Option<Vec<usize>> {
    let script = Script::new(history, kinds, prefix);
    let over = Over::of(model, kinds, &script);
    let starts = starts::<M, WORDS>(Steps::new(model, kinds), &script, over.as_ref(), limits);
    let budget = Budget {
        limits,
        in_all: CONFIGURATIONS_IN_ALL + EACH_EVENT * script.events.len() as u64,
        spent: Cell::new(0),
    };
    let recent = starts
        .iter()
        .rev()
        .map(|start| (start, certain_from(&script, start.window.at)));
    let mut proofs = recent.filter(|(start, certain)| start.refutes(&script, certain, &budget));
    let (start, certain) = proofs.next()?;
    let orders = (0..ORDERS).take_while(|order| *order == 0 || !budget.is_spent());
    let cores = orders.map(|order| start.reduce(&script, certain.clone(), order, &budget));
    cores.min_by_key(Vec::len)
}

/// What may be spent on a core.
struct Budget<'a> {
    limits: &'a Limits<'a>,
    in_all: u64,
    spent: Cell<u64>,
}

impl Budget<'_> {
    fn is_spent(&self) -> bool {
        self.spent.get() >= self.in_all
    }

    /// What keeps one search over so many events from going on.
    fn leash(&self, events: u64) -> Leash<'_> {
        let each = CONFIGURATIONS_EACH + EACH_EVENT * events;
        Leash {
            limits: Limits {
                configurations: each.min(self.in_all.saturating_sub(self.spent.get())),
                ..*self.limits
            },
            done: None,
        }
    }
}

/// Places to begin a proof at: the history's beginning, then ever nearer to its end, each half as far from it as the last.
fn starts<'m, M: Model, const WORDS: usize>(
    steps: Steps<'m, M>,
    script: &Script,
    over: Option<&Over>,
    limits: &Limits<'_>,
) -> Vec<Start<'m, M, WORDS>> {
    let end = script.events.len();
    let nothing = vec![false; script.certain.len()];
    let leash = Leash {
        limits: Limits {
            configurations: 1_000_000 + 64 * end as u64,
            ..*limits
        },
        done: None,
    };
    let mut search = BreadthFirst::<M, WORDS>::new(Graph::new(steps), script);
    // More than is possible does no harm to a proof that begins there.
    search.graph.lavish = true;
    search.over = over;
    let mut starts = vec![Start::at(&mut search)];
    let distances = (2..usize::BITS)
        .map(|power| 1usize << power)
        .take_while(|distance| *distance < end);
    for distance in distances.collect::<Vec<_>>().into_iter().rev() {
        match search.run(end - distance, WIDEST, &nothing, &leash) {
            End::Through => starts.push(Start::at(&mut search)),
            _ => break,
        }
    }
    starts
}

/// Which calls are certain if only those are that began from an event on.
fn certain_from(script: &Script, at: usize) -> Vec<bool> {
    let mut certain = vec![false; script.certain.len()];
    for event in &script.events[at..] {
        if let Event::Invoke(call) = *event {
            certain[call as usize] = script.certain[call as usize];
        }
    }
    certain
}

fn indices(certain: &[bool]) -> Vec<usize> {
    (0..certain.len()).filter(|&call| certain[call]).collect()
}

impl<'m, M: Model, const WORDS: usize> Start<'m, M, WORDS> {
    /// The search's place. Many searches begin here, with copies of what is kept: no more than what they need.
    fn at(search: &mut BreadthFirst<'m, '_, M, WORDS>) -> Self {
        search.forget_states();
        Start {
            window: search.window.clone(),
            configurations: search.configurations.clone(),
            steps: search.graph.steps.clone(),
        }
    }

    /// Whether there is no order from here on if these calls are certain; no, too, if that is too hard to tell.
    fn refutes(&self, script: &Script, certain: &[bool], budget: &Budget<'_>) -> bool {
        let events = script.events.len() - self.window.at;
        let leash = budget.leash(events as u64);
        let dead = |lavish: bool| {
            let graph = Graph::new(self.steps.clone());
            let mut search = BreadthFirst::from(
                graph,
                script,
                self.window.clone(),
                self.configurations.clone(),
            );
            search.graph.lavish = lavish;
            let wide = if lavish { WIDEST } else { usize::MAX };
            let end = search.run(script.events.len(), wide, certain, &leash);
            budget.spent.set(budget.spent.get() + search.graph.examined);
            matches!(end, End::Dead(_))
        };
        (script.has_lasting && dead(true)) || dead(false)
    }

    /// Leaves out what can be left out: many calls at once where that can be, then one by one.
    fn reduce(
        &self,
        script: &Script,
        mut certain: Vec<bool>,
        order: u64,
        budget: &Budget<'_>,
    ) -> Vec<usize> {
        let mut calls = indices(&certain);
        shuffle(&mut calls, order);
        let mut many = (calls.len() / 2).max(1);
        loop {
            let mut kept = Vec::new();
            for chunk in calls.chunks(many) {
                chunk.iter().for_each(|&call| certain[call] = false);
                if !self.refutes(script, &certain, budget) {
                    chunk.iter().for_each(|&call| certain[call] = true);
                    kept.extend_from_slice(chunk);
                }
            }
            calls = kept;
            if many == 1 {
                return indices(&certain);
            }
            many = (many / 2).max(1);
        }
    }
}

/// Puts calls into one of several orders: the oldest first, the newest first, and others that are always the same.
fn shuffle(calls: &mut [usize], order: u64) {
    match order {
        0 => {}
        1 => calls.reverse(),
        _ => calls.sort_by_key(|&call| {
            (call as u64 + 1).wrapping_mul(order.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
        }),
    }
}
