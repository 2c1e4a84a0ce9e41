//! Faults that are not shown: they touch only perhaps.

use serde_json::{Value, json};

use super::tale::{Tale, outlived, paused, planned, tale};
use crate::honest::MS;

const MUTEX: &str = "mutual-exclusion";

/// Two clients hold the lock at once, after the server's clock was stepped ahead, which is no promise.
fn stepped() -> Tale {
    tale(
        "101 c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity=201
         103 c2 2 invoke acquire lock=L ttl_ms=100
         104 c2 2 ok acquire validity=203
         120 c1 3 invoke release lock=L grant=1
         121 c1 3 ok release
         122 c2 4 invoke release lock=L grant=2
         123 c2 4 ok release",
    )
    .fault("s1", "clock-forward", 90, 130)
}

fn inject(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |e| e["f"] == "inject" && e["type"] == kind
}

#[test]
fn what_is_not_shown_excuses_only_perhaps() {
    assert_eq!(stepped().says(MUTEX), ("violated", "limit-shown"));
    let denied = |tale: Tale| assert_eq!(tale.says(MUTEX), ("violated", "unspecified"));
    denied(stepped().events(inject("ok"), |e| e["evidence"] = json!({})));
    denied(stepped().events(inject("ok"), |e| e["type"] = "info".into()));
    denied(stepped().events(inject("ok"), |e| e["fault"] = "another".into()));
    denied(stepped().header(|header| header["plan"]["faults"] = json!([])));
    denied(stepped().header(|header| header["plan"]["faults"][0]["when"]["after_ms"] = 91.into()));
    denied(stepped().header(|header| header["plan"]["faults"][0]["shows"] = json!({})));
    denied(stepped().header(|header| header["servers"] = json!({"s2": "1"})));
}

#[test]
fn a_planned_fault_that_is_injected_once_more_is_not_shown() {
    let twice = |kind: &'static str| {
        let mut tale = stepped();
        let injections = tale.file.events.iter().filter(|e| e["f"] == "inject");
        let again: Vec<Value> = injections.cloned().collect();
        tale = tale.events(inject("ok"), |e| e["type"] = kind.into());
        for mut event in again {
            event["t"] = (event["t"].as_u64().unwrap_or(0) + 2 * MS).into();
            event["op"] = 70.into();
            tale = tale.and(event);
        }
        tale.says(MUTEX).1
    };
    assert_eq!(twice("info"), "unspecified");
    assert_eq!(twice("fail"), "limit-shown");
}

#[test]
fn what_is_promised_all_the_same_is_broken_whether_it_is_shown_or_not() {
    let stopped = stepped()
        .header(|header| header["plan"]["faults"] = json!([]))
        .events(
            |e| e["process"] == "nemesis",
            |e| e["does"] = json!([{"effect": "stops"}]),
        );
    assert_eq!(stopped.says(MUTEX), ("violated", "broken"));
}

#[test]
fn a_client_that_acts_while_it_is_stopped_was_not() {
    let stopped = |told: &str| {
        let history = outlived(told).fault("c1", "stops", 110, 395);
        history.says("exclusive-belief")
    };
    assert_eq!(stopped(""), ("violated", "limit-shown"));
    let acts = "200 c1 7 invoke held lock=L grant=1";
    assert_eq!(stopped(acts), ("violated", "unspecified"));
    // A stall of a moment explains nothing without it.
    let stalled = format!("{acts}\n398 c1 8 info stall stalled=1");
    assert_eq!(stopped(&stalled), ("violated", "unspecified"));
}

#[test]
fn a_stall_that_the_record_contradicts_excuses_only_perhaps() {
    let class = |told: &str| outlived(told).says("exclusive-belief").1;
    assert_eq!(class("395 c1 9 info stall stalled=285"), "limit-shown");
    let acts = "200 c1 7 invoke held lock=L grant=1\n395 c1 9 info stall stalled=285";
    assert_eq!(class(acts), "unspecified");
    // Nothing had started that life.
    assert_eq!(class("395 c1.2 9 info stall stalled=285"), "unspecified");
    // Of who goes on after its end nothing is known at all.
    let undead = "90 c1 8 info exit error=exit\n395 c1 9 info stall stalled=285";
    assert_eq!(class(undead), "unknown");
}

/// The two holds of [`stepped`], and the server killed and started again before the second or after it.
fn killed(healed: u64) -> Tale {
    let mut tale = stepped();
    tale.file.header["plan"]["faults"] = json!([]);
    tale.file.events.retain(|e| e["process"] != "nemesis");
    tale.fault("s1", "kills", 80, healed)
}

