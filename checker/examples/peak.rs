//! How much time and memory a check takes: writes a generated history to a file, checks it, and prints what it took.
//! The time is that of the processor, which other programs do not lengthen much.
//!
//! ```sh
//! cargo run --release -p checker --example peak -- 1000000
//! ```

#[path = "../benches/generator.rs"]
mod generator;

use std::error::Error;

use checker::{Options, check};
use histories::{Reader, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    let operations = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |argument| argument.parse())?;
    let path = std::env::temp_dir().join(format!("fencepost-peak-{}.jsonl", std::process::id()));
    let mut writer = Writer::create(&path, &generator::header(1))?;
    let mut written = Ok(());
    generator::generate(operations, 1, |event| {
        if written.is_ok() {
            written = writer.write(event);
        }
    });
    written?;
    writer.finish()?;
    let before = peak_mib()?;
    let start = processor_seconds()?;
    let verdict = check(|| Reader::open(&path), Options::default())?;
    let seconds = processor_seconds()? - start;
    std::fs::remove_file(&path)?;
    println!(
        "{operations} operations, {} events: {:?} in {seconds:.3} s",
        verdict.events, verdict.outcome
    );
    println!(
        "peak {} MiB, of which {before} MiB were there before the check",
        peak_mib()?
    );
    println!("{:?}\n{:?}", verdict.counts, verdict.efficiency);
    Ok(())
}

/// For how long this process has run on a processor.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let schedule = std::fs::read_to_string("/proc/self/schedstat")?;
    let ns: u64 = schedule
        .split(' ')
        .next()
        .ok_or("no figures in /proc/self/schedstat")?
        .parse()?;
    Ok(ns as f64 / 1e9)
}

/// The most memory that this process had resident, in MiB.
fn peak_mib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM in /proc/self/status")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024)
}
