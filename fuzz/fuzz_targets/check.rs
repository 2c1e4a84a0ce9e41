//! Any bytes, to the checker, by a guessed model and by every model there is: it comes to an end.

#![no_main]

use fencepost_fuzz::checking;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: fencepost_fuzz::one_thread(), |bytes: &[u8]| {
    checking::by_every_model(bytes);
    checking::by_the_properties(bytes);
});
