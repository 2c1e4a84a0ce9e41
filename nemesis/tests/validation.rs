//! What is said of plans that nobody may run, wherever they come from.

use std::error::Error;
use std::time::{Duration, Instant};

use containers::topologies;
use histories::Plan;
use nemesis::{Choice, Scenario, ScenarioError, load, rules_for, validate, validate_form};
use serde_json::{Value, json};

/// A plan without a mistake, to put mistakes into.
fn right() -> Value {
    json!({
        "scenario": "my", "lock": "a-lock", "topology": "redis", "storage": "postgres", "policy": "fenced",
        "seed": 7, "clients": 2, "ttl_ms": 300, "progress_bound_ms": 3300, "limit_ms": 39000,
        "controls": ["no-stale-write"],
        "workload": {"name": "document", "work_ms": 5, "rest_ms": 10, "retry_ms": 20, "rounds": 2},
        "faults": [
            {"fault": "pause", "on": "c1",
             "when": {"trigger": "point", "client": "c1", "point": "before-write", "nth_grant": 3},
             "until": {"after_ms": 500, "event": {"client": "c2", "f": "write", "outcome": "ok"}, "at_most_ms": 8000}},
            {"fault": "delay", "on": "c2", "when": {"trigger": "time", "after_ms": 200}, "until": {},
             "with": {"delay_ms": 600, "to": "storage", "port": 5432}},
            {"fault": "clock-step", "on": "s1", "until": {}, "with": {"step_ms": -1000},
             "when": {"trigger": "event", "client": "c2", "f": "write", "outcome": "ok"}},
        ],
    })
}

fn plan(value: Value) -> Plan {
    serde_json::from_value(value).unwrap()
}

/// The right plan with another value at a JSON pointer.
fn with(pointer: &str, value: Value) -> Plan {
    let mut plan = right();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match plan.pointer_mut(parent).unwrap() {
        Value::Object(object) => drop(object.insert(key.to_owned(), value)),
        Value::Array(array) => array[key.parse::<usize>().unwrap()] = value,
        other => panic!("{other}"),
    }
    self::plan(plan)
}

/// What both judgements say, `None` where nothing.
fn said(plan: &Plan) -> (Option<String>, Option<String>) {
    let text = |judged: Result<(), nemesis::PlanProblems>| judged.err().map(|e| e.to_string());
    (text(validate_form(plan)), text(validate(plan)))
}

#[test]
fn the_right_one_is_right() {
    assert_eq!(said(&plan(right())), (None, None));
}

