//! Every fault on real servers in real containers: it takes hold, heals, and shows nothing when nothing is done.

use std::sync::Arc;
use std::time::Duration;

use containers::agent::protocol::{Command, Signal};
use containers::agent::{Agent, monotonic_ns};
use containers::services::Service;
use containers::site::{Site, SiteRequest};
use containers::topologies;
use histories::{Event, Function, Kind, Plan};
use nemesis::{Choice, Hosts, Scenario};
use tempfile::TempDir;

use crate::run::{Record, Run, figure, program, wait_until};

/// How long a program in a host may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A topology with a storage and a client, and what the hosts share with us.
struct Stage {
    site: Arc<Site>,
    _shared: TempDir,
}

impl Stage {
    /// `None`, having said why, where there is no Docker.
    fn start(topology: &str) -> Option<Stage> {
        containers::docker_or_skip()?;
        let shared = tempfile::tempdir().unwrap();
        let request = SiteRequest {
            run: uuid::Uuid::now_v7().to_string(),
            topology: topologies::find(topology).unwrap(),
            clients: 1,
            out_dir: shared.path().to_owned(),
            exe: program(),
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let site = runtime.block_on(Site::start(request)).unwrap();
        Some(Stage {
            site: Arc::new(site),
            _shared: shared,
        })
    }

    fn plan(&self, fault: &str) -> Plan {
        let text = format!(
            "summary = \"s\"\nclients = 1\n[[fault]]\nwhen = {{ after = \"0ms\" }}\n{fault}"
        );
        let choice = Choice {
            lock: "a-lock",
            ttl_min_ms: 0,
            expires: true,
            kept_alive: false,
            topology: self.site.topology,
            storage: "postgres",
            storage_host: "storage",
            policy: "unfenced",
            write_condition: None,
            seed: 1,
        };
        let scenario = Scenario::parse("my", "my.toml", &text);
        scenario
            .unwrap_or_else(|error| panic!("{error}"))
            .resolve(&choice)
            .unwrap()
    }

    fn run(&self, fault: &str) -> Run {
        Run::start(&self.plan(fault), self.site.clone(), monotonic_ns(), false)
    }

    /// With nothing done nothing may show: runs a fault so, to its end.
    fn expect_nothing_with_tied_hands(&self, fault: &str) {
        let run = Run::start(&self.plan(fault), self.site.clone(), monotonic_ns(), true);
        run.wait_for(0, Function::Inject, false);
        // Traffic, for those faults that can show only on it.
        self.ping("s1");
        self.reach_storage();
        run.wait_until_settled();
        let record = run.stop();
        let injected = record.completed(0, Function::Inject);
        assert_eq!(injected.kind, Kind::Info, "{fault}: {injected:?}");
        let error = injected.error.as_deref();
        assert_eq!(error, Some("nothing shows that it took hold"), "{fault}");
    }

    fn agent(&self, host: &str) -> Agent {
        Hosts::agent(self.site.as_ref(), host).unwrap()
    }

    fn service(&self, host: &str) -> &'static dyn Service {
        self.site.host(host).unwrap().service().unwrap()
    }

    fn is_ready(&self, host: &str) -> bool {
        self.service(host).ready(&mut self.agent(host)).unwrap()
    }

    /// Runs a program in a host; what it wrote.
    fn write_of(&self, host: &str, argv: &[&str]) -> String {
        let ran = self.agent(host).run(argv.iter().copied(), TIMEOUT).unwrap();
        assert_eq!(ran.code, Some(0), "{argv:?}: {ran:?}");
        ran.stdout.trim().to_owned()
    }

    /// What it takes the client's host to hear from a port of another host: a line sent, and the first bytes back.
    fn conversation(&self, host: &str, say: &str) -> Vec<String> {
        let address = self.site.host(host).unwrap().address;
        let port = self.service(host).port();
        let script = format!(
            "exec 3<>/dev/tcp/{address}/{port} && printf '{say}' >&3 && head -c 1 <&3 >/dev/null && echo heard"
        );
        ["bash", "-c", &script].map(str::to_owned).to_vec()
    }

