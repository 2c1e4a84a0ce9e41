//! The image that the others are built on: the user's own, or Debian's as a registry has it, or one bootstrapped here.

use std::env;
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;

use super::{bootstrap, id_of};
use crate::replies::words;
use crate::{Engine, Error, Progress};

/// Names an image to build on instead of the usual one.
pub(super) const ENV_BASE: &str = "FENCEPOST_BASE";

/// What the images are built on unless [`ENV_BASE`] says otherwise.
const USUAL: &str = "debian:trixie-slim";

/// How long a registry may be silent before it counts as out of reach. One that cannot be reached may take the daemon
/// minutes to give up on.
const SILENCE_LIMIT: Duration = Duration::from_secs(20);

/// Which base the images have.
pub(super) enum Base {
    /// The image that the user named.
    Given {
        /// Its name.
        name: String,
        /// Its id.
        id: String,
    },
    /// Debian trixie, from wherever it can be had. Which one is only looked for when something has to be built.
    Usual,
}

impl Base {
    /// Which base it is to be, by the environment. An image that the user named is pulled if it is not here.
    pub(super) async fn choose(engine: &Engine, progress: &dyn Progress) -> Result<Base, Error> {
        match given() {
            Some(name) => Base::get_given(engine, name, progress).await,
            None => Ok(Base::Usual),
        }
    }

    /// The same without a pull: nothing where the user named an image that is not here.
    pub(super) async fn choose_here(engine: &Engine) -> Result<Option<Base>, Error> {
        match given() {
            Some(name) => Ok(id_of(engine, &name)
                .await?
                .map(|id| Base::Given { name, id })),
            None => Ok(Some(Base::Usual)),
        }
    }

    /// The name of the image that the user named.
    pub(super) fn given_name(&self) -> Option<&str> {
        match self {
            Base::Given { name, .. } => Some(name),
            Base::Usual => None,
        }
    }

    async fn get_given(
        engine: &Engine,
        name: String,
        progress: &dyn Progress,
    ) -> Result<Base, Error> {
        if let Some(id) = id_of(engine, &name).await? {
            return Ok(Base::Given { name, id });
        }
        let reasons = match pull(engine, &name, SILENCE_LIMIT, progress).await {
            Ok(()) => match id_of(engine, &name).await? {
                Some(id) => return Ok(Base::Given { name, id }),
                None => "it was pulled and is not there".to_owned(),
            },
            Err(reason) => {
                format!("{ENV_BASE} names {name}, which is not here, and a pull failed: {reason}")
            }
        };
        Err(Error::NoBase {
            wanted: name,
            reasons,
        })
    }

    /// What stands for the base in the images' digest. For the usual one that is its name, so that images are found
    /// whether the base they were built on is still there or not.
    pub(super) fn digest_input(&self) -> &str {
        match self {
            Base::Given { id, .. } => id,
            Base::Usual => USUAL,
        }
    }

    /// The name of an image that is there and can be built on.
    pub(super) async fn get(
        &self,
        engine: &Engine,
        progress: &dyn Progress,
    ) -> Result<String, Error> {
        if let Base::Given { name, .. } = self {
            return Ok(name.clone());
        }
        for name in [USUAL, bootstrap::NAME] {
            if id_of(engine, name).await?.is_some() {
                return Ok(name.to_owned());
            }
        }
        let no_pull = match pull(engine, USUAL, SILENCE_LIMIT, progress).await {
            Ok(()) => return Ok(USUAL.to_owned()),
            Err(reason) => format!("a pull of {USUAL} failed ({reason})"),
        };
        progress.step(&format!(
            "{no_pull}: bootstrapping {} from Debian's packages",
            bootstrap::NAME
        ));
        match bootstrap::bootstrap(engine, progress).await {
            Ok(()) => Ok(bootstrap::NAME.to_owned()),
            Err(full @ Error::DiskFull { .. }) => Err(full),
            Err(other) => Err(Error::NoBase {
                wanted: USUAL.to_owned(),
                reasons: format!("{no_pull}, and {other}"),
            }),
        }
    }
}

fn given() -> Option<String> {
    env::var(ENV_BASE).ok().filter(|name| !name.is_empty())
}

/// Pulls an image; the error is the reason alone.
async fn pull(
    engine: &Engine,
    name: &str,
    silence_limit: Duration,
    progress: &dyn Progress,
) -> Result<(), String> {
    progress.step(&format!("pulling {name}"));
    let options = CreateImageOptionsBuilder::default()
        .from_image(&with_tag(name))
        .build();
    let mut answers = engine.docker().create_image(Some(options), None, None);
    loop {
        match tokio::time::timeout(silence_limit, answers.next()).await {
            Err(_) => {
                return Err(format!(
                    "the registry was silent for {} s",
                    silence_limit.as_secs()
                ));
            }
            Ok(None) => return Ok(()),
            Ok(Some(Err(reply))) => return Err(words(&reply)),
            // What carries a detail is a progress bar, redrawn many times a second.
            Ok(Some(Ok(info)))
                if info
                    .progress_detail
                    .as_ref()
                    .is_some_and(|detail| detail.total.is_some()) => {}
            Ok(Some(Ok(info))) => {
                let layer = info.id.map(|id| format!("{id}: ")).unwrap_or_default();
                progress.detail(&format!("{layer}{}", info.status.unwrap_or_default()));
            }
        }
    }
}

/// The daemon pulls every tag of an image that is named without one.
fn with_tag(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains([':', '@']) {
        name.to_owned()
    } else {
        format!("{name}:latest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_base_that_cannot_be_pulled_says_what_helps() {
        let Some(()) = crate::docker_or_skip() else {
            return;
        };
        let engine = crate::engine().await.expect("an engine");
        // No name below `.invalid` ever resolves (RFC 6761).
        let name = "registry.invalid/debian:1".to_owned();
        let error = Base::get_given(&engine, name, &())
            .await
            .err()
            .expect("no such registry");
        assert!(
            matches!(&error, Error::NoBase { wanted, .. } if wanted == "registry.invalid/debian:1"),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .contains("FENCEPOST_BASE names registry.invalid/debian:1"),
            "{error}"
        );
    }

    #[test]
    fn a_name_without_a_tag_gets_one() {
        for (name, tagged) in [
            ("debian", "debian:latest"),
            ("debian:trixie-slim", "debian:trixie-slim"),
            ("here:5000/debian", "here:5000/debian:latest"),
            ("here:5000/debian:12", "here:5000/debian:12"),
            ("debian@sha256:00", "debian@sha256:00"),
        ] {
            assert_eq!(with_tag(name), tagged);
        }
    }
}
