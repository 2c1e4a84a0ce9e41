mod faults;

use crate::Answer;
use crate::timeline::{Timeline, timeline};

const ROUND: &str = "10 c1 acquire#1
    12 c1 acquire#1 ok token=1 validity=310
    15 c1 write#3 grant=1 token=1 based_on=0 value=a
    16 c1 write#3 ok version=1
    17 c1 release#4 grant=1
    18 c1 release#4 ok";
const LATER: &str = "40 c2 acquire#11
    42 c2 acquire#11 ok token=2 validity=340
    45 c2 write#13 grant=11 token=2 based_on=1 value=b
    46 c2 write#13 ok version=2
    47 c2 release#14 grant=11
    48 c2 release#14 ok";

fn with(text: &str) -> Timeline {
    timeline(&format!("{ROUND}\n{LATER}\n{text}"))
}

/// The failures of a history in which nothing is violated, but which holds in nothing either.
fn failures(history: &Timeline) -> Vec<String> {
    let verdict = history.verdict();
    assert!(
        verdict
            .properties
            .iter()
            .all(|found| found.outcome.answer() == Answer::Unknown),
        "{verdict:#?}"
    );
    verdict.assumptions
}

#[test]
fn clients_have_one_operation_of_a_kind_in_flight() {
    let overlap =
        with("50 c1 acquire#5\n51 c1 acquire#6\n52 c1 acquire#5 fail\n53 c1 acquire#6 fail");
    assert_eq!(
        failures(&overlap),
        ["c1 began op 6 (acquire) while its op 5 was in flight"]
    );
    let both_kinds = with(
        "50 c1 write#5 value=c based_on=2\n51 c1 acquire#6\n52 c1 acquire#6 fail\n53 c1 write#5 fail",
    );
    assert_eq!(both_kinds.verdict().outcome, Answer::Holds);
}

#[test]
fn operations_have_ids_of_their_own_and_fit_their_completions() {
    assert_eq!(
        failures(&with("50 c1 read#3\n51 c1 read#3 ok version=2")),
        [
            "two operations have the id 3",
            "c1 completed op 3 (read), which was not in flight",
            "the storage's log has op 3 as version 1 of `d`, which no client began",
        ]
    );
    assert_eq!(
        failures(&with("50 c1 read#5 \n51 c1 write#5 ok version=3")),
        ["the completion of op 5 does not fit its invocation"]
    );
    assert_eq!(
        failures(&with("50 c1 read#5 \n51 c2 read#5 ok version=2")),
        ["the completion of op 5 does not fit its invocation"]
    );
    for (asked, told) in [
        (
            "write#5 based_on=2 token=1 value=c",
            "write#5 ok token=9 version=3",
        ),
        (
            "write#5 based_on=2 value=c",
            "write#5 ok based_on=1 version=3",
        ),
        ("acquire#5", "acquire#5 ok lock=other token=3 validity=400"),
    ] {
        assert_eq!(
            failures(&with(&format!("50 c1 {asked}\n51 c1 {told}"))),
            ["the completion of op 5 does not fit its invocation"]
        );
    }
    let many = with("50 c1 read#5 ok\n51 c1 read#6 ok\n52 c1 read#7 ok");
    assert_eq!(
        failures(&many),
        ["c1 completed op 5 (read), which was not in flight (and 2 more like it)"]
    );
}

#[test]
fn an_accepted_write_tells_its_version_even_if_the_log_has_it() {
    let log = "60 storage log#9
        61 storage accepted#3 ok version=1
        61 storage accepted#13 ok version=2
        62 storage log#9 ok entries=2";
    let later = LATER.replace("write#13 ok version=2", "write#13 ok");
    assert_eq!(
        failures(&timeline(&format!("{ROUND}\n{later}\n{log}"))),
        ["write 13 was accepted and returned no version"]
    );
}

#[test]
fn operations_are_done_under_grants_of_their_own_process() {
    let of = |grant: u64| failures(&with(&format!("50 c1 work#5 grant={grant}"))).remove(0);
    assert_eq!(
        of(99),
        "c1's op 5 (work) has the grant 99 of an acquire that is not there"
    );
    assert_eq!(
        of(11),
        "c1's op 5 (work) has the grant 11 of another process"
    );
    let acquire = |outcome: &str, f: &str| {
        with(&format!(
            "49 c1 acquire#6\n49 c1 acquire#6 {outcome}\n50 c1 {f}#5 grant=6\n51 c1 {f}#5 ok version=2"
        ))
    };
    assert!(failures(&acquire("fail", "release"))[0].ends_with("of an acquire that failed"));
    assert!(failures(&acquire("info", "read"))[0].ends_with("of an acquire of unknown outcome"));
    assert_eq!(
        acquire("info", "release").verdict().outcome,
        Answer::Holds,
        "cleaning up after it is right"
    );
}

