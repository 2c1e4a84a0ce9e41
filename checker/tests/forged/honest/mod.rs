//! Honest histories: a simulated lock and storage, and clients that use them while planned faults strike.
//!
//! The same seed gives the same history for ever.

mod client;
mod plan;
mod service;
mod world;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::file::File;

use plan::Setup;

/// One millisecond.
pub const MS: u64 = 1_000_000;

/// The honest history of this seed.
pub fn history(seed: u64) -> File {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let setup = Setup::draw(&mut rng, seed);
    world::World::new(setup, rng).run()
}

/// A number of milliseconds from one to another, not to the millisecond.
fn between(rng: &mut ChaCha8Rng, from_ms: u64, to_ms: u64) -> u64 {
    rng.random_range(from_ms * MS..to_ms * MS)
}
