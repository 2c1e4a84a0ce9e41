//! What the reader of scenario files takes, and what it says of each kind of mistake.

use nemesis::{Scenario, ScenarioError};

/// A scenario without a mistake, to put mistakes into.
const RIGHT: &str = r#"summary = "s"
claims = ["L1"]
controls = ["no-stale-write"]
clients = 2
ttl = "300ms"
[workload]
rounds = 2
[[fault]]
fault = "pause"
on = "c1"
when = { client = "c1", point = "before-write", grant = 3 }
until = { lasts = "ttl + 200ms", takeover = { client = "c2", write = "ok" }, at_most = "10 ttl + 5s" }
[[fault]]
fault = "delay"
on = "c2"
when = { after = "200ms" }
to = "storage"
delay = "2 ttl"
"#;

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("my", "my.toml", text)
}

/// What is said of a text, line by line.
#[track_caller]
fn complaints(text: &str) -> Vec<String> {
    let error = read(text).expect_err("it was read");
    error.to_string().lines().map(str::to_owned).collect()
}

/// What is said of the right scenario once `right` in it is replaced by `wrong`: one complaint.
#[track_caller]
fn complaint(right: &str, wrong: &str) -> String {
    assert_eq!(
        RIGHT.matches(right).count(),
        1,
        "`{right}` must stand there once"
    );
    let complaints = complaints(&RIGHT.replace(right, wrong));
    assert_eq!(complaints.len(), 1, "{complaints:#?}");
    complaints[0].clone()
}

/// What is said of a scenario of one fault.
#[track_caller]
fn of_fault(fault: &str) -> Vec<String> {
    complaints(&format!("summary = \"s\"\n[[fault]]\n{fault}"))
}

#[test]
fn the_right_one_is_read() {
    let scenario = read(RIGHT).unwrap();
    assert_eq!(scenario.faults.len(), 2);
    assert_eq!(scenario.clients, 2);
}

#[test]
fn a_summary_is_enough() {
    let scenario = read("summary = \"nothing\"").unwrap();
    assert_eq!((scenario.clients, scenario.ttl_ms), (2, 300));
    assert!(scenario.faults.is_empty());
}

#[test]
fn no_toml() {
    assert_eq!(
        complaints("summary = \"s\"\nclients = = 2"),
        ["my.toml:2:11: extra `=`, expected nothing"]
    );
    assert_eq!(
        complaints("clients = 1\nclients = 2"),
        ["my.toml:2:1: duplicate key"]
    );
}

#[test]
fn unknown_keys() {
    assert_eq!(
        complaint("claims =", "claim ="),
        "my.toml:2:1: unknown key `claim` in the scenario; did you mean `claims`?"
    );
    assert_eq!(
        complaint("rounds = 2", "rouns = 2"),
        "my.toml:7:1: unknown key `rouns` in the workload; did you mean `rounds`?"
    );
    assert_eq!(
        complaint("grant = 3", "grants = 3"),
        "my.toml:11:49: unknown key `grants` in `when`; did you mean `grant`?"
    );
    assert_eq!(
        complaint("at_most =", "atmost ="),
        "my.toml:12:78: unknown key `atmost` in `until`; did you mean `at_most`?"
    );
    assert_eq!(
        complaint("to = \"storage\"", "too = \"storage\""),
        "my.toml:17:1: unknown key `too` in fault 2; did you mean `to`?"
    );
    assert_eq!(
        complaint("to = \"storage\"", "elephant = 1"),
        "my.toml:17:1: unknown key `elephant` in fault 2; there is `delay`, `fault`, `on`, `only`, `port`, `to`, `until`, \
         `when`, `with`"
    );
}

#[test]
fn a_parameter_of_another_fault_is_unknown() {
    assert_eq!(
        of_fault(
            "fault = \"pause\"\non = \"c1\"\nwhen = { after = \"1s\" }\nuntil = { lasts = \"1s\" }\nstep = \"1s\""
        ),
        [
            "my.toml:7:1: unknown key `step` in fault 1; there is `fault`, `on`, `only`, `until`, `when`, `with`"
        ]
    );
}

