//! What excuses a violation, and what does not.

use histories::{Hazard, Promise};

use crate::Class;
use crate::timeline::{Timeline, timeline};

const LIMITS: [Hazard; 3] = [
    Hazard::ClientStopped,
    Hazard::WorkHeld,
    Hazard::ServerClockForward,
];

/// A contract of a lease: everything is promised, but for what a late holder and a clock that jumps ahead break.
fn leased(text: &str) -> Timeline {
    let mut history = timeline(text).with_heartbeats().with_its_faults();
    for property in ["mutual-exclusion", "exclusive-belief", "no-stale-write"] {
        history = history.says(property, Promise::Promised, &[Hazard::Nothing]);
        let limits = match property {
            "mutual-exclusion" => &LIMITS[2..],
            _ => &LIMITS[..],
        };
        history = history.says(property, Promise::NotPromised, limits);
    }
    history
}

/// Two certain holders at 22 ms, and a clock that is stepped at `at`.
fn double_holder(at: u64) -> Timeline {
    leased(&two_holders(at))
}

fn two_holders(at: u64) -> String {
    format!(
        "10 c1 acquire#1
         12 c1 acquire#1 ok validity=310
         20 c2 acquire#2
         22 c2 acquire#2 ok validity=320
         {at} nemesis inject#9 step=0 fault=clock-forward on=s1
         {at} nemesis inject#9 ok step=0
         60 c1 release#3 grant=1
         61 c2 release#4 grant=2"
    )
}

#[test]
fn a_fault_that_had_not_begun_excuses_nothing() {
    assert_eq!(
        double_holder(15).class("mutual-exclusion"),
        Class::LimitShown
    );
    assert_eq!(double_holder(40).class("mutual-exclusion"), Class::Broken);
    assert_eq!(
        double_holder(5).class("mutual-exclusion"),
        Class::LimitShown
    );
}

#[test]
fn a_fault_that_was_over_before_a_grant_was_asked_for_excuses_nothing() {
    let heal = "6 nemesis heal#8 step=0 fault=clock-forward on=s1\n7 nemesis heal#8 ok step=0";
    let healed = double_holder(5).and(heal);
    assert_eq!(healed.class("mutual-exclusion"), Class::Broken);
}

#[test]
fn a_violation_that_nothing_excuses_is_looked_for_first() {
    let history = double_holder(15).and(
        "500 nemesis heal#8 step=0 fault=clock-forward on=s1
         501 nemesis heal#8 ok step=0
         600 c1 acquire#11
         601 c1 acquire#11 ok validity=900
         602 c2 acquire#12
         603 c2 acquire#12 ok validity=900",
    );
    assert_eq!(history.class("mutual-exclusion"), Class::Broken);
    let verdict = history.bare_verdict();
    let found = verdict.property("mutual-exclusion").unwrap();
    assert_eq!(found.outcome.witness().unwrap().operations, [11, 12]);
    assert_eq!(found.violations, 2);
}

/// c1 acts past its validity, at 310 ms, until 402 ms; c2 takes over and writes before.
fn outlived(what_happened: &str) -> Timeline {
    late(400, what_happened)
}

/// The same with a write that is in flight all the time.
fn kept_waiting(what_happened: &str) -> Timeline {
    late(180, what_happened)
}

fn late(written_at: u64, what_happened: &str) -> Timeline {
    leased(&format!(
        "10 c1 acquire#1
         12 c1 acquire#1 ok token=3 validity=310
         {what_happened}
         320 c2 acquire#2
         321 c2 acquire#2 ok token=4 validity=700
         330 c2 write#3 grant=2 value=b
         331 c2 write#3 ok version=1
         {written_at} c1 write#4 grant=1 value=a
         402 c1 write#4 ok version=2
         403 c1 release#5 grant=1
         404 c2 release#6 grant=2"
    ))
}

/// A fault on c1, from one instant to another.
fn pause(host: &str, from: u64, until: u64) -> String {
    format!(
        "{from} nemesis inject#9 step=0 fault=pause on={host}
         {from} nemesis inject#9 ok step=0
         {until} nemesis heal#8 step=0 fault=pause on={host}
         {until} nemesis heal#8 ok step=0"
    )
}

