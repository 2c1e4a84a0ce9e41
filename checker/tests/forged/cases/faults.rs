//! What the nemesis did, and what followed from it.

use serde_json::{Value, json};

use super::tale::{Tale, changed, paused, planned, tale, without};
use crate::honest::MS;

#[test]
fn what_struck_is_what_was_planned() {
    for (field, other) in [
        ("fault", json!("crash")),
        ("on", json!(["c2"])),
        ("on", json!(["c1", "c2"])),
        ("does", json!([{"effect": "kills"}])),
        ("step", json!(1)),
    ] {
        changed("inject", |e| e[field] = other.clone()).assert_fails("inject 0 was not planned so");
    }
    without(|e| e["f"] == "inject").assert_fails("fault 0 was injected 0 times");
}

#[test]
fn faults_of_one_trigger_strike_in_the_plan_s_order() {
    let two = |first: u64, second: u64| {
        paused()
            .fault("s1", "stops", 400, 420)
            .header(|header| {
                let when = header["plan"]["faults"][0]["when"].clone();
                header["plan"]["faults"][1]["when"] = when;
            })
            .events(
                |e| e["f"] == "inject" && e["type"] == "invoke",
                |e| e["t"] = if e["step"] == 0 { first } else { second }.into(),
            )
    };
    two(400_000_000, 400_000_001).assert_whole();
    two(400_000_001, 400_000_000).assert_fails("faults 0 and 1 are swapped");
}

#[test]
fn evidence_says_what_the_plan_asks_for() {
    let only = json!({"states": {"only": "T"}});
    let packets = json!({"packets": {"at_least": 1}});
    let held = json!({"completed_meanwhile": {"equals": 0}});
    let step = json!({"step": {"near": 3000, "within": 1500}});
    let ended = json!({"ended": {}});
    let pid = json!({"pid": {"differs_from": "before"}});
    for (asked, evidence, shows) in [
        (&only, json!({"states": "TT"}), true),
        (&only, json!({"states": "TS"}), false),
        (&only, json!({"states": ""}), false),
        (&packets, json!({"packets": 1}), true),
        (&packets, json!({"packets": 0}), false),
        (&packets, json!({}), false),
        (&held, json!({"completed_meanwhile": 0}), true),
        (&held, json!({"completed_meanwhile": 1}), false),
        (&step, json!({"step": 4500.0}), true),
        (&step, json!({"step": 1499}), false),
        (&ended, json!({"ended": "signal_9"}), true),
        (&ended, json!({"ended": null}), false),
        (&pid, json!({"pid": 2, "before": 1}), true),
        (&pid, json!({"pid": 2, "before": 2}), false),
        (&pid, json!({"pid": 2}), false),
    ] {
        let tale = planned(|fault| fault["shows"] = asked.clone())
            .events(|e| e["f"] == "inject", |e| e["evidence"] = evidence.clone());
        match shows {
            true => tale.assert_whole(),
            false => tale.assert_fails("nothing shows that inject 0 took hold"),
        }
    }
    let unknown = paused().events(
        |e| e["f"] == "inject" && e["type"] == "ok",
        |e| e["type"] = "info".into(),
    );
    unknown.assert_fails("nothing shows that inject 0 took hold");
}

#[test]
fn faults_heal_and_not_before_their_time() {
    without(|e| e["f"] == "heal").assert_fails("inject 0 was not healed in time");
    planned(|fault| fault["until"] = json!({"after_ms": 21}))
        .assert_fails("inject 0 was not healed in time");
    planned(|fault| fault["until"] = json!({"at_most_ms": 20}))
        .assert_fails("inject 0 was not healed in time");
    let event = json!({"event": {"client": "c1", "f": "write", "outcome": "ok"}});
    planned(|fault| fault["until"] = event.clone()).assert_fails("inject 0 was not healed in time");
    let mut to_the_end = without(|e| e["f"] == "heal").on_a_server();
    to_the_end.file.header["plan"]["faults"][0]["until"] = json!({});
    to_the_end.assert_whole();
}