#[test]
fn unknown_names() {
    assert_eq!(
        complaint("\"pause\"", "\"puase\""),
        "my.toml:9:9: unknown fault `puase`; did you mean `pause`?"
    );
    assert_eq!(
        complaint("before-write", "before_write"),
        "my.toml:11:33: unknown point `before_write`; did you mean `before-write`?"
    );
    assert_eq!(
        complaint("no-stale-write", "no-stale-writes"),
        "my.toml:3:13: unknown property `no-stale-writes`; did you mean `no-stale-write`?"
    );
    assert_eq!(
        complaint("write = \"ok\"", "wrote = \"ok\""),
        "my.toml:12:62: unknown key `wrote` in `takeover`; did you mean `write`?"
    );
    assert_eq!(
        complaint("write = \"ok\"", "write = \"okay\""),
        "my.toml:12:70: unknown outcome `okay`; there is `ok`, `fail`, `info`"
    );
    assert_eq!(
        complaint("clients = 2", "topologies = [\"redlok\"]"),
        "my.toml:4:15: unknown topology `redlok`; did you mean `redlock`?"
    );
    assert_eq!(
        complaint("to = \"storage\"", "only = \"kept_alive\""),
        "my.toml:17:8: unknown kind of lock `kept_alive`; did you mean `kept-alive`?"
    );
    assert_eq!(
        complaint("rounds = 2", "name = \"documents\""),
        "my.toml:7:8: unknown workload `documents`; did you mean `document`?"
    );
    assert_eq!(
        complaint("\"L1\"", "\"1L\""),
        "my.toml:2:11: `1L` is no claim: write it like `L1`"
    );
}

#[test]
fn unknown_hosts() {
    assert_eq!(
        complaint("on = \"c2\"", "on = \"c3\""),
        "my.toml:15:6: unknown client `c3` of 2 (`clients = 2`); did you mean `c1`?"
    );
    assert_eq!(
        complaint("client = \"c1\"", "client = \"c9\""),
        "my.toml:11:19: unknown client `c9` of 2 (`clients = 2`); did you mean `c1`?"
    );
    assert_eq!(
        complaint("to = \"storage\"", "to = \"s6\""),
        "my.toml:17:6: unknown server `s6`; did you mean `s1`?"
    );
    assert_eq!(
        complaint("to = \"storage\"", "to = \"storge\""),
        "my.toml:17:6: unknown host `storge`; did you mean `storage`?"
    );
    assert_eq!(
        complaint("to = \"storage\"", "to = \"c2\""),
        "my.toml:17:6: `to` must be another host than `on`"
    );
    assert_eq!(
        complaint("to = \"storage\"", "to = \"leader\""),
        "my.toml:17:6: `to` must be one host for the whole run, not `leader`"
    );
}

#[test]
fn wrong_types() {
    assert_eq!(
        complaint("clients = 2", "clients = \"2\""),
        "my.toml:4:11: `clients` of the scenario must be a whole number from 1 to 64, not the text \"2\""
    );
    assert_eq!(
        complaint("clients = 2", "clients = 0"),
        "my.toml:4:11: `clients` of the scenario must be a whole number from 1 to 64, not the number 0"
    );
    assert_eq!(
        complaint("ttl = \"300ms\"", "ttl = 300"),
        "my.toml:5:7: `ttl` of the scenario must be a length of time like \"500ms\" or \"2 ttl\", not the number 300"
    );
    assert_eq!(
        complaint("[\"L1\"]", "\"L1\""),
        "my.toml:2:10: `claims` of the scenario must be a list of texts like [\"…\", \"…\"], not the text \"L1\""
    );
    assert_eq!(
        complaint("[\"L1\"]", "[1]"),
        "my.toml:2:11: `claims` of the scenario must be a list of texts like [\"…\", \"…\"]; here is the number 1"
    );
    assert_eq!(
        complaint("[\"L1\"]", "[\"L1\", \"L1\"]"),
        "my.toml:2:17: `L1` stands twice in `claims`"
    );
    assert_eq!(
        complaint("grant = 3", "grant = 0"),
        "my.toml:11:57: `grant` of `when` must be a whole number from 1 to 1000000, not the number 0"
    );
    assert_eq!(
        complaint("summary = \"s\"", "summary = \" \""),
        "my.toml:1:11: `summary` of the scenario is empty"
    );
    assert_eq!(
        complaint("{ after = \"200ms\" }", "\"200ms\""),
        "my.toml:16:8: `when` of fault 2 must be a table like { client = \"c1\", point = \"before-write\" }, \
         { after = \"200ms\" } or { client = \"c2\", write = \"ok\" }, not the text \"200ms\""
    );
    assert_eq!(
        complaints("summary = \"s\"\n[fault]\nfault = \"pause\""),
        [
            "my.toml:2:1: `fault` of the scenario must be a list of tables, each headed [[fault]], not a table"
        ]
    );
}

