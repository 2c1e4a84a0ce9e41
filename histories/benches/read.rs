//! How fast a history is read: `cargo bench -p histories`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use histories::{Event, Function, Kind, Reader, Writer};

/// How many rounds of acquire, read, write and release there are, of 8 events each.
const ROUNDS: u64 = 25_000;

fn rounds() -> Vec<Event<'static>> {
    use Function::{Acquire, Read, Release, Write};
    let mut events = Vec::new();
    for round in 0..ROUNDS {
        let (grant, version) = (10_000_001 + round * 4, round + 1);
        for (step, f) in [Acquire, Read, Write, Release].into_iter().enumerate() {
            for kind in [Kind::Invoke, Kind::Ok] {
                let t = 1_000_000_000 + events.len() as u64 * 125_123;
                let mut event = Event::new(t, "c1", grant + step as u64, kind, f);
                match f {
                    Acquire | Release => event.lock = Some("lock".into()),
                    _ => event.document = Some("document".into()),
                }
                event.grant = (f != Acquire).then_some(grant);
                match (f, kind) {
                    (Acquire, Kind::Invoke) => {
                        (event.ttl_ms, event.wait_ms) = (Some(1000), Some(0))
                    }
                    (Acquire, _) => {
                        (event.token, event.validity) = (Some(round), Some(t + 1_000_000_000))
                    }
                    (Read, Kind::Ok) => {
                        (event.version, event.value) =
                            (Some(round), Some(format!("c1-{round}").into()))
                    }
                    (Write, Kind::Invoke) => {
                        (event.based_on, event.token) = (Some(round), Some(round));
                        event.value = Some(format!("c1-{version}").into());
                    }
                    (Write, Kind::Ok) => event.version = Some(version),
                    _ => {}
                }
                events.push(event);
            }
        }
    }
    events
}

fn read(bytes: &[u8]) -> u64 {
    let mut reader = Reader::new(bytes).expect("a history");
    let mut sum = 0;
    while let Some(event) = reader.next().expect("an event") {
        sum += black_box(event).t;
    }
    sum
}

fn benchmark(criterion: &mut Criterion) {
    let header = Reader::new(&include_bytes!("../corpus/v1/paused-client.jsonl")[..])
        .expect("a saved history")
        .header()
        .clone();
    let events = rounds();
    let written = || {
        let mut writer = Writer::new(Vec::new(), &header).expect("a writer");
        events
            .iter()
            .for_each(|event| writer.write(event).expect("memory takes it"));
        writer.finish().expect("memory takes it")
    };
    let plain = written();
    let compressed = zstd::encode_all(&plain[..], 3).expect("memory takes it");

    let mut group = criterion.benchmark_group("histories");
    group
        .sample_size(20)
        .throughput(Throughput::Bytes(plain.len() as u64));
    group.bench_function("read", |bencher| bencher.iter(|| read(&plain)));
    group.bench_function("read zst", |bencher| bencher.iter(|| read(&compressed)));
    group.bench_function("write", |bencher| bencher.iter(written));
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
