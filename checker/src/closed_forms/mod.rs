//! Linearizability decided without a search, where theory knows how.

pub mod zones;
