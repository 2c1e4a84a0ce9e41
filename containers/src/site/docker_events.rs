//! What somebody else does to a site's containers, as Docker tells it: one that is paused, or taken off its network, has
//! ended nothing of which its agent could tell.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bollard::errors::Error as Reply;
use bollard::models::{ContainerInspectResponse, EventActor};
use bollard::query_parameters::{EventsOptions, EventsOptionsBuilder, InspectContainerOptions};
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use tokio::sync::oneshot;

use super::ground::Ground;
use super::{Ends, Host, STORAGE};
use crate::agent::monotonic_ns;
use crate::{Engine, Error};

/// The pause before Docker is asked for its events again, where it goes away.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How often it may fail to answer one time after another: then nobody knows what becomes of the containers.
const ASKED_IN_VAIN_MAX: u32 = 5;

const PAUSED: &str = "pause";
const CUT_OFF: &str = "disconnect";

const WAS_PAUSED: &str = "somebody has paused its container";
const UNWATCHED: &str = "Docker does not tell any more what is done to its container";
const WAS_CUT_OFF: &str = "somebody has taken its container off the network";

/// Docker's events are followed for as long as this is there.
pub(super) struct Following {
    _ends_when_dropped: oneshot::Sender<()>,
}

/// Follows what happens to the containers on this ground, and what has happened to them since it was begun.
pub(super) fn follow(ground: &Ground, ends: &Ends) -> Result<Following, Error> {
    let events = Events {
        engine: ground.engine.clone(),
        network: ground.network.clone(),
        ends: ends.clone(),
        since: options(ground.begun),
    };
    let (sender, dropped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::io("a runtime of its own", source))?;
    let follow = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = dropped => {}
                () = events.follow() => {}
            }
        });
    };
    thread::Builder::new()
        .name("docker's events".to_owned())
        .spawn(follow)
        .map_err(|source| Error::thread("watching the containers", source))?;
    Ok(Following {
        _ends_when_dropped: sender,
    })
}

/// Tells of the hosts whose containers are not as they were made. Docker keeps no more than its last 256 events, of which
/// those of a busy machine may have driven out the one that would tell.
pub(super) async fn look(ground: &Ground, hosts: &[Host], ends: &Ends) -> Result<(), Error> {
    let looks = hosts.iter().map(async |host| {
        let docker = ground.engine.docker();
        let asked = docker.inspect_container(&host.container, None::<InspectContainerOptions>);
        match asked.await {
            Ok(found) => Ok(found_touched(&found, &ground.network)),
            // Of one that is gone its agent tells.
            Err(Reply::DockerResponseServerError {
                status_code: 404, ..
            }) => Ok(None),
            Err(reply) => Err(Error::docker(
                format!("looking at {}", host.container),
                reply,
            )),
        }
    });
    let found = try_join_all(looks).await?;
    for (host, how) in hosts.iter().zip(found) {
        if let Some(how) = how {
            ends.add_touched(host.name.clone(), monotonic_ns(), how.to_owned());
        }
    }
    Ok(())
}

/// What was done to a container, if Docker still shows it: it is paused, or off its network. Only one that runs counts as cut
/// off: Docker takes a container off its networks when it ends.
pub(super) fn found_touched(
    found: &ContainerInspectResponse,
    network: &str,
) -> Option<&'static str> {
    let state = found.state.as_ref()?;
    if state.paused == Some(true) {
        return Some(WAS_PAUSED);
    }
    let settings = found.network_settings.as_ref();
    let networks = settings.and_then(|settings| settings.networks.as_ref());
    let is_in = networks.is_some_and(|networks| networks.contains_key(network));
    (state.running == Some(true) && !is_in).then_some(WAS_CUT_OFF)
}

