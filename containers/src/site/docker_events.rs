//! What somebody else does to a site's containers, as Docker tells it: one that is paused, or taken off its network, has
//! ended nothing of which its agent could tell.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, SystemTime};

use bollard::models::EventActor;
use bollard::query_parameters::{EventsOptions, EventsOptionsBuilder, InspectContainerOptions};
use futures_util::StreamExt as _;
use tokio::sync::oneshot;

use super::Ends;
use crate::agent::monotonic_ns;
use crate::{Engine, Error};

/// The pause before Docker is asked for its events again, where it goes away.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

const PAUSED: &str = "pause";
const CUT_OFF: &str = "disconnect";

/// Docker's events are followed for as long as this is there.
pub(super) struct Following {
    _ends_when_dropped: oneshot::Sender<()>,
}

/// Follows what happens to the containers in `network`, whose name theirs begin with, from now on.
pub(super) fn follow(engine: &Engine, network: &str, ends: &Ends) -> Result<Following, Error> {
    let events = Events {
        engine: engine.clone(),
        network: network.to_owned(),
        ends: ends.clone(),
        since: options(),
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

/// Those events, from this second on: none is missed where Docker has to be asked again.
fn options() -> EventsOptions {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let filters = HashMap::from([
        ("type", vec!["container", "network"]),
        ("event", vec![PAUSED, CUT_OFF]),
    ]);
    EventsOptionsBuilder::new()
        .since(&now.unwrap_or_default().as_secs().to_string())
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
        loop {
            let mut events = Box::pin(self.engine.docker().events(Some(self.since.clone())));
            while let Some(Ok(event)) = events.next().await {
                let actor = event.actor.unwrap_or_default();
                if let Some((host, how)) = self.touched(event.action.as_deref(), actor).await {
                    self.ends.add_touched(host, monotonic_ns(), how.to_owned());
                }
            }
            // A Docker that is gone is told by whoever needs it next.
            tokio::time::sleep(AGAIN_AFTER).await;
        }
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
            PAUSED => Some((self.host_of(name)?, "somebody has paused its container")),
            CUT_OFF if *name == self.network => {
                let host = self.running(attributes.get("container")?).await?;
                Some((host, "somebody has taken its container off the network"))
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
