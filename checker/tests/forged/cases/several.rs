//! Several servers at once, of which no contract says anything.

use serde_json::json;

use super::tale::{Tale, tale};

const MUTEX: &str = "mutual-exclusion";

/// Two clients hold the lock from 104 to 120.
fn doubly_held() -> Tale {
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
}

/// Its class where each of these strikes a server from one time to another.
fn class(faults: &[(&str, &str, u64, u64)]) -> &'static str {
    let struck = faults
        .iter()
        .fold(doubly_held(), |tale, (on, effect, from, to)| {
            tale.fault(on, effect, *from, *to)
        });
    struck.says(MUTEX).1
}

#[test]
fn what_strikes_two_servers_at_once_is_unforeseen() {
    assert_eq!(class(&[("s1", "stops", 50, 150)]), "broken");
    assert_eq!(
        class(&[("s1", "stops", 50, 150), ("s2", "stops", 60, 150)]),
        "unspecified"
    );
    assert_eq!(
        class(&[("s1", "stops", 50, 150), ("s1", "stops", 60, 150)]),
        "broken"
    );
    assert_eq!(
        class(&[("s1", "stops", 50, 150), ("c3", "stops", 60, 150)]),
        "broken"
    );
    assert_eq!(
        class(&[("s1", "stops", 50, 150), ("storage", "stops", 60, 150)]),
        "broken"
    );
}

#[test]
fn two_servers_one_after_the_other_are_not_struck_at_once() {
    // A healing takes half a millisecond: the first fault is in force until 102.5.
    assert_eq!(
        class(&[("s1", "stops", 50, 102), ("s2", "stops", 103, 150)]),
        "broken"
    );
    assert_eq!(
        class(&[("s1", "stops", 50, 103), ("s2", "stops", 103, 150)]),
        "unspecified"
    );
    assert_eq!(
        class(&[("s1", "stops", 50, 150), ("s2", "stops", 105, 150)]),
        "broken",
        "too late"
    );
    assert_eq!(
        class(&[("s1", "delays-packets", 20, 90), ("s2", "stops", 30, 95)]),
        "broken",
        "too early"
    );
}

#[test]
fn what_is_in_force_for_ever_meets_all_that_comes_later() {
    let promised = |tale: Tale| {
        let tale = tale.header(|header| {
            let clauses = header["contract"].as_array_mut().expect("a list");
            clauses.retain(|clause| clause["property"] != MUTEX);
            let under = [
                "nothing",
                "server-restarted",
                "server-emptied",
                "server-stopped",
            ];
            clauses.push(json!({"property": MUTEX, "promise": "promised", "under": under}));
        });
        tale.says(MUTEX).1
    };
    for effect in ["kills", "restarts", "loses-state"] {
        let killed = || doubly_held().fault("s1", effect, 20, 40);
        assert_eq!(promised(killed()), "broken");
        assert_eq!(
            promised(killed().fault("s2", "stops", 90, 110)),
            "unspecified",
            "{effect}"
        );
        let stall = json!({"t": 103_000_000, "process": "s2", "op": 0, "type": "info", "f": "stall", "stalled_ns": 9_000_000});
        assert_eq!(promised(killed().and(stall)), "unspecified", "{effect}");
    }
}

#[test]
fn a_stall_of_a_server_counts_like_a_fault() {
    let stall = |process: &str| json!({"t": 103_500_000, "process": process, "op": 0, "type": "info", "f": "stall", "stalled_ns": 9_000_000});
    let stopped = || doubly_held().fault("s1", "stops", 50, 150);
    assert_eq!(stopped().and(stall("s2")).says(MUTEX).1, "unspecified");
    assert_eq!(stopped().and(stall("s1")).says(MUTEX).1, "broken");
    assert_eq!(
        doubly_held()
            .and(stall("s2"))
            .and(stall("s3"))
            .says(MUTEX)
            .1,
        "unspecified"
    );
}

#[test]
fn a_plan_that_strikes_two_servers_has_what_is_unforeseen() {
    let after = "500 c1 1 invoke acquire lock=L\n501 c1 1 ok acquire validity=600
        502 c1 2 invoke release lock=L grant=1\n503 c1 2 ok release";
    let class = |first: &'static str, second: &'static str| {
        let tale = tale(after)
            .fault("s1", "stops", 50, 70)
            .fault("s2", "stops", 200, 220);
        let tale = tale.header(|header| {
            header["plan"]["faults"][0]["on"] = first.into();
            header["plan"]["faults"][1]["on"] = second.into();
        });
        let on = |step: u64, host: &'static str| {
            move |tale: Tale| tale.events(|e| e["step"] == step, |e| e["on"] = json!([host]))
        };
        let server = |host: &'static str| if host == "leader" { "s3" } else { host };
        let tale = on(1, server(second))(on(0, server(first))(tale));
        tale.assert_whole();
        tale.says(MUTEX).1
    };
    assert_eq!(class("s1", "s1"), "kept");
    assert_eq!(class("s1", "s2"), "unspecified");
    assert_eq!(class("s1", "leader"), "unspecified");
    assert_eq!(class("leader", "leader"), "kept");
}

#[test]
fn progress_counts_what_strikes_two_servers_until_it_is_healed() {
    let waits = |heals: u64, contract: bool| {
        let tale = tale(
            "201 c2 2 invoke acquire lock=L ttl_ms=100
             202 c2 2 fail acquire error=busy
             502 c2 3 invoke acquire lock=L ttl_ms=100
             502 c2 3 fail acquire error=busy",
        );
        let tale = tale.fault("s1", "loses-state", 210, heals);
        match contract {
            true => tale.fault("s2", "loses-state", 210, heals),
            false => tale,
        }
        .says("progress")
        .1
    };
    assert_eq!(waits(400, false), "broken");
    assert_eq!(waits(400, true), "unspecified");
}
