//! The engine at work on hosts without Docker: triggers, evidence, the order of injecting and healing, bounds.

use std::time::{Duration, Instant};

use containers::topologies;
use histories::{Function, Kind, Plan};
use nemesis::{Choice, Scenario};

use crate::run::{Record, Run, figure, wait_until};
use crate::yard::{Yard, kill};

/// The plan of these faults, with two clients and one server.
fn plan(faults: &str) -> Plan {
    let text = format!("summary = \"s\"\nttl = \"100ms\"\nlimit = \"5min\"\n{faults}");
    let scenario = Scenario::parse("my", "my.toml", &text).unwrap();
    let choice = Choice {
        lock: "a-lock",
        ttl_min_ms: 0,
        expires: true,
        kept_alive: false,
        topology: topologies::find("redis").unwrap(),
        storage: "postgres",
        storage_host: "storage",
        policy: "unfenced",
        write_condition: None,
        seed: 1,
    };
    scenario.resolve(&choice).unwrap()
}

const PAUSE: &str = r#"
[[fault]]
fault = "pause"
on = "c1"
when = { client = "c1", point = "before-write", grant = 2 }
until = { lasts = "50ms", event = { client = "c2", write = "ok" } }
"#;

const LONG_WORK: &str = r#"
[[fault]]
fault = "long-work"
on = "c1"
when = { client = "c1", point = "before-write", grant = 2 }
until = { lasts = "50ms" }
"#;

#[test]
fn a_client_is_paused_at_its_point_and_goes_on_after_the_event() {
    let yard = Yard::new();
    let run = yard.run(&plan(PAUSE), false);
    run.wait_until_settled();
    yard.wait_for_write("c1");
    let record = run.stop();
    let injected = record.completed(0, Function::Inject);
    assert_eq!(injected.kind, Kind::Ok, "{injected:?}");
    assert_eq!(injected.engine.as_deref(), Some("sigstop"));
    assert_eq!(injected.on.as_deref(), Some(&["c1".to_owned()][..]));
    let evidence = injected.evidence.as_ref().unwrap();
    let states = evidence["states"].as_str().unwrap();
    assert!(
        !states.is_empty() && states.chars().all(|state| state == 'T'),
        "{states}"
    );
    let latency_us = figure(injected, "latency_us");
    let (triggered, took_hold) = (
        figure(injected, "triggered_ns"),
        figure(injected, "took_hold_ns"),
    );
    assert_eq!(latency_us, (took_hold - triggered) / 1_000);
    assert_eq!(record.invoked(0, Function::Inject).t, triggered);
    let healed = record.completed(0, Function::Heal);
    assert_eq!(healed.kind, Kind::Ok, "{healed:?}");
    assert!(figure(healed, "lasted_ms") >= 50);
    // It was stopped before the write of its second round.
    assert!(yard.log("c1").starts_with("life 1\nwrite 1\nwrite 2\n"));
    assert_eq!(yard.states("c1").find('T'), None);
}

#[test]
fn the_client_waits_at_the_point_until_every_fault_of_it_is_in_place_and_the_work_is_done() {
    let when = "when = { client = \"c1\", point = \"before-write\", grant = 2 }";
    let crash = format!(
        "[[fault]]\nfault = \"crash\"\non = \"s1\"\n{when}\nuntil = {{ lasts = \"20ms\" }}"
    );
    let yard = Yard::new();
    let run = yard.run(&plan(&format!("{LONG_WORK}{crash}")), false);
    run.wait_until_settled();
    yard.wait_for_write("c1");
    let record = run.stop();
    let held = record.completed(0, Function::Inject);
    assert_eq!(held.kind, Kind::Ok, "{held:?}");
    assert_eq!(figure(held, "completed_meanwhile"), 0);
    assert!(figure(held, "held_us") >= 50_000);
    assert_eq!(record.completed(0, Function::Heal).kind, Kind::Ok);
    let crashed = record.completed(1, Function::Inject);
    assert_eq!(crashed.evidence.as_ref().unwrap()["ended"], "signal 9");
    let healed = record.completed(1, Function::Heal);
    assert_eq!(healed.kind, Kind::Ok, "{healed:?}");
    assert_eq!(healed.evidence.as_ref().unwrap()["serves"], true);
    assert!(crashed.t < record.completed(0, Function::Heal).t);
}

