//! `fencepost images`: what hosts are made from.

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use containers::images::Listed;
use containers::{Engine, Error};
use serde_json::json;

use super::progress::Display;
use super::{Format, Voice, say, tell};
use crate::exit::{Exit, Interrupted};
use crate::report;
use crate::runner::Stop;

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
    let stop = Stop::on_signals(|| tell("fencepost: stopping"), || {})?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(async {
        let display = Display::lines();
        let listed = async {
            let engine = containers::engine_telling(&display).await?;
            engine.unless_silent(&display, list(arguments, &engine)).await
        };
        let images = tokio::select! {
            listed = listed => listed?,
            () = stop.asked() => return Err(Interrupted.into()),
        };
        let rows = images.iter().map(|image| {
            let size = format!("{} MB", image.bytes / 1_000_000);
            let state = if image.current { "current" } else { "outdated" };
            vec![image.tag.clone(), size, state.to_owned()]
        });
        let objects = images.iter().map(|image| {
            json!({ "schema_version": report::SCHEMA_VERSION, "name": image.tag, "bytes": image.bytes, "current": image.current })
        });
        match voice.format {
            Format::Human => say(report::table(rows.collect())),
            Format::Json => say(serde_json::to_string_pretty(&objects.collect::<Vec<_>>())?),
            Format::Jsonl => objects.for_each(say),
        }
        Ok(Exit::Kept)
    })
}

/// The images that are there, once those that are to be built are built.
async fn list(arguments: &ImagesArguments, engine: &Engine) -> Result<Vec<Listed>, Error> {
    if matches!(arguments.verb, ImagesVerb::Build) {
        let display = Display::new(0);
        containers::images::ensure(engine, &containers::images::stages(), &display).await?;
        display.finish();
    }
    containers::images::list(engine).await
}