#[test]
fn what_struck_is_of_this_run_and_after_its_trigger() {
    let elsewhere = |host: &str, servers: Value| {
        planned(|fault| fault["on"] = host.into())
            .header(|header| header["servers"] = servers.clone())
            .events(|e| e["process"] == "nemesis", |e| e["on"] = json!([host]))
    };
    elsewhere("c9", json!({})).assert_fails("c9 was struck, and is not of this run");
    elsewhere("s7", json!({"s1": "1"})).assert_fails("s7 was struck, and is not of this run");
    elsewhere("s7", json!({})).assert_whole();
    let stood = paused()
        .header(|header| header["servers"] = json!({"s1": "1"}))
        .and(json!({"t": 550_000_000, "process": "s7", "op": 0, "type": "info", "f": "stall", "stalled_ns": 5}));
    stood.assert_fails("s7 stood still, and is not of this run");
    let when = |when: Value| planned(|fault| fault["when"] = when.clone());
    when(json!({"trigger": "time", "after_ms": 401}))
        .assert_fails("inject 0 was not asked for when its trigger came");
    let event = |outcome: &str| json!({"trigger": "event", "client": "c2", "f": "acquire", "outcome": outcome});
    when(event("fail")).assert_whole();
    when(event("info")).assert_fails("inject 0 was not asked for when its trigger came");
    let point =
        json!({"trigger": "point", "client": "c1", "point": "before-write", "nth_grant": 2});
    when(point.clone()).assert_fails("inject 0 was not asked for when its trigger came");
    let reached = |nth: u64| {
        when(point.clone()).and(json!({
            "t": 399_000_000, "process": "c1", "op": 77, "type": "invoke", "f": "point", "point": "before-write", "nth": nth,
        }))
    };
    reached(2).assert_whole();
    reached(1).assert_fails("inject 0 was not asked for when its trigger came");
}

#[test]
fn who_stands_still_does_nothing() {
    let work = |t: u64| {
        paused().and(
            json!({"t": t, "process": "c1", "op": 77, "type": "invoke", "f": "work", "grant": 901}),
        )
    };
    work(410_000_000).assert_fails("c1 acts while it is stopped");
    work(421_000_000).assert_whole();
    let stall = |t: u64, length: u64, on: Value| {
        paused().and(json!({
            "t": t, "process": "c1", "op": 77, "type": "info", "f": "stall", "stalled_ns": length, "on": on,
        }))
    };
    stall(500_000_000, 60_000_000, Value::Null).assert_whole();
    stall(501_000_000, 6_000_000, Value::Null).assert_whole();
    stall(501_000_000, 6_000_001, Value::Null).assert_fails("c1 acts within its stall");
    stall(506_500_000, u64::MAX, Value::Null).assert_fails("c1 acts within its stall");
    stall(504_900_000, 900_000, json!(["storage"])).assert_whole();
    stall(504_900_000, 900_001, json!(["storage"]))
        .assert_fails("c1 was not waiting for the storage");
    stall(506_500_000, 100, json!(["storage"])).assert_fails("c1 was not waiting for the storage");
}

/// The events of its injection or its healing that are of this type.
fn is_nemesis(f: &'static str, kind: &'static str) -> impl Fn(&Value) -> bool {
    move |e| e["process"] == "nemesis" && e["f"] == f && e["type"] == kind
}

#[test]
fn a_fault_lasts_its_time_since_it_took_hold_until_its_healing_is_asked_for() {
    // It took hold at 400.5, when its injection completed, and was to last 10 ms.
    let asked = |t: u64| paused().events(is_nemesis("heal", "invoke"), |e| e["t"] = t.into());
    asked(410_500_000).assert_whole();
    asked(410_499_999).assert_fails("inject 0 was not healed in time");
    let held = |took_hold: u64, asked: u64| {
        paused()
            .events(is_nemesis("inject", "ok"), |e| {
                e["evidence"]["took_hold_ns"] = took_hold.into();
            })
            .events(is_nemesis("heal", "invoke"), |e| e["t"] = asked.into())
    };
    held(400_100_000, 410_100_000).assert_whole();
    held(400_100_000, 410_099_999).assert_fails("inject 0 was not healed in time");
    let injected = |t: u64| paused().events(is_nemesis("inject", "ok"), |e| e["t"] = t.into());
    injected(410_000_000).assert_whole();
    injected(410_000_001).assert_fails("inject 0 was not healed in time");
}

#[test]
fn what_a_fault_waits_for_comes_before_its_healing_is_asked_for() {
    let wrote = |t: u64| {
        let event = json!({"event": {"client": "c2", "f": "held", "outcome": "ok"}});
        let told = |t: u64, kind: &str| json!({"t": t, "process": "c2", "op": 77, "type": kind, "f": "held", "lock": "L", "grant": 904, "held": false});
        planned(|fault| fault["until"] = event.clone())
            .and(told(405 * MS, "invoke"))
            .and(told(t, "ok"))
    };
    wrote(420 * MS).assert_whole();
    wrote(420 * MS + 1).assert_fails("inject 0 was not healed in time");
}

