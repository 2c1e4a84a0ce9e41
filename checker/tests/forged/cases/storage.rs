//! Tokens, writes, the document, and a lock that nobody gets.

use super::tale::{Tale, tale};

/// Two grants that are held one after the other, and what is written under them.
fn under_two_grants(told: &str) -> Tale {
    tale(&format!(
        "101 c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity=201
         110 c1 3 invoke release lock=L grant=1
         111 c1 3 ok release
         120 c2 20 invoke acquire lock=L ttl_ms=100
         121 c2 20 ok acquire validity=220
         180 c2 21 invoke release lock=L grant=20
         181 c2 21 ok release
         {told}"
    ))
}

#[test]
fn a_later_grant_has_a_higher_token() {
    let with = |first: u64, second: u64, invoked: u64| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             105 c1 1 ok acquire validity=201 token={first}
             {invoked} c2 20 invoke acquire lock=L ttl_ms=100
             121 c2 20 ok acquire validity=220 token={second}
             110 c1 3 invoke release lock=L grant=1
             111 c1 3 ok release"
        ))
        .outcome("token-order")
    };
    assert_eq!(with(5, 6, 120), "holds");
    assert_eq!(with(6, 5, 120), "violated");
    assert_eq!(with(5, 5, 120), "violated");
    // It was asked for before, yet it began when the other's hold had ended.
    assert_eq!(with(6, 5, 103), "violated");
}

#[test]
fn where_holds_overlap_a_grant_may_have_begun_at_its_invocation() {
    let told = "101 c1 1 invoke acquire lock=L ttl_ms=100
        105 c1 1 ok acquire validity=201 token=6
        110 c1 3 invoke release lock=L grant=1
        111 c1 3 ok release
        103 c2 20 invoke acquire lock=L ttl_ms=100
        121 c2 20 ok acquire validity=220 token=5";
    assert_eq!(tale(told).outcome("token-order"), "violated");
    let with_an_overlap = tale(&format!(
        "{told}
         150 c1 4 invoke acquire lock=L ttl_ms=100
         151 c1 4 ok acquire validity=250 token=7"
    ));
    assert_eq!(with_an_overlap.outcome("mutual-exclusion"), "violated");
    assert_ne!(with_an_overlap.outcome("token-order"), "violated");
}

#[test]
fn no_read_goes_back_in_time() {
    let reads = |first: (u64, &str), second: (u64, &str)| {
        under_two_grants(&format!(
            "103 c1 4 invoke write grant=1 document=D value=x
             140 c1 4 ok write document=D version=1
             125 c2 24 invoke read grant=20 document=D
             126 c2 24 ok read document=D version={} value={}
             127 c2 25 invoke read grant=20 document=D
             128 c2 25 ok read document=D version={} value={}",
            first.0, first.1, second.0, second.1
        ))
        .outcome("document")
    };
    assert_eq!(reads((0, ""), (1, "x")), "holds");
    assert_eq!(reads((1, "x"), (0, "")), "violated");
}

#[test]
fn a_write_after_one_of_a_later_grant_is_stale() {
    let stale = under_two_grants(
        "130 c2 22 invoke write grant=20 document=D value=y
         131 c2 22 ok write document=D version=1
         140 c1 4 invoke write grant=1 document=D value=x
         141 c1 4 ok write document=D version=2",
    );
    assert_eq!(stale.says("no-stale-write"), ("violated", "broken"));
    let in_order = under_two_grants(
        "105 c1 4 invoke write grant=1 document=D value=x
         106 c1 4 ok write document=D version=1
         130 c2 22 invoke write grant=20 document=D value=y
         131 c2 22 ok write document=D version=2",
    );
    in_order.assert_whole();
    assert_eq!(in_order.outcome("no-stale-write"), "holds");
}

#[test]
fn the_log_tells_of_a_write_whose_answer_was_lost() {
    let lost_answer = under_two_grants(
        "130 c2 22 invoke write grant=20 document=D value=y
         131 c2 22 ok write document=D version=1
         140 c1 4 invoke write grant=1 document=D value=x
         141 c1 4 info write
         300 storage 800 invoke log
         301 storage 22 ok accepted document=D version=1 value=y
         302 storage 4 ok accepted document=D version=2 value=x
         303 storage 800 ok log entries=2",
    );
    assert_eq!(lost_answer.outcome("no-stale-write"), "violated");
    assert_eq!(lost_answer.outcome("document"), "holds");
}