/// Those events, from that second on: none is missed that came before Docker was asked, nor where it has to be asked again.
/// The name of a run's network is the run's own, so that none of somebody else's is taken for one of them.
fn options(since: SystemTime) -> EventsOptions {
    let since = since.duration_since(SystemTime::UNIX_EPOCH);
    let filters = HashMap::from([
        ("type", vec!["container", "network"]),
        ("event", vec![PAUSED, CUT_OFF]),
    ]);
    EventsOptionsBuilder::new()
        .since(&since.unwrap_or_default().as_secs().to_string())
        .filters(&filters)
        .build()
}

struct Events {
    engine: Engine,
    network: String,
    ends: Ends,
    since: EventsOptions,
}

impl Events {
    async fn follow(&self) {
        let mut in_vain = 0;
        while in_vain < ASKED_IN_VAIN_MAX {
            let asked = Instant::now();
            let mut events = Box::pin(self.engine.docker().events(Some(self.since.clone())));
            while let Some(Ok(event)) = events.next().await {
                let actor = event.actor.unwrap_or_default();
                if let Some((host, how)) = self.touched(event.action.as_deref(), actor).await {
                    self.ends.add_touched(host, monotonic_ns(), how.to_owned());
                }
            }
            in_vain = match asked.elapsed() < AGAIN_AFTER {
                true => in_vain + 1,
                false => 0,
            };
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        // It is so of all hosts, and each site has this one.
        let how = UNWATCHED.to_owned();
        self.ends
            .add_touched(STORAGE.to_owned(), monotonic_ns(), how);
    }

    /// The host that an event is about, and what was done to it.
    async fn touched(
        &self,
        action: Option<&str>,
        actor: EventActor,
    ) -> Option<(String, &'static str)> {
        let attributes = actor.attributes?;
        let name = attributes.get("name")?;
        match action? {
            PAUSED => Some((self.host_of(name)?, WAS_PAUSED)),
            CUT_OFF if *name == self.network => {
                let host = self.running(attributes.get("container")?).await?;
                Some((host, WAS_CUT_OFF))
            }
            _ => None,
        }
    }

    fn host_of(&self, container: &str) -> Option<String> {
        let rest = container.strip_prefix(&self.network)?;
        rest.strip_prefix('-').map(str::to_owned)
    }

    /// The host of a container, if that still runs: one that ends leaves its network too.
    async fn running(&self, id: &str) -> Option<String> {
        let docker = self.engine.docker();
        let asked = docker.inspect_container(id, None::<InspectContainerOptions>);
        let found = asked.await.ok()?;
        let runs = found.state.and_then(|state| state.running);
        runs.filter(|runs| *runs)?;
        self.host_of(found.name?.trim_start_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::{ContainerState, EndpointSettings, NetworkSettings};

    use super::*;

    fn container(running: bool, paused: bool, networks: &[&str]) -> ContainerInspectResponse {
        let networks = networks.iter().map(|name| (*name).to_owned());
        ContainerInspectResponse {
            state: Some(ContainerState {
                running: Some(running),
                paused: Some(paused),
                ..ContainerState::default()
            }),
            network_settings: Some(NetworkSettings {
                networks: Some(
                    networks
                        .map(|name| (name, EndpointSettings::default()))
                        .collect(),
                ),
                ..NetworkSettings::default()
            }),
            ..ContainerInspectResponse::default()
        }
    }

    #[test]
    fn a_container_that_is_not_as_it_was_made_was_touched() {
        for (running, paused, networks, expected) in [
            (true, false, &["fencepost-0"][..], None),
            (true, false, &["bridge", "fencepost-0"], None),
            (true, false, &[], Some(WAS_CUT_OFF)),
            (true, false, &["bridge"], Some(WAS_CUT_OFF)),
            (true, true, &["fencepost-0"], Some(WAS_PAUSED)),
            // Its agent tells of its end.
            (false, false, &[], None),
        ] {
            let found = container(running, paused, networks);
            assert_eq!(found_touched(&found, "fencepost-0"), expected, "{found:?}");
        }
    }

    #[test]
    fn events_count_from_the_second_in_which_the_start_began() {
        let begun = SystemTime::UNIX_EPOCH + Duration::from_millis(7_900);
        assert_eq!(options(begun).since.as_deref(), Some("7"));
    }
}