/// Asserts that the second fault struck when the first was in place.
fn assert_in_order(record: &Record) {
    let took_hold = |step| {
        let injected = record.completed(step, Function::Inject);
        assert_eq!(injected.kind, Kind::Ok, "{injected:?}");
        figure(injected, "took_hold_ns")
    };
    let second = record.invoked(1, Function::Inject).t;
    assert!(took_hold(0) <= second && second <= took_hold(1));
}

#[test]
fn faults_that_share_a_trigger_strike_in_the_plans_order() {
    let point = "when = { client = \"c1\", point = \"before-write\", grant = 2 }";
    let time = "when = { after = \"5ms\" }";
    let crash = "[[fault]]\nfault = \"crash\"\non = \"s1\"\nuntil = { lasts = \"20ms\" }\n";
    let pause = "[[fault]]\nfault = \"pause\"\non = \"c1\"\nuntil = { lasts = \"20ms\" }\n";
    let hold = pause.replace("pause", "long-work");
    let restart = "[[fault]]\nfault = \"restart\"\non = \"s1\"\n";
    for (first, second, when) in [
        (crash, pause, point),
        (pause, crash, point),
        (restart, &hold, point),
        (&hold, restart, point),
        (crash, pause, time),
        (pause, crash, time),
    ] {
        let yard = Yard::new();
        let faults = format!("{first}{when}\n{second}{when}\n");
        let run = yard.run(&plan(&faults), false);
        run.wait_until_settled();
        yard.wait_for_write("c1");
        assert_in_order(&run.stop());
    }
}

#[test]
fn a_fault_that_is_given_up_keeps_no_other_from_striking() {
    let when = "when = { client = \"c1\", point = \"before-write\", grant = 2 }";
    let crash = format!("[[fault]]\nfault = \"crash\"\non = \"s1\"\n{when}\n");
    let yard = Yard::new();
    kill(&mut yard.to("s1"), "server");
    let run = yard.run(&plan(&format!("{crash}{PAUSE}")), false);
    run.wait_until_settled();
    yard.wait_for_write("c1");
    let record = run.stop();
    assert_eq!(record.completed(0, Function::Inject).kind, Kind::Fail);
    assert_eq!(record.completed(1, Function::Inject).kind, Kind::Ok);
}

#[test]
fn an_event_counts_only_after_the_earlier_faults() {
    let late =
        "[[fault]]\nfault = \"restart\"\non = \"s1\"\nwhen = { client = \"c2\", write = \"ok\" }";
    let yard = Yard::new();
    let run = yard.run(&plan(&format!("{PAUSE}{late}")), false);
    run.wait_until_settled();
    let record = run.stop();
    let restarted = record.completed(1, Function::Inject);
    assert_eq!(restarted.kind, Kind::Ok, "{restarted:?}");
    let pause = record.completed(0, Function::Inject);
    assert!(figure(restarted, "triggered_ns") > figure(pause, "took_hold_ns"));
    let evidence = restarted.evidence.as_ref().unwrap();
    assert_ne!(evidence["pid"], evidence["pid_before"]);
    assert_eq!(record.completed(1, Function::Heal).kind, Kind::Ok);
}

#[test]
fn what_never_comes_is_waited_for_so_long_and_no_longer() {
    let pause = PAUSE.replace(
        "write = \"ok\" } }",
        "release = \"ok\" }, at_most = \"80ms\" }",
    );
    let yard = Yard::new();
    let run = yard.run(&plan(&pause), false);
    run.wait_until_settled();
    yard.wait_for_write("c1");
    let record = run.stop();
    let healed = record.completed(0, Function::Heal);
    assert_eq!(healed.kind, Kind::Info);
    assert_eq!(
        healed.error.as_deref(),
        Some("80 ms were over before `c2` completed a release with `ok`")
    );
    assert!(figure(healed, "lasted_ms") >= 80);
}

