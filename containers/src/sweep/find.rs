//! What there is to be removed: found by its labels, and chosen by whose it is.

use std::collections::HashMap;

use bollard::errors::Error as Reply;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
};
use futures_util::future::try_join3;

use super::{ROUNDS, Which};
use crate::owner::{LABEL, LABEL_OWNER, LABEL_RUN, Owner};
use crate::{Engine, Error, runtime_directory};

/// [`Which`], made ready to be asked.
pub(super) struct Chosen<'a> {
    which: &'a Which,
    current: String,
}

impl Chosen<'_> {
    pub(super) fn new(which: &Which) -> Result<Chosen<'_>, Error> {
        Ok(Chosen {
            which,
            current: Owner::current()?.to_string(),
        })
    }

    fn labels(&self, labels: &HashMap<String, String>) -> bool {
        let text = |label| labels.get(label).map(String::as_str);
        self.owned(text(LABEL_OWNER), text(LABEL_RUN))
    }

    pub(super) fn directory(&self, found: &runtime_directory::Found) -> bool {
        match &found.owner {
            Some(owner) => self.owned(Some(owner), Some(&found.run)),
            None => matches!(self.which, Which::Dead | Which::All) && found.abandoned,
        }
    }

    fn owned(&self, owner: Option<&str>, run: Option<&str>) -> bool {
        match self.which {
            Which::Dead => {
                let dead = owner
                    .and_then(Owner::parse)
                    .is_some_and(|owner| !owner.is_alive());
                dead && !run.is_some_and(runtime_directory::is_kept)
            }
            Which::Run(wanted) => run == Some(wanted),
            Which::Own => owner == Some(&self.current),
            // What somebody else starts from one of our images has the images' label, and no owner.
            Which::All => owner.is_some(),
        }
    }
}

/// What is there to be removed.
#[derive(Default)]
pub(super) struct Things {
    /// Ids and names.
    pub(super) containers: Vec<(String, String)>,
    /// Ids and names.
    pub(super) networks: Vec<(String, String)>,
    /// Names.
    pub(super) volumes: Vec<String>,
}

impl Things {
    pub(super) fn is_empty(&self) -> bool {
        self.containers.is_empty() && self.networks.is_empty() && self.volumes.is_empty()
    }

    pub(super) fn names(&self) -> String {
        let ids = self.containers.iter().chain(&self.networks);
        let names: Vec<&str> = ids
            .map(|(_, name)| name)
            .chain(&self.volumes)
            .map(String::as_str)
            .collect();
        names.join(", ")
    }
}

pub(super) async fn find(engine: &Engine, chosen: &Chosen<'_>) -> Result<Things, Error> {
    let (containers, networks, volumes) = try_join3(
        containers(engine, chosen),
        networks(engine, chosen),
        volumes(engine, chosen),
    )
    .await?;
    Ok(Things {
        containers,
        networks,
        volumes,
    })
}

fn ours() -> HashMap<&'static str, Vec<&'static str>> {
    HashMap::from([("label", vec![LABEL])])
}

async fn containers(engine: &Engine, chosen: &Chosen<'_>) -> Result<Vec<(String, String)>, Error> {
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&ours())
        .build();
    let mut attempt = 0;
    let found = loop {
        attempt += 1;
        match engine.docker().list_containers(Some(options.clone())).await {
            Ok(found) => break found,
            // Engines have failed to list containers while one of them was going.
            Err(Reply::DockerResponseServerError {
                status_code: 404, ..
            }) if attempt < ROUNDS => {}
            Err(reply) => return Err(Error::docker("listing containers", reply)),
        }
    };
    let found = found.into_iter().filter(|one| {
        one.labels
            .as_ref()
            .is_some_and(|labels| chosen.labels(labels))
    });
    Ok(found
        .filter_map(|one| {
            let id = one.id?;
            let name = one
                .names
                .and_then(|names| names.into_iter().next())
                .unwrap_or_else(|| id.clone());
            Some((id, name.trim_start_matches('/').to_owned()))
        })
        .collect())
}

async fn networks(engine: &Engine, chosen: &Chosen<'_>) -> Result<Vec<(String, String)>, Error> {
    let options = ListNetworksOptionsBuilder::default()
        .filters(&ours())
        .build();
    let found = engine.docker().list_networks(Some(options)).await;
    let found = found
        .map_err(|reply| Error::docker("listing networks", reply))?
        .into_iter();
    let found = found.filter(|one| {
        one.labels
            .as_ref()
            .is_some_and(|labels| chosen.labels(labels))
    });
    Ok(found
        .filter_map(|one| Some((one.id?, one.name.unwrap_or_default())))
        .collect())
}

async fn volumes(engine: &Engine, chosen: &Chosen<'_>) -> Result<Vec<String>, Error> {
    let options = ListVolumesOptionsBuilder::default()
        .filters(&ours())
        .build();
    let found = engine.docker().list_volumes(Some(options)).await;
    let found = found
        .map_err(|reply| Error::docker("listing volumes", reply))?
        .volumes
        .unwrap_or_default();
    Ok(found
        .into_iter()
        .filter(|one| chosen.labels(&one.labels))
        .map(|one| one.name)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEAD: &str = "1:1:another-boot:1";

    fn chooses(which: &Which, owner: Option<&str>, run: Option<&str>) -> bool {
        Chosen::new(which).expect("this process").owned(owner, run)
    }

    #[test]
    fn the_dead_are_chosen_and_the_living_spared() {
        let current = Owner::current().expect("this process").to_string();
        assert!(chooses(&Which::Dead, Some(DEAD), Some("a")));
        assert!(!chooses(&Which::Dead, Some(&current), Some("a")));
        assert!(
            !chooses(&Which::Dead, None, Some("a")),
            "what names no owner may belong to a live one"
        );
        assert!(!chooses(&Which::Dead, Some("who knows"), Some("a")));
    }

    #[test]
    fn a_run_is_chosen_by_its_id_alone() {
        let run = Which::Run("a".to_owned());
        assert!(chooses(&run, Some(DEAD), Some("a")));
        assert!(!chooses(&run, Some(DEAD), Some("b")));
        assert!(!chooses(&run, Some(DEAD), None));
    }

    #[test]
    fn one_s_own_are_those_with_one_s_own_name() {
        let current = Owner::current().expect("this process").to_string();
        assert!(chooses(&Which::Own, Some(&current), Some("a")));
        assert!(!chooses(&Which::Own, Some(DEAD), Some("a")));
        assert!(!chooses(&Which::Own, None, None));
    }

    #[test]
    fn all_is_all_that_has_an_owner() {
        let current = Owner::current().expect("this process").to_string();
        assert!(chooses(&Which::All, Some(&current), Some("a")));
        assert!(chooses(&Which::All, Some(DEAD), None));
        assert!(!chooses(&Which::All, None, None));
    }
}
