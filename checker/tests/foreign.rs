//! Other people's histories get the verdicts that their owners say are right.

use checker::Answer;
use checker::linearizability::{Judgement, Limits};
use checker::models::{Setup, kinds};
use histories::entries::{Entries, Format};

fn judge(path: &str, model: &str, failed_cas_is_a_read: bool) -> Judgement {
    let mut entries = Entries::open(path).expect("a history");
    let kind = kinds()
        .iter()
        .find(|kind| kind.name == model)
        .expect("a model");
    let setup = Setup {
        failed_cas_is_a_read,
        nil_read_tells_nothing: entries.format().nil_read_tells_nothing(),
        ..Setup::default()
    };
    let mut judge = kind.judge(&setup).expect("nothing more to say");
    while let Some(entry) = entries.next().expect("it can be read") {
        judge.push(&entry).expect("it can be understood");
    }
    judge
        .finish(&Limits::default())
        .expect("it can be understood")
}

#[test]
fn porcupines_histories_have_their_verdicts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../histories/corpus/porcupine");
    let expected = std::fs::read_to_string(format!("{folder}/expected.tsv")).expect("the verdicts");
    let mut counted = (0, 0);
    for row in expected.lines() {
        let (name, verdict) = row.split_once('\t').expect("a path and a verdict");
        let path = format!("{folder}/{name}");
        let answer = match verdict {
            "ok" => Answer::Holds,
            "illegal" => Answer::Violated,
            other => panic!("{other} is no verdict"),
        };
        let format = Entries::open(&path).expect("a history").format();
        let (model, readings): (_, &[bool]) = match format {
            Format::PorcupineEtcd => ("cas-register", &[false, true]),
            _ => ("map", &[false]),
        };
        for &failed_cas_is_a_read in readings {
            let judgement = judge(&path, model, failed_cas_is_a_read);
            assert_eq!(judgement.outcome, answer, "{name}: {judgement:#?}");
        }
        match format {
            Format::PorcupineEtcd => counted.0 += 1,
            _ => counted.1 += 1,
        }
    }
    assert_eq!(counted, (60, 4));
}