/// Wrong whoever reads it: what, and the field and the reason that are told.
#[test]
fn a_wrong_form_is_told_with_its_field() {
    let hour = 3_600_001_u64;
    let wrong = [
        (
            "/clients",
            json!(0),
            "`clients`: must be a whole number from 1 to 64, not 0",
        ),
        ("/clients", json!(u32::MAX), "`clients`: must be"),
        (
            "/ttl_ms",
            json!(0),
            "`ttl_ms`: must be a whole number from 1 to 3600000, not 0",
        ),
        ("/ttl_ms", json!(u64::MAX), "`ttl_ms`: must be"),
        (
            "/progress_bound_ms",
            json!(0),
            "`progress_bound_ms`: must be",
        ),
        ("/limit_ms", json!(999), "`limit_ms`: must be"),
        ("/limit_ms", json!(hour), "`limit_ms`: must be"),
        (
            "/workload/work_ms",
            json!(hour),
            "`workload.work_ms`: must be",
        ),
        (
            "/workload/rest_ms",
            json!(hour),
            "`workload.rest_ms`: must be",
        ),
        (
            "/workload/retry_ms",
            json!(0),
            "`workload.retry_ms`: must be",
        ),
        (
            "/controls/0",
            json!("no-stale-writes"),
            "`controls[0]`: unknown property `no-stale-writes`; did you mean `no-stale-write`?",
        ),
        ("/workload/rounds", json!(0), "`workload.rounds`: must be"),
        (
            "/workload/rounds",
            json!(u64::MAX),
            "`workload.rounds`: must be",
        ),
        (
            "/faults/1/when/after_ms",
            json!(hour),
            "`faults[1].when.after_ms`: must be",
        ),
        (
            "/faults/0/when/nth_grant",
            json!(0),
            "`faults[0].when.nth_grant`: must be",
        ),
        (
            "/faults/0/until/after_ms",
            json!(0),
            "`faults[0].until.after_ms`: must be",
        ),
        (
            "/faults/0/until/at_most_ms",
            json!(hour),
            "`faults[0].until.at_most_ms`: must be",
        ),
        (
            "/scenario",
            json!(""),
            "`scenario`: `` cannot be a scenario's name, which becomes that of a folder: it is empty",
        ),
        ("/scenario", json!("../.."), "it begins with a `.`"),
        ("/scenario", json!(".hidden"), "it begins with a `.`"),
        ("/scenario", json!("/etc/passwd"), "it has a `/` in it"),
        ("/scenario", json!("a/../b"), "it has a `/` in it"),
        (
            "/scenario",
            json!("a\u{0}b"),
            "it has a control character in it",
        ),
        (
            "/scenario",
            json!("a\u{202e}b"),
            "it has a control character in it",
        ),
        ("/scenario", json!(" a"), "it begins or ends with a space"),
        (
            "/scenario",
            json!("a".repeat(129)),
            "it is longer than 128 bytes",
        ),
    ];
    for (pointer, value, reason) in wrong {
        let (form, whole) = said(&with(pointer, value.clone()));
        let form = form.unwrap_or_else(|| panic!("{pointer} {value} passed"));
        assert!(form.contains(reason), "{pointer} {value}: {form}");
        assert_eq!(whole, Some(form));
    }
}

