use histories::{Kind, Writer};
use histories::{Plan, Seal};
use serde_json::json;

use super::*;
use crate::timeline::{header, plan, timeline};

const WORKING: &str = "10 c1 acquire#1
    12 c1 acquire#1 ok token=1 validity=310
    13 c1 read#2 grant=1
    14 c1 read#2 ok version=0 value=
    15 c1 write#3 grant=1 token=1 based_on=0 value=a
    16 c1 write#3 ok version=1
    17 c1 release#4 grant=1
    18 c1 release#4 ok
    20 c2 acquire#11
    22 c2 acquire#11 ok token=2 validity=320
    25 c2 write#13 grant=11 token=2 based_on=1 value=b
    26 c2 write#13 ok version=2
    27 c2 release#14 grant=11
    28 c2 release#14 ok";

#[test]
fn a_working_history_holds_in_all_that_it_speaks_to() {
    let verdict = timeline(WORKING).verdict();
    assert_eq!(verdict.assumptions, Vec::<String>::new());
    let found: Vec<_> = verdict
        .properties
        .iter()
        .map(|found| (found.name.as_str(), found.outcome.answer()))
        .collect();
    let expected: Vec<_> = properties()
        .iter()
        .map(|property| (property.name, Answer::Holds))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(verdict.outcome, Answer::Holds);
    let counts = Counts {
        operations: 7,
        grants: 2,
        outlived: 0,
        writes_accepted: 2,
        writes_rejected: 0,
        unknown: 0,
    };
    assert_eq!(
        (verdict.counts, verdict.events, verdict.seal),
        (counts, 20, Seal::Sealed)
    );
}

#[test]
fn a_verdict_is_written_as_the_design_says_and_read_back() {
    let verdict = timeline(&format!(
        "{WORKING}\n40 c1 acquire#5\n41 c1 acquire#5 ok token=2 validity=50"
    ))
    .verdict();
    let written = serde_json::to_value(&verdict).unwrap();
    assert_eq!(written["outcome"], "violated");
    assert_eq!(
        written["properties"][0],
        json!({ "name": "mutual-exclusion", "outcome": "holds", "violations": 0, "contract": "unspecified",
                "class": "unspecified", "why": "the contract says nothing of it under `nothing`" })
    );
    let order = &written["properties"][2];
    assert_eq!(
        (&order["name"], &order["outcome"]),
        (&json!("token-order"), &json!("violated"))
    );
    assert_eq!(order["witness"]["operations"], json!([11, 5]));
    assert_eq!(order["witness"].get("overlap_ms"), None);
    assert_eq!(order["witness"]["events"][1]["token"], json!(2));
    assert_eq!(
        serde_json::from_str::<Verdict>(&written.to_string()).unwrap(),
        verdict
    );
}

#[test]
fn a_history_that_is_cut_holds_in_nothing_and_is_violated_all_the_same() {
    let verdict = timeline(WORKING).cut().verdict();
    assert_eq!(verdict.outcome, Answer::Unknown);
    let reasons: Vec<_> = verdict
        .properties
        .iter()
        .map(|found| found.outcome.reason().unwrap())
        .collect();
    assert_eq!(reasons, ["the history is cut after 14 events"; 8]);
    timeline(&format!(
        "{WORKING}\n40 c1 acquire#5\n41 c1 acquire#5 ok token=1"
    ))
    .cut()
    .witness("token-order");
}

#[test]
fn an_empty_history_and_one_without_clients_are_unknown() {
    let verdict = timeline("").verdict();
    assert_eq!(
        (verdict.outcome, verdict.properties.len()),
        (Answer::Unknown, 0)
    );
    assert_eq!(verdict.assumptions, ["no client did anything"]);
    let verdict =
        timeline("13 nemesis inject#1 fault=pause on=c1\n14 nemesis inject#1 ok").verdict();
    assert_eq!(verdict.outcome, Answer::Unknown);
}