#[test]
fn a_crashed_client_lives_again_and_passes_the_point_that_struck_it() {
    let crash = PAUSE.replace("pause", "crash");
    let yard = Yard::new();
    let run = yard.run(&plan(&crash), false);
    run.wait_until_settled();
    let second_life = || {
        let log = yard.log("c1");
        log.split_once("life 2\n")
            .is_some_and(|(_, writes)| writes.contains("write 3"))
    };
    wait_until("the second life is past the point", second_life);
    let record = run.stop();
    let crashed = record.completed(0, Function::Inject);
    assert_eq!(crashed.kind, Kind::Ok, "{crashed:?}");
    assert_eq!(record.completed(0, Function::Heal).kind, Kind::Ok);
    assert!(
        yard.log("c1")
            .starts_with("life 1\nwrite 1\nlife 2\nwrite 1\nwrite 2\n")
    );
}

#[test]
fn a_paused_client_of_a_second_life_passes_the_point_too() {
    let restart =
        "[[fault]]\nfault = \"restart\"\non = \"c1\"\nwhen = { client = \"c2\", write = \"ok\" }";
    let yard = Yard::new();
    let run = yard.run(&plan(&format!("{PAUSE}{restart}")), false);
    run.wait_until_settled();
    let second_life = || {
        let log = yard.log("c1");
        log.split_once("life 2\n")
            .is_some_and(|(_, writes)| writes.contains("write 3"))
    };
    wait_until("the second life is past the point", second_life);
    run.stop();
}

#[test]
fn a_client_that_nothing_restarts_stays_down() {
    let crash = "[[fault]]\nfault = \"crash\"\non = \"c1\"\nwhen = { after = \"5ms\" }";
    let yard = Yard::new();
    let run = yard.run(&plan(crash), false);
    run.wait_until_settled();
    run.wait_for(0, Function::Inject, true);
    let record = run.stop();
    assert_eq!(record.completed(0, Function::Inject).kind, Kind::Ok);
    assert!(!record.has(0, Function::Heal));
    assert_eq!(yard.states("c1"), "");
}

#[test]
fn a_server_that_nothing_restarts_is_up_again_when_the_run_ends() {
    let crash = "[[fault]]\nfault = \"crash\"\non = \"leader\"\nwhen = { after = \"5ms\" }";
    let mut plan = plan("");
    plan.faults = {
        let mut faults = self::plan(&crash.replace("leader", "s1")).faults;
        faults[0].on = "leader".to_owned();
        faults
    };
    let yard = Yard::new();
    let run = yard.run(&plan, false);
    run.wait_until_settled();
    run.wait_for(0, Function::Inject, true);
    let record = run.stop();
    let healed = record.completed(0, Function::Heal);
    assert_eq!(healed.kind, Kind::Ok, "{healed:?}");
    assert_eq!(healed.on.as_deref(), Some(&["s1".to_owned()][..]));
    assert_ne!(yard.states("s1"), "");
}

/// Starts a pause and a hold that would last for ever, and waits until both are in place.
fn endless(yard: &std::sync::Arc<Yard>) -> Run {
    let pause = PAUSE.replace("lasts = \"50ms\"", "lasts = \"1min\"");
    let pause = pause
        .replace("c1", "c9")
        .replace("c2", "c1")
        .replace("c9", "c2");
    let hold = LONG_WORK.replace("50ms", "1min");
    let run = yard.run(&plan(&format!("{pause}{hold}")), false);
    run.wait_for(0, Function::Inject, true);
    run.wait_for(1, Function::Inject, false);
    assert!(!run.settled());
    run
}

#[test]
fn stopping_heals_what_would_last_for_ever() {
    let yard = Yard::new();
    let record = endless(&yard).stop();
    for step in [0, 1] {
        assert_eq!(record.completed(step, Function::Inject).kind, Kind::Ok);
        assert_eq!(record.completed(step, Function::Heal).kind, Kind::Ok);
    }
    yard.wait_for_write("c1");
    yard.wait_for_write("c2");
}

