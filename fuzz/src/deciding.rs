//! Small histories of every model, made of bytes.
//!
//! The first byte chooses the model and the second how it is set up; then three bytes make an event: who, what, and a value.
//! If who has no call in flight one begins, and else it ends. So a change of a byte is a small change of the history.

use checker::linearizability::{Call, History, NEVER};
use checker::models::cas_register::CasRegister;
use checker::models::fenced_mutex::FencedMutex;
use checker::models::fenced_register::FencedRegister;
use checker::models::lease_mutex::LeaseMutex;
use checker::models::map::StringMap;
use checker::models::mutex::Mutex;
use checker::models::owner_aware_mutex::OwnerAwareMutex;
use checker::models::reentrant_fenced_mutex::ReentrantFencedMutex;
use checker::models::reentrant_mutex::ReentrantMutex;
use checker::models::register::Register;
use checker::models::semaphore::Semaphore;
use histories::entries::Value;

use crate::agreement::{self, Proof};
use crate::models::{Asked, Made};

/// More calls than these take brute force too long.
const MOST_CALLS: usize = 7;

/// How many can have a call in flight.
const PROCESSES: usize = 8;

/// How a history's model is set up.
#[derive(Clone, Copy)]
struct Setup(u8);

impl Setup {
    /// How many permits a semaphore has.
    fn permits(self) -> u32 {
        [1, 2, 3, u32::MAX][usize::from(self.0 & 3)]
    }

    /// How often the owner of a reentrant lock may hold it.
    fn depth_max(self) -> Option<u32> {
        [None, None, Some(1), Some(2)][usize::from(self.0 & 3)]
    }

    /// Whether anybody acts as anybody, and what happens once happens twice: no service's history is such, and models and
    /// closed forms have to put up with it.
    fn is_wild(self) -> bool {
        self.0 & 4 != 0
    }

    /// How many values there are: few that are often the same, or so many that each can be written once.
    fn values(self) -> u8 {
        if self.0 & 8 == 0 { 8 } else { 3 }
    }
}

/// Decides the history that bytes stand for.
pub fn any_model(bytes: &[u8]) {
    let [model, setup, events @ ..] = bytes else {
        return;
    };
    let setup = Setup(*setup);
    let initial = Value::Integer(0);
    match model % 11 {
        0 => decide(Register::new(&initial), setup, events, Proof::Minimal),
        1 => decide(CasRegister::new(&initial), setup, events, Proof::Minimal),
        2 => decide(FencedRegister::new(&initial), setup, events, Proof::Minimal),
        3 => decide(StringMap::default(), setup, events, Proof::Minimal),
        4 => decide(Mutex::new(true), setup, events, Proof::Minimal),
        5 => decide(
            OwnerAwareMutex::new(true),
            setup,
            events,
            Proof::WhateverElse,
        ),
        6 => decide(
            ReentrantMutex::new(setup.depth_max(), true),
            setup,
            events,
            Proof::Alone,
        ),
        7 => decide(FencedMutex::new(true), setup, events, Proof::WhateverElse),
        8 => decide(
            ReentrantFencedMutex::new(setup.depth_max(), true),
            setup,
            events,
            Proof::Alone,
        ),
        9 => decide(LeaseMutex::new(true), setup, events, Proof::WhateverElse),
        _ => decide(
            Semaphore::new(setup.permits(), true),
            setup,
            events,
            Proof::Alone,
        ),
    }
}

fn decide<M: Made>(mut model: M, setup: Setup, events: &[u8], proof: Proof) {
    let history = history(&mut model, setup, events);
    agreement::hold(&model, &history, proof);
}

fn history<M: Made>(model: &mut M, setup: Setup, events: &[u8]) -> History<M::Operation> {
    let mut calls: Vec<Call<M::Operation>> = Vec::new();
    let mut in_flight = [None; PROCESSES];
    for (position, event) in events.chunks_exact(3).enumerate() {
        let position = position as u32;
        let process = usize::from(event[0]) % PROCESSES;
        if let Some(at) = in_flight[process].take() {
            let call: &mut Call<_> = &mut calls[at];
            (call.returned, call.certain) = end(event[1], position);
        } else if calls.len() < MOST_CALLS {
            let asked = asked(setup, event, calls.len());
            let operation = model.operation(&asked);
            // What the object does by itself nobody sees.
            if setup.is_wild() || !M::is_by_itself(&operation) {
                in_flight[process] = Some(calls.len());
            }
            calls.push(Call {
                operation,
                id: u64::from(position),
                process: process as u32,
                invoked: position,
                returned: NEVER,
                certain: false,
            });
        }
    }
    History::new(calls)
}

fn asked(setup: Setup, event: &[u8], before: usize) -> Asked {
    let anybody = if setup.is_wild() {
        event[0] >> 4
    } else {
        event[0]
    };
    Asked {
        what: event[1],
        value: event[2],
        values: setup.values(),
        owner: u32::from(anybody) % PROCESSES as u32,
        before: before as u32,
        is_wild: setup.is_wild(),
    }
}

/// When a call returned, and whether it took effect for certain. Most do.
fn end(what: u8, position: u32) -> (u32, bool) {
    match what % 4 {
        0 | 1 => (position, true),
        2 => (position, false),
        _ => (NEVER, false),
    }
}
