//! Random small histories of locks.

use crate::linearizability::{Call, History, NEVER};

/// Splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True so many times in a hundred.
    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// What a call of a random history is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Acquire,
    Release,
    Busy,
    /// The end of the validity of the owner's latest grant: no call of the owner, and never certain.
    Expire,
}

/// The shape of the histories that are drawn.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub calls: u64,
    pub owners: u64,
    /// Of a hundred calls, so many never return.
    pub unknown: u64,
    pub busy: u64,
    pub expire: u64,
    /// Of a hundred calls, so many are not what their owner would do.
    pub absurd: u64,
    /// Of a hundred calls, so many end before anything else happens.
    pub quick: u64,
}

impl Shape {
    pub(super) fn draw(random: &mut Random) -> Shape {
        let pick = |random: &mut Random, of: &[u64]| of[random.below(of.len() as u64) as usize];
        Shape {
            calls: 3 + random.below(6),
            owners: 1 + random.below(3),
            unknown: pick(random, &[0, 15, 40]),
            busy: 0,
            expire: 0,
            absurd: pick(random, &[0, 5, 30]),
            quick: pick(random, &[10, 60, 90]),
        }
    }
}

#[derive(Clone, Default)]
struct Owner {
    in_flight: Option<usize>,
    holds: bool,
}

impl Owner {
    /// What it does next, where nothing of it is in flight or its lease may end.
    fn next_step(&mut self, random: &mut Random, shape: Shape, expires: bool) -> Step {
        let busy = random.percent(shape.busy);
        let gives_back = self.holds != random.percent(shape.absurd);
        match (busy, gives_back) {
            _ if expires => return Step::Expire,
            (true, _) => return Step::Busy,
            (_, true) => self.holds = false,
            (_, false) => self.holds = true,
        }
        if gives_back {
            Step::Release
        } else {
            Step::Acquire
        }
    }
}

/// A random history; `operation` gets each step with its owner and the number of the owner's latest acquire.
pub(super) fn history<O>(
    random: &mut Random,
    shape: Shape,
    mut operation: impl FnMut(&mut Random, Step, u32, u32) -> O,
) -> History<O> {
    let mut owners = vec![Owner::default(); shape.owners as usize];
    let mut calls: Vec<Call<O>> = Vec::new();
    let (mut position, mut acquires) = (0, 0);
    let mut latest = vec![0; owners.len()];
    while (calls.len() as u64) < shape.calls || owners.iter().any(|owner| owner.in_flight.is_some())
    {
        position += 1;
        let by = random.below(shape.owners) as usize;
        let owner = &mut owners[by];
        let expires = shape.expire > 0 && acquires > 0 && random.percent(shape.expire);
        let step = match owner.in_flight.take() {
            Some(at) if !expires => {
                (calls[at].returned, calls[at].certain) = (position, true);
                continue;
            }
            in_flight => {
                owner.in_flight = in_flight;
                if (calls.len() as u64) >= shape.calls {
                    continue;
                }
                owner.next_step(random, shape, expires)
            }
        };
        if step == Step::Acquire {
            acquires += 1;
            latest[by] = acquires;
        }
        let mut call = Call {
            operation: operation(random, step, by as u32, latest[by]),
            id: calls.len() as u64 + 1,
            process: by as u32,
            invoked: position,
            returned: NEVER,
            certain: false,
        };
        if step != Step::Expire && !random.percent(shape.unknown) {
            if random.percent(shape.quick) {
                position += 1;
                (call.returned, call.certain) = (position, true);
            } else {
                owner.in_flight = Some(calls.len());
            }
        }
        calls.push(call);
    }
    History::new(calls)
}
