//! The closed forms held against brute force, on every shape that random small histories have.

mod against_brute_force;
mod by_example;
mod random;
mod streams;
