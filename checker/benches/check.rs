//! How fast a history is read and judged: `cargo bench -p checker`.

mod generator;

use std::hint::black_box;
use std::time::Duration;

use checker::{Answer, Options, check};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use histories::{Reader, Writer};

fn history(operations: u64) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &generator::header(1)).expect("memory takes it");
    generator::generate(operations, 1, |event| {
        writer.write(event).expect("memory takes it")
    });
    writer.finish().expect("memory takes it")
}

fn benchmark(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(8));
    for (name, operations) in [("10k", 10_000), ("100k", 100_000), ("1M", 1_000_000)] {
        let history = history(operations);
        let judge = || check(|| Reader::new(&history[..]), Options::default()).expect("a history");
        assert_eq!(judge().outcome, Answer::Holds);
        group.throughput(Throughput::Elements(operations));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| black_box(judge()))
        });
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