#[test]
fn missing_keys() {
    assert_eq!(
        complaints("clients = 2"),
        ["my.toml:1:1: the scenario lacks `summary`: say in one sentence what happens"]
    );
    assert_eq!(
        of_fault("on = \"c1\""),
        ["my.toml:2:1: fault 1 lacks `fault`: name what goes wrong, like `fault = \"pause\"`"]
    );
    assert_eq!(
        of_fault("fault = \"pause\""),
        [
            "my.toml:2:1: fault 1 lacks `on`: name the host it strikes, like `on = \"c1\"`",
            "my.toml:2:1: fault 1 lacks `when`: write it like { client = \"c1\", point = \"before-write\" }, \
             { after = \"200ms\" } or { client = \"c2\", write = \"ok\" }",
            "my.toml:2:1: fault 1 lacks `until`: a `pause` must end before the run can; write it like \
             { lasts = \"ttl + 200ms\" } or { event = { client = \"c2\", write = \"ok\" } }",
        ]
    );
    assert_eq!(
        of_fault("fault = \"clock-step\"\non = \"s1\"\nwhen = { after = \"1s\" }"),
        [
            "my.toml:2:1: fault 1 lacks `step`: how far the clock jumps, like `step = \"+30s\"` or `step = \"-2 ttl\"`"
        ]
    );
}

#[test]
fn lengths_of_time() {
    assert_eq!(
        complaint("\"300ms\"", "\"300\""),
        "my.toml:5:7: `ttl` of the scenario: `300` lacks a unit: `ms`, `s`, `min` or `ttl`"
    );
    assert_eq!(
        complaint("\"300ms\"", "\"0ms\""),
        "my.toml:5:7: `ttl` of the scenario must be 1ms or more, not `0ms`"
    );
    assert_eq!(
        complaint("\"300ms\"", "\"2 ttl\""),
        "my.toml:5:7: `ttl` of the scenario cannot be in terms of itself"
    );
    assert_eq!(
        complaint("\"200ms\"", "\"-200ms\""),
        "my.toml:16:18: `after` of `when` must not be negative, not `-200ms`"
    );
    assert_eq!(
        complaint("\"2 ttl\"", "\"61min\""),
        "my.toml:18:9: `delay` of fault 2: `3660000ms` is longer than an hour"
    );
    assert_eq!(
        complaint("\"2 ttl\"", "\"ttl - 300ms\""),
        "my.toml:18:9: `delay` of fault 2 must be 1ms or more, not `ttl - 300ms`"
    );
    assert_eq!(
        of_fault(
            "fault = \"clock-step\"\non = \"s1\"\nwhen = { after = \"1s\" }\nstep = \"ttl - 300ms\""
        ),
        ["my.toml:6:8: `step` is a step of nothing"]
    );
}

#[test]
fn triggers_that_are_none() {
    let when = |when: &str| of_fault(&format!("fault = \"crash\"\non = \"c1\"\nwhen = {when}"));
    assert_eq!(
        when("{ client = \"c1\" }"),
        [
            "my.toml:5:8: `when` waits for nothing: add what the client completes, like `write = \"ok\"`"
        ]
    );
    assert_eq!(
        when("{ point = \"before-write\" }"),
        ["my.toml:5:8: `when` lacks `client`: name the client, like `client = \"c2\"`"]
    );
    assert_eq!(
        when("{ after = \"1s\", client = \"c1\", point = \"before-write\" }"),
        ["my.toml:5:8: `when` of a fault is one trigger: `after` and `point` exclude each other"]
    );
    assert_eq!(
        when("{ after = \"1s\", client = \"c1\" }"),
        ["my.toml:5:8: `when` of a fault is one trigger: `after` waits for no client"]
    );
    assert_eq!(
        when("{ client = \"c1\", write = \"ok\", grant = 2 }"),
        ["my.toml:5:8: `when` of a fault is one trigger: `grant` belongs to a `point`"]
    );
    assert_eq!(
        when("{ client = \"c1\", point = \"before-write\", write = \"ok\" }"),
        [
            "my.toml:5:8: `when` of a fault is one trigger: a time or a `point` and a completion exclude each other"
        ]
    );
    assert_eq!(
        when("{ client = \"c1\", read = \"ok\", write = \"ok\" }"),
        ["my.toml:5:38: `write` is a second function: one is waited for"]
    );
}

