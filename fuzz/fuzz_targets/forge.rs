//! Honest histories with any edits: the checker and the naive judge of its tests say the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../checker/tests/forged/contracts.rs"]
mod contracts;
#[path = "../../checker/tests/forged/differences.rs"]
mod differences;
#[path = "../../checker/tests/forged/edits/mod.rs"]
mod edits;
#[path = "../../checker/tests/forged/file.rs"]
mod file;
#[path = "../../checker/tests/forged/forger.rs"]
mod forger;
#[path = "../../checker/tests/forged/honest/mod.rs"]
mod honest;
#[path = "../../checker/tests/forged/judge/mod.rs"]
mod judge;

fuzz_target!(init: fencepost_fuzz::one_thread(), |bytes: &[u8]| {
    if let Some((forged, edits)) = forger::forge_by(bytes) {
        // What the judge does not call holding and the checker calls kept is a difference, too.
        let text = forged.text();
        let found = differences::differences(&text);
        assert!(found.is_empty(), "{edits:?}: {found:#?}\nof this history:\n{text}");
    }
});