/// Wrong for this build alone: another one may have what is named.
#[test]
fn an_unknown_name_is_told_and_no_fault_of_the_form() {
    let named = |client: &str, f: &str, outcome: &str| json!({"client": client, "f": f, "outcome": outcome});
    let wrong = [
        (
            "/topology",
            json!("redis-ring"),
            "`topology`: unknown topology `redis-ring`",
        ),
        (
            "/workload/name",
            json!("documents"),
            "`workload.name`: unknown workload `documents`; did you mean `document`?",
        ),
        (
            "/faults/0/fault",
            json!("puase"),
            "`faults[0].fault`: unknown fault `puase`; did you mean `pause`?",
        ),
        (
            "/faults/0/on",
            json!("c3"),
            "`faults[0].on`: unknown client `c3` of 2 (`clients = 2`)",
        ),
        (
            "/faults/0/on",
            json!("s2"),
            "`faults[0].on`: unknown server `s2`; ",
        ),
        (
            "/faults/0/on",
            json!("leader"),
            "`faults[0].on`: unknown server `leader`",
        ),
        ("/faults/0/on", json!(""), "`faults[0].on`: unknown host ``"),
        (
            "/faults/2/on",
            json!("c1"),
            "`faults[2].on`: `clock-step` strikes servers and the storage, not `c1`",
        ),
        (
            "/faults/0/when/client",
            json!("c9"),
            "`faults[0].when.client`: unknown client `c9`",
        ),
        (
            "/faults/0/when/point",
            json!("before_write"),
            "`faults[0].when.point`: unknown point `before_write`; did you mean `before-write`?",
        ),
        (
            "/faults/0/until/event",
            named("c1", "write", "ok"),
            "`faults[0].until.event.client`: `pause` keeps `c1` from completing anything",
        ),
        (
            "/faults/0/until/event",
            named("c7", "write", "ok"),
            "`faults[0].until.event.client`: unknown client `c7`",
        ),
        (
            "/faults/0/until/event",
            named("c2", "wrote", "ok"),
            "`faults[0].until.event.f`: unknown function `wrote`; did you mean `write`?",
        ),
        (
            "/faults/0/until/event",
            named("c2", "write", "okay"),
            "`faults[0].until.event.outcome`: unknown outcome `okay`",
        ),
        (
            "/faults/2/when/f",
            json!("lock"),
            "`faults[2].when.f`: unknown function `lock`",
        ),
        (
            "/faults/0/until",
            json!({}),
            "`faults[0].until`: a `pause` must end before the run can",
        ),
        (
            "/faults/0/until",
            json!({"at_most_ms": 5}),
            "`faults[0].until`: it names no end",
        ),
        (
            "/faults/2",
            json!({"fault": "restart", "on": "s1", "when": {"trigger": "time", "after_ms": 1}, "until": {"after_ms": 5}}),
            "`faults[2].until`: a `restart` is over as soon as it has happened",
        ),
        (
            "/faults/0/with",
            json!({"step": 1}),
            "`faults[0].with.step`: unknown parameter `step` of `pause`; there is none",
        ),
        (
            "/faults/0/when",
            json!({"trigger": "time", "after_ms": 39_000}),
            "`faults[0].when.after_ms`: after 39000 ms it never strikes: the run is over after 39000 ms",
        ),
        (
            "/faults/0/until/at_most_ms",
            json!(499),
            "499 is less than `after_ms` (500)",
        ),
        (
            "/faults/1/with",
            json!({"delay_ms": 1, "prot": 5}),
            "`faults[1].with.prot`: unknown parameter `prot` of `delay`; did you mean `port`?",
        ),
        (
            "/faults/1/with",
            json!({}),
            "`faults[1].with`: `delay_ms` is missing: how long each packet is held",
        ),
        (
            "/faults/1/with/delay_ms",
            json!("600"),
            "`faults[1].with.delay_ms`: must be a whole number from 1 to 3600000, not \"600\"",
        ),
        ("/faults/1/with/delay_ms", json!(-1), "not -1"),
        (
            "/faults/1/with/port",
            json!(65_536),
            "`faults[1].with.port`: must be a whole number from 1 to 65535, not 65536",
        ),
        (
            "/faults/1/with/to",
            json!("c2"),
            "`faults[1].with.to`: `to` must be another host than `on`",
        ),
        (
            "/faults/1/with/to",
            json!(["storage"]),
            "`faults[1].with.to`: must be the name of a host",
        ),
        (
            "/faults/2/with/step_ms",
            json!(0),
            "`faults[2].with.step_ms`: it is a step of nothing",
        ),
        (
            "/faults/2/with/step_ms",
            json!(i64::MIN),
            "`faults[2].with.step_ms`: must be a whole number",
        ),
        (
            "/faults/2/with/step_ms",
            json!(1.5),
            "`faults[2].with.step_ms`: must be a whole number",
        ),
    ];
    for (pointer, value, reason) in wrong {
        let (form, whole) = said(&with(pointer, value.clone()));
        assert_eq!(form, None, "{pointer} {value}");
        let whole = whole.unwrap_or_else(|| panic!("{pointer} {value} passed"));
        assert!(whole.contains(reason), "{pointer} {value}: {whole}");
    }
}

#[test]
fn faults_that_a_topology_or_one_another_forbid() {
    let on_etcd = said(&with("/topology", json!("etcd"))).1.unwrap();
    let reason = "`faults[2].on`: on topology `etcd` the clock of etcd cannot be stepped";
    assert!(on_etcd.contains(reason), "{on_etcd}");

    let mut twice = right();
    let pause = twice["faults"][0].clone();
    twice["faults"].as_array_mut().unwrap().push(pause);
    let said = said(&plan(twice)).1.unwrap();
    let reason = "`faults[3].when`: `pause` and `pause` both stop `c1` at this point";
    assert!(said.contains(reason), "{said}");
}

#[test]
fn all_problems_are_told_up_to_a_number_of_them() {
    let mut wrong = right();
    wrong["clients"] = json!(0);
    wrong["ttl_ms"] = json!(0);
    let said = said(&plan(wrong)).0.unwrap();
    assert!(said.starts_with("the plan is wrong: `clients`: "), "{said}");
    assert!(said.contains("; `ttl_ms`: "), "{said}");

    let many = vec![json!("x"); 1000];
    let said = self::said(&with("/controls", json!(many))).1.unwrap();
    assert!(said.ends_with("; and 980 more"), "{said}");
}