    fn ping(&self, host: &str) {
        let argv = self.conversation(host, "PING\\r\\n");
        let ran = self.agent("c1").run(argv, TIMEOUT).unwrap();
        assert_eq!(ran.stdout.trim(), "heard", "{ran:?}");
    }

    /// Postgres answers a request for encryption by one letter.
    fn reach_storage(&self) {
        let argv = self.conversation("storage", ENCRYPTION);
        let ran = self.agent("c1").run(argv, TIMEOUT).unwrap();
        assert_eq!(ran.stdout.trim(), "heard", "{ran:?}");
    }

    /// Starts what [`Stage::reach_storage`] does, without waiting for it.
    fn set_out_for_storage(&self) {
        let argv = self.conversation("storage", ENCRYPTION);
        let command = Command {
            argv,
            ..Command::default()
        };
        self.agent("c1").start("traveller", command).unwrap();
    }
}

/// The request for encryption of Postgres's protocol, as printf(1) writes it.
const ENCRYPTION: &str = "\\000\\000\\000\\010\\004\\322\\026\\057";

fn text<'e>(event: &'e Event<'_>, name: &str) -> &'e str {
    event.evidence.as_ref().unwrap()[name].as_str().unwrap()
}

/// The evidence that a fault took hold and that it is over.
fn both(record: &Record) -> (&Event<'static>, &Event<'static>) {
    let injected = record.completed(0, Function::Inject);
    let healed = record.completed(0, Function::Heal);
    assert_eq!(
        (injected.kind, healed.kind),
        (Kind::Ok, Kind::Ok),
        "{injected:?} {healed:?}"
    );
    (injected, healed)
}

#[test]
fn faults_of_single_servers() {
    let Some(stage) = Stage::start("redis") else {
        return;
    };
    a_paused_server_answers_nobody_until_it_goes_on(&stage);
    a_killed_server_is_started_again(&stage);
    a_restarted_server_is_another_process(&stage);
    a_stepped_clock_ends_keys_early_and_is_right_again(&stage);
    a_stepped_clock_is_right_again_whatever_ends_the_run(&stage);
    the_clock_of_postgres_steps_back(&stage);
    packets_to_one_host_are_held_and_no_others(&stage);
    all_packets_of_a_host_are_held_for_as_long_as_asked(&stage);
    packets_from_a_port_are_held(&stage);
    packets_to_all_servers_are_held(&stage);
    nothing_shows_where_there_is_no_packet(&stage);
    a_holder_that_dies_is_told_and_cuts_nobody_off(&stage);
    for fault in [
        "fault = \"pause\"\non = \"s1\"\nuntil = { lasts = \"100ms\" }",
        "fault = \"crash\"\non = \"s1\"\nuntil = { lasts = \"100ms\" }",
        "fault = \"restart\"\non = \"s1\"",
        "fault = \"clock-step\"\non = \"s1\"\nstep = \"+30s\"\nuntil = { lasts = \"100ms\" }",
        "fault = \"delay\"\non = \"c1\"\ndelay = \"100ms\"\nuntil = { lasts = \"100ms\" }",
    ] {
        stage.expect_nothing_with_tied_hands(fault);
    }
    nothing_is_left_in_the_host(&stage);
}

fn a_paused_server_answers_nobody_until_it_goes_on(stage: &Stage) {
    let run = stage.run("fault = \"pause\"\non = \"s1\"\nuntil = { lasts = \"1min\" }");
    run.wait_for(0, Function::Inject, true);
    let argv = stage.conversation("s1", "PING\\r\\n");
    let unheard = stage.agent("c1").run(argv, Duration::from_millis(300));
    assert!(unheard.is_ok_and(|ran| ran.code.is_none()), "it answered");
    let record = run.stop();
    let (injected, healed) = both(&record);
    assert!(text(injected, "states").chars().all(|state| state == 'T'));
    assert!(!text(healed, "states").contains('T'));
    stage.ping("s1");
}

