//! Any small history of any model: brute force, the search and the closed form say the same.

#![no_main]

use fencepost_fuzz::deciding;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: fencepost_fuzz::one_thread(), |bytes: &[u8]| deciding::any_model(bytes));