#[test]
fn saved_histories_have_plans_that_pass() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../histories/corpus/v1");
    let mut read = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        if let Ok(reader) = histories::Reader::open(entry.unwrap().path()) {
            assert_eq!(validate(&reader.header().plan), Ok(()));
            read += 1;
        }
    }
    assert!(read >= 2, "{read}");
}

/// What a long TTL makes of a scenario is judged as any other plan is.
#[test]
fn a_resolved_scenario_is_judged_again() {
    let text = "summary = \"s\"\n[[fault]]\nfault = \"pause\"\non = \"c1\"\nwhen = { after = \"1s\" }\n\
                until = { lasts = \"2 ttl\", event = { client = \"c2\", write = \"ok\" }, at_most = \"1s\" }\n";
    let scenario = Scenario::parse("my", "my.toml", text).unwrap();
    let choice = Choice {
        lock: "a-lock",
        ttl_min_ms: 2_000,
        expires: true,
        kept_alive: false,
        topology: topologies::find("redis").unwrap(),
        storage: "postgres",
        storage_host: "storage",
        policy: "unfenced",
        write_condition: None,
        seed: 7,
    };
    assert_eq!(
        scenario.resolve(&choice).unwrap_err().to_string(),
        "my.toml:2:1: `faults[0].until.at_most_ms`: 1000 is less than `after_ms` (4000) with the TTL of 2000 ms that \
         `a-lock` needs"
    );
}

#[test]
fn a_scenario_has_the_name_of_a_file() {
    for name in ["", ".", "..", ".x", "a/b", "a\u{1b}]0;b"] {
        let error = Scenario::parse(name, "my.toml", "summary = \"s\"").unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("my.toml:1:1: `"), "{said}");
        assert!(said.contains("cannot be a scenario's name"), "{said}");
    }
}

#[test]
fn scenario_files_are_regular_and_small() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.toml");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let large = folder.path().join("large.toml");
    std::fs::write(&large, "#".repeat((1 << 20) + 1)).unwrap();
    for (path, reason) in [
        (
            pipe.to_str().unwrap(),
            "it is a named pipe, not a regular file",
        ),
        ("/dev/zero", "it is a device, not a regular file"),
        (
            large.to_str().unwrap(),
            "it is longer than 1048576 bytes, the most that is read",
        ),
    ] {
        let error = load(path).unwrap_err();
        assert_eq!(error.source().unwrap().to_string(), reason);
    }
}

/// In quadratic time, each of these would take minutes.
#[test]
fn thousands_are_judged_in_linear_time() {
    let begin = Instant::now();
    let faults: Vec<String> = (1..=8_000)
        .map(|grant| {
            format!("{{fault='pause',on='c1',when={{client='c1',point='after-read',grant={grant}}},until={{lasts='1s'}}}}")
        })
        .collect();
    let text = format!("summary = 's'\nfault = [{}]", faults.join(","));
    let scenario = Scenario::parse("my", "my.toml", &text).unwrap();
    assert_eq!(scenario.faults.len(), 8_000);

    let claims: Vec<String> = (0..100_000).map(|claim| format!("'L{claim}'")).collect();
    let text = format!("summary = 's'\nclaims = [{}]", claims.join(","));
    assert_eq!(
        Scenario::parse("my", "my.toml", &text)
            .unwrap()
            .claims
            .len(),
        100_000
    );

    let text = format!("summary = 's'\nclaims = [{}]", vec!["0"; 100_000].join(","));
    match Scenario::parse("my", "my.toml", &text) {
        Err(ScenarioError::Invalid { problems }) => assert_eq!(problems.len(), 100_000),
        other => panic!("{other:?}"),
    }

    let mut many = right();
    let faults = (1..=40_000).map(|grant| {
        let mut pause = many["faults"][0].clone();
        pause["when"]["nth_grant"] = json!(grant);
        pause
    });
    many["faults"] = faults.collect();
    let plan = plan(many);
    assert_eq!(validate(&plan), Ok(()));
    assert_eq!(rules_for(&plan, "c1", false).len(), 40_000);
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(120), "{took:?}");
}
