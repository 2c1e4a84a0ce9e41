//! The kinds of edit, by what they touch.

pub mod documents;
pub mod events;
pub mod faults;
pub mod fields;
pub mod healings;
pub mod impossible;
pub mod insertions;
pub mod kills;
pub mod lives;
pub mod moments;
pub mod outcomes;
pub mod plan;
pub mod record;
pub mod several;
pub mod shown;
pub mod struck;
pub mod times;
pub mod unsaid;
pub mod waits;
