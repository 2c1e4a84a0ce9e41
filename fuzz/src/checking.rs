//! Any bytes as a history that is judged.

use checker::linearizability::{Limits, Request, check};
use checker::models::{Kind, Setup, kinds};
use checker::{Answer, Options};
use histories::Reader;
use histories::entries::{Entries, Value};

/// How a compressed file begins. Such files are for the readers' target: a few bytes of one can stand for millions of
/// operations, all of which a search has to hold.
const COMPRESSED: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// A search passes them within a fraction of a second.
const LIMITS: Limits<'static> = Limits {
    configurations: 20_000,
    bytes: 8 << 20,
    interrupted: None,
};

/// Judges by a guessed model and by every model, with and without what can be set up.
pub fn by_every_model(bytes: &[u8]) {
    if bytes.starts_with(COMPRESSED) {
        return;
    }
    judge(bytes, None, Setup::default());
    for kind in kinds() {
        judge(bytes, Some(kind), Setup::default());
        let setup = Setup {
            initial: Some(Value::Integer(0)),
            permits: Some(2),
            depth_max: Some(2),
            refusals_count: true,
            failed_cas_is_a_read: true,
            ..Setup::default()
        };
        judge(bytes, Some(kind), setup);
    }
}

fn judge(bytes: &[u8], model: Option<&'static Kind>, setup: Setup) {
    let request = Request { model, setup };
    let Ok(checked) = check(|| Entries::new(bytes), &request, &LIMITS) else {
        return;
    };
    let judgement = checked.judgement;
    let holds = judgement.outcome == Answer::Holds;
    assert_eq!(holds, judgement.findings.is_empty(), "{judgement:?}");
    assert!(judgement.unknown <= judgement.operations, "{judgement:?}");
}

/// Judges the properties of a history of ours.
pub fn by_the_properties(bytes: &[u8]) {
    if !bytes.starts_with(COMPRESSED) {
        let verdict = checker::check(|| Reader::new(bytes), Options::default());
        drop(verdict);
    }
}