#[test]
fn clients_can_end_before_everything_is_over() {
    let yard = Yard::new();
    let run = endless(&yard);
    let record = run.heal_for_clients_to_end();
    for step in [0, 1] {
        assert_eq!(record.completed(step, Function::Heal).kind, Kind::Ok);
    }
    yard.wait_for_write("c1");
    yard.wait_for_write("c2");
    run.stop();
}

#[test]
fn dropping_heals_as_well() {
    let yard = Yard::new();
    let record = endless(&yard).abandon();
    assert!(record.has(0, Function::Heal) && record.has(1, Function::Heal));
    yard.wait_for_write("c1");
    yard.wait_for_write("c2");
}

#[test]
fn with_tied_hands_nothing_shows_and_nobody_is_kept() {
    let crash = "[[fault]]\nfault = \"crash\"\non = \"s1\"\nwhen = { after = \"5ms\" }\nuntil = { lasts = \"20ms\" }";
    let restart = crash
        .replace("crash", "restart")
        .replace("until = { lasts = \"20ms\" }", "");
    let hold = LONG_WORK
        .replace("c1", "c2")
        .replace("before-write", "after-acquire");
    let yard = Yard::new();
    let run = yard.run(&plan(&format!("{PAUSE}{crash}\n{hold}{restart}")), true);
    run.wait_until_settled();
    let record = run.stop();
    for step in 0..4 {
        let injected = record.completed(step, Function::Inject);
        assert_eq!(injected.kind, Kind::Info, "{injected:?}");
        assert_eq!(
            injected.error.as_deref(),
            Some("nothing shows that it took hold")
        );
    }
    assert_eq!(yard.to("s1").look("server").unwrap().ended, None);
}

#[test]
fn a_trigger_that_never_comes_is_told() {
    let never = PAUSE.replace("grant = 2", "grant = 1000000");
    let event = "[[fault]]\nfault = \"restart\"\non = \"s1\"\nwhen = { client = \"c2\", release = \"fail\" }";
    let late = "[[fault]]\nfault = \"restart\"\non = \"s1\"\nwhen = { after = \"1min\" }";
    let yard = Yard::new();
    let run = yard.run(&plan(&format!("{never}{event}\n{late}")), false);
    yard.wait_for_write("c1");
    assert!(!run.settled());
    let record = run.stop();
    let error = |step| {
        let failed = record.completed(step, Function::Inject);
        assert_eq!(failed.kind, Kind::Fail);
        assert!(!record.has(step, Function::Heal));
        failed.error.clone().unwrap()
    };
    assert_eq!(
        error(0),
        "the trigger never came: `c1` never reached `before-write` of grant 1000000"
    );
    assert_eq!(
        error(1),
        "the trigger never came: after the earlier faults nothing showed that `c2` completed a release with `fail`"
    );
    assert_eq!(
        error(2),
        "the trigger never came: the run ended before 60000 ms were over"
    );
}

#[test]
fn a_host_that_is_gone_makes_an_error_and_no_panic() {
    let crash = "[[fault]]\nfault = \"pause\"\non = \"s1\"\nwhen = { after = \"1s\" }\nuntil = { lasts = \"50ms\" }";
    let yard = Yard::new();
    let run = yard.run(&plan(&format!("{PAUSE}{crash}")), false);
    yard.destroy("s1");
    run.wait_until_settled();
    let record = run.stop();
    let failed = record.completed(1, Function::Inject);
    assert!(matches!(failed.kind, Kind::Fail | Kind::Info), "{failed:?}");
    let error = failed.error.as_deref().unwrap();
    assert!(error.contains("host s1"), "{error}");
    assert_eq!(record.completed(0, Function::Inject).kind, Kind::Ok);
}

