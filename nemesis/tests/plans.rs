//! What becomes of scenarios when they are resolved, and which rules their plans arm.

use containers::agent::protocol::{Action, At, Rule};
use containers::topologies::{self, TOPOLOGIES, Topology};
use histories::{Named, Plan, Until, When};
use nemesis::{Choice, Scenario, load, rules_for, scenarios};
use serde_json::json;

fn choice(topology: &Topology) -> Choice<'_> {
    Choice {
        lock: "a-lock",
        ttl_min_ms: 0,
        expires: true,
        kept_alive: false,
        topology,
        storage: "postgres",
        storage_host: "storage",
        policy: "unfenced",
        write_condition: None,
        seed: 7,
    }
}

fn on(name: &str) -> &'static Topology {
    topologies::find(name).unwrap()
}

fn plan(scenario: &str, topology: &str) -> Plan {
    load(scenario)
        .unwrap()
        .resolve(&choice(on(topology)))
        .unwrap()
}

fn parse(faults: &str) -> Scenario {
    Scenario::parse("my", "my.toml", &format!("summary = \"s\"\n{faults}")).unwrap()
}

fn write_ok(client: &str) -> Named {
    Named {
        client: client.to_owned(),
        f: "write".to_owned(),
        outcome: "ok".to_owned(),
    }
}

/// All scenarios on all topologies that they are for.
fn all_plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for built_in in scenarios() {
        let scenario = built_in.read().unwrap();
        for topology in TOPOLOGIES
            .iter()
            .filter(|topology| scenario.not_on(topology).is_none())
        {
            for (expires, ttl_min_ms) in [(true, 0), (true, 2_000), (false, 0)] {
                let choice = Choice {
                    expires,
                    kept_alive: ttl_min_ms > 0,
                    ttl_min_ms,
                    ..choice(topology)
                };
                plans.push(scenario.resolve(&choice).unwrap());
            }
        }
    }
    plans
}

#[test]
fn a_plan_holds_milliseconds_and_no_open_end() {
    let plan = plan("paused-client", "redis");
    assert_eq!((plan.ttl_ms, plan.clients, plan.seed), (300, 2, 7));
    assert_eq!((plan.progress_bound_ms, plan.limit_ms), (3_300, 39_000));
    let pause = &plan.faults[0];
    assert_eq!((pause.fault.as_str(), pause.on.as_str()), ("pause", "c1"));
    let when = When::Point {
        client: "c1".to_owned(),
        point: "before-write".to_owned(),
        nth_grant: 3,
    };
    assert_eq!(pause.when, when);
    let until = Until {
        after_ms: Some(500),
        event: Some(write_ok("c2")),
        at_most_ms: Some(8_000),
    };
    assert_eq!(pause.until, until);
}

#[test]
fn lengths_follow_the_ttl_that_the_lock_service_needs() {
    let choice = Choice {
        ttl_min_ms: 2_000,
        ..choice(on("etcd"))
    };
    let plan = load("paused-client").unwrap().resolve(&choice).unwrap();
    assert_eq!(plan.ttl_ms, 2_000);
    assert_eq!(plan.faults[0].until.after_ms, Some(2_200));
    assert_eq!(plan.faults[0].until.at_most_ms, Some(25_000));
}

#[test]
fn a_lock_that_never_expires_is_not_waited_for() {
    let choice = Choice {
        expires: false,
        ..choice(on("postgres"))
    };
    let plan = load("paused-client").unwrap().resolve(&choice).unwrap();
    let until = Until {
        after_ms: Some(500),
        event: None,
        at_most_ms: None,
    };
    assert_eq!(plan.faults[0].until, until);
    let crash = load("holder-crash").unwrap().resolve(&choice).unwrap();
    assert_eq!(crash.faults[0].until.event, Some(write_ok("c2")));
}

#[test]
fn keep_alives_are_held_where_there_are_any() {
    let choice = Choice {
        kept_alive: true,
        ..choice(on("etcd"))
    };
    let held = load("delayed-write").unwrap().resolve(&choice).unwrap();
    let to: Vec<_> = held
        .faults
        .iter()
        .map(|fault| fault.with["to"].clone())
        .collect();
    assert_eq!(to, ["storage", "servers"]);
    assert_eq!(plan("delayed-write", "redis").faults.len(), 1);
}

#[test]
fn the_storage_may_be_a_server_of_the_lock() {
    let choice = Choice {
        storage_host: "s1",
        ..choice(on("postgres"))
    };
    let plan = load("delayed-write").unwrap().resolve(&choice).unwrap();
    assert_eq!(plan.faults[0].with["to"], json!("s1"));
}

#[test]
fn parameters_are_named_with_their_units() {
    let plan = plan("redlock-clock-step", "redlock");
    assert_eq!(plan.faults[0].with["delay_ms"], json!(30_000));
    assert_eq!(plan.faults[0].with["to"], json!("s4"));
    assert_eq!(plan.faults[3].with["step_ms"], json!(15_000));
}

