//! Hazards, and the classes that follow from the contract.

use serde_json::json;

use super::tale::{Tale, outlived, tale};
use crate::judge::faults::hazards_of;

const BELIEF: &str = "exclusive-belief";

#[test]
fn a_lease_that_was_outlived_with_nothing_to_explain_it_breaks_the_promise() {
    assert_eq!(outlived("").says(BELIEF), ("violated", "broken"));
}

#[test]
fn a_stop_that_explains_it_is_the_limit() {
    let stopped = outlived("").fault("c1", "stops", 110, 395);
    assert_eq!(stopped.says(BELIEF), ("violated", "limit-shown"));
    // 401 - 181 = 220 ms, a fifth of the TTL after the validity at the most: 221.
    let just = outlived("").fault("c1", "stops", 110, 290);
    assert_eq!(just.says(BELIEF), ("violated", "limit-shown"));
    let too_short = outlived("").fault("c1", "stops", 110, 288);
    assert_eq!(too_short.says(BELIEF), ("violated", "broken"));
}

#[test]
fn what_explains_less_than_half_of_it_does_so_perhaps() {
    let stalled = |length: f64| {
        let tale = tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             103 c1 2 invoke work grant=1
             {} c1 9 info stall stalled={length}
             202 c2 20 invoke acquire lock=L ttl_ms=100
             203 c2 20 ok acquire validity=302
             219 c1 2 ok work
             219 c1 3 invoke release lock=L grant=1
             220 c1 3 fail release lost=true
             230 c2 21 invoke release lock=L grant=20
             231 c2 21 ok release",
            104.0 + length
        ));
        tale.says(BELIEF).1
    };
    assert_eq!(stalled(9.0), "limit-shown");
    assert_eq!(stalled(8.9), "unspecified");
    assert_eq!(stalled(0.000_001), "unspecified");
}

#[test]
fn a_stall_begins_with_what_its_client_did_last_and_is_on_the_storage_or_on_nobody() {
    let acted = |at: u64| {
        let within = format!("{at} c1 7 invoke held lock=L grant=1\n395 c1 9 info stall stalled=");
        outlived(&format!("{within}{}", 285 - (at - 110) + 4))
            .says(BELIEF)
            .1
    };
    assert_eq!(acted(112), "limit-shown");
    let on = |hosts: &str| {
        outlived(&format!("395 c1 9 info stall stalled=285 on={hosts}"))
            .says(BELIEF)
            .1
    };
    for hosts in ["[]", "[\"s1\"]", "[\"nowhere\"]", "[\"storage\",\"c1\"]"] {
        assert_eq!(on(hosts), "broken", "{hosts}");
    }
}

#[test]
fn a_stop_of_another_client_or_after_it_excuses_nothing() {
    assert_eq!(
        outlived("").fault("c2", "stops", 110, 395).says(BELIEF).1,
        "broken"
    );
    let after = outlived("").fault("c1", "stops", 215, 395);
    assert_eq!(after.says(BELIEF).1, "broken");
}

#[test]
fn a_recorded_stall_is_a_stop() {
    let stalled = outlived("395 c1 9 info stall stalled=285");
    assert_eq!(stalled.says(BELIEF), ("violated", "limit-shown"));
    let of_another = outlived("395 c2 9 info stall stalled=285");
    assert_eq!(of_another.says(BELIEF), ("violated", "broken"));
}

#[test]
fn where_stalls_were_not_recorded_nobody_can_know() {
    let unrecorded = outlived("").header(|header| {
        header
            .as_object_mut()
            .expect("a header")
            .remove("heartbeat_ms");
    });
    assert_eq!(unrecorded.says(BELIEF), ("violated", "unspecified"));
}