#[test]
fn counts_what_nobody_learned_unless_the_log_tells_it() {
    let unknown = "30 c1 acquire#5
        31 c1 acquire#5 info
        32 c1 release#6 grant=5
        33 c1 release#6 info
        34 c1 work#7
        34 c1 write#8 value=c
        35 c1 write#8 info";
    assert_eq!(
        timeline(&format!("{WORKING}\n{unknown}"))
            .verdict()
            .counts
            .unknown,
        4
    );
    let log = "40 storage log#9\n41 storage accepted#3 version=1\n41 storage accepted#13 version=2\n42 storage log#9 ok entries=2";
    assert_eq!(
        timeline(&format!("{WORKING}\n{unknown}\n{log}"))
            .verdict()
            .counts
            .unknown,
        3
    );
}

#[test]
fn only_what_is_asked_for_is_judged() {
    let verdict = timeline(WORKING)
        .judge(Options::only(["progress"]).unwrap())
        .unwrap();
    assert_eq!(
        (
            verdict.properties.len(),
            verdict.properties[0].name.as_str()
        ),
        (1, "progress")
    );
    assert_eq!(verdict.efficiency, None);
    let error = Options::only(["progres"]).unwrap_err().to_string();
    assert!(
        error.starts_with("there is no property `progres`: choose from `mutual-exclusion`, "),
        "{error}"
    );
}

#[test]
fn events_that_nobody_understands_are_errors() {
    let message = |text: &str| {
        timeline(text)
            .judge(Options::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message("1 c1 release#3"),
        "an event of `release` (op 3) has no `grant`: add the field"
    );
    assert_eq!(
        message("1 storage accepted#3 ok"),
        "an event of `accepted` (op 3) has no `version`: add the field"
    );
    assert_eq!(
        message("1 nemesis inject#3"),
        "an event of `inject` (op 3) has no `fault`: add the field"
    );
    let mut checker = Checker::new(&header(plan()), Options::default());
    let at = |t| Event::new(t, "c1", 7, Kind::Invoke, Function::Point);
    checker.push(&at(5)).unwrap();
    let error = checker.push(&at(4)).unwrap_err().to_string();
    assert_eq!(
        error,
        "op 7 has an event at 4 ns after one at 5 ns: order the events by `t`"
    );
}

/// A history file with these events, and whether it has its footer.
fn file(events: &[Event<'_>], complete: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let plan = Plan {
        clients: 2,
        ..plan()
    };
    let mut writer = Writer::new(&mut file, &header(plan)).unwrap();
    events.iter().for_each(|event| writer.write(event).unwrap());
    if complete {
        writer.finish().unwrap();
    } else {
        writer.flush().unwrap();
        drop(writer);
    }
    file
}

#[test]
fn a_file_is_judged_as_its_events_are_in_whatever_order_they_stand() {
    let mut events = timeline(WORKING).completed().events().to_vec();
    for complete in [true, false] {
        let expected = if complete {
            timeline(WORKING).verdict()
        } else {
            timeline(WORKING).completed().cut().verdict()
        };
        let ordered = file(&events, complete);
        assert_eq!(
            check(|| Reader::new(ordered.as_slice()), Options::default()).unwrap(),
            expected
        );
        events.rotate_left(5);
        let rotated = file(&events, complete);
        let judged = check(|| Reader::new(rotated.as_slice()), Options::default()).unwrap();
        if complete {
            let unordered = "its events are not in the order of their times";
            assert_eq!(
                judged.assumptions,
                [unordered],
                "whoever closed it had put it in order"
            );
        } else {
            assert_eq!(judged, expected);
        }
        events.rotate_right(5);
    }
}

#[test]
fn an_error_names_the_line() {
    let release = Event::new(50_000_000, "c1", 7, Kind::Invoke, Function::Release);
    let mut events = timeline(WORKING).events().to_vec();
    events.push(release);
    let text = file(&events, true);
    let error = check(|| Reader::new(text.as_slice()), Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 16: an event of `release` (op 7) has no `grant`: add the field"
    );
    events.rotate_right(1);
    let text = file(&events, true);
    let error = check(|| Reader::new(text.as_slice()), Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("line 2: "), "{error}");
}