#[test]
fn a_holder_that_was_held_up_is_a_limit_of_a_lease() {
    for property in ["exclusive-belief", "no-stale-write"] {
        let class = |what: &str| outlived(what).class(property);
        assert_eq!(class(&pause("c1", 100, 390)), Class::LimitShown);
        assert_eq!(
            class(&pause("c2", 100, 200)),
            Class::Broken,
            "another's pause"
        );
        assert_eq!(
            class(&pause("c1", 20, 40)),
            Class::Broken,
            "it explains 20 ms of 93"
        );
        assert_eq!(class(""), Class::Broken);
    }
    let exclusion = outlived(&pause("c1", 100, 390)).class("mutual-exclusion");
    assert_ne!(exclusion, Class::Broken);
}

#[test]
fn a_stall_that_was_recorded_is_no_fault_of_the_lock() {
    let stall = |process: &str| format!("390 {process} stall#9 info stalled_ms=200");
    let class = |what: &str| outlived(what).class("no-stale-write");
    assert_eq!(class(&stall("c1")), Class::LimitShown);
    assert_eq!(class(&stall("c2")), Class::Broken);
}

#[test]
fn a_storage_that_kept_a_client_waiting_is_no_fault_of_the_lock() {
    let waits = |process: &str| format!("390 {process} stall#9 info on=storage stalled_ms=200");
    let class = |history: Timeline| {
        let history = history.says("no-stale-write", Promise::NotPromised, &[Hazard::WriteHeld]);
        history.class("no-stale-write")
    };
    assert_eq!(class(kept_waiting(&waits("c1"))), Class::LimitShown);
    assert_eq!(class(kept_waiting(&waits("c2"))), Class::Broken);
    let nothing_waited = outlived(&waits("c1"));
    assert_eq!(class(nothing_waited), Class::Broken);
}

#[test]
fn a_stall_of_a_server_or_of_the_storage_is_a_stop_that_touches_all_clients() {
    let class = |history: Timeline, property: &str, limit, other| {
        history
            .says(property, Promise::NotPromised, &[limit])
            .says(property, Promise::Promised, &[other])
            .class(property)
    };
    let (stopped, held) = (Hazard::ServerStopped, Hazard::WriteHeld);
    let of_server = double_holder(40).and("21 s1 stall#0 info stalled_ms=5");
    let exclusion = |limit, other| class(of_server.clone(), "mutual-exclusion", limit, other);
    assert_eq!(exclusion(stopped, held), Class::LimitShown);
    assert_eq!(exclusion(held, stopped), Class::Broken);
    let of_storage = "330.5 storage stall#0 info stalled_ms=140";
    let order = |history, limit, other| class(history, "no-stale-write", limit, other);
    assert_eq!(
        order(kept_waiting(of_storage), held, stopped),
        Class::LimitShown
    );
    assert_eq!(
        order(kept_waiting(of_storage), stopped, held),
        Class::Broken
    );
    assert_eq!(
        order(outlived(of_storage), held, stopped),
        Class::Broken,
        "nothing waited for the storage"
    );
}

#[test]
fn where_stalls_are_not_recorded_nobody_knows_why_a_holder_was_late() {
    let mut history = outlived("");
    assert_eq!(history.class("no-stale-write"), Class::Broken);
    history = history.without_heartbeats();
    assert_eq!(history.class("no-stale-write"), Class::Unspecified);
    assert_eq!(
        double_holder(40)
            .without_heartbeats()
            .class("mutual-exclusion"),
        Class::Broken,
        "no stall makes two certain holders"
    );
}