#[test]
fn who_was_killed_may_have_stood_still_before() {
    let ended = |how: &str, last: u64| {
        let tale = tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             {last} c1 2 invoke held lock=L grant=1
             400 c1 0 info exit error={how}
             210 c2 20 invoke acquire lock=L ttl_ms=100
             211 c2 20 ok acquire validity=310
             300 c2 21 invoke release lock=L grant=20
             301 c2 21 ok release"
        ));
        tale.says(BELIEF)
    };
    let killed = "\"signal\\u00209,\\u0020as\\u0020asked\"";
    assert_eq!(ended(killed, 103), ("violated", "unspecified"));
    assert_eq!(ended(killed, 209), ("violated", "unspecified"));
    assert_eq!(
        ended(killed, 212),
        ("violated", "broken"),
        "it had begun by then"
    );
    let well = "\"exit\\u00200\"";
    assert_eq!(ended(well, 103), ("violated", "broken"));
}

#[test]
fn long_work_that_was_planned_is_held_while_it_lasts() {
    let long = |work: u64| {
        outlived("").header(|header| header["plan"]["workload"]["work_ms"] = work.into())
    };
    assert_eq!(long(80).says(BELIEF), ("violated", "limit-shown"));
    assert_eq!(long(79).says(BELIEF), ("violated", "broken"));
}

#[test]
fn work_that_was_shorter_than_planned_excuses_nothing_for_certain() {
    // It works from `began` to `ended`, and writes at 300: its lease ended at 201.
    let worked = |began: u64, ended: u64| {
        let tale = tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             {began} c1 2 invoke work grant=1
             {ended} c1 2 ok work
             300 c1 3 invoke write grant=1 document=D value=v based_on=0
             301 c1 3 ok write version=1
             310 c1 4 invoke release lock=L grant=1
             311 c1 4 fail release lost=true
             210 c2 20 invoke acquire lock=L ttl_ms=100
             211 c2 20 ok acquire validity=310
             306 c2 21 invoke release lock=L grant=20
             307 c2 21 ok release"
        ))
        .header(|header| header["plan"]["workload"]["work_ms"] = 100.into());
        tale.says(BELIEF).1
    };
    assert_eq!(worked(200, 305), "limit-shown");
    assert_eq!(worked(201, 305), "unspecified", "it writes too soon");
    assert_eq!(worked(103, 300), "limit-shown");
    assert_eq!(
        worked(103, 118),
        "broken",
        "so short a time explains nothing"
    );
    assert_eq!(worked(315, 316), "broken", "it did not work by then");
}

/// The same, where beliefs are promised under long work too: waiting makes work long.
fn promised_under_long_work(tale: Tale) -> Tale {
    let is_held = |name: &serde_json::Value| name == "work-held";
    tale.header(|header| {
        for clause in header["contract"].as_array_mut().expect("a list") {
            let is_limit = clause["promise"] == "not-promised";
            let under = clause["under"].as_array_mut().expect("a list");
            under.retain(|name| !is_held(name));
            if !is_limit {
                under.push("work-held".into());
            }
        }
    })
}

#[test]
fn a_held_write_is_one_of_the_storage_or_of_the_way_to_it() {
    let reads = "104 c1 4 invoke read grant=1 document=D
        399 c1 4 ok read document=D version=0 value=";
    let delayed = |to: serde_json::Value| {
        let does = json!([{"effect": "delays-packets", "to": to}]);
        promised_under_long_work(outlived(reads))
            .fault("c1", "delays-packets", 110, 395)
            .header(|header| header["plan"]["faults"][0]["does"] = does.clone())
            .events(|e| e["process"] == "nemesis", |e| e["does"] = does.clone())
            .says(BELIEF)
            .1
    };
    assert_eq!(delayed(json!("storage")), "limit-shown");
    assert_eq!(delayed(json!(null)), "limit-shown");
    assert_eq!(delayed(json!("servers")), "broken");
    let storage = promised_under_long_work(outlived(reads)).fault("storage", "stops", 110, 395);
    assert_eq!(storage.says(BELIEF).1, "limit-shown");
}

