//! The judge says what `docs/verdicts.md` says: the saved histories, and a small one for each rule.

mod assumptions;
mod classes;
mod faults;
mod holds;
mod killed;
mod leases;
mod lives;
mod moments;
pub mod saved;
mod several;
mod shown;
mod small_edits;
mod storage;
mod tale;
mod waits;