#[test]
fn a_healing_is_of_what_was_injected() {
    for (field, other) in [
        ("fault", json!("another")),
        ("on", json!(["c2"])),
        ("on", json!(["c1", "c2"])),
        ("on", json!([])),
        ("does", json!([{"effect": "kills"}])),
        ("does", json!([])),
    ] {
        for kind in ["invoke", "ok"] {
            let healed = |value: Value| {
                paused().events(is_nemesis("heal", kind), |e| e[field] = value.clone())
            };
            healed(other.clone()).assert_fails("heal 1 is not as inject 0 was");
            healed(Value::Null).assert_whole();
        }
    }
    let another = changed("heal", |e| e["step"] = 1.into());
    another.assert_fails("heal 1 is of what was not injected");
    let before = paused().events(is_nemesis("heal", "invoke"), |e| e["t"] = (399 * MS).into());
    before.assert_fails("heal 1 is of what was not injected");
}

#[test]
fn only_the_nemesis_tells_of_faults() {
    for f in ["inject", "heal"] {
        for process in ["c1", "s1", "storage"] {
            let told = changed(f, |e| {
                e["process"] = process.into();
                e["op"] = (e["op"].as_u64().unwrap_or(0) + 700).into();
            });
            told.assert_fails("this is not of its type or process");
        }
    }
    let by_a_client = changed("inject", |e| {
        e["process"] = "c2".into();
        e["op"] = 700.into();
    });
    by_a_client.assert_fails("fault 0 was injected 0 times");
}

/// `c1` works under a grant while a fault that is said to do this is in force from 200.5 to 250.
fn working(effect: &str) -> Tale {
    tale(
        "190 c1 21 invoke acquire lock=L ttl_ms=100
         191 c1 21 ok acquire validity=290
         192 c1 22 invoke work grant=21
         260 c1 22 ok work
         261 c1 23 invoke release lock=L grant=21
         262 c1 23 ok release
         270 c1 24 invoke acquire lock=L ttl_ms=100
         271 c1 24 ok acquire validity=370",
    )
    .fault("c1", effect, 200, 250)
}

#[test]
fn whose_work_is_held_does_not_go_on_with_it() {
    working("holds-work").assert_whole();
    for (f, kind) in [
        ("acquire", "invoke"),
        ("read", "invoke"),
        ("write", "invoke"),
        ("work", "invoke"),
        ("release", "invoke"),
        ("work", "ok"),
    ] {
        let told = |t: u64| {
            let op = if kind == "ok" { 22 } else { 77 };
            let mut tale = working("holds-work");
            tale.file
                .events
                .retain(|e| e["op"] != op || e["type"] != kind);
            let event = json!({
                "t": t, "process": "c1", "op": op, "type": kind, "f": f, "grant": 21, "document": "D", "value": "x",
                "lock": "L",
            });
            tale.and(event).judged().assumptions
        };
        let held = "c1 works while its work is held".to_owned();
        for (t, is_told) in [
            (200_500_000, false),
            (200_500_001, true),
            (249_999_999, true),
            (250_000_000, false),
        ] {
            assert_eq!(told(t).contains(&held), is_told, "{f} {kind} {t}");
        }
    }
}

#[test]
fn whose_work_is_held_may_still_ask_and_extend() {
    let told = |f: &str, fields: Value| {
        let mut invoke = json!({"t": 210 * MS, "process": "c1", "op": 77, "type": "invoke", "f": f, "lock": "L", "grant": 21});
        let mut done = invoke.clone();
        (done["t"], done["type"]) = (json!(211 * MS), "ok".into());
        for (field, value) in fields.as_object().into_iter().flatten() {
            done[field] = value.clone();
        }
        invoke["ttl_ms"] = 100.into();
        working("holds-work").and(invoke).and(done).assert_whole();
    };
    told("held", json!({"held": true}));
    told("extend", json!({"validity": 310 * MS}));
    let of_another = json!({"t": 210 * MS, "process": "c2", "op": 77, "type": "invoke", "f": "acquire", "lock": "L"});
    working("holds-work").and(of_another).assert_whole();
    let burnt = working("burns").events(
        |e| e["op"] == 22 && e["type"] == "ok",
        |e| e["t"] = (220 * MS).into(),
    );
    burnt.assert_whole();
}
