//! Each assumption can fail.

use serde_json::{Value, json};

use super::tale::{changed, paused, without};

#[test]
fn the_run_is_whole_to_begin_with() {
    paused().assert_whole();
}

#[test]
fn a_file_is_sealed() {
    let mut cut = paused();
    cut.file.has_footer = false;
    cut.assert_fails("the history is cut");
    let mut edited = paused();
    let events = edited.file.events.len();
    edited.file.footer = Some(json!({"events": events, "sha256": "00"}));
    edited.assert_fails("the history was edited");
    edited.file.footer = Some(json!({"events": events}));
    edited.assert_fails("the history was edited");
    edited.file.footer = Some(json!({"events": events + 1}));
    assert!(crate::judge::judge(&edited.file.text()).is_err());
}

#[test]
fn something_worked_before_and_after() {
    without(|e| e["t"].as_u64() < Some(300_000_000))
        .assert_fails("nothing worked before the first fault");
    let idle =
        |e: &Value| e["t"].as_u64() > Some(450_000_000) && e["f"] != "exit" && e["process"] == "c1";
    without(idle).assert_fails("no lock was granted after the last fault");
}

#[test]
fn the_log_is_read_to_its_end_after_the_last_write() {
    without(|e| e["process"] == "storage")
        .assert_fails("the storage's log was not read to its end");
    let early = paused().events(|e| e["process"] == "storage", |e| e["t"] = 2_000_000.into());
    early.assert_fails("the log was not read after write 3");
}

#[test]
fn operations_fit() {
    let doubled = changed("read", |e| e["op"] = 3.into());
    doubled.assert_fails("operation 3 is invoked twice");
    assert!(doubled.judged().is_garbled);
    assert!(!paused().judged().is_garbled);
    without(|e| e["f"] == "read" && e["type"] == "invoke")
        .assert_fails("a completion of 2 fits no invocation");
    let other = paused().events(
        |e| e["f"] == "write" && e["type"] == "ok",
        |e| e["document"] = "E".into(),
    );
    other.assert_fails("operation 3 completes with another document");
    let of_nobody = other.events(|e| e["process"] == "c1", |e| e["process"] = "x1".into());
    of_nobody.assert_fails("operation 3 completes with another document");
    let both = paused().events(
        |e| e["f"] == "read" && e["type"] == "ok",
        |e| e["t"] = 504_500_000.into(),
    );
    both.assert_fails("2 and 3 at a time");
}

#[test]
fn acts_are_under_a_grant_of_their_own_process_with_its_token() {
    changed("read", |e| e["grant"] = 904.into()).assert_fails("2 is under no grant of its process");
    changed("write", |e| e["grant"] = Value::Null)
        .assert_fails("3 is under no grant of its process");
    changed("write", |e| e["token"] = 1.into())
        .assert_fails("write 3 lacks the token of its grant");
    let asked = paused().header(|header| header["plan"]["write_condition"] = "token".into());
    asked.assert_fails("write 3 lacks the token of its grant");
    let one = paused().events(
        |e| e["op"] == 1 && e["type"] == "ok",
        |e| e["token"] = 7.into(),
    );
    one.assert_fails("grant 901 has no token");
}

#[test]
fn rows_are_of_writes_as_they_were_sent() {
    for field in ["op", "value", "token"] {
        changed("accepted", |e| e[field] = json!(99))
            .assert_fails("a row of the log is of no write");
    }
}

#[test]
fn remarks_and_rows_are_of_their_type_and_process() {
    let remark = |f: &str, kind: &str| {
        paused().and(json!({"t": 502_500_000, "process": "c1", "op": 77, "type": kind, "f": f, "grant": 1, "validity": 600_000_000}))
    };
    remark("renewed", "info").assert_whole();
    for (f, kind) in [
        ("renewed", "ok"),
        ("lost", "invoke"),
        ("stall", "fail"),
        ("exit", "ok"),
    ] {
        remark(f, kind).assert_fails("this is not of its type or process");
    }
    for kind in ["invoke", "fail", "info"] {
        changed("accepted", |e| e["type"] = kind.into())
            .assert_fails("this is not of its type or process");
    }
    for process in ["c1", "s1", "nemesis"] {
        changed("log", |e| e["process"] = process.into())
            .assert_fails("this is not of its type or process");
        changed("accepted", |e| e["process"] = process.into())
            .assert_fails("this is not of its type or process");
    }
}

#[test]
fn answers_are_to_what_was_asked() {
    for (field, told) in [("ttl_ms", 99), ("wait_ms", 1)] {
        let asked = changed("acquire", |e| {
            e[field] = if e["type"] == "invoke" {
                100.into()
            } else {
                told.into()
            }
        });
        asked.assert_fails("operation 901 completes with another");
    }
}

