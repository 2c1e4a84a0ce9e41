//! Grants that end, or begin again, at the instant at which something else happens.

use super::tale::{Tale, tale};

const MUTEX: &str = "mutual-exclusion";

/// `c1` holds from 102 to 201, and `c2` is granted the lock at 120, which ends so.
fn second(asked: u64, end: &str) -> Tale {
    tale(&format!(
        "101 c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity=201
         {asked} c2 2 invoke acquire lock=L ttl_ms=100
         120 c2 2 ok acquire validity=210
         {end}"
    ))
}

#[test]
fn who_gave_a_grant_back_or_lost_it_as_it_came_had_it_all_the_same() {
    for end in [
        "120 c2 3 invoke release lock=L grant=2\n121 c2 3 ok release",
        "120 c2 3 info lost grant=2",
    ] {
        assert_eq!(
            second(110, end).says(MUTEX),
            ("violated", "broken"),
            "{end}"
        );
        assert_eq!(second(102, end).outcome(MUTEX), "violated", "{end}");
        let before = second(110, end).events(
            |e| e["op"] == 1 && e["type"] == "ok",
            |e| e["t"] = 111_000_000.into(),
        );
        assert_eq!(
            before.outcome(MUTEX),
            "violated",
            "its end is within: {end}"
        );
        let after = second(110, end).events(
            |e| e["op"] == 1 && e["type"] == "ok",
            |e| e["validity"] = 120_000_000.into(),
        );
        assert_eq!(after.outcome(MUTEX), "holds", "{end}");
    }
}

#[test]
fn who_was_refused_its_release_gave_nothing_back() {
    let failed = "120 c2 3 invoke release lock=L grant=2\n121 c2 3 fail release error=refused";
    assert_eq!(second(110, failed).outcome(MUTEX), "violated");
}

#[test]
fn a_renewal_as_the_validity_ends_begins_the_hold_again() {
    let renewed = |t: &str| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             {t} c1 9 info renewed grant=1 validity=301
             190 c2 2 invoke acquire lock=L ttl_ms=100
             220 c2 2 ok acquire validity=195
             260 c1 5 invoke release lock=L grant=1
             261 c1 5 ok release"
        ))
        .outcome(MUTEX)
    };
    // Over at 195, and answered at 220: between both the lock was given to another only if there was a gap.
    assert_eq!(renewed("200.999999"), "violated");
    assert_eq!(renewed("201"), "holds");
    assert_eq!(renewed("202"), "holds");
}

#[test]
fn a_grant_without_expiry_that_was_asked_for_while_a_server_was_killed_proves_no_hold() {
    let granted = |from: u64, to: u64| {
        tale(
            "100 c1 1 invoke acquire lock=L
             102 c1 1 ok acquire
             115 c2 2 invoke acquire lock=L
             116 c2 2 ok acquire
             117 c2 3 invoke release lock=L grant=2
             118 c2 3 ok release
             140 c1 4 invoke release lock=L grant=1
             141 c1 4 fail release lost=true",
        )
        .fault("s1", "kills", from, to)
        .outcome(MUTEX)
    };
    assert_eq!(granted(50, 60), "violated", "it was killed before");
    // An injection takes half a millisecond.
    assert_ne!(
        granted(100, 130),
        "violated",
        "asked for while it was being killed"
    );
    assert_ne!(granted(101, 130), "violated", "in flight all the time");
    assert_ne!(
        granted(102, 130),
        "violated",
        "answered as that was asked for"
    );
    assert_ne!(granted(103, 130), "violated", "its hold ended");
    assert_eq!(granted(117, 130), "violated", "too late");
}

#[test]
fn a_grant_that_was_over_before_it_was_asked_for_conflicts_by_when_it_came() {
    let stepped = |from: u64| {
        second(110, "")
            .events(
                |e| e["op"] == 2 && e["type"] == "ok",
                |e| e["validity"] = 103_000_000.into(),
            )
            .fault("s1", "clock-forward", from, 140)
            .says(MUTEX)
    };
    assert_eq!(stepped(105), ("violated", "limit-shown"));
    assert_eq!(stepped(111), ("violated", "limit-shown"));
    assert_eq!(stepped(121), ("violated", "broken"));
}