fn a_killed_server_is_started_again(stage: &Stage) {
    let run = stage.run("fault = \"crash\"\non = \"s1\"\nuntil = { lasts = \"1min\" }");
    run.wait_for(0, Function::Inject, true);
    assert!(!stage.is_ready("s1"));
    let record = run.stop();
    let (injected, healed) = both(&record);
    assert_eq!(text(injected, "ended"), "signal 9");
    assert_ne!(figure(healed, "pid"), figure(injected, "pid"));
    assert!(stage.is_ready("s1"));
}

fn a_restarted_server_is_another_process(stage: &Stage) {
    let run = stage.run("fault = \"restart\"\non = \"storage\"");
    run.wait_until_settled();
    let record = run.stop();
    let (injected, healed) = both(&record);
    assert_ne!(figure(injected, "pid"), figure(injected, "pid_before"));
    assert_eq!(figure(injected, "pid"), figure(healed, "pid"));
    assert!(stage.is_ready("storage"));
}

fn a_stepped_clock_ends_keys_early_and_is_right_again(stage: &Stage) {
    stage.write_of("s1", &["redis-cli", "set", "short", "1", "ex", "10"]);
    stage.write_of("s1", &["redis-cli", "set", "long", "1", "ex", "100"]);
    let run = stage.run("fault = \"clock-step\"\non = \"s1\"\nstep = \"+30.5s\"");
    run.wait_for(0, Function::Inject, true);
    assert!(run.settled(), "it lasts until the run ends");
    assert_eq!(
        stage.write_of("s1", &["redis-cli", "exists", "short", "long"]),
        "1"
    );
    assert!(
        !run.heal_for_clients_to_end().has(0, Function::Heal),
        "it would jump under the clients"
    );
    let record = run.stop();
    let (injected, healed) = both(&record);
    assert_eq!(injected.engine.as_deref(), Some("libfaketime"));
    assert_eq!((figure(injected, "measured_step_ms") + 250) / 500, 61);
    assert_eq!(figure(healed, "measured_step_ms") / 500, 0);
}

fn a_stepped_clock_is_right_again_whatever_ends_the_run(stage: &Stage) {
    let run = stage.run("fault = \"clock-step\"\non = \"s1\"\nstep = \"-30s\"");
    run.wait_for(0, Function::Inject, true);
    run.heal_for_clients_to_end();
    assert!(run.abandon().has(0, Function::Heal));
    let again = stage.run("fault = \"clock-step\"\non = \"s1\"\nstep = \"+30s\"");
    again.wait_for(0, Function::Inject, true);
    let record = again.stop();
    let before_ms = figure(record.completed(0, Function::Inject), "offset_before_ms");
    assert!(before_ms < 1_000, "{before_ms} ms ahead before the step");
}

fn the_clock_of_postgres_steps_back(stage: &Stage) {
    let fault =
        "fault = \"clock-step\"\non = \"storage\"\nstep = \"-1min\"\nuntil = { lasts = \"50ms\" }";
    let run = stage.run(fault);
    run.wait_until_settled();
    let record = run.stop();
    let (injected, _) = both(&record);
    let step = injected.evidence.as_ref().unwrap()["measured_step_ms"]
        .as_f64()
        .unwrap();
    assert_eq!((step / 1000.0).round(), -60.0);
}

fn packets_to_one_host_are_held_and_no_others(stage: &Stage) {
    let run = stage.run("fault = \"delay\"\non = \"c1\"\nto = \"storage\"\ndelay = \"10min\"");
    wait_until("it is in place", || run.settled());
    stage.set_out_for_storage();
    run.wait_for(0, Function::Inject, true);
    stage.ping("s1");
    let traveller = || stage.agent("c1").look("traveller").unwrap();
    assert_eq!(traveller().ended, None, "its packets were not held");
    let record = run.stop();
    wait_until("what was held goes on its way", || {
        traveller().ended.is_some()
    });
    assert_eq!(traveller().ended.as_deref(), Some("exit 0"));
    let (injected, healed) = both(&record);
    assert!(figure(injected, "holding") >= 1);
    assert!(figure(injected, "packets_queued") >= 1);
    assert!(figure(healed, "released_at_end") >= 1);
    assert_eq!(figure(healed, "released"), 0);
}

