//! What somebody else does to a site while it is starting.

use std::process::Command;
use std::thread;
use std::time::Duration;

use containers::site::Site;

use super::stage::{request, wait_until};

/// How long after a site has come up what was done to it meanwhile may take to be known.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// Stops the server as soon as there is one, long before it serves.
const STOP_THE_SERVER: &str =
    "until kill -STOP $(pidof redis-server); do sleep 0.001; done 2>/dev/null";

/// What `docker` says, or nothing where it fails.
fn docker(words: &[&str]) -> Option<String> {
    let ran = Command::new("docker").args(words).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    ran.status.success().then(|| said.trim().to_owned())
}

/// Does these things to the first server's container as soon as `docker ps` shows it; `NET` and `CONTAINER` are named so.
fn touch_when_it_is_there(run: &str, blows: &[&[&str]]) {
    let label = format!("label=fencepost.run={run}");
    let mut container = String::new();
    wait_until("the container is there", || {
        let shown = docker(&["ps", "-q", "--filter", &label, "--filter", "name=-s1$"]);
        container = shown.unwrap_or_default();
        !container.is_empty()
    });
    let network = docker(&["network", "ls", "-q", "--filter", &label]).unwrap();
    for blow in blows {
        let named = |word: &&str| match *word {
            "NET" => network.clone(),
            "CONTAINER" => container.clone(),
            word => word.to_owned(),
        };
        let words: Vec<String> = blow.iter().map(named).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert!(docker(&words).is_some(), "docker {words:?}");
    }
}

/// What is told of a site to which that is done while it is starting.
async fn told_of(blows: &'static [&[&str]]) -> String {
    let shared = tempfile::tempdir().unwrap();
    let request = request("redis", 1, shared.path());
    let run = request.run.clone();
    let touching = thread::spawn(move || touch_when_it_is_there(&run, blows));
    let started = Site::start(request).await;
    touching.join().unwrap();
    let told = match started {
        Err(error) => error.to_string(),
        Ok(site) => {
            let first = tokio::time::timeout(TOLD_WITHIN, site.ends.await_unasked()).await;
            site.stop().await.unwrap();
            let first = first.unwrap_or_else(|_| panic!("{blows:?}: nobody was told"));
            format!("host {} ended: {}", first.host, first.how)
        }
    };
    println!("{blows:?}: {told}");
    told
}

#[tokio::test]
async fn a_container_that_is_taken_off_its_network_as_soon_as_it_is_there_is_told() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    const CUT_OFF: &[&str] = &["network", "disconnect", "-f", "NET", "CONTAINER"];
    let expected = "host s1 ended: somebody has taken its container off the network";
    let told = told_of(&[CUT_OFF]).await;
    assert!(told.starts_with(expected), "{told}");

    let told = told_of(&[CUT_OFF, &["network", "connect", "NET", "CONTAINER"]]).await;
    // Between both blows the start may have looked for the container's address, and found none.
    let is_told = told.starts_with(expected) || told.contains("has no address in its network");
    assert!(is_told, "{told}");
}

#[tokio::test]
async fn a_container_that_is_paused_for_a_moment_as_soon_as_it_is_there_is_told() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let told = told_of(&[&["pause", "CONTAINER"], &["unpause", "CONTAINER"]]).await;
    let expected = "host s1 ended: somebody has paused its container";
    assert!(told.starts_with(expected), "{told}");
}

#[tokio::test]
async fn a_server_that_is_stopped_before_it_serves_is_told() {
    let Some(()) = containers::docker_or_skip() else {
        return;
    };
    let told = told_of(&[&["exec", "-d", "CONTAINER", "sh", "-c", STOP_THE_SERVER]]).await;
    let expected = "host s1 ended: somebody has stopped its server";
    assert!(told.starts_with(expected), "{told}");
}
