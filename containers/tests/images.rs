//! The images: built once, found again, and fit for what hosts do in them.

use std::collections::HashMap;
use std::sync::Mutex;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptions, ListContainersOptionsBuilder, LogsOptionsBuilder,
    StartContainerOptions, WaitContainerOptions,
};
use containers::{Engine, Error, Progress, Which, docker_or_skip, engine, images, owner, sweep};
use futures_util::StreamExt as _;
use uuid::Uuid;

/// Remembers the steps that it was told.
#[derive(Default)]
struct Steps(Mutex<Vec<String>>);

impl Progress for Steps {
    fn step(&self, what: &str) {
        self.0
            .lock()
            .expect("nobody panicked")
            .push(what.to_owned());
    }

    fn detail(&self, _line: &str) {}
}

/// Runs a shell command in a container of its own; what it wrote, and its exit status.
async fn run(engine: &Engine, stage: &str, command: &str) -> (String, i64) {
    let images = images::ensure(engine, &[stage], &())
        .await
        .expect("the image");
    let run = Uuid::now_v7().to_string();
    let body = ContainerCreateBody {
        image: Some(images[stage].id.clone()),
        cmd: Some(
            ["timeout", "60", "sh", "-c", command]
                .map(str::to_owned)
                .to_vec(),
        ),
        labels: Some(owner::labels(&run).expect("labels")),
        ..ContainerCreateBody::default()
    };
    let docker = engine.docker();
    let id = docker
        .create_container(None::<CreateContainerOptions>, body)
        .await
        .expect("a container")
        .id;
    docker
        .start_container(&id, None::<StartContainerOptions>)
        .await
        .expect("a start");
    let status = match docker
        .wait_container(&id, None::<WaitContainerOptions>)
        .next()
        .await
        .expect("an end")
    {
        Ok(ended) => ended.status_code,
        Err(bollard::errors::Error::DockerContainerWaitError { code, .. }) => code,
        Err(error) => panic!("{error}"),
    };
    let options = LogsOptionsBuilder::default()
        .stdout(true)
        .stderr(true)
        .build();
    let mut output = String::new();
    let mut logs = docker.logs(&id, Some(options));
    while let Some(piece) = logs.next().await {
        output += &piece.expect("its output").to_string();
    }
    sweep(engine, &Which::Run(run)).await.expect("a sweep");
    (output, status)
}

#[tokio::test]
async fn images_are_built_once_and_found_again() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    let first = images::ensure(&engine, &images::STAGES, &())
        .await
        .expect("images");
    assert!(first.keys().eq(images::STAGES), "{first:?}");
    let steps = Steps::default();
    let second = images::ensure(&engine, &images::STAGES, &steps)
        .await
        .expect("images");
    assert_eq!(second, first);
    assert_eq!(*steps.0.lock().expect("nobody panicked"), [""; 0]);
    let current: Vec<String> = images::list(&engine)
        .await
        .expect("a list")
        .into_iter()
        .filter(|image| image.current)
        .map(|image| image.tag)
        .collect();
    for image in first.values() {
        let name = format!("{}:{}", image.repository, image.tag);
        assert!(current.contains(&name), "{name} is not in {current:?}");
    }
}

#[tokio::test]
async fn a_build_that_fails_says_why_and_leaves_no_container() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    images::ensure(&engine, &["client"], &())
        .await
        .expect("the base");
    let error = images::ensure(&engine, &["nonsense"], &())
        .await
        .expect_err("there is no such stage");
    assert!(
        matches!(&error, Error::Build { stage, .. } if stage == "nonsense"),
        "{error:?}"
    );
    assert!(error.to_string().contains("nonsense"), "{error}");
    // A build's container carries the images' label and no owner.
    let filters = HashMap::from([
        ("label", vec!["fencepost"]),
        ("status", vec!["exited", "created", "dead"]),
    ]);
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&filters)
        .build();
    let left = engine
        .docker()
        .list_containers(Some(options))
        .await
        .expect("a list");
    let of_builds: Vec<_> = left
        .iter()
        .filter(|one| {
            one.labels
                .as_ref()
                .is_some_and(|labels| !labels.contains_key(owner::LABEL_OWNER))
        })
        .collect();
    assert!(of_builds.is_empty(), "{of_builds:?}");
}

#[tokio::test]
async fn every_host_has_what_faults_need() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    for stage in images::STAGES {
        let needed = "set -e; tc -V; iptables --version; setpriv --version; cat /usr/lib/fencepost/guard.so \
                      /usr/lib/fencepost/libfaketime.so.1 | wc -c; ! command -v tcc";
        let (output, status) = run(&engine, stage, needed).await;
        assert_eq!(status, 0, "{stage}: {output}");
    }
}

/// Without the guard, jemalloc and libfaketime wait for each other for ever, see
/// <https://github.com/wolfcw/libfaketime/issues/130>.
#[tokio::test]
async fn redis_starts_under_libfaketime_and_sees_its_clock() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    let command = "
        echo +7200 > /offset
        export FAKETIME_TIMESTAMP_FILE=/offset FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
        LD_PRELOAD=/usr/lib/fencepost/guard.so:/usr/lib/fencepost/libfaketime.so.1 \\
            timeout 30 redis-server --save '' --port 0 --unixsocket /redis --daemonize no > /log 2>&1 &
        until told=$(redis-cli -s /redis time 2> /dev/null); do kill -0 $! || { cat /log; exit 1; }; sleep 0.1; done
        redis-cli -s /redis shutdown nosave
        set -- $told
        echo ahead by $(( ($1 - $(date +%s) + 600) / 3600 )) hours";
    let (output, status) = run(&engine, "redis", command).await;
    assert!(
        status == 0 && output.contains("ahead by 2 hours"),
        "{status}: {output}"
    );
}

#[tokio::test]
async fn postgres_starts_from_its_template_and_lets_the_network_in() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    let command = "
        set -e
        cp -a /usr/lib/fencepost/postgres-template /tmp/data
        setpriv --reuid postgres --regid postgres --clear-groups postgres -D /tmp/data > /log 2>&1 &
        until pg_isready -q -h 127.0.0.1; do kill -0 $! || { cat /log; exit 1; }; sleep 0.1; done
        psql -h $(hostname -i) -U postgres -Atc 'show timezone' -c 'show jit' -c 'show fsync'";
    let (output, status) = run(&engine, "postgres", command).await;
    assert!(
        status == 0 && output.ends_with("UTC\noff\non\n"),
        "{status}: {output}"
    );
}

#[tokio::test]
async fn etcd_starts() {
    let Some(()) = docker_or_skip() else { return };
    let engine = engine().await.expect("an engine");
    let command = "
        etcd --data-dir /tmp/data > /log 2>&1 &
        until etcdctl put a b > /dev/null 2>&1; do kill -0 $! || { cat /log; exit 1; }; sleep 0.1; done
        etcdctl get a --print-value-only";
    let (output, status) = run(&engine, "etcd", command).await;
    assert!(status == 0 && output.ends_with("b\n"), "{status}: {output}");
}