#[test]
fn a_storage_that_was_not_asked_holds_nobody_up() {
    let class = |asked: &str| {
        promised_under_long_work(outlived(asked))
            .fault("storage", "stops", 110, 395)
            .says(BELIEF)
            .1
    };
    assert_eq!(class(""), "broken");
    // Of 401 ms it takes 180 to come within a fifth of the TTL after the validity; the acquire took one.
    assert_eq!(
        class("120 c1 4 invoke write grant=1 document=D value=x\n299 c1 4 info write"),
        "limit-shown"
    );
    assert_eq!(
        class("120 c1 4 invoke write grant=1 document=D value=x\n298 c1 4 info write"),
        "broken"
    );
    assert_eq!(
        class("120 c1 4 invoke read grant=1 document=D"),
        "limit-shown"
    );
    let in_two = "120 c1 4 invoke read grant=1 document=D\n210 c1 4 info read
        305 c1 5 invoke read grant=1 document=D\n395 c1 5 info read";
    assert_eq!(class(in_two), "limit-shown");
    let of_another = "220 c2 4 invoke read grant=20 document=D\n299 c2 4 info read";
    assert_eq!(class(of_another), "broken");
    let stalled = |asked: &str| {
        let stall = json!({"t": 395_000_000, "process": "storage", "op": 0, "type": "info", "f": "stall", "stalled_ns": 285_000_000});
        promised_under_long_work(outlived(asked))
            .and(stall)
            .says(BELIEF)
            .1
    };
    assert_eq!(stalled(""), "broken");
    assert_eq!(
        stalled("120 c1 4 invoke read grant=1 document=D"),
        "limit-shown"
    );
}

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

#[test]
fn a_hazard_excuses_what_it_touches_once_it_has_begun() {
    let class = |effect: &str, on: &str, from: u64, to: u64| {
        doubly_held()
            .fault(on, effect, from, to)
            .says("mutual-exclusion")
            .1
    };
    assert_eq!(doubly_held().says("mutual-exclusion").1, "broken");
    assert_eq!(class("clock-forward", "s1", 103, 115), "limit-shown");
    assert_eq!(class("clock-forward", "s1", 105, 116), "broken");
    assert_eq!(class("clock-forward", "s1", 50, 60), "broken");
    assert_eq!(class("clock-forward", "c1", 103, 115), "broken");
    assert_eq!(class("kills", "s1", 50, 60), "limit-shown");
    assert_eq!(class("loses-state", "s1", 50, 60), "limit-shown");
    assert_eq!(class("stops", "s1", 50, 160), "broken");
    assert_eq!(class("burns", "s1", 50, 160), "unspecified");
}

#[test]
fn healing_a_step_of_a_clock_is_a_step_the_other_way() {
    let healed = |from, to| doubly_held().fault("s1", "clock-back", from, to);
    assert_eq!(healed(80, 103).says("mutual-exclusion").1, "limit-shown");
    assert_eq!(healed(80, 104).says("mutual-exclusion").1, "limit-shown");
    assert_eq!(healed(80, 110).says("mutual-exclusion").1, "broken");
}

#[test]
fn what_comes_after_an_end_by_others_is_unspecified() {
    let ended = |process: &str, t: u64, how: &str| {
        let exit = format!("{t} {process} 0 info exit error={how}");
        outlived(&exit).says(BELIEF)
    };
    let (broken, unspecified) = (("violated", "broken"), ("violated", "unspecified"));
    assert_eq!(ended("s1", 209, "signal_9"), unspecified);
    assert_eq!(ended("storage", 211, "signal_9"), unspecified);
    assert_eq!(ended("s1", 212, "signal_9"), broken);
    let planned = outlived("209 s1 0 info exit error=signal_9").fault("s1", "restarts", 205, 220);
    assert_eq!(planned.says(BELIEF), ("violated", "limit-shown"));
}

#[test]
fn a_fault_touches_a_grant_that_ends_as_it_begins() {
    let burnt = |from: u64| {
        tale(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201 token=9
             110 c1 3 invoke release lock=L grant=1
             111 c1 3 ok release
             120 c2 20 invoke acquire lock=L ttl_ms=100
             121 c2 20 ok acquire validity=220 token=5",
        )
        .fault("c1", "burns", from, from + 15)
        .says("token-order")
    };
    assert_eq!(burnt(110), ("violated", "unspecified"));
    assert_eq!(burnt(111), ("violated", "broken"));
}