#[test]
fn what_nobody_said_is_unspecified() {
    let unsaid = |fault: &str| {
        let text = double_holder(15);
        text.and(&format!(
            "14 nemesis inject#19 step=1 fault={fault} on=s1\n14 nemesis inject#19 ok step=1"
        ))
    };
    assert_eq!(unsaid("pause").class("mutual-exclusion"), Class::LimitShown);
    let history = timeline(
        "10 c1 acquire#1
         12 c1 acquire#1 ok validity=310
         15 nemesis inject#9 step=0 fault=earthquake on=s1
         15 nemesis inject#9 ok step=0
         20 c2 acquire#2
         22 c2 acquire#2 ok validity=320",
    )
    .says("mutual-exclusion", Promise::Promised, &[Hazard::Nothing]);
    assert_eq!(history.class("mutual-exclusion"), Class::Unspecified);
    assert_eq!(history.class("exclusive-belief"), Class::Unspecified);
}

#[test]
fn what_a_server_forgot_concerns_all_that_it_grants_afterwards() {
    let history = |fault: &str| {
        timeline(&format!(
            "10 c1 acquire#1
             12 c1 acquire#1 ok token=9 validity=40
             13 c1 release#2 grant=1
             14 c1 release#2 ok
             50 nemesis inject#9 step=0 fault={fault} on=s1
             51 nemesis inject#9 ok step=0
             52 nemesis heal#8 step=0 fault={fault} on=s1
             53 nemesis heal#8 ok step=0
             60 c2 acquire#3
             62 c2 acquire#3 ok token=1 validity=90"
        ))
        .with_its_faults()
        .says("token-order", Promise::Promised, &[Hazard::Nothing])
        .says(
            "token-order",
            Promise::NotPromised,
            &[Hazard::ServerRestarted, Hazard::ServerStopped],
        )
    };
    assert_eq!(history("restart").class("token-order"), Class::LimitShown);
    assert_eq!(history("pause").class("token-order"), Class::Broken);
}

#[test]
fn healing_a_step_of_a_clock_is_a_step_the_other_way() {
    let healed = leased(
        "10 c1 acquire#1
         12 c1 acquire#1 ok validity=310
         13 nemesis inject#9 step=0 fault=clock-back on=s1
         14 nemesis inject#9 ok step=0
         18 nemesis heal#8 step=0 fault=clock-back on=s1
         19 nemesis heal#8 ok step=0
         20 c2 acquire#2
         22 c2 acquire#2 ok validity=320",
    )
    .says(
        "mutual-exclusion",
        Promise::Promised,
        &[Hazard::ServerClockBack],
    );
    assert_eq!(healed.class("mutual-exclusion"), Class::LimitShown);
}

#[test]
fn holding_is_kept_only_where_it_was_promised() {
    let history = timeline(
        "10 c1 acquire#1
         12 c1 acquire#1 ok validity=310
         13 c1 release#2 grant=1
         14 c1 release#2 ok
         20 c2 acquire#3
         22 c2 acquire#3 ok validity=320
         23 c2 release#4 grant=3
         24 c2 release#4 ok",
    )
    .completed();
    let says = |promise| {
        let said = history
            .clone()
            .says("mutual-exclusion", promise, &[Hazard::Nothing]);
        said.class("mutual-exclusion")
    };
    assert_eq!(says(Promise::Promised), Class::Kept);
    assert_eq!(says(Promise::NotPromised), Class::LimitNotShown);
    assert_eq!(history.class("mutual-exclusion"), Class::Unspecified);
    let contradicted = history
        .clone()
        .says("mutual-exclusion", Promise::NotPromised, &[Hazard::Nothing])
        .says("mutual-exclusion", Promise::Promised, &[Hazard::Nothing]);
    assert_eq!(contradicted.class("mutual-exclusion"), Class::Unspecified);
}

#[test]
fn what_was_promised_and_not_seen_is_unknown() {
    let history = timeline("10 c1 acquire#1\n12 c1 acquire#1 ok").says(
        "token-order",
        Promise::Promised,
        &[Hazard::Nothing],
    );
    assert_eq!(history.class("token-order"), Class::Unknown);
}

