//! `fencepost images`: what hosts are made from.

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde_json::json;

use super::progress::Display;
use super::{Format, Voice, say};
use crate::exit::Exit;
use crate::report;

#[derive(Args)]
pub struct ImagesArguments {
    #[command(subcommand)]
    verb: ImagesVerb,
}

#[derive(Subcommand)]
enum ImagesVerb {
    /// Build those that are missing
    Build,
    /// List those that are there
    List,
}

pub fn images(arguments: &ImagesArguments, voice: Voice) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(async {
        let engine = containers::engine().await?;
        if matches!(arguments.verb, ImagesVerb::Build) {
            let display = Display::new(0);
            let stop = crate::runner::Stop::on_signals(|| {})?;
            let stages = containers::images::stages();
            tokio::select! {
                built = containers::images::ensure(&engine, &stages, &display) => drop(built?),
                () = stop.asked() => stop.check()?,
            }
            display.finish();
        }
        let images = containers::images::list(&engine).await?;
        let rows = images.iter().map(|image| {
            let size = format!("{} MB", image.bytes / 1_000_000);
            let state = if image.current { "current" } else { "outdated" };
            vec![image.tag.clone(), size, state.to_owned()]
        });
        let objects = images.iter().map(|image| {
            json!({ "schema_version": report::SCHEMA_VERSION, "name": image.tag, "bytes": image.bytes, "current": image.current })
        });
        match voice.format {
            Format::Human => say(report::table(&[], rows.collect()))?,
            Format::Json => say(serde_json::to_string_pretty(&objects.collect::<Vec<_>>())?)?,
            Format::Jsonl => objects.into_iter().try_for_each(say)?,
        }
        Ok(Exit::Kept)
    })
}