#[test]
fn a_flaw_never_makes_up_a_violation() {
    // The release of grant 5 has the id of another operation, or no invocation.
    for release in ["53 c1 release#3 grant=5", "60 c1 release#7 ok grant=5"] {
        failures(&with(&format!(
            "50 c1 acquire#5\n51 c1 acquire#5 ok token=5 validity=350\n{release}\n
             54 c2 acquire#15\n55 c2 acquire#15 ok token=6 validity=350\n70 c2 write#16 grant=15 value=x based_on=2\n
             71 c2 write#16 ok version=3"
        ).replace("\n\n", "\n")));
    }
}

#[test]
fn what_is_unclear_of_a_client_leaves_clear_what_was_over_before() {
    let before = "50 c1 acquire#5
        51 c1 acquire#5 ok token=5 validity=350
        52 c2 acquire#15
        53 c2 acquire#15 ok token=6 validity=350
        54 c1 release#7 grant=5";
    let history = with(&format!("{before}\n60 c1 release#8 ok"));
    assert_eq!(history.witness("mutual-exclusion").overlap_ms, Some(1.0));
    with(&format!(
        "{}\n60 c1 release#8 ok",
        before.replace("54 c1 release#7 grant=5", "")
    ))
    .spares("mutual-exclusion");
}

#[test]
fn of_two_operations_with_one_id_neither_is_known_to_have_completed() {
    let twice = "50 c1 write#5 value=x\n51 c2 write#5 value=y\n52 c1 write#5 ok version=3";
    let verdict = with(&format!(
        "{twice}\n53 c2 read#6\n54 c2 read#6 ok version=3 value=y"
    ))
    .verdict();
    assert_eq!(verdict.outcome, Answer::Unknown, "{verdict:#?}");
}

#[test]
fn something_is_granted_and_written() {
    assert_eq!(
        failures(&timeline("10 c1 acquire#1\n11 c1 acquire#1 fail")),
        ["no lock was granted"]
    );
    let silent =
        timeline("10 c1 acquire#1\n12 c1 acquire#1 ok\n13 c1 read#2\n14 c1 read#2 ok version=0");
    assert_eq!(failures(&silent), ["no write was accepted"]);
    assert_eq!(
        timeline("10 c1 acquire#1\n12 c1 acquire#1 ok")
            .verdict()
            .outcome,
        Answer::Holds
    );
}

#[test]
fn the_storage_tells_versions_and_knows_its_clients() {
    assert_eq!(
        failures(&with("50 c1 read#5\n51 c1 read#5 ok")),
        ["read 5 returned no version"]
    );
    assert_eq!(
        failures(&with("50 c1 write#5 based_on=2\n51 c1 write#5 ok")),
        ["write 5 was accepted and returned no version"]
    );
    let log = "50 storage log#9\n51 storage accepted#77 version=3\n52 storage log#9 ok entries=1";
    let strange = with(log).verdict();
    assert_eq!(
        strange.assumptions,
        ["the storage's log has op 77 as version 3 of `d`, which no client began"]
    );
}

#[test]
fn every_client_ends_or_is_killed_and_none_goes_on_after_that() {
    let endless = with("").bare_verdict().assumptions;
    assert!(endless.contains(&"c1 has no end: what it did last may be missing".to_owned()));
    let killed = |fault: &str, step: &str| {
        format!("30 nemesis inject#9 {step} fault={fault} on=c1\n31 nemesis inject#9 ok {step}")
    };
    let crashed = with(&killed("crash", "step=0")).planned("crash", "c1", 0);
    let assumptions = crashed.verdict().assumptions;
    assert_eq!(assumptions, Vec::<String>::new());
    let goes_on = crashed.and("70 c1 read#6\n71 c1 read#6 ok version=2 value=b");
    assert_eq!(failures(&goes_on), ["c1 has events after its death"]);
    let after_its_exit = with("60 c1 exit#0 info\n70 c1 read#6\n71 c1 read#6 ok version=2");
    assert_eq!(failures(&after_its_exit), ["c1 has events after its death"]);
    let of_host = |more: &str| with(&format!("{more}\n70 s1 exit#0 info error=signal"));
    assert_eq!(
        failures(&of_host("")),
        ["host s1 ended at 0.070 s, which no fault planned: signal"]
    );
    let planned = "60 nemesis inject#9 step=0 fault=crash on=s1\n61 nemesis inject#9 ok step=0";
    let history = of_host(planned).planned("crash", "s1", 0);
    let worked_after = "75 c1 acquire#6\n76 c1 acquire#6 ok token=7 validity=370\n77 c1 write#7 grant=6 token=7 based_on=2\n78 c1 write#7 ok version=3";
    let assumptions = history.and(worked_after).verdict().assumptions;
    assert_eq!(assumptions, Vec::<String>::new());
}

