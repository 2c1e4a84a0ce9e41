//! Clients that a fault killed, and that lived on while it did.

use super::tale::{Tale, tale};

/// `c1` is being killed from 400 to 401, and does its last then; `c2` is granted the lock at a time, which `c1` held.
fn killed(granted: &str, last: &str, told: &str) -> Tale {
    let again = "500 c1.2 10 invoke acquire lock=L ttl_ms=100\n501 c1.2 10 ok acquire validity=600
        502 c1.2 11 invoke release lock=L grant=10\n503 c1.2 11 ok release";
    let mut tale = tale(&format!(
        "390 c1 1 invoke acquire lock=L ttl_ms=100
         391 c1 1 ok acquire validity=490
         392 c2 2 invoke acquire lock=L ttl_ms=100
         {granted} c2 2 ok acquire validity=492
         {last} c1 3 invoke held lock=L grant=1
         405 c2 4 invoke release lock=L grant=2
         406 c2 4 ok release
         {told}
         {again}"
    ))
    .fault("c1", "kills", 400, 420);
    let is_told = |e: &serde_json::Value| e["f"] == "inject" && e["type"] == "ok";
    tale.file
        .events
        .retain(|e| e["f"] != "exit" || e["process"] != "c1");
    tale.events(is_told, |e| e["t"] = 401_000_000.into())
}

const LIVED: &str = "c1 was killed, lived on, and another had its lock";

#[test]
fn nobody_has_the_lock_of_who_is_being_killed_and_lives() {
    killed("400.3", "400.4", "").assert_fails(LIVED);
    killed("400.4", "400.4", "").assert_whole();
    killed("400.4", "400.3", "").assert_whole();
    killed("400", "400.4", "").assert_whole();
}

#[test]
fn who_had_given_it_up_or_held_it_no_more_may_live() {
    let released = "400.1 c1 5 invoke release lock=L grant=1\n400.2 c1 5 ok release";
    killed("400.3", "400.4", released).assert_whole();
    let lost = "400.1 c1 5 info lost grant=1";
    killed("400.3", "400.4", lost).assert_whole();
    let over = killed("400.3", "400.4", "").events(
        |e| e["op"] == 1 && e["type"] == "ok",
        |e| e["validity"] = 400_300_000.into(),
    );
    over.assert_whole();
}

#[test]
fn an_exit_is_no_event_of_the_living() {
    killed("400.3", "400.2", "400.9 c1 9 info exit error=signal").assert_whole();
}