#[test]
fn what_nobody_said_is_unspecified() {
    let silent = doubly_held().header(|header| header["contract"] = json!([]));
    assert_eq!(silent.says("mutual-exclusion"), ("violated", "unspecified"));
    let no_promise = doubly_held().header(|header| {
        header["contract"] = json!([{"property": "mutual-exclusion", "promise": "not-promised", "under": ["nothing"], "why": "no"}]);
    });
    assert_eq!(
        no_promise.says("mutual-exclusion"),
        ("violated", "limit-shown")
    );
    let honest = tale("").header(|header| header["contract"] = json!([]));
    assert_eq!(honest.says("mutual-exclusion"), ("holds", "unspecified"));
}

#[test]
fn what_holds_is_kept_where_the_plan_has_no_limit() {
    let after = "500 c1 1 invoke acquire lock=L\n501 c1 1 ok acquire validity=600
        502 c1 2 invoke release lock=L grant=1\n503 c1 2 ok release";
    let class = |effect: &str, on: &str, until: serde_json::Value| {
        let tale = tale(after).fault(on, effect, 50, 400);
        let tale = tale.header(|header| header["plan"]["faults"][0]["until"] = until);
        tale.assert_whole();
        tale.says(BELIEF).1
    };
    assert_eq!(
        class("stops", "c1", json!({"after_ms": 80})),
        "limit-not-shown"
    );
    assert_eq!(class("stops", "c1", json!({"after_ms": 79})), "kept");
    assert_eq!(
        class("stops", "c1", json!({"after_ms": 80, "at_most_ms": 79})),
        "kept"
    );
    assert_eq!(class("stops", "s1", json!({"after_ms": 80})), "kept");
    assert_eq!(class("burns", "s1", json!({"after_ms": 80})), "unspecified");
    assert_eq!(
        class("clock-back", "s1", json!({"after_ms": 80})),
        "limit-not-shown"
    );
    assert_eq!(class("clock-back", "s1", json!({})), "kept");
    assert_eq!(class("clock-back", "c1", json!({})), "kept");
}

#[test]
fn what_nothing_speaks_of_is_left_out() {
    let judgement = tale("").judged();
    assert_eq!(judgement.outcome("token-order"), "unknown");
    assert!(
        judgement.properties.contains_key("token-order"),
        "the contract speaks of it"
    );
    let silent = tale("")
        .header(|header| header["contract"] = json!([]))
        .judged();
    assert!(!silent.properties.contains_key("token-order"));
}

#[test]
fn a_violation_that_rests_on_a_process_after_its_death_is_none() {
    let killed = outlived("").fault("c1", "kills", 105, 115);
    killed.assert_fails("c1 goes on after its death");
    assert_eq!(killed.outcome(BELIEF), "unknown");
}

#[test]
fn a_hazard_follows_from_what_a_fault_does_and_from_its_host() {
    for (effect, on_client, on_server, on_storage) in [
        ("stops", "client-stopped", "server-stopped", "write-held"),
        (
            "kills",
            "client-crashed",
            "server-restarted",
            "storage-crashed",
        ),
        (
            "restarts",
            "client-crashed",
            "server-restarted",
            "storage-crashed",
        ),
        ("holds-work", "work-held", "unforeseen", "unforeseen"),
        (
            "delays-packets",
            "write-held client-cut-off",
            "server-cut-off",
            "write-held",
        ),
        ("clock-forward", "", "server-clock-forward", "storage-clock"),
        ("clock-back", "", "server-clock-back", "storage-clock"),
        (
            "loses-state",
            "unforeseen",
            "server-emptied",
            "storage-emptied",
        ),
        ("burns", "unforeseen", "unforeseen", "unforeseen"),
    ] {
        let does = [json!({"effect": effect})];
        for (host, hazards) in [
            ("c1", on_client),
            ("s1", on_server),
            ("leader", on_server),
            ("storage", on_storage),
        ] {
            assert_eq!(
                hazards_of(&does, host, true).join(" "),
                hazards,
                "{effect} on {host}"
            );
        }
    }
    assert_eq!(
        hazards_of(&[json!({"effect": "kills"})], "s1", false),
        ["server-lost"]
    );
    assert_eq!(hazards_of(&[], "s1", true), ["unforeseen"]);
}