/// A write of unknown outcome that a read returned as version 2, and how the log tells of it.
fn read_and_logged(row: &str, ends: &str) -> Tale {
    under_two_grants(&format!(
        "140 c1 4 invoke write grant=1 document=D value=x
         141 c1 4 info write
         130 c2 22 invoke write grant=20 document=D value=y
         131 c2 22 ok write document=D version=1
         150 c2 23 invoke read grant=20 document=D
         151 c2 23 ok read document=D version=2 value=x
         300 storage 800 invoke log document=D
         301 storage 22 ok accepted document=D version=1 value=y
         302 storage 4 ok accepted {row} value=x
         303 storage 800 {ends} log entries=2"
    ))
}

#[test]
fn a_row_of_another_document_tells_nothing_of_a_write() {
    let (of_it, of_another) = ("document=D version=2", "document=E version=2");
    let said = |row| read_and_logged(row, "fail").outcome("no-stale-write");
    assert_eq!((said(of_it), said(of_another)), ("violated", "violated"));
}

#[test]
fn a_write_that_the_log_has_made_no_other_version() {
    let said = |row| read_and_logged(row, "fail").outcome("document");
    assert_eq!(said("document=D version=9"), "violated");
    assert_eq!(said("document=E version=9"), "unknown");
}

#[test]
fn an_accepted_write_of_no_version_made_that_with_which_a_read_returned_it() {
    let read = |value: &str| {
        let tale = under_two_grants(&format!(
            "130 c2 22 invoke write grant=20 document=D value=y
             131 c2 22 ok write document=D
             150 c2 23 invoke read grant=20 document=D
             151 c2 23 ok read document=D version=1 value={value}
             300 storage 800 invoke log document=D
             303 storage 800 fail log entries=0"
        ));
        tale.outcome("document")
    };
    assert_eq!(read("y"), "unknown");
    assert_eq!(read("z"), "violated");
}

#[test]
fn an_update_is_lost_where_another_grant_s_write_came_between() {
    let based_on = |base: u64| {
        under_two_grants(&format!(
            "105 c1 4 invoke write grant=1 document=D value=x based_on=0
             106 c1 4 ok write document=D version=1
             130 c2 22 invoke write grant=20 document=D value=y based_on={base}
             131 c2 22 ok write document=D version=2
             140 c2 23 invoke write grant=20 document=D value=z based_on=2
             141 c2 23 ok write document=D version=3"
        ))
    };
    assert_eq!(based_on(1).outcome("no-lost-update"), "holds");
    assert_eq!(based_on(0).says("no-lost-update"), ("violated", "broken"));
    let not_yet_there = based_on(3);
    not_yet_there.assert_fails("write 22 is based on what its client cannot have read");
    let not_there = based_on(7);
    not_there.assert_fails("write 22 is based on what its client cannot have read");
    assert_eq!(not_there.outcome("no-lost-update"), "unknown");
    assert_eq!(not_there.outcome("document"), "unknown");
}

#[test]
fn a_write_under_another_process_s_grant_is_none_of_that_grant_s() {
    let written = under_two_grants(
        "130 c1 4 invoke write grant=20 document=D value=x based_on=0
         131 c1 4 ok write document=D version=1
         140 c2 22 invoke write grant=20 document=D value=y based_on=0
         141 c2 22 ok write document=D version=2",
    );
    assert_eq!(written.outcome("no-lost-update"), "violated");
}

#[test]
fn a_write_is_based_on_what_its_grant_read() {
    let read = |version: u64, value: &str| {
        under_two_grants(&format!(
            "105 c1 4 invoke write grant=1 document=D value=x based_on=0
             106 c1 4 ok write document=D version=1
             125 c2 24 invoke read grant=20 document=D
             126 c2 24 ok read document=D version={version} value={value}
             130 c2 22 invoke write grant=20 document=D value=y based_on=1
             131 c2 22 ok write document=D version=2"
        ))
    };
    read(1, "x").assert_whole();
    read(0, "").assert_fails("write 22 is based on what its client cannot have read");
    assert_eq!(read(0, "").outcome("document"), "violated");
    assert_eq!(read(1, "z").outcome("document"), "violated");
    assert_eq!(read(5, "x").outcome("document"), "violated");
}