#[test]
fn two_clients_compete_for_a_lock_that_is_planned() {
    let alone = timeline(ROUND).with_a_lock();
    assert_eq!(
        failures(&alone),
        ["no two clients were granted the lock: nothing was contended"]
    );
    let in_turn = with("").with_a_lock();
    assert_eq!(
        failures(&in_turn),
        ["no client asked for the lock while another held it: nothing was contended"]
    );
    let busy = "43 c1 acquire#6\n44 c1 acquire#6 fail error=busy";
    assert_eq!(with(busy).with_a_lock().verdict().outcome, Answer::Holds);
}

#[test]
fn the_storage_s_log_is_read_after_the_last_write_and_has_what_was_sent() {
    let log = |text: &str| failures(&with(text)).remove(0);
    assert_eq!(
        log("10 storage log#9\n10 storage log#9 ok entries=0"),
        "the storage's log was not read to its end after c1's write (op 3, grant 1, token 1)"
    );
    assert_eq!(
        log("90 storage log#9\n91 storage log#9 info"),
        "the storage's log was never read to its end"
    );
    let rows =
        "90 storage log#9\n91 storage accepted#3 version=1\n91 storage accepted#13 version=2";
    let whole = |rows: &str| with(&format!("{rows}\n92 storage log#9 ok entries=2"));
    assert_eq!(whole(rows).verdict().outcome, Answer::Holds);
    for other in ["version=1 token=7", "version=1 value=z"] {
        assert_eq!(
            failures(&whole(&rows.replace("version=1", other))).remove(0),
            "the storage's log has another value, token or document for c1's write (op 3, grant 1, token 1) than it sent"
        );
    }
}

#[test]
fn writes_carry_the_token_of_their_grant() {
    let under = |grant: &str, write: &str| {
        with(&format!(
            "50 c1 acquire#5\n51 c1 acquire#5 ok {grant} validity=350\n52 c1 write#6 grant=5 {write} based_on=2\n53 c1 write#6 ok version=3\n54 c1 release#7 grant=5\n55 c1 release#7 ok"
        ))
    };
    assert_eq!(under("token=5", "token=5").verdict().outcome, Answer::Holds);
    assert_eq!(under("token=5", "").verdict().outcome, Answer::Holds);
    assert_eq!(
        failures(&under("token=5", "token=4")),
        ["c1's write (op 6, grant 5, token 5) carries the token 4, which is not that of its grant"]
    );
    assert_eq!(
        failures(&under("token=5", "").fenced()),
        ["c1's write (op 6, grant 5, token 5) carries no token, though the storage goes by it"]
    );
    assert_eq!(
        failures(&under("", "")),
        ["c1 (grant 5) has no token, and others of lock `l` have"]
    );
}

#[test]
fn a_write_is_based_on_what_its_client_can_have_read() {
    let based = |based_on: u64, read: &str| {
        with(&format!(
            "50 c1 acquire#5\n51 c1 acquire#5 ok token=5 validity=350\n{read}\n54 c1 write#7 grant=5 based_on={based_on}\n55 c1 write#7 ok version=3"
        ))
    };
    let read = "52 c1 read#6 grant=5\n53 c1 read#6 ok version=2 value=b";
    assert_eq!(based(2, read).verdict().outcome, Answer::Holds);
    for (based_on, read) in [(1, read), (7, ""), (3, "")] {
        let history = based(based_on, read);
        let expected = format!(
            "c1's write (op 7, grant 5, token 5) is based on version {based_on} of document `d`, which its client cannot have read"
        );
        assert_eq!(failures(&history), [expected]);
        history.completed().spares("no-lost-update");
        history.completed().spares("document");
    }
    // One that read nothing under its grant may have read it before.
    based(1, "").witness("no-lost-update");
}

#[test]
fn what_is_done_to_a_lock_names_that_of_its_grant() {
    let other = "50 c1 acquire#5\n51 c1 acquire#5 ok token=5 validity=350\n52 c1 release#6 grant=5 lock=m\n53 c1 release#6 ok";
    assert_eq!(
        failures(&with(other)),
        ["c1's op 6 (release) names lock `m`, and its grant is of lock `l`"]
    );
}

#[test]
fn an_edited_history_holds_in_nothing() {
    let mut history = with("").completed();
    history.edit();
    assert_eq!(
        history.bare_verdict().assumptions,
        ["the history was edited after it was closed: its digest is not that of its content"]
    );
}
