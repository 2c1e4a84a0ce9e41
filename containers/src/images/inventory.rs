//! What images of ours are there, and the removal of those that nothing needs.

use std::collections::{BTreeSet, HashMap};

use bollard::errors::Error as Reply;
use bollard::models::ImageSummary;
use bollard::query_parameters::{ListImagesOptionsBuilder, RemoveImageOptions};
use serde::Serialize;

use super::{Base, STAGES, bootstrap, name};
use crate::owner::LABEL;
use crate::{Engine, Error};

/// What the names of all images of ours begin with.
const OURS: &str = "fencepost/";

/// An image of ours that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name: `fencepost/<stage>:<digest>`; or its id, for what a build left that was not finished.
    pub tag: String,
    /// Docker's id of it: `sha256:…`.
    pub id: String,
    /// Its size in bytes, with the layers that it shares with others.
    pub bytes: i64,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// Whether this build would use it.
    pub current: bool,
}

/// All images of ours, by name.
///
/// # Errors
/// Whatever Docker says.
pub async fn list(engine: &Engine) -> Result<Vec<Listed>, Error> {
    let mut current = BTreeSet::from([bootstrap::NAME.to_owned()]);
    if let Some(base) = Base::choose_here(engine).await? {
        current.extend(STAGES.iter().map(|stage| name(stage, &base)));
        current.extend(base.given_name().map(str::to_owned));
    }
    let filters = HashMap::from([("label", vec![LABEL])]);
    let options = ListImagesOptionsBuilder::default()
        .filters(&filters)
        .build();
    let found = engine.docker().list_images(Some(options)).await;
    let found = found.map_err(|reply| Error::docker("listing images", reply))?;
    let mut listed: Vec<Listed> = found
        .iter()
        .flat_map(|image| listed(image, &current))
        .collect();
    listed.sort_by(|one, other| one.tag.cmp(&other.tag));
    Ok(listed)
}

/// One image once for each of its names that is ours: what somebody else built on one of our images has its label too.
fn listed(image: &ImageSummary, current: &BTreeSet<String>) -> Vec<Listed> {
    let is_name = |tag: &&String| *tag != "<none>:<none>";
    let mut tags: Vec<String> = image.repo_tags.iter().filter(is_name).cloned().collect();
    if tags.is_empty() {
        tags.push(image.id.clone());
    } else {
        tags.retain(|tag| tag.starts_with(OURS));
    }
    let listed = tags.into_iter().map(|tag| Listed {
        current: current.contains(&tag),
        tag,
        id: image.id.clone(),
        bytes: image.size,
        created: image.created,
    });
    listed.collect()
}

/// Removes the images of ours that this build would not use and that no container needs; how many that were.
///
/// # Errors
/// Whatever Docker says.
pub async fn remove_stale(engine: &Engine) -> Result<usize, Error> {
    remove(engine, |image| !image.current).await
}

/// Removes all images of ours that no container needs, the base that was bootstrapped too; how many that were.
///
/// # Errors
/// Whatever Docker says.
pub async fn remove_all(engine: &Engine) -> Result<usize, Error> {
    remove(engine, |_| true).await
}

/// Again and again until no more goes, since an image only goes after those that stand on it, and since what it stands
/// on shows by itself only when it has gone.
async fn remove(engine: &Engine, chosen: impl Fn(&Listed) -> bool) -> Result<usize, Error> {
    let mut removed = 0;
    loop {
        let before = removed;
        for image in list(engine).await?.iter().filter(|image| chosen(image)) {
            let answer = engine
                .docker()
                .remove_image(&image.tag, None::<RemoveImageOptions>, None)
                .await;
            match answer {
                Ok(_) => removed += 1,
                // It has gone, or a container or another image needs it.
                Err(Reply::DockerResponseServerError {
                    status_code: 404 | 409,
                    ..
                }) => {}
                Err(reply) => {
                    return Err(Error::docker(
                        format!("removing image {}", image.tag),
                        reply,
                    ));
                }
            }
        }
        if removed == before {
            return Ok(removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use bollard::query_parameters::TagImageOptionsBuilder;

    use super::*;

    fn image(repo_tags: &[&str]) -> ImageSummary {
        let repo_tags = repo_tags.iter().map(|tag| (*tag).to_owned()).collect();
        ImageSummary {
            id: "sha256:0".to_owned(),
            repo_tags,
            ..ImageSummary::default()
        }
    }

    fn shown(repo_tags: &[&str]) -> Vec<(String, bool)> {
        let current = BTreeSet::from(["fencepost/redis:new".to_owned()]);
        let listed = listed(&image(repo_tags), &current);
        listed
            .into_iter()
            .map(|image| (image.tag, image.current))
            .collect()
    }

    #[test]
    fn only_what_this_build_would_use_is_current() {
        let both = shown(&["fencepost/redis:new", "fencepost/redis:old"]);
        assert_eq!(
            both,
            [
                ("fencepost/redis:new".to_owned(), true),
                ("fencepost/redis:old".to_owned(), false)
            ]
        );
    }

    #[test]
    fn an_image_without_a_name_shows_by_its_id() {
        assert_eq!(shown(&[]), [("sha256:0".to_owned(), false)]);
        assert_eq!(shown(&["<none>:<none>"]), [("sha256:0".to_owned(), false)]);
    }

    #[test]
    fn what_others_built_on_ours_is_not_ours() {
        assert_eq!(shown(&["mine/redis:1"]), []);
        assert_eq!(
            shown(&["mine/redis:1", "fencepost/redis:new"]),
            [("fencepost/redis:new".to_owned(), true)]
        );
    }

    #[tokio::test]
    async fn only_the_chosen_are_removed() {
        let Some(()) = crate::docker_or_skip() else {
            return;
        };
        let engine = crate::engine().await.expect("an engine");
        let client = crate::images::ensure(&engine, &["client"], &())
            .await
            .expect("an image");
        let client = &client["client"];
        let tag = format!("{OURS}test:{}", std::process::id());
        let (repository, version) = tag.split_once(':').expect("a name and a tag");
        let options = TagImageOptionsBuilder::default()
            .repo(repository)
            .tag(version)
            .build();
        engine
            .docker()
            .tag_image(&client.id, Some(options))
            .await
            .expect("another name");
        let there = async || {
            let listed = list(&engine).await.expect("a list");
            listed
                .into_iter()
                .map(|image| (image.tag, image.current))
                .collect::<BTreeSet<_>>()
        };
        let with = there().await;
        assert!(with.contains(&(tag.clone(), false)), "{with:?}");
        let removed = remove(&engine, |image| image.tag == tag)
            .await
            .expect("a removal");
        assert_eq!(removed, 1);
        let without = there().await;
        assert!(!without.contains(&(tag.clone(), false)), "{without:?}");
        assert!(
            without.contains(&(format!("{}:{}", client.repository, client.tag), true)),
            "{without:?}"
        );
    }
}
