//! Long histories made by chance hold; broken at one place they are violated, and a few calls prove it.

#[path = "../benches/generators/mod.rs"]
mod generators;

use checker::Answer;
use checker::linearizability::{
    Call, Decision, Gathering, History, Judgement, Limits, NEVER, brute_force, linearizable,
};
use checker::models::cas_register::CasRegister;
use checker::models::fenced_mutex::FencedMutex;
use checker::models::lease_mutex::LeaseMutex;
use checker::models::owner_aware_mutex::OwnerAwareMutex;
use checker::models::register::Register;
use checker::models::{Model, Recorded, Setup, kinds};
use generators::lock::Grants;
use generators::register::Values;
use generators::{Shape, lock, register};
use histories::entries::{Entry, Value};

const SEEDS: u64 = 40;

/// The most calls that a proof may have.
const FEW: usize = 6;

fn shape(seed: u64, broken: bool) -> Shape {
    Shape {
        operations: 400,
        clients: [3, 5, 10, 20][seed as usize % 4],
        unknown: [0, 5, 0, 10][seed as usize / 4 % 4],
        broken,
        seed,
    }
}

type Generate = dyn Fn(Shape, &mut dyn FnMut(&Entry<'_>));

fn locks(grants: Grants) -> Box<Generate> {
    Box::new(move |shape, each| lock::generate(shape, grants, each))
}

fn registers(values: Values) -> Box<Generate> {
    Box::new(move |shape, each| register::generate(shape, values, each))
}

/// The one object of a history, and its model.
fn gather<M: Recorded>(model: M, shape: Shape, generate: &Generate) -> (M, History<M::Operation>) {
    let mut gathering = Gathering::new(model, false);
    generate(shape, &mut |entry| {
        gathering.push(entry).expect("a generated entry")
    });
    let mut gathered = gathering.finish().expect("a generated history");
    assert_eq!(gathered.objects.len(), 1);
    let object = gathered.objects.remove(0);
    (gathered.model, object.history)
}

/// That histories hold, and that broken ones are violated, as few calls prove.
fn holds_unless_broken<M: Recorded>(model: impl Fn() -> M, generate: &Generate) {
    let mut broken = 0;
    for seed in 0..SEEDS {
        let (right, history) = gather(model(), shape(seed, false), generate);
        let decision = linearizable(&right, &history, &Limits::default());
        assert_eq!(decision, Decision::Linearizable, "seed {seed}");
        let (wrong, history) = gather(model(), shape(seed, true), generate);
        let Decision::Violated(violation) = linearizable(&wrong, &history, &Limits::default())
        else {
            // With many operations of unknown outcome there may be no place to break it at.
            assert!(shape(seed, true).unknown > 0, "seed {seed} is to be broken");
            continue;
        };
        broken += 1;
        assert!(
            (1..=FEW).contains(&violation.calls.len()),
            "seed {seed}: {violation:?}"
        );
        let calls: Vec<Call<M::Operation>> = violation
            .calls
            .iter()
            .map(|&at| history.calls()[at].clone())
            .collect();
        assert!(
            !brute_force::linearizable(&wrong, &calls),
            "seed {seed}: {violation:?}"
        );
        stops_at(&wrong, &history, violation.prefix, seed);
    }
    assert!(broken > SEEDS / 2, "{broken} histories were broken");
}

/// That the events before a position are linearizable, and with the one there no longer.
fn stops_at<M: Model>(model: &M, history: &History<M::Operation>, position: u32, seed: u64) {
    let prefix = |until: u32| {
        let mut calls = history.calls().to_vec();
        calls.retain(|call| call.invoked < until);
        for call in &mut calls {
            if call.returned >= until {
                (call.returned, call.certain) = (NEVER, false);
            }
        }
        linearizable(model, &History::new(calls), &Limits::default())
    };
    assert_eq!(prefix(position), Decision::Linearizable, "seed {seed}");
    assert!(
        matches!(prefix(position + 1), Decision::Violated(_)),
        "seed {seed}"
    );
}

#[test]
fn owner_aware_mutexes() {
    holds_unless_broken(|| OwnerAwareMutex::new(false), &locks(Grants::Plain));
}

#[test]
fn fenced_mutexes() {
    holds_unless_broken(|| FencedMutex::new(false), &locks(Grants::Fenced));
}

#[test]
fn lease_mutexes() {
    holds_unless_broken(|| LeaseMutex::new(false), &locks(Grants::Leased));
}

#[test]
fn registers_of_unlike_values() {
    holds_unless_broken(|| Register::new(&Value::Nil), &registers(Values::Unique));
}

#[test]
fn registers_with_compare_and_set() {
    holds_unless_broken(|| CasRegister::new(&Value::Nil), &registers(Values::Few(5)));
    holds_unless_broken(
        || CasRegister::new(&Value::Nil),
        &registers(Values::Few(50)),
    );
}

/// What is found of a history of locks, as it comes or when it is whole.
fn judged(model: &str, streaming: bool, shape: Shape, generate: &Generate) -> Judgement {
    let kind = kinds()
        .iter()
        .find(|kind| kind.name == model)
        .expect("a model");
    let setup = Setup {
        streaming,
        ..Setup::default()
    };
    let mut judge = kind.judge(&setup).expect("nothing more to say");
    generate(shape, &mut |entry| {
        judge.push(entry).expect("a generated entry")
    });
    judge
        .finish(&Limits::default())
        .expect("a generated history")
}

#[test]
fn a_stream_finds_what_is_found_of_the_whole() {
    for (model, grants) in [
        ("owner-aware-mutex", Grants::Plain),
        ("fenced-mutex", Grants::Fenced),
        ("lease-mutex", Grants::Leased),
    ] {
        let generate = locks(grants);
        let mut violated = 0;
        for (seed, broken) in (0..SEEDS).flat_map(|seed| [(seed, false), (seed, true)]) {
            let shape = shape(seed, broken);
            let stream = judged(model, true, shape, &generate);
            let whole = judged(model, false, shape, &generate);
            let same = stream.outcome == whole.outcome;
            assert!(same, "{model}, seed {seed}: {stream:?} {whole:?}");
            let counts = |judgement: &Judgement| {
                (judgement.operations, judgement.unknown, judgement.objects)
            };
            assert_eq!(counts(&stream), counts(&whole), "{model}, seed {seed}");
            violated += u64::from(stream.outcome == Answer::Violated);
        }
        assert!(
            violated > SEEDS / 2,
            "{violated} histories of {model} were violated"
        );
    }
}
