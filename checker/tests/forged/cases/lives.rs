//! Clients, their lives and ends, and whether anybody was there to be struck.

use serde_json::{Value, json};

use super::tale::{Tale, changed, paused, tale, without};
use crate::honest::MS;

#[test]
fn clients_end_and_servers_stay() {
    without(|e| e["f"] == "exit" && e["process"] == "c2").assert_fails("c2 never ended");
    let early = changed("exit", |e| e["t"] = 1_500_000.into());
    early.assert_fails("c1 goes on after its death");
    let server = changed("exit", |e| {
        if e["process"] == "c2" {
            e["process"] = "s1".into();
        }
    });
    server.assert_fails("s1 was ended by somebody else");
}

#[test]
fn clients_are_those_of_the_plan_and_live_one_life_after_the_other() {
    let clients = |number: u64| paused().header(|header| header["plan"]["clients"] = number.into());
    clients(3).assert_fails("c3 is not there");
    clients(1).assert_fails("c2 is no client of the plan");
    let renamed = |name: &str| {
        paused().events(
            |e| e["process"] == "c1" && e["t"].as_u64() > Some(450_000_000),
            |e| e["process"] = name.into(),
        )
    };
    renamed("x1").assert_fails("x1 is no client of the plan");
    renamed("c1.02").assert_fails("c1.02 is no client of the plan");
    renamed("c1.2").assert_fails("c1.2 began before c1 died");
    let exit = |process: &str, t: u64| json!({"t": t, "process": process, "op": 0, "type": "info", "f": "exit", "error": "exit 0"});
    renamed("c1.2")
        .fault("c1", "kills", 430, 445)
        .assert_whole();
    paused()
        .and(exit("c1", 700_000_000))
        .assert_fails("c1 ends twice");
}

#[test]
fn who_is_no_client_and_stalls_after_its_end_acted_after_its_death() {
    let stalls = |t: u64| {
        tale(
            "101 x1 1 invoke acquire lock=L ttl_ms=100
             102 x1 1 ok acquire validity=201
             103 c2 20 invoke acquire lock=L ttl_ms=100
             104 c2 20 ok acquire validity=203
             120 x1 0 info exit",
        )
        .and(json!({"t": t, "process": "x1", "op": 0, "type": "info", "f": "stall", "stalled_ns": 1000}))
        .outcome("exclusive-belief")
    };
    assert_eq!(stalls(110_000_000), "violated");
    assert_eq!(stalls(130_000_000), "unknown");
}

#[test]
fn who_was_killed_is_gone_when_that_is_shown() {
    let killed = |exit: u64| {
        tale("500 c1.2 1 invoke acquire lock=L ttl_ms=100\n501 c1.2 1 ok acquire validity=600\n502 c1.2 2 invoke release lock=L grant=1\n503 c1.2 2 ok release")
            .fault("c1", "kills", 400, 420)
            .events(|e| e["f"] == "exit" && e["process"] == "c1", |e| e["t"] = exit.into())
    };
    let shown = 400_000_000 + crate::honest::MS / 2;
    killed(shown).assert_whole();
    killed(shown + 1).assert_fails("c1 ends after it was killed");
}

/// `c1` is struck from 400 to 420 by a fault that does this, and lives again from 500 on by these names.
fn struck(effect: &str, lives: &[&str]) -> Tale {
    let told = |(process, n): (&&str, u64)| {
        let (t, op) = (500 + 10 * n, 100 + 10 * n);
        format!(
            "{t} {process} {op} invoke acquire lock=L ttl_ms=100
             {t}.5 {process} {op} ok acquire validity={}
             {}.5 {process} {} invoke release lock=L grant={op}
             {}.5 {process} {} ok release\n",
            t + 100,
            t + 1,
            op + 1,
            t + 2,
            op + 1,
        )
    };
    let told: String = lives.iter().zip(0..).map(told).collect();
    let mut tale = tale(&told).fault("c1", effect, 400, 420);
    tale.file
        .events
        .retain(|e| e["f"] != "exit" || e["process"] != "c1");
    tale
}

#[test]
fn a_client_lives_again_as_often_as_it_was_started() {
    for effect in ["kills", "restarts"] {
        struck(effect, &["c1.2"]).assert_whole();
        struck(effect, &[]).assert_fails("c1 has 0 next lives, and was started 1 times");
        struck(effect, &["c1.3"]).assert_fails("c1 lacks a life");
        struck(effect, &["c1.2", "c1.3"]).assert_fails("c1 has 2 next lives");
    }
    struck("stops", &["c1.2"]).assert_fails("c1 has 1 next lives, and was started 0 times");
    let first = |e: &Value| e["process"] == "c1";
    let mut gone = struck("kills", &["c1.2"]);
    gone.file.events.retain(|e| !first(e));
    gone.assert_fails("c1 lacks a life");
    let renamed = paused().events(first, |e| e["process"] = "c1.2".into());
    renamed.assert_fails("c1 lacks a life");
}