fn all_packets_of_a_host_are_held_for_as_long_as_asked(stage: &Stage) {
    let run = stage.run("fault = \"delay\"\non = \"c1\"\ndelay = \"150ms\"");
    wait_until("it is in place", || run.settled());
    stage.ping("s1");
    stage.reach_storage();
    let record = run.stop();
    let (_, healed) = both(&record);
    assert!(figure(healed, "released") >= 6, "{healed:?}");
    assert!(figure(healed, "held_us_min") >= 150_000, "{healed:?}");
    println!("held for 150 ms: {:?}", healed.evidence);
}

fn packets_from_a_port_are_held(stage: &Stage) {
    let run = stage.run("fault = \"delay\"\non = \"s1\"\nport = 6379\ndelay = \"50ms\"");
    wait_until("it is in place", || run.settled());
    stage.ping("s1");
    let record = run.stop();
    let (injected, _) = both(&record);
    assert!(figure(injected, "packets") >= 1);
}

fn packets_to_all_servers_are_held(stage: &Stage) {
    let run = stage.run("fault = \"delay\"\non = \"c1\"\nto = \"servers\"\ndelay = \"50ms\"");
    wait_until("it is in place", || run.settled());
    stage.reach_storage();
    stage.ping("s1");
    let record = run.stop();
    both(&record);
}

fn nothing_shows_where_there_is_no_packet(stage: &Stage) {
    let fault = "fault = \"delay\"\non = \"c1\"\nto = \"storage\"\ndelay = \"50ms\"\nuntil = { lasts = \"100ms\" }";
    let run = stage.run(fault);
    run.wait_until_settled();
    let record = run.stop();
    assert_eq!(record.completed(0, Function::Inject).kind, Kind::Info);
    assert_eq!(record.completed(0, Function::Heal).kind, Kind::Ok);
}

fn a_holder_that_dies_is_told_and_cuts_nobody_off(stage: &Stage) {
    let run = stage.run("fault = \"delay\"\non = \"c1\"\ndelay = \"20ms\"");
    wait_until("it is in place", || run.settled());
    stage.ping("s1");
    run.wait_for(0, Function::Inject, true);
    let holder = "fencepost-delay-0";
    if stage.agent("c1").look(holder).is_err() {
        println!("skipped: this kernel has netem, so that no process holds the packets");
        run.stop();
        return;
    }
    stage.agent("c1").signal(holder, Signal::Kill).unwrap();
    stage.ping("s1");
    let record = run.stop();
    let healed = record.completed(0, Function::Heal);
    assert_eq!(healed.kind, Kind::Info);
    let error = healed.error.as_deref().unwrap();
    assert!(
        error.starts_with("the process that holds the packets has died"),
        "{error}"
    );
}

fn nothing_is_left_in_the_host(stage: &Stage) {
    for host in ["c1", "s1"] {
        let rules = stage.write_of(host, &["iptables", "-S"]);
        assert!(!rules.contains("fencepost"), "{host}: {rules}");
    }
}

#[test]
fn faults_of_the_leader() {
    let Some(stage) = Stage::start("etcd") else {
        return;
    };
    let before = Hosts::leader(stage.site.as_ref()).unwrap();
    let run = stage.run("fault = \"crash\"\non = \"leader\"\nuntil = { lasts = \"1min\" }");
    run.wait_for(0, Function::Inject, true);
    let another = || Hosts::leader(stage.site.as_ref()).is_ok_and(|leader| leader != before);
    wait_until("another one leads", another);
    let record = run.stop();
    let (injected, healed) = both(&record);
    assert_eq!(injected.on.as_deref(), Some(&[before.clone()][..]));
    assert_eq!(healed.on.as_deref(), Some(&[before][..]));
    assert!(["s1", "s2", "s3"].iter().all(|host| stage.is_ready(host)));
}