#[test]
fn a_value_that_nobody_told_may_be_any() {
    let of = |written: &str, read: &str| {
        under_two_grants(&format!(
            "105 c1 4 invoke write grant=1 document=D {written}
             106 c1 4 ok write document=D version=1
             125 c2 24 invoke read grant=20 document=D
             126 c2 24 ok read document=D version=1 {read}"
        ))
        .outcome("document")
    };
    assert_eq!(of("value=x", "value=x"), "holds");
    assert_eq!(of("value=x", "value=y"), "violated");
    assert_eq!(of("", "value=y"), "unknown");
    assert_eq!(of("value=x", ""), "unknown");
}

#[test]
fn a_write_that_was_acknowledged_is_in_the_log() {
    let logged = |rows: &str, entries: u64| {
        under_two_grants(&format!(
            "105 c1 4 invoke write grant=1 document=D value=x
             106 c1 4 ok write document=D version=1
             130 c2 22 invoke write grant=20 document=D value=y
             131 c2 22 ok write document=D version=2
             300 storage 800 invoke log
             {rows}
             303 storage 800 ok log entries={entries}"
        ))
    };
    let first = "301 storage 4 ok accepted document=D version=1 value=x";
    let both = format!("{first}\n302 storage 22 ok accepted document=D version=2 value=y");
    logged(&both, 2).assert_whole();
    assert_eq!(logged(first, 1).says("document").0, "violated");
    assert_eq!(logged(first, 2).outcome("document"), "unknown");
    logged(first, 2).assert_fails("the storage's log was not read to its end");
}

#[test]
fn a_lock_that_is_wanted_and_free_is_granted_within_its_bound() {
    let waits = |end: u64| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             201 c2 2 invoke acquire lock=L ttl_ms=100
             202 c2 2 fail acquire error=busy
             {end} c2 3 invoke acquire lock=L ttl_ms=100
             {end} c2 3 fail acquire error=busy"
        ))
    };
    assert_eq!(waits(501).outcome("progress"), "holds");
    assert_eq!(waits(502).says("progress"), ("violated", "broken"));
    let stopped = waits(502).fault("s1", "stops", 400, 420);
    assert_eq!(stopped.says("progress"), ("violated", "limit-shown"));
    let not_wanted = waits(502).fault("c2", "stops", 400, 420);
    assert_ne!(not_wanted.outcome("progress"), "violated");
    let stepped = waits(550).fault("s1", "clock-back", 50, 90);
    assert_eq!(stepped.says("progress"), ("violated", "limit-shown"));
    let unspoken = waits(502).fault("s1", "burns", 400, 420);
    assert_eq!(unspoken.says("progress"), ("violated", "unspecified"));
}

#[test]
fn between_two_attempts_of_which_neither_was_granted_the_lock_is_wanted() {
    let between = |first: &str, second: &str| {
        tale(&format!(
            "103 c2 2 invoke acquire lock=L ttl_ms=100
             {first}
             600 c2 3 invoke acquire lock=L ttl_ms=100
             {second}"
        ))
        .outcome("progress")
    };
    let (busy, timeout) = ("fail acquire error=busy", "info acquire error=timeout");
    let (first, second) = ("104 c2 2", "601 c2 3");
    for (one, other) in [
        (busy, busy),
        (busy, timeout),
        (timeout, busy),
        (timeout, timeout),
    ] {
        let said = between(&format!("{first} {one}"), &format!("{second} {other}"));
        assert_eq!(said, "violated", "{one}, {other}");
    }
    let granted = "ok acquire validity=700";
    let said = between(
        &format!("{first} {timeout}"),
        &format!("{second} {granted}"),
    );
    assert_eq!(said, "holds");
    let said = between(
        "104 c2 2 ok acquire validity=203",
        &format!("{second} {busy}"),
    );
    assert_ne!(said, "violated");
}

#[test]
fn who_is_hindered_but_not_held_wants_the_lock() {
    let waits = |effect: &str| {
        tale(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 fail acquire error=busy
             502 c1 3 invoke acquire lock=L ttl_ms=100
             502 c1 3 fail acquire error=busy",
        )
        .fault("c1", effect, 150, 450)
        .outcome("progress")
    };
    for effect in ["stops", "kills", "restarts", "holds-work"] {
        assert_ne!(waits(effect), "violated", "{effect}");
    }
    for effect in ["clock-forward", "clock-back", "burns"] {
        assert_eq!(waits(effect), "violated", "{effect}");
    }
}