#[test]
fn ends_that_never_come() {
    let until = |until: &str| {
        let fault = "fault = \"pause\"\non = \"c1\"\nwhen = { after = \"1s\" }";
        of_fault(&format!("{fault}\nuntil = {until}"))
    };
    assert_eq!(
        until("{ event = { client = \"c1\", write = \"ok\" } }"),
        ["my.toml:6:19: `pause` keeps `c1` from completing anything: wait for another client"]
    );
    assert_eq!(
        until("{ at_most = \"1s\" }"),
        ["my.toml:6:9: `until` names no end: add `lasts` or `event`"]
    );
    assert_eq!(
        until("{ takeover = { client = \"c2\", write = \"ok\" } }"),
        [
            "my.toml:6:9: `takeover` needs `lasts` beside it, for locks that pass to nobody while they are held"
        ]
    );
    assert_eq!(
        until(
            "{ lasts = \"1s\", event = { client = \"c2\", write = \"ok\" }, takeover = { client = \"c2\", read = \"ok\" } }"
        ),
        ["my.toml:6:9: `event` and `takeover` exclude each other"]
    );
    assert_eq!(
        until("{ lasts = \"2s\", at_most = \"1s\" }"),
        ["my.toml:6:35: `at_most` (1000ms) is less than `lasts` (2000ms)"]
    );
    assert_eq!(
        of_fault(
            "fault = \"restart\"\non = \"c1\"\nwhen = { after = \"1s\" }\nuntil = { lasts = \"1s\" }"
        ),
        ["my.toml:6:9: a `restart` is over as soon as it has happened: it takes no `until`"]
    );
}

#[test]
fn faults_that_make_no_sense() {
    assert_eq!(
        of_fault("fault = \"clock-step\"\non = \"c1\"\nwhen = { after = \"1s\" }\nstep = \"1s\""),
        ["my.toml:4:6: `clock-step` strikes servers and the storage, not `c1`"]
    );
    assert_eq!(
        of_fault(
            "fault = \"long-work\"\non = \"c1\"\nwhen = { after = \"1s\" }\nuntil = { lasts = \"1s\" }"
        ),
        [
            "my.toml:2:1: `long-work` of `c1` is held at a point of `c1`: write `when = { client = \"c1\", point = \"…\" }`"
        ]
    );
    let point = "on = \"c1\"\nwhen = { client = \"c1\", point = \"before-write\" }\nuntil = { lasts = \"1s\" }";
    assert_eq!(
        of_fault(&format!(
            "fault = \"pause\"\n{point}\n[[fault]]\nfault = \"long-work\"\n{point}"
        )),
        ["my.toml:7:1: `pause` and `long-work` both stop `c1` at this point"]
    );
    assert_eq!(
        of_fault(
            "fault = \"delay\"\non = \"c1\"\nwhen = { after = \"1s\" }\ndelay = \"1s\"\nwith = { delay = \"2s\" }"
        ),
        ["my.toml:7:10: `delay` stands twice in this fault"]
    );
}

#[test]
fn faults_that_a_topology_cannot_suffer() {
    let on = |topology: &str, fault: &str| {
        complaints(&format!(
            "summary = \"s\"\ntopologies = [\"{topology}\"]\n[[fault]]\n{fault}"
        ))
    };
    assert_eq!(
        on(
            "redis",
            "fault = \"crash\"\non = \"leader\"\nwhen = { after = \"1s\" }"
        ),
        ["my.toml:5:6: unknown server `leader`; there is `c1`, `c2`, `s1`, `storage`"]
    );
    assert_eq!(
        on(
            "etcd",
            "fault = \"clock-step\"\non = \"s1\"\nstep = \"1s\"\nwhen = { after = \"1s\" }"
        ),
        [
            "my.toml:5:6: on topology `etcd` the clock of etcd cannot be stepped: it does not follow libfaketime"
        ]
    );
}

#[test]
fn all_mistakes_are_told_in_the_order_of_the_file() {
    let text = RIGHT
        .replace("clients = 2", "clients = 0")
        .replace("\"pause\"", "\"puase\"")
        .replace("to = \"storage\"", "too = \"storage\"");
    assert_eq!(
        complaints(&text),
        [
            "my.toml:4:11: `clients` of the scenario must be a whole number from 1 to 64, not the number 0",
            "my.toml:9:9: unknown fault `puase`; did you mean `pause`?",
            "my.toml:17:1: unknown key `too` in fault 2; did you mean `to`?",
        ]
    );
}

#[test]
fn columns_count_characters() {
    assert_eq!(
        complaints("summary = \"späte Schläfer\"\nclaims = [\"Ä\", \"L1\", 5]"),
        [
            "my.toml:2:11: `Ä` is no claim: write it like `L1`",
            "my.toml:2:22: `claims` of the scenario must be a list of texts like [\"…\", \"…\"]; here is the number 5",
        ]
    );
}
