//! One configuration after another, deepest first, with a memory of those visited: the search of Wing and Gong ("Testing and
//! verifying concurrent objects", 1993) with Lowe's memory, on the same graph as the breadth-first one.
//!
//! It finds an order of a history that has many without looking at most of them.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::ahead::{Ahead, View};
use super::breadth_first::BreadthFirst;
use super::front::Configuration;
use super::graph::{Graph, Place};
use super::script::{Event, Pending, Script, Window};
use super::{End, Leash};
use crate::models::{Effect, Model};

/// How often, in configurations, a search asks whether it has to stop.
const BETWEEN_QUESTIONS: u64 = 256;

/// Goes on from where another search is, to the end of the history.
pub(super) fn search<M: Model, const WORDS: usize>(
    from: BreadthFirst<'_, '_, M, WORDS>,
    script: &Script,
    leash: &Leash<'_>,
) -> End {
    let BreadthFirst {
        mut graph,
        mut window,
        configurations,
        ..
    } = from;
    let mut visited: HashSet<(u32, Configuration<WORDS>), FixedState> = HashSet::default();
    let nodes = configurations.into_iter().rev();
    let mut stack: Vec<_> = nodes.map(|node| (window.at as u32, node)).collect();
    let ahead = Ahead::of::<M>(script, &script.certain);
    let (mut deepest, mut questions) = (window.at, 0);
    let mut found = Vec::new();
    while let Some((at, mut configuration)) = stack.pop() {
        move_to(&mut window, at as usize, script);
        if graph.examined >= questions {
            questions = graph.examined + BETWEEN_QUESTIONS;
            let each = size_of::<(u32, Configuration<WORDS>)>();
            let bytes =
                (visited.capacity() + stack.capacity()) * each * 9 / 8 + graph.steps.bytes();
            if let Some(end) = leash.pulled(graph.examined, bytes) {
                return end;
            }
        }
        let Some(returning) = advance(&mut graph, script, &mut window, &mut configuration) else {
            return End::Through;
        };
        deepest = deepest.max(window.at);
        let before = window.at as u32;
        if returning.effect != Effect::Observes || configuration.owed.has(returning.slot) {
            let view = View {
                window: &window,
                script,
                ahead: ahead.as_ref(),
            };
            graph.branch(
                &configuration,
                returning,
                &view,
                |place, next| match place {
                    Place::Before => found.push((before, next)),
                    Place::Past => found.push((before + 1, next)),
                },
            );
        }
        found.extend(
            graph
                .past(configuration, returning)
                .map(|past| (before + 1, past)),
        );
        // What is past the return is popped first, and of that what took the fewest other calls.
        found.sort_by_key(|(at, _)| *at);
        stack.extend(found.drain(..).filter(|node| visited.insert(*node)));
    }
    End::Dead(deepest)
}

/// Takes a configuration to the next return of a call that is open, which is given; to the history's end if there is none.
fn advance<M: Model, const WORDS: usize>(
    graph: &mut Graph<'_, M, WORDS>,
    script: &Script,
    window: &mut Window,
    configuration: &mut Configuration<WORDS>,
) -> Option<Pending> {
    while window.at < script.events.len() {
        match script.events[window.at] {
            Event::Invoke(call) => {
                let certain = script.certain[call as usize];
                graph.invoke(configuration, script.call(call), certain);
            }
            Event::Return(call) => {
                let returning = script.call(call);
                graph.examined += 1;
                if configuration.open.has(returning.slot) {
                    return Some(returning);
                }
            }
        }
        window.forward(script);
    }
    None
}

fn move_to(window: &mut Window, at: usize, script: &Script) {
    while window.at > at {
        window.back(script);
    }
    while window.at < at {
        window.forward(script);
    }
}
