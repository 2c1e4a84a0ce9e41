//! What waiting does: to work, to who asks for a lock, and what tells of it.

use serde_json::{Value, json};

use super::tale::{Tale, paused, tale};
use crate::honest::MS;

const BELIEF: &str = "exclusive-belief";

/// `c1` works from 103 to 250 under a grant that is valid until 201, and reads for so long. `c2` has the lock meanwhile.
fn waited(acquire: (&str, u64), read: f64, work: u64) -> Tale {
    let (asked, validity) = acquire;
    tale(&format!(
        "{asked} c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity={validity}
         103 c1 2 invoke work grant=1
         110 c1 3 invoke read grant=1 document=D
         {} c1 3 ok read document=D version=0 value=
         210 c2 20 invoke acquire lock=L ttl_ms=100
         211 c2 20 ok acquire validity=310
         212 c2 21 invoke release lock=L grant=20
         213 c2 21 ok release
         225 c1 2 ok work
         226 c1 4 invoke release lock=L grant=1
         227 c1 4 fail release lost=true",
        110.0 + read,
    ))
    .header(|header| header["plan"]["workload"]["work_ms"] = work.into())
}

/// Planned faults that wait for `c1` to be at a point under so manieth grant.
fn waiting_at(points: &[(&str, u64)]) -> Value {
    let waits = |(point, nth): &(&str, u64)| {
        json!({
            "fault": "nothing", "on": "c1", "does": [], "shows": {}, "until": {},
            "when": {"trigger": "point", "client": "c1", "point": point, "nth_grant": nth},
        })
    };
    points.iter().map(waits).collect()
}

#[test]
fn the_time_at_a_point_is_no_doing_of_the_lock() {
    let held = |until: u64, planned: &[(&str, u64)], meanwhile: &str| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             103 c1 2 invoke work grant=1
             {meanwhile}
             104 c1 3 invoke point grant=1 point=before-write nth=2
             {until} c1 3 ok point
             210 c2 20 invoke acquire lock=L ttl_ms=100
             211 c2 20 ok acquire validity=310
             260 c1 2 ok work
             261 c1 4 invoke release lock=L grant=1
             262 c1 4 fail release lost=true
             300 c2 21 invoke release lock=L grant=20
             301 c2 21 ok release"
        ))
        .header(|header| header["plan"]["faults"] = waiting_at(planned))
        .says("exclusive-belief")
        .1
    };
    let planned = [("before-write", 2)];
    assert_eq!(held(250, &planned, ""), "limit-shown");
    assert_eq!(held(106, &planned, ""), "broken");
    // The run holds a client only where a fault waits, and a client that is held does no work.
    for other in [&[][..], &[("after-read", 2)], &[("before-write", 1)]] {
        assert_eq!(held(250, other, ""), "unspecified", "{other:?}");
    }
    let reads = "150 c1 7 invoke read grant=1 document=D\n151 c1 7 ok read version=0 value=";
    assert_eq!(held(250, &planned, reads), "unspecified");
    let renewed = "150 c1 7 info renewed grant=1 validity=201";
    assert_eq!(held(250, &planned, renewed), "limit-shown");
}

#[test]
fn work_that_waits_made_as_long_as_the_lease_is_held() {
    let class = |acquire, read: f64, work| waited(acquire, read, work).says(BELIEF);
    // Four fifths of 100 ms: one of the acquire, and the read with the work.
    assert_eq!(class(("101", 201), 29.0, 50), ("violated", "limit-shown"));
    assert_eq!(class(("101", 201), 28.9, 50), ("violated", "broken"));
    assert_eq!(class(("101", 201), 29.0, 49), ("violated", "broken"));
}

#[test]
fn of_an_acquire_only_what_it_costs_of_the_lease_counts() {
    let class = |acquire, read: f64| waited(acquire, read, 49).says(BELIEF).1;
    assert_eq!(class(("100", 200), 29.0), "limit-shown");
    assert_eq!(
        class(("60", 201), 29.0),
        "broken",
        "its lease counts from 101 on"
    );
    assert_eq!(class(("60", 200), 29.0), "limit-shown");
}

#[test]
fn a_heartbeat_that_is_too_slow_records_no_stalls() {
    let class = |heartbeat: Value| {
        let tale = waited(("101", 201), 1.0, 5);
        tale.header(|header| header["heartbeat_ms"] = heartbeat)
            .says(BELIEF)
            .1
    };
    assert_eq!(class(json!(1)), "broken");
    assert_eq!(class(json!(20)), "broken");
    assert_eq!(class(json!(21)), "unspecified");
    assert_eq!(class(json!(0)), "unspecified");
    assert_eq!(class(Value::Null), "unspecified");
}