#[test]
fn a_server_that_was_to_be_lost_is_restarted_when_it_is_healed_all_the_same() {
    let (limit, broken) = (("violated", "limit-shown"), ("violated", "broken"));
    assert_eq!(killed(95).says(MUTEX), limit);
    assert_eq!(killed(110).says(MUTEX), limit);
    let to_the_end =
        |tale: Tale| tale.header(|header| header["plan"]["faults"][0]["until"] = json!({}));
    assert_eq!(to_the_end(killed(95)).says(MUTEX), limit);
    assert_eq!(to_the_end(killed(110)).says(MUTEX), broken);
    let unplanned = |tale: Tale| tale.header(|header| header["plan"]["faults"] = json!([]));
    assert_eq!(unplanned(killed(95)).says(MUTEX).1, "unspecified");
    assert_eq!(unplanned(killed(110)).says(MUTEX), broken);
}

#[test]
fn what_nobody_foresaw_is_never_over() {
    let mut unsaid = killed(95);
    for fault in unsaid.file.header["plan"]["faults"]
        .as_array_mut()
        .expect("a list")
    {
        fault["does"] = json!([]);
    }
    let unsaid = unsaid.events(
        |e| e["process"] == "nemesis",
        |e| drop(e.as_object_mut().map(|e| e.remove("does"))),
    );
    assert_eq!(unsaid.says(MUTEX), ("violated", "unspecified"));
}

#[test]
fn progress_that_waits_for_a_fault_that_is_not_shown_is_unspecified() {
    let waits = || {
        tale(
            "201 c2 2 invoke acquire lock=L ttl_ms=100
             202 c2 2 fail acquire error=busy
             502 c2 3 invoke acquire lock=L ttl_ms=100
             502 c2 3 fail acquire error=busy",
        )
        .fault("s1", "stops", 300, 420)
    };
    assert_eq!(waits().says("progress"), ("violated", "limit-shown"));
    let unshown = waits().events(inject("ok"), |e| e["evidence"] = json!({}));
    assert_eq!(unshown.says("progress"), ("violated", "unspecified"));
}

#[test]
fn a_server_or_storage_that_answers_does_not_stand_still() {
    let waits = |stalled: &str, error: &str| {
        tale(&format!(
            "201 c2 2 invoke acquire lock=L ttl_ms=100
             202 c2 2 fail acquire error={error}
             320 c2 5 invoke acquire lock=L ttl_ms=100
             321 c2 5 fail acquire error={error}
             562 c2 3 invoke acquire lock=L ttl_ms=100
             562 c2 3 fail acquire error={error}
             {stalled}"
        ))
        .header(|header| header["servers"] = json!({"s1": "1", "storage": "1"}))
    };
    let stalled = "420 s1 0 info stall stalled=120";
    assert_eq!(waits("", "busy").says("progress").1, "broken");
    assert_eq!(waits(stalled, "refused").says("progress").1, "limit-shown");
    assert_eq!(waits(stalled, "busy").says("progress").1, "unspecified");
    let stopped = |error: &str| waits("", error).fault("s1", "stops", 300, 420);
    assert_eq!(stopped("refused").says("progress").1, "limit-shown");
    assert_eq!(stopped("busy").says("progress").1, "unspecified");
}

#[test]
fn packets_that_are_held_come_no_sooner() {
    let delayed = |on: &str, to: Value| {
        let does = json!([{"effect": "delays-packets", "each_ms": 20, "to": to}]);
        tale(
            "301 c1 1 invoke acquire lock=L ttl_ms=100
             302 c1 1 ok acquire validity=401
             303 c1 2 invoke read grant=1 document=D
             313 c1 2 ok read version=0 value=
             314 c1 3 invoke release lock=L grant=1
             324 c1 3 ok release",
        )
        .fault(on, "delays-packets", 200, 400)
        .header(|header| {
            header["servers"] = json!({"s1": "1", "storage": "1"});
            header["plan"]["faults"][0]["does"] = does.clone();
        })
        .events(|e| e["process"] == "nemesis", |e| e["does"] = does.clone())
    };
    // Half of 20 ms is soon enough for the read and the release, and too soon for the acquire.
    for to in [json!("servers"), json!("s1"), Value::Null] {
        delayed("c1", to).assert_fails("1 comes too soon");
    }
    delayed("c1", json!("storage")).assert_lacks("2 comes too soon");
    delayed("c2", Value::Null).assert_lacks("1 comes too soon");
    let sooner = delayed("c1", json!("storage")).events(
        |e| e["op"] == 2 && e["type"] == "ok",
        |e| e["t"] = (312 * MS).into(),
    );
    sooner.assert_fails("2 comes too soon");
}

#[test]
fn evidence_counts_on_the_completion_alone() {
    let early = paused()
        .events(inject("invoke"), |e| e["evidence"] = json!({"states": "T"}))
        .events(inject("ok"), |e| e["evidence"] = Value::Null);
    early.assert_fails("nothing shows that inject 0 took hold");
}

