//! `fencepost clean`: nothing of ours stays behind.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::progress::Display;
use super::{Format, Voice, say};
use crate::exit::Exit;
use crate::report;

#[derive(Args)]
pub struct CleanArguments {
    /// Remove what live runs and `--keep-running` own as well
    #[arg(long)]
    all: bool,

    /// Remove outdated images too; with --all every image
    #[arg(long)]
    images: bool,
}

pub fn clean(arguments: &CleanArguments, voice: Voice) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(async {
        let display = Display::lines();
        let engine = containers::engine_telling(&display).await?;
        let which = if arguments.all {
            containers::Which::All
        } else {
            containers::Which::Dead
        };
        let removal = async {
            let swept = containers::sweep(&engine, &which).await?;
            let images = match (arguments.images, arguments.all) {
                (false, _) => 0,
                (true, false) => containers::images::remove_stale(&engine).await?,
                (true, true) => containers::images::remove_all(&engine).await?,
            };
            Ok((swept, images))
        };
        let (swept, images) = engine.unless_silent(&display, removal).await?;
        if voice.format == Format::Human {
            let mut removed = Vec::new();
            if !swept.is_empty() {
                removed.push(swept.to_string());
            }
            if images > 0 {
                removed.push(format!("{images} images"));
            }
            match removed.as_slice() {
                [] => say("nothing to remove"),
                removed => say(format!("removed {}", removed.join(", "))),
            }
            for network in &swept.held_networks {
                say(format!(
                    "Docker holds the network {network}, which nothing uses any more; it goes when the Docker daemon restarts"
                ));
            }
        } else {
            say(json!({
                "schema_version": report::SCHEMA_VERSION,
                "containers": swept.containers,
                "networks": swept.networks,
                "volumes": swept.volumes,
                "runtime_dirs": swept.runtime_dirs,
                "held_networks": swept.held_networks,
                "images": images,
            }));
        }
        Ok(Exit::Kept)
    })
}
