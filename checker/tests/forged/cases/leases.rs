//! How long leases are, and that whoever has one knows it.

use serde_json::Value;

use super::tale::{Tale, tale};

fn extended() -> Tale {
    tale(
        "101 c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity=201
         110 c1 2 invoke extend lock=L grant=1 ttl_ms=100
         111 c1 2 ok extend validity=210
         120 c1 9 info renewed grant=1 validity=220
         130 c1 3 invoke release lock=L grant=1
         131 c1 3 ok release",
    )
}

/// The history with a field of one event changed; without it, if it is null.
fn with(op: u64, kind: &'static str, field: &'static str, value: Value) -> Tale {
    extended().events(
        move |event| event["op"] == op && event["type"] == kind,
        move |event| {
            let fields = event.as_object_mut().expect("an event");
            fields.remove(field);
            if !value.is_null() {
                fields.insert(field.to_owned(), value.clone());
            }
        },
    )
}

fn ms(ms: u64) -> Value {
    (ms * crate::honest::MS).into()
}

#[test]
fn a_lease_is_no_longer_than_the_plan_says() {
    extended().assert_whole();
    with(1, "ok", "validity", ms(202)).assert_whole();
    with(1, "ok", "validity", ms(203)).assert_fails("1 tells too long a validity");
    with(2, "ok", "validity", ms(211)).assert_whole();
    with(2, "ok", "validity", ms(212)).assert_fails("2 tells too long a validity");
    with(9, "info", "validity", ms(221)).assert_fails("a renewal tells too long a validity");
    with(1, "ok", "validity", u64::MAX.into()).assert_fails("1 tells too long a validity");
}

#[test]
fn a_lease_is_asked_for_as_the_plan_says() {
    with(1, "invoke", "ttl_ms", 99.into()).assert_fails("1 asks for another TTL");
    with(1, "invoke", "ttl_ms", 101.into()).assert_fails("1 asks for another TTL");
    with(1, "invoke", "ttl_ms", Value::Null).assert_whole();
    with(2, "invoke", "ttl_ms", 101.into()).assert_fails("2 asks for another TTL");
    with(2, "invoke", "ttl_ms", 50.into()).assert_whole();
}

#[test]
fn whoever_has_a_lease_knows_until_when() {
    with(1, "ok", "validity", Value::Null).assert_fails("1 tells no validity");
    with(2, "ok", "validity", Value::Null).assert_fails("2 tells no validity");
    let unasked = with(1, "invoke", "ttl_ms", Value::Null).events(
        |event| event["op"] == 1 && event["type"] == "ok",
        |event| drop(event.as_object_mut().map(|event| event.remove("validity"))),
    );
    unasked.assert_fails("grant 1 has no validity, and others have");
    // A lock without expiry has none at all.
    let endless = unasked.events(
        |_| true,
        |event| {
            for field in ["validity", "ttl_ms"] {
                event.as_object_mut().map(|event| event.remove(field));
            }
            if event["f"] == "renewed" {
                event["validity"] = ms(220);
            }
        },
    );
    endless.assert_whole();
}
