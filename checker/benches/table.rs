//! Time and memory of judging a history by a sequential model, against its length, and against clients and unknown
//! outcomes: a table, by one command.
//!
//! ```sh
//! cargo bench -p checker --bench table
//! ```
//!
//! Each history is written to a temporary file as Jepsen's EDN, and read and judged by a process of its own on one thread,
//! whose time and peak of memory are told. It takes some minutes, and some 2 GB of the temporary folder.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use checker::Answer;
use checker::linearizability::{Limits, Request, check};
use checker::models::{Setup, kinds};
use histories::entries::{Entries, Entry, Export};

#[path = "generators/mod.rs"]
mod generators;

use generators::{Shape, lock, register};

/// What is judged.
#[derive(Clone, Copy)]
enum Of {
    Lock(lock::Grants),
    Register(register::Values),
}

/// A kind of history: its model, whether it is judged as it comes, and what makes it.
struct Row {
    model: &'static str,
    streaming: bool,
    of: Of,
}

const fn row(model: &'static str, streaming: bool, of: Of) -> Row {
    Row {
        model,
        streaming,
        of,
    }
}

const CAS: Row = row(
    "cas-register",
    false,
    Of::Register(register::Values::Few(5)),
);

const ROWS: [Row; 6] = [
    row("owner-aware-mutex", true, Of::Lock(lock::Grants::Plain)),
    row("owner-aware-mutex", false, Of::Lock(lock::Grants::Plain)),
    row("fenced-mutex", false, Of::Lock(lock::Grants::Fenced)),
    row("lease-mutex", false, Of::Lock(lock::Grants::Leased)),
    row("register", false, Of::Register(register::Values::Unique)),
    CAS,
];

const CROWDS: [usize; 5] = [5, 10, 20, 35, 50];

/// A search that takes longer is given up.
const LONGEST: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, judged, model, streaming, path] = arguments.as_slice()
        && judged == "judge"
    {
        return judge(model, streaming == "true", path);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("history.edn");
    println!("| history | operations | clients | unknown | holds: ms | MiB | broken: ms | MiB |");
    println!("|---|---|---|---|---|---|---|---|");
    let shape = |operations, clients, unknown| Shape {
        operations,
        clients,
        unknown,
        broken: false,
        seed: 1,
    };
    for row in &ROWS {
        for operations in (3..=7).map(|power| 10_u64.pow(power)) {
            measure(row, shape(operations, 5, 0), &path);
        }
    }
    // So many as the lines above have come first.
    for &crowd in &CROWDS[1..] {
        measure(&CAS, shape(1_000, crowd, 0), &path);
        measure(&CAS, shape(10_000, crowd, 0), &path);
    }
    let unique = row("register", false, Of::Register(register::Values::Unique));
    for crowd in CROWDS {
        measure(&CAS, shape(1_000, 5, crowd as u64), &path);
        measure(&unique, shape(1_000, 20, crowd as u64), &path);
    }
}

/// Prints a line of the table.
fn measure(row: &Row, shape: Shape, path: &Path) {
    let streaming = if row.streaming { ", streaming" } else { "" };
    print!(
        "| {}{streaming} | {} | {} | {} |",
        row.model, shape.operations, shape.clients, shape.unknown
    );
    for broken in [false, true] {
        write(row.of, Shape { broken, ..shape }, path);
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["judge", row.model, &row.streaming.to_string()])
            .arg(path)
            .env("RAYON_NUM_THREADS", "1")
            .output()
            .expect("this program starts");
        let said = String::from_utf8_lossy(&child.stdout).into_owned();
        assert!(
            child.status.success(),
            "{}",
            String::from_utf8_lossy(&child.stderr)
        );
        print!(" {} |", said.trim());
        let _ = std::io::stdout().flush();
    }
    println!();
}

fn write(of: Of, shape: Shape, path: &Path) {
    let file = File::create(path).expect("a file in the temporary folder");
    let mut export = Export::new(BufWriter::new(file));
    let each = |entry: &Entry<'_>| export.write(entry).expect("room for a history");
    match of {
        Of::Lock(grants) => lock::generate(shape, grants, each),
        Of::Register(values) => register::generate(shape, values, each),
    }
    let mut file = export.finish().expect("room for a history");
    file.flush().expect("room for a history");
}

/// Reads and judges a history, and prints how long that took and the most memory that there was. A history that is broken
/// where unknown outcomes may explain it holds, and is marked.
fn judge(model: &str, streaming: bool, path: &str) {
    let start = Instant::now();
    let request = Request {
        model: kinds().iter().find(|kind| kind.name == model),
        setup: Setup {
            streaming,
            ..Setup::default()
        },
    };
    let too_long = || (start.elapsed() > LONGEST).then(|| "the time is over".to_owned());
    let limits = Limits {
        interrupted: Some(&too_long),
        ..Limits::default()
    };
    let checked = check(|| Entries::open(path), &request, &limits).expect("a generated history");
    let elapsed = start.elapsed();
    let mark = match checked.judgement.outcome {
        Answer::Holds => "holds",
        Answer::Violated => "violated",
        Answer::Unknown => "unknown",
    };
    println!(
        "{:.1} ({mark}) | {}",
        elapsed.as_secs_f64() * 1e3,
        peak_mib()
    );
}

/// The most memory that this process had, in MiB, as Linux tells it.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}
