//! Builds the images of all hosts, or of those named, and says how: `cargo run -p containers --example build_images`.

use std::process::ExitCode;
use std::time::Instant;

use containers::{Progress, engine, images};

struct Told(Instant);

impl Progress for Told {
    fn step(&self, what: &str) {
        eprintln!("{:7.1} s  {what}", self.0.elapsed().as_secs_f64());
    }

    fn detail(&self, line: &str) {
        eprintln!("{:7.1} s      {line}", self.0.elapsed().as_secs_f64());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match build(std::env::args().skip(1).collect()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn build(named: Vec<String>) -> Result<(), containers::Error> {
    let mut stages: Vec<&str> = named.iter().map(String::as_str).collect();
    if stages.is_empty() {
        stages.extend(images::STAGES);
    }
    let engine = engine().await?;
    let images = images::ensure(&engine, &stages, &Told(Instant::now())).await?;
    for (stage, image) in images {
        println!("{stage} {}:{} {}", image.repository, image.tag, image.id);
    }
    Ok(())
}