/// `c2` asks at 201 and at 550, both in vain.
fn in_vain(told: &str) -> Tale {
    tale(&format!(
        "201 c2 2 invoke acquire lock=L ttl_ms=100
         202 c2 2 fail acquire error=busy
         550 c2 3 invoke acquire lock=L ttl_ms=100
         551 c2 3 fail acquire error=busy
         {told}"
    ))
}

#[test]
fn who_asks_seldom_was_refused_by_a_grant() {
    let grant = |asked: f64, returned: f64, validity: f64| {
        in_vain(&format!(
            "{asked} c1 1 invoke acquire lock=L\n{returned} c1 1 ok acquire validity={validity}"
        ))
        .outcome("progress")
    };
    assert_eq!(in_vain("").says("progress"), ("violated", "broken"));
    assert_eq!(
        grant(101.0, 102.0, 201.0),
        "violated",
        "it ended as that was asked for"
    );
    assert_ne!(
        grant(101.0, 102.0, 201.1),
        "violated",
        "it ended after that"
    );
    assert_ne!(grant(101.0, 201.1, 150.0), "violated", "it was in flight");
    assert_ne!(
        grant(550.5, 552.0, 600.0),
        "violated",
        "it was asked for before the end"
    );
    assert_ne!(
        grant(300.0, 300.0, 299.0),
        "violated",
        "it was asked for and granted at an instant"
    );
    assert_eq!(
        grant(551.0, 552.0, 600.0),
        "violated",
        "it was asked for at the end"
    );
    let of_another = in_vain("300 c1 1 invoke acquire lock=M\n301 c1 1 ok acquire validity=310");
    assert_eq!(
        of_another.outcome("progress"),
        "violated",
        "it is of another lock"
    );
}

#[test]
fn who_is_cut_off_wants_nothing() {
    let delayed = |does: Value, on: &str| {
        in_vain("")
            .fault(on, "delays-packets", 210, 540)
            .header(|header| header["plan"]["faults"][0]["does"] = json!([does]))
            .events(|e| e["process"] == "nemesis", |e| e["does"] = json!([does]))
            .outcome("progress")
    };
    let to = |to: Value, each: u64| {
        delayed(
            json!({"effect": "delays-packets", "to": to, "each_ms": each}),
            "c2",
        )
    };
    // The bound is 300 ms.
    for host in [Value::Null, json!("servers"), json!("leader"), json!("s1")] {
        assert_ne!(to(host.clone(), 38), "violated", "{host}");
        assert_eq!(to(host.clone(), 37), "violated", "{host}");
    }
    assert_eq!(to(json!("storage"), 38), "violated");
    assert_ne!(
        delayed(json!({"effect": "delays-packets"}), "c2"),
        "violated"
    );
    assert_eq!(
        delayed(json!({"effect": "delays-packets"}), "c1"),
        "violated"
    );
}

#[test]
fn a_write_is_held_only_while_somebody_asks_the_storage() {
    // Nothing is said of a write that is held: it is unspecified from then on.
    let class = |from: u64| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             103 c1 2 invoke work grant=1
             {from} c1 3 invoke read grant=1 document=D
             399 c1 3 info read
             210 c2 20 invoke acquire lock=L ttl_ms=100
             211 c2 20 ok acquire validity=310
             300 c2 21 invoke release lock=L grant=20
             301 c2 21 ok release
             400 c1 2 ok work
             401 c1 4 invoke release lock=L grant=1
             402 c1 4 fail release lost=true"
        ))
        .fault("c1", "stops", 215, 300)
        .fault("storage", "stops", 110, 395)
        .header(|header| {
            for clause in header["contract"].as_array_mut().expect("a list") {
                let is_promise = clause["promise"] == "promised";
                let under = clause["under"].as_array_mut().expect("a list");
                under.retain(|name| name != "write-held" && name != "work-held");
                if is_promise {
                    under.push("work-held".into());
                }
            }
        })
        .says(BELIEF)
        .1
    };
    assert_eq!(class(211), "unspecified");
    assert_eq!(class(212), "broken", "that came after the second had begun");
}

#[test]
fn rows_are_told_within_a_reading_of_their_document() {
    let row = |e: &Value| e["f"] == "accepted";
    let at = |t: u64| paused().events(row, |e| e["t"] = t.into());
    at(1 + 509 * MS).assert_whole();
    at(509 * MS - 1).assert_fails("a row is of no reading of the log");
    at(511 * MS).assert_fails("a row is of no reading of the log");
    let named = |name: &str| paused().events(|e| e["f"] == "log", |e| e["document"] = name.into());
    named("D").assert_whole();
    named("E").assert_fails("a row is of no reading of the log");
}

#[test]
fn the_plan_has_the_write_condition_that_is_known_or_none() {
    let condition =
        |condition: Value| paused().header(|header| header["plan"]["write_condition"] = condition);
    condition(Value::Null).assert_whole();
    condition("version".into()).assert_fails("the plan has a write condition that is not known");
}