#[test]
fn the_log_has_each_write_once_and_after_it_began() {
    let mut twice = paused();
    let row = twice
        .file
        .events
        .iter()
        .find(|e| e["f"] == "accepted")
        .cloned()
        .expect("a row");
    twice.file.events.push(row);
    twice.file.sort();
    twice.assert_fails("the log has write 3 twice");
    let foreseen = changed("accepted", |e| e["t"] = 503_000_000.into());
    foreseen.assert_fails("the log has write 3 before it began");
}

#[test]
fn events_are_in_the_order_of_their_times() {
    let mut swapped = paused();
    swapped.file.events.swap(3, 4);
    swapped.assert_fails("the events are not in order");
    swapped.file.has_footer = false;
    let fails = swapped.judged().assumptions;
    assert!(
        !fails.iter().any(|failure| failure.contains("order")),
        "{fails:?}"
    );
}

#[test]
fn two_clients_compete() {
    let refused = |e: &Value| e["op"] == 902;
    without(refused).assert_fails("no two clients competed");
    let alone = paused().events(
        |e| e["op"] == 904 || e["op"] == 905,
        |e| e["process"] = "c3".into(),
    );
    alone.assert_fails("no two clients competed");
}

#[test]
fn reads_and_writes_tell_what_they_read_and_wrote() {
    let read = |value: Value| {
        paused().events(
            |e| e["f"] == "read" && e["type"] == "ok",
            |e| e["value"] = value.clone(),
        )
    };
    read(json!("")).assert_whole();
    read(Value::Null).assert_fails("2 tells no value");
    for kind in ["fail", "info"] {
        let unread = read(Value::Null).events(
            |e| e["f"] == "read" && e["type"] == "ok",
            |e| e["type"] = kind.into(),
        );
        unread.assert_whole();
    }
    let written = |kind: &'static str| {
        paused()
            .events(
                |e| e["f"] == "write" && e["type"] == "ok",
                |e| e["type"] = kind.into(),
            )
            .events(|e| e["f"] == "write", |e| e["value"] = Value::Null)
    };
    for kind in ["ok", "fail", "info"] {
        written(kind).assert_fails("3 tells no value");
    }
}

#[test]
fn all_writes_say_what_they_are_based_on_or_none_does() {
    let again = |first: Value, second: Value| {
        let mut write = json!({
            "t": 505_200_000, "process": "c1", "op": 5, "type": "invoke", "f": "write", "grant": 1, "document": "E",
            "value": "y",
        });
        write["based_on"] = second;
        let mut done = write.clone();
        (done["t"], done["type"]) = (json!(505_300_000), "fail".into());
        paused()
            .events(
                |e| e["f"] == "write" && e["type"] == "invoke",
                |e| {
                    e["based_on"] = first.clone();
                },
            )
            .and(write)
            .and(done)
    };
    again(json!(0), json!(0)).assert_whole();
    again(Value::Null, Value::Null).assert_whole();
    again(json!(0), Value::Null).assert_fails("write 5 is based on nothing, and others are not");
    again(Value::Null, json!(0)).assert_fails("write 3 is based on nothing, and others are not");
    let silent = again(Value::Null, Value::Null);
    assert_eq!(silent.outcome("no-lost-update"), "unknown");
}

#[test]
fn a_log_is_of_the_document_that_was_asked_for() {
    let log = |asked: Value, told: Value| {
        changed("log", |e| {
            let is_asked = e["type"] == "invoke";
            e["document"] = if is_asked {
                asked.clone()
            } else {
                told.clone()
            };
        })
    };
    log(json!("D"), json!("D")).assert_whole();
    log(json!("D"), Value::Null).assert_whole();
    log(Value::Null, json!("D")).assert_whole();
    log(json!("D"), json!("E")).assert_fails("operation 800 completes with another document");
}

#[test]
fn a_reading_of_the_log_that_ended_has_as_many_rows_as_it_says() {
    let read_again = |entries: Value| {
        let again = json!({"t": 900_000_000, "process": "storage", "op": 850, "type": "invoke", "f": "log"});
        let mut done = again.clone();
        done["t"] = 900_000_001.into();
        done["type"] = "ok".into();
        done["entries"] = entries;
        paused().and(again).and(done)
    };
    for entries in [json!(1), json!(999), Value::Null] {
        read_again(entries).assert_fails("the log 850 has not as many rows as it says");
    }
    read_again(json!(0)).assert_fails("a log was read twice");
}

#[test]
fn who_is_refused_for_another_reason_does_not_compete() {
    let refused = |error: &'static str| {
        changed("acquire", move |e| {
            if e["type"] == "fail" {
                e["error"] = error.into();
            }
        })
    };
    refused("busy").assert_lacks("no two clients competed");
    refused("connection refused").assert_fails("no two clients competed");
}
