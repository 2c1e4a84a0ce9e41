//! The nemesis at work: on hosts without Docker ([`engine`]) and on real servers in containers ([`faults`]).

mod engine;
mod faults;
mod run;
mod yard;