#[test]
fn who_stands_still_or_is_down_answers_nobody() {
    let answered = |effect: &str, on: &str, from: u64, servers: Value| {
        tale(
            "121 c1 1 invoke acquire lock=L ttl_ms=100
             122 c1 1 ok acquire validity=221
             123 c1 3 invoke read grant=1 document=D
             124 c1 3 ok read document=D version=0 value=
             125 c1 4 invoke release lock=L grant=1
             126 c1 4 ok release",
        )
        .fault(on, effect, from, 140)
        .header(|header| header["servers"] = servers)
    };
    let (one, three) = (json!({"s1": "1"}), json!({"s1": "1", "s2": "1", "s3": "1"}));
    let with = |effect: &str, on: &str, from: u64| answered(effect, on, from, one.clone());
    let said = "s1 answers while it cannot";
    with("stops", "s1", 120).assert_fails(said);
    with("kills", "s1", 120).assert_fails(said);
    with("stops", "s1", 127).assert_lacks(said);
    with("restarts", "s1", 120).assert_lacks(said);
    answered("stops", "s1", 120, three).assert_lacks(said);
    let with_storage = json!({"s1": "1", "storage": "1"});
    answered("stops", "storage", 120, with_storage).assert_fails("storage answers while it cannot");
}

#[test]
fn packets_are_delayed_to_hosts_of_this_run() {
    let to = |to: Value| {
        let does = json!([{"effect": "delays-packets", "to": to}]);
        planned(|fault| fault["does"] = does.clone())
            .header(|header| header["servers"] = json!({"s1": "1", "storage": "1"}))
            .events(|e| e["process"] == "nemesis", |e| e["does"] = does.clone())
    };
    for host in ["s1", "storage", "servers", "leader", "c2"] {
        to(host.into()).assert_whole();
    }
    to(Value::Null).assert_whole();
    for host in ["s2", "c3", "nobody", ""] {
        to(host.into()).assert_fails("inject 0 delays packets to no host of this run");
    }
}

#[test]
fn a_fault_at_a_point_is_asked_for_before_its_client_leaves_it() {
    let left = |t: u64| {
        let when =
            json!({"trigger": "point", "client": "c1", "point": "before-write", "nth_grant": 2});
        let point = |t: u64, kind: &str| json!({"t": t, "process": "c1", "op": 77, "type": kind, "f": "point", "point": "before-write", "nth": 2});
        planned(|fault| fault["when"] = when.clone())
            .and(point(399 * MS, "invoke"))
            .and(point(t, "ok"))
    };
    left(430 * MS).assert_whole();
    left(400 * MS).assert_whole();
    left(400 * MS - 1).assert_fails("inject 0 was not asked for when its trigger came");
}

#[test]
fn an_event_counts_once_all_earlier_faults_were_asked_for() {
    let when = json!({"trigger": "event", "client": "c2", "f": "held", "outcome": "ok"});
    let held = |t: u64, kind: &str| json!({"t": t, "process": "c2", "op": 77, "type": kind, "f": "held", "lock": "L", "grant": 904, "held": false});
    let second = |t: u64| {
        paused()
            .fault("s1", "stops", 430, 450)
            .header(|header| header["plan"]["faults"][1]["when"] = when.clone())
            .and(held(300 * MS, "invoke"))
            .and(held(t, "ok"))
    };
    second(430 * MS).assert_whole();
    second(400 * MS).assert_whole();
    second(400 * MS - 1).assert_fails("inject 10 was not asked for when its trigger came");
    second(430 * MS + 1).assert_fails("inject 10 was not asked for when its trigger came");
}

/// The same with this fault, as version 1 tells it.
fn stepped_in_version_1(name: &str) -> Tale {
    stepped()
        .header(|header| {
            header["fencepost"] = 1.into();
            header["plan"]["faults"][0]["fault"] = name.into();
            header["plan"]["faults"][0]["with"] = json!({"step_ms": 3000});
        })
        .events(|e| e["process"] == "nemesis", |e| e["fault"] = name.into())
        .events(inject("ok"), |e| {
            e["evidence"] = json!({"measured_step_ms": 3000})
        })
}

#[test]
fn in_version_1_a_faults_name_alone_says_what_it_does() {
    let class = |name: &str| stepped_in_version_1(name).says(MUTEX).1;
    assert_eq!(class("clock-step"), "limit-shown");
    assert_eq!(class("another"), "unspecified");
    assert_eq!(class("pause"), "broken");
}

#[test]
fn in_version_1_what_nobody_planned_does_nobody_knows_what() {
    let unplanned = |name: &str| {
        let tale = stepped_in_version_1(name);
        tale.header(|header| header["plan"]["faults"] = json!([]))
    };
    assert_eq!(unplanned("clock-step").says(MUTEX).1, "unspecified");
    assert_eq!(unplanned("pause").says(MUTEX).1, "unspecified");
}
