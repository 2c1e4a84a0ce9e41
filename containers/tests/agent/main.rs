//! An agent at work, as an ordinary process on this machine: no Docker.

mod host;
mod processes;
mod rules;
mod stalls;
