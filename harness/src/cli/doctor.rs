//! `fencepost doctor`: what this machine can do, and what it lacks.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;

use super::progress::Display;
use super::{Format, Voice, say};
use crate::exit::Exit;
use crate::report;

/// Room that images and a night's runs need, in bytes.
const DISK_WANTED: u64 = 4 << 30;

/// One thing that was looked at.
#[derive(Serialize)]
struct Finding {
    schema_version: u32,
    what: &'static str,
    /// `ok`, `limited` (something else serves instead) or `missing` (runs are not possible).
    state: &'static str,
    /// What was seen, and what to do about it.
    detail: String,
}

impl Finding {
    fn new(what: &'static str, state: &'static str, detail: impl Into<String>) -> Finding {
        Finding {
            schema_version: report::SCHEMA_VERSION,
            what,
            state,
            detail: detail.into(),
        }
    }
}

pub fn doctor(voice: Voice) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let mut findings = runtime.block_on(docker());
    findings.extend([
        kernel(),
        netem(),
        ptrace(),
        disk(&std::env::temp_dir()),
        disk(Path::new(".")),
    ]);
    match voice.format {
        Format::Human => say(report::table(
            findings
                .iter()
                .map(|finding| {
                    vec![
                        finding.what.to_owned(),
                        finding.state.to_owned(),
                        finding.detail.clone(),
                    ]
                })
                .collect(),
        )),
        Format::Json => say(serde_json::to_string_pretty(&findings)?),
        Format::Jsonl => {
            for finding in &findings {
                say(serde_json::to_string(finding)?);
            }
        }
    }
    let missing = findings.iter().any(|finding| finding.state == "missing");
    Ok(if missing {
        Exit::Unavailable
    } else {
        Exit::Kept
    })
}

async fn docker() -> Vec<Finding> {
    let display = Display::lines();
    let engine = match containers::engine_telling(&display).await {
        Ok(engine) => engine,
        Err(error) => return vec![Finding::new("Docker", "missing", error.to_string())],
    };
    let facts: Vec<String> = engine
        .facts()
        .into_iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let listed = containers::images::list(&engine);
    let images = match engine.unless_silent(&display, listed).await {
        Ok(images) if images.iter().any(|image| image.current) => {
            Finding::new("images", "ok", "built")
        }
        Ok(_) => Finding::new(
            "images",
            "ok",
            "built on first use, or by `fencepost images build`",
        ),
        Err(error) => Finding::new("images", "missing", error.to_string()),
    };
    vec![Finding::new("Docker", "ok", facts.join(", ")), images]
}

fn kernel() -> Finding {
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let detail = format!("Linux {}, {cores} processors", version.trim());
    if cores < 2 {
        Finding::new("machine", "limited", detail + "; two are wanted")
    } else {
        Finding::new("machine", "ok", detail)
    }
}

/// Whether packets can be delayed by the kernel itself, asked of `tc` in a network namespace of its own.
fn netem() -> Finding {
    let instead = "; packets are held by a process of ours through NFQUEUE instead";
    let tried = Command::new("unshare")
        .args([
            "--map-root-user",
            "--net",
            "sh",
            "-c",
            "ip link set lo up && tc qdisc add dev lo root netem delay 1ms",
        ])
        .output();
    match tried {
        Ok(output) if output.status.success() => Finding::new("netem", "ok", "tc accepts it"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("tc refuses it").to_owned();
            Finding::new("netem", "limited", said + instead)
        }
        Err(error) => Finding::new(
            "netem",
            "limited",
            format!("unshare can't be run ({error}){instead}"),
        ),
    }
}

fn ptrace() -> Finding {
    match std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope") {
        Ok(scope) if scope.trim() == "3" => Finding::new(
            "ptrace",
            "limited",
            "switched off (kernel.yama.ptrace_scope = 3)",
        ),
        Ok(scope) => Finding::new(
            "ptrace",
            "ok",
            format!("kernel.yama.ptrace_scope = {}", scope.trim()),
        ),
        Err(_) => Finding::new("ptrace", "ok", "not restricted"),
    }
}

fn disk(path: &Path) -> Finding {
    let shown = path.display();
    match nix::sys::statvfs::statvfs(path) {
        Ok(stat) => {
            let free = stat.blocks_available() * stat.fragment_size();
            let detail = format!("{} MB free in {shown}", free / 1_000_000);
            match free {
                0..DISK_WANTED => Finding::new(
                    "disk",
                    "limited",
                    format!("{detail}; {} MB are wanted", DISK_WANTED / 1_000_000),
                ),
                _ => Finding::new("disk", "ok", detail),
            }
        }
        Err(error) => Finding::new(
            "disk",
            "limited",
            format!("{shown} can't be looked at: {error}"),
        ),
    }
}
