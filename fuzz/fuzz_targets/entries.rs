//! Any bytes, to the readers: they come to an end, and what is exported is what was read.

#![no_main]

use fencepost_fuzz::reading;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    reading::every_setting(bytes);
    reading::events(bytes);
});