/// c2 and then c3 are granted the lock after c1, and write; c3 crashes. Then c1 writes, and is granted a lower token.
fn overtaken(by_c2: bool) -> Timeline {
    let c2 = "320 c2 acquire#2
         321 c2 acquire#2 ok token=9 validity=330
         322 c2 write#3 grant=2 token=9 based_on=0 value=b
         323 c2 write#3 ok version=1
         324 c2 release#7 grant=2
         325 c2 release#7 ok";
    let mut history = timeline(&format!(
        "10 c1 acquire#1
         12 c1 acquire#1 ok token=4 validity=310
         {}
         340 c3 acquire#4
         341 c3 acquire#4 ok token=10 validity=700
         342 c3 write#5 grant=4 token=10 based_on=0 value=c
         343 c3 write#5 ok version=2
         350 nemesis inject#9 step=0 fault=crash on=c3
         350 nemesis inject#9 ok step=0
         400 c1 write#6 grant=1 token=4 based_on=0 value=a
         402 c1 write#6 ok version=3
         403 c1 release#8 grant=1
         404 c1 release#8 ok
         720 c1 acquire#10
         721 c1 acquire#10 ok token=5 validity=900",
        if by_c2 { c2 } else { "11 c2 point#99" }
    ));
    for property in ["no-stale-write", "no-lost-update", "token-order"] {
        history = history
            .says(property, Promise::Promised, &[Hazard::Nothing])
            .says(property, Promise::NotPromised, &[Hazard::ClientCrashed]);
    }
    history.with_heartbeats().with_its_faults()
}

#[test]
fn a_fault_that_is_not_shown_excuses_only_perhaps() {
    let shown = two_holders(15);
    let class = |text: &str| leased(text).class("mutual-exclusion");
    assert_eq!(class(&shown), Class::LimitShown);
    for (part, other) in [
        ("inject#9 ok step=0", "inject#9 ok step=0 evidence=no"),
        ("inject#9 ok step=0", "inject#9 info step=0"),
        ("inject#9 ok step=0", "inject#9 ok step=0 on=s2"),
    ] {
        let doubtful = class(&shown.replace(part, other));
        assert_eq!(doubtful, Class::Unspecified, "{other}");
    }
}

#[test]
fn clauses_speak_of_one_server() {
    let second = "16 nemesis inject#19 step=1 fault=pause on=s2\n16 nemesis inject#19 ok step=1";
    let paused = |history: Timeline| {
        history.says(
            "mutual-exclusion",
            Promise::Promised,
            &[Hazard::ServerStopped],
        )
    };
    let pause = "14 nemesis inject#29 step=0 fault=pause on=s1\n14 nemesis inject#29 ok step=0";
    let of = |text: &str| {
        let two_holders = "10 c1 acquire#1\n12 c1 acquire#1 ok validity=310\n20 c2 acquire#2\n22 c2 acquire#2 ok validity=320";
        paused(leased(&format!("{two_holders}\n{text}"))).class("mutual-exclusion")
    };
    assert_eq!(of(pause), Class::Broken);
    assert_eq!(of(&format!("{pause}\n{second}")), Class::Unspecified);
    let over = "15 nemesis heal#39 step=0 fault=pause on=s1\n15.5 nemesis heal#39 ok step=0";
    assert_eq!(of(&format!("{pause}\n{over}\n{second}")), Class::Broken);
}

#[test]
fn waits_that_make_work_as_long_as_the_lease_are_no_fault_of_the_lock() {
    let late = |read_from: u64, read_until: u64| {
        leased(&format!(
            "10 c1 acquire#1
             12 c1 acquire#1 ok validity=310
             13 c1 work#4 grant=1
             {read_from} c1 read#5 grant=1
             {read_until} c1 read#5 ok version=0
             313 c2 acquire#2
             315 c2 acquire#2 ok validity=600
             316 c2 work#6 grant=2
             317 c2 work#6 ok
             330 c1 work#4 ok"
        ))
        .class("exclusive-belief")
    };
    assert_eq!(late(20, 270), Class::LimitShown);
    assert_eq!(late(20, 40), Class::Broken);
}

#[test]
fn a_grant_that_is_excused_hides_none_that_is_not() {
    for property in ["no-stale-write", "no-lost-update", "token-order"] {
        let class = |by_c2| overtaken(by_c2).class(property);
        assert_eq!(class(false), Class::LimitShown, "{property}");
        assert_eq!(class(true), Class::Broken, "{property}");
    }
}