#[test]
fn a_host_that_goes_under_a_fault_cannot_be_healed_and_that_is_told() {
    let pause = "[[fault]]\nfault = \"pause\"\non = \"s1\"\nwhen = { after = \"1ms\" }\nuntil = { lasts = \"1min\" }";
    let yard = Yard::new();
    let run = yard.run(&plan(pause), false);
    run.wait_for(0, Function::Inject, true);
    yard.destroy("s1");
    let record = run.stop();
    let healed = record.completed(0, Function::Heal);
    assert_eq!(healed.kind, Kind::Info, "{healed:?}");
    assert!(
        healed.error.as_deref().unwrap().contains("host s1"),
        "{healed:?}"
    );
}

#[test]
fn a_process_that_is_down_already_cannot_crash() {
    let crash = "[[fault]]\nfault = \"crash\"\non = \"s1\"\nwhen = { after = \"1ms\" }";
    let yard = Yard::new();
    kill(&mut yard.to("s1"), "server");
    let run = yard.run(&plan(crash), false);
    run.wait_until_settled();
    let record = run.stop();
    let failed = record.completed(0, Function::Inject);
    assert_eq!(failed.kind, Kind::Fail);
    assert_eq!(
        failed.error.as_deref(),
        Some("nothing to kill: `server` in s1 has ended (signal 9)")
    );
}

#[test]
fn a_plan_of_another_build_makes_an_error_and_no_panic() {
    let mut plan = plan(PAUSE);
    plan.faults[0].fault = "earthquake".to_owned();
    let yard = Yard::new();
    let run = yard.run(&plan, false);
    run.wait_until_settled();
    yard.wait_for_write("c1");
    let record = run.stop();
    let failed = record.completed(0, Function::Inject);
    assert_eq!(failed.kind, Kind::Fail);
    assert_eq!(
        failed.error.as_deref(),
        Some("the plan is wrong: no fault is called `earthquake`")
    );
}

/// So many faults, each with a trigger of its own.
fn many(faults: usize, when: impl Fn(usize) -> String) -> String {
    let fault = |number| {
        let when = when(number);
        format!(
            "[[fault]]\nfault = \"pause\"\non = \"s1\"\nwhen = {when}\nuntil = {{ lasts = \"1ms\" }}\n"
        )
    };
    (0..faults).map(fault).collect()
}

/// Of this process, which other tests share.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn thousands_of_faults_take_no_threads_before_their_time_and_end_at_once_with_the_run() {
    const FAULTS: usize = 4_000;
    let later = many(FAULTS / 2, |number| {
        format!("{{ after = \"{}ms\" }}", 60_000 + number)
    });
    let points = many(FAULTS / 2, |number| {
        format!(
            "{{ client = \"c1\", point = \"before-write\", grant = {} }}",
            900_000 + number
        )
    });
    let yard = Yard::new();
    let run = yard.run(&plan(&(later + &points)), false);
    yard.wait_for_write("c1");
    assert!(threads() < 400, "{} threads", threads());
    assert!(!run.settled());
    let begun = Instant::now();
    let record = run.stop();
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    let given_up = record.events.iter().filter(|event| {
        let error = event.error.as_deref().unwrap_or_default();
        event.kind == Kind::Fail && error.starts_with("the trigger never came: ")
    });
    assert_eq!(given_up.count(), FAULTS);
}

#[test]
fn faults_beyond_those_that_are_started_ahead_strike_when_their_turn_comes() {
    const FAULTS: usize = 60;
    let in_turn = many(FAULTS, |number| match number % 3 {
        0 => "{ client = \"c2\", write = \"ok\" }".to_owned(),
        1 => "{ after = \"1ms\" }".to_owned(),
        // The last in the plan comes first.
        _ => format!(
            "{{ client = \"c1\", point = \"before-write\", grant = {} }}",
            FAULTS - number
        ),
    });
    let yard = Yard::new();
    let run = yard.run(&plan(&in_turn), false);
    run.wait_until_settled();
    let record = run.stop();
    for step in 0..FAULTS {
        // One may end another's pause early, yet each was tried.
        let injected = record.completed(step, Function::Inject);
        assert_ne!(injected.kind, Kind::Fail, "{injected:?}");
    }
}