#[test]
fn a_scenario_says_where_it_makes_no_sense() {
    let reason = |scenario: &str, topology: &str| load(scenario).unwrap().not_on(on(topology));
    assert_eq!(reason("paused-client", "etcd"), None);
    assert_eq!(
        reason("redlock-clock-step", "redis").as_deref(),
        Some("it is for redlock only")
    );
    assert_eq!(
        reason("leader-failover", "redis").as_deref(),
        Some("`crash` cannot strike: there is no `leader`")
    );
    let step = parse(
        "[[fault]]\nfault = \"clock-step\"\non = \"s1\"\nstep = \"1s\"\nwhen = { after = \"1s\" }",
    );
    assert_eq!(step.not_on(on("postgres")), None);
    assert_eq!(
        step.not_on(on("etcd")).as_deref(),
        Some(
            "`clock-step` cannot strike: the clock of etcd cannot be stepped: it does not follow libfaketime"
        )
    );
    let error = load("leader-failover")
        .unwrap()
        .resolve(&choice(on("redis")))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "scenario `leader-failover` does not run on topology `redis`: `crash` cannot strike: there is no `leader`"
    );
}

#[test]
fn a_length_that_a_long_ttl_spoils_is_refused() {
    let scenario = parse("limit = \"30s\"\nprogress_bound = \"10s - 2 ttl\"");
    let choice = Choice {
        ttl_min_ms: 6_000,
        ..choice(on("redis"))
    };
    assert_eq!(
        scenario.resolve(&choice).unwrap_err().to_string(),
        "my.toml:1:1: `progress_bound` is negative (-2000 ms) with the TTL of 6000 ms that `a-lock` needs"
    );
}

#[test]
fn every_plan_prints_as_toml_and_reads_back() {
    let plans = all_plans();
    assert!(plans.len() > 40, "{}", plans.len());
    for mut plan in plans {
        plan.seed = u64::MAX;
        let text = toml::to_string_pretty(&plan).unwrap();
        assert_eq!(toml::from_str::<Plan>(&text).unwrap(), plan, "{text}");
    }
}

#[test]
fn every_fault_ends_within_the_limit() {
    for plan in all_plans() {
        for fault in &plan.faults {
            let longest = fault.until.at_most_ms.or(fault.until.after_ms).unwrap_or(0);
            assert!(
                longest < plan.limit_ms,
                "{} on {}",
                plan.scenario,
                plan.topology
            );
        }
    }
}

fn point(point: &str, nth_grant: u64) -> At {
    At::Point {
        point: point.to_owned(),
        nth_grant,
    }
}

fn event(f: &str, outcome: &str) -> At {
    At::Event {
        f: f.to_owned(),
        outcome: outcome.to_owned(),
    }
}

#[test]
fn a_paused_client_is_stopped_at_its_point() {
    let plan = plan("paused-client", "redis");
    let stop = Rule {
        rule: 1,
        at: point("before-write", 3),
        action: Action::Stop,
    };
    let tell = Rule {
        rule: 1,
        at: event("write", "ok"),
        action: Action::Tell,
    };
    assert_eq!(rules_for(&plan, "c1", false), std::slice::from_ref(&stop));
    assert_eq!(rules_for(&plan, "c2", false), [tell]);
    assert_eq!(rules_for(&plan, "c3", false), []);
    let hold = Rule {
        action: Action::Hold,
        ..stop
    };
    assert_eq!(rules_for(&plan, "c1", true), [hold]);
}

#[test]
fn faults_at_one_point_share_one_rule() {
    let plan = plan("redlock-clock-step", "redlock");
    let rules = rules_for(&plan, "c1", false);
    let points: Vec<_> = rules
        .iter()
        .filter(|rule| rule.action != Action::Tell)
        .collect();
    assert_eq!(
        points
            .iter()
            .map(|rule| rule.at.clone())
            .collect::<Vec<_>>(),
        [point("after-release", 2), point("before-write", 3)]
    );
    assert!(points.iter().all(|rule| rule.action == Action::Hold));
    let mut numbers: Vec<_> = rules.iter().map(|rule| rule.rule).collect();
    numbers.dedup();
    assert_eq!(numbers, (1..=rules.len() as u32).collect::<Vec<_>>());
    // What shows that c1 is held is that none of these is told.
    assert!(rules.iter().any(|rule| rule.at == event("release", "ok")));
}

#[test]
fn a_pause_behind_another_fault_of_its_point_waits_for_its_turn() {
    let when = "when = { client = \"c1\", point = \"after-acquire\" }";
    let crash = format!("[[fault]]\nfault = \"crash\"\non = \"s1\"\n{when}\n");
    let pause = format!(
        "[[fault]]\nfault = \"pause\"\non = \"c1\"\n{when}\nuntil = {{ lasts = \"1s\" }}\n"
    );
    for (faults, action) in [
        (format!("{crash}{pause}"), Action::Hold),
        (format!("{pause}{crash}"), Action::Stop),
    ] {
        let plan = parse(&faults).resolve(&choice(on("redis"))).unwrap();
        let rules = rules_for(&plan, "c1", false);
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].action, action);
    }
}
