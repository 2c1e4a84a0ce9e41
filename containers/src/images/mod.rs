//! The images of the hosts: built on first use, and found again by a digest of what they are made from.
//!
//! `containers/images/` holds the one Dockerfile, with a stage for each kind of host. An image is tagged
//! `fencepost/<stage>:<digest>`, so that a change of any of its sources makes another image.

mod base;
mod bootstrap;
mod build;
mod context;
mod inventory;
mod lock;

use std::collections::BTreeMap;

use bollard::errors::Error as Reply;
use futures_util::future::{join_all, try_join_all};

use crate::{Engine, Error, Progress};
use base::Base;

pub use inventory::{Listed, list, remove_all, remove_stale};

/// All stages of the Dockerfile that are images of hosts.
pub const STAGES: [&str; 4] = ["client", "etcd", "postgres", "redis"];

/// [`STAGES`], to be handed to [`ensure`].
pub fn stages() -> Vec<&'static str> {
    STAGES.to_vec()
}

/// An image that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// `fencepost/<stage>`.
    pub repository: String,
    /// The digest of what it is made from: 12 hexadecimal digits.
    pub tag: String,
    /// Docker's id of it: `sha256:…`.
    pub id: String,
}

/// Makes sure that the images of these stages are there, and builds those that are not: a minute or two for all.
///
/// # Errors
/// [`Error::NoBase`], [`Error::Build`], [`Error::DiskFull`], or whatever else Docker says.
pub async fn ensure(
    engine: &Engine,
    stages: &[&str],
    progress: &dyn Progress,
) -> Result<BTreeMap<String, Image>, Error> {
    let base = Base::choose(engine, progress).await?;
    let (found, missing) = find(engine, stages, &base).await?;
    if missing.is_empty() {
        return Ok(found);
    }
    let _lock = lock::wait(progress).await?;
    // Another may have built them while this one waited.
    let (_, missing) = find(engine, stages, &base).await?;
    if !missing.is_empty() {
        build_all(engine, &missing, &base, progress).await?;
    }
    let (found, missing) = find(engine, stages, &base).await?;
    match missing.first() {
        None => Ok(found),
        Some(stage) => Err(Error::Build {
            stage: (*stage).to_owned(),
            reason: "it was built and is not there: did something remove it?".to_owned(),
            output: String::new(),
        }),
    }
}

/// Those of these images that are there, and the stages of those that are not.
async fn find<'a>(
    engine: &Engine,
    stages: &[&'a str],
    base: &Base,
) -> Result<(BTreeMap<String, Image>, Vec<&'a str>), Error> {
    let mut found = BTreeMap::new();
    let mut missing = Vec::new();
    let ids = try_join_all(
        stages
            .iter()
            .map(async |stage| id_of(engine, &name(stage, base)).await),
    )
    .await?;
    for (stage, id) in stages.iter().zip(ids) {
        match id {
            Some(id) => {
                let (repository, tag) = (
                    repository(stage),
                    context::digest(base.digest_input(), stage),
                );
                found.insert(
                    (*stage).to_owned(),
                    Image {
                        repository,
                        tag,
                        id,
                    },
                );
            }
            None if missing.contains(stage) => {}
            None => missing.push(*stage),
        }
    }
    Ok((found, missing))
}

/// Builds what all share, then the rest at once: the classic builder finds the shared layers in its cache.
async fn build_all(
    engine: &Engine,
    stages: &[&str],
    base: &Base,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let base_image = base.get(engine, progress).await?;
    if stages.len() > 1 {
        progress.step("building what all images share");
        build::build(engine, context::SHARED_STAGE, &base_image, None, progress).await?;
    }
    progress.step(&format!(
        "building {}: {}",
        if stages.len() == 1 { "image" } else { "images" },
        stages.join(", ")
    ));
    // All are awaited, also after one has failed: what the others made is not lost.
    let builds = stages.iter().map(async |stage| {
        build::build(
            engine,
            stage,
            &base_image,
            Some(&name(stage, base)),
            progress,
        )
        .await
    });
    join_all(builds).await.into_iter().collect()
}

fn repository(stage: &str) -> String {
    format!("fencepost/{stage}")
}

fn name(stage: &str, base: &Base) -> String {
    format!(
        "{}:{}",
        repository(stage),
        context::digest(base.digest_input(), stage)
    )
}

/// The id of an image; nothing where there is none of this name.
async fn id_of(engine: &Engine, name: &str) -> Result<Option<String>, Error> {
    match engine.docker().inspect_image(name).await {
        Ok(image) => Ok(image.id),
        Err(Reply::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(None),
        Err(reply) => Err(Error::docker(format!("looking for image {name}"), reply)),
    }
}
