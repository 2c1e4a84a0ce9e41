//! Forged histories, and a second judge that says what each is.
//!
//! The [`judge`] is written from `docs/verdicts.md` alone and shares no code with the checker. Honest histories come from
//! a simulation ([`honest`]), forged ones from edits of them ([`forger`]).

mod against_the_checker;
mod cases;
mod contracts;
mod differences;
mod edits;
mod file;
mod forged_tests;
mod forger;
mod honest;
mod honest_tests;
mod judge;
mod random;