#[test]
fn what_may_have_started_a_client_lets_it_live_or_not() {
    let lives = |again: &[&str], kind: &'static str| {
        let mut tale = struck("kills", again);
        let is_heal = |e: &Value| e["f"] == "heal" && e["type"] == "ok";
        match kind {
            "" => tale.file.events.retain(|e| !is_heal(e)),
            _ => tale = tale.events(is_heal, |e| e["type"] = kind.into()),
        }
        let assumptions = tale.judged().assumptions;
        assumptions
            .iter()
            .any(|failure| failure.starts_with("c1 has"))
    };
    for kind in ["info", ""] {
        assert!(!lives(&[], kind), "{kind:?}");
        assert!(!lives(&["c1.2"], kind), "{kind:?}");
        assert!(lives(&["c1.2", "c1.3"], kind), "{kind:?}");
    }
    assert!(!lives(&[], "fail"));
    assert!(lives(&["c1.2"], "fail"));
    let restarted = |again: &[&str], kind: &'static str| {
        let tale = struck("restarts", again).events(
            |e| e["f"] == "inject" && e["type"] == "ok",
            |e| e["type"] = kind.into(),
        );
        let assumptions = tale.judged().assumptions;
        assumptions
            .iter()
            .any(|failure| failure.starts_with("c1 has"))
    };
    assert!(!restarted(&[], "info") && !restarted(&["c1.2"], "info"));
    assert!(!restarted(&[], "fail") && restarted(&["c1.2"], "fail"));
}

#[test]
fn no_next_life_begins_before_it_was_asked_for() {
    let begins = |effect: &str, t: u64| {
        let is_first =
            |e: &Value| e["process"] == "c1.2" && e["f"] == "acquire" && e["type"] == "invoke";
        struck(effect, &["c1.2"]).events(is_first, |e| e["t"] = t.into())
    };
    begins("kills", 420 * MS).assert_whole();
    begins("kills", 420 * MS - 1).assert_fails("c1 lives again before that was asked for");
    begins("restarts", 401 * MS).assert_whole();
    begins("restarts", 399 * MS).assert_fails("c1 lives again before that was asked for");
    let twice = struck("kills", &["c1.2", "c1.3"]);
    twice
        .fault("c1", "kills", 505, 530)
        .assert_fails("c1 lives again before that was asked for");
}

#[test]
fn a_client_ends_well_or_as_asked() {
    let ends = |error: Value| {
        paused().events(
            |e| e["f"] == "exit" && e["process"] == "c2",
            |e| e["error"] = error.clone(),
        )
    };
    for error in ["exit 0", "signal 9, as asked", "exit 3, as asked"] {
        ends(error.into()).assert_whole();
    }
    for error in [
        json!("signal 9"),
        json!("exit 1"),
        json!("exit 0 "),
        json!("as asked"),
        Value::Null,
    ] {
        ends(error).assert_fails("c2 was ended by somebody else");
    }
}

#[test]
fn a_client_that_a_fault_of_the_plan_killed_may_end_by_any_signal() {
    let end = json!({"t": 400_300_000, "process": "c1", "op": 0, "type": "info", "f": "exit", "error": "signal 9"});
    let killed = || struck("kills", &["c1.2"]).and(end.clone());
    killed().assert_whole();
    let unplanned = killed().header(|header| header["plan"]["faults"] = json!([]));
    unplanned.assert_fails("c1 was ended by somebody else");
    let next = killed().events(
        |e| e["f"] == "exit" && e["process"] == "c1.2",
        |e| e["error"] = "signal 9".into(),
    );
    next.assert_fails("c1.2 was ended by somebody else");
}

/// A client that ended at this time is struck from 400 on.
fn ended_at(t: u64, effect: &str) -> Tale {
    let idle = "500 c1 1 invoke acquire lock=L\n501 c1 1 ok acquire validity=600\n502 c1 2 invoke release lock=L grant=1\n503 c1 2 ok release";
    tale(idle).fault("c2", effect, 400, 420).events(
        |e| e["f"] == "exit" && e["process"] == "c2",
        |e| e["t"] = t.into(),
    )
}

#[test]
fn who_had_ended_is_not_struck() {
    for effect in [
        "stops",
        "kills",
        "restarts",
        "delays-packets",
        "clock-forward",
        "holds-work",
    ] {
        ended_at(399 * MS, effect).assert_fails("c2 was struck by inject 0, and was gone");
    }
    ended_at(450 * MS, "stops").assert_whole();
    ended_at(400 * MS, "stops").assert_whole();
}

#[test]
fn who_was_killed_is_struck_once_what_starts_it_again_was_asked_for() {
    let paused_at = |from: u64| struck("kills", &["c1.2"]).fault("c1", "stops", from, from + 20);
    paused_at(405).assert_fails("c1 was struck by inject 10, and was gone");
    paused_at(419).assert_fails("c1 was struck by inject 10, and was gone");
    let completed = paused_at(419).events(
        |e| e["op"] == 10 && e["type"] == "ok",
        |e| e["t"] = (420 * MS).into(),
    );
    completed.assert_whole();
    paused_at(425).assert_whole();
    paused_at(530).assert_fails("c1 was struck by inject 10, and was gone");
    let restarted = struck("restarts", &["c1.2"]).fault("c1", "stops", 405, 425);
    restarted.assert_whole();
}

#[test]
fn what_starts_who_had_ended_is_another_fault_than_the_one_that_strikes_it() {
    ended_at(399 * MS, "restarts").assert_fails("c2 was struck by inject 0, and was gone");
}

#[test]
fn a_server_that_a_fault_killed_is_gone_until_it_is_healed() {
    let paused_at = |effect: &str, host: &str, from: u64| {
        paused()
            .fault(host, effect, 430, 450)
            .fault(host, "stops", from, from + 20)
    };
    for host in ["s1", "storage"] {
        paused_at("kills", host, 435)
            .assert_fails(&format!("{host} was struck by inject 20, and was gone"));
        paused_at("kills", host, 451).assert_whole();
        paused_at("restarts", host, 435).assert_whole();
        paused_at("stops", host, 435).assert_whole();
    }
    paused()
        .fault("s1", "kills", 430, 450)
        .fault("s2", "stops", 435, 455)
        .assert_whole();
}
