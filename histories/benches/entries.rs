//! How fast histories of other formats are read: `cargo bench -p histories --bench entries`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use histories::entries::{Entries, Export};
use histories::{Event, Function, Kind, Reader, Writer};

/// How many events there are.
const EVENTS: u64 = 200_000;

/// A register's history, one map a line; with independent keys if `keyed`.
fn register(keyed: bool) -> String {
    let mut text = String::new();
    for at in 0..EVENTS {
        let (kind, value) = (["invoke", "ok"][(at % 2) as usize], at / 2 % 5);
        let f = ["read", "write", "cas"][(at / 2 % 3) as usize];
        let value = match (f, kind) {
            ("read", "invoke") => "nil".to_owned(),
            ("cas", _) => format!("[{value} {}]", value + 1),
            _ => value.to_string(),
        };
        let value = if keyed {
            format!("[{} {value}]", at / 1000)
        } else {
            value
        };
        let (process, time) = (at / 2 % 5, 1_000_000 + at * 12_345);
        text += &format!(
            "{{:process {process}, :type :{kind}, :f :{f}, :value {value}, :time {time}, :index {at}}}\n"
        );
    }
    text
}

/// Reads and writes of a document in our format.
fn own() -> Vec<u8> {
    let saved = include_bytes!("../corpus/v1/paused-client.jsonl");
    let reader = Reader::new(&saved[..]).expect("a saved history");
    let mut writer = Writer::new(Vec::new(), reader.header()).expect("a writer");
    for at in 0..EVENTS {
        let kind = [Kind::Invoke, Kind::Ok][(at % 2) as usize];
        let mut event = Event::new(at * 12_345, "c1", at / 2, kind, Function::Read);
        event.document = Some("document".into());
        event.value = (kind == Kind::Ok).then(|| format!("c1-{at}").into());
        writer.write(&event).expect("memory takes it");
    }
    writer.finish().expect("memory takes it")
}

fn read(bytes: &[u8]) -> u64 {
    let mut entries = Entries::new(bytes).expect("a history");
    let mut sum = 0;
    while let Some(entry) = entries.next().expect("an entry") {
        sum += black_box(entry).time.unwrap_or(1);
    }
    sum
}

fn export(bytes: &[u8]) -> Vec<u8> {
    let mut entries = Entries::new(bytes).expect("a history");
    let mut export = Export::new(Vec::new());
    while let Some(entry) = entries.next().expect("an entry") {
        export.write(&entry).expect("memory takes it");
    }
    export.finish().expect("memory takes it")
}

fn benchmark(criterion: &mut Criterion) {
    let plain = register(false);
    let histories = [
        ("jepsen", plain.clone().into_bytes()),
        ("jepsen in one vector", format!("[{plain}]").into_bytes()),
        ("jepsen with keys", register(true).into_bytes()),
        ("fencepost", own()),
    ];
    let mut group = criterion.benchmark_group("entries");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(EVENTS));
    for (name, bytes) in &histories {
        group.bench_function(*name, |bencher| bencher.iter(|| read(bytes)));
    }
    group.bench_function("export", |bencher| {
        bencher.iter(|| export(plain.as_bytes()))
    });
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
