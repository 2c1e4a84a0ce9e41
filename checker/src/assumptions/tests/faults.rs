use super::{failures, with};
use histories::Expectation;

use crate::Answer;
use crate::timeline::Timeline;

const INJECT: &str = "20 nemesis inject#1 step=0 fault=pause on=c1\n22 nemesis inject#1 ok step=0";
const HEAL: &str = "32 nemesis heal#2 step=0 fault=pause on=c1\n33 nemesis heal#2 ok step=0";

fn faulty(inject: &str, heal: &str) -> Timeline {
    with(&format!("{inject}\n{heal}")).planned("pause", "c1", 10)
}

#[test]
fn a_fault_with_evidence_that_healed_is_reported_and_spoils_nothing() {
    let verdict = faulty(INJECT, HEAL).verdict();
    assert_eq!(
        (verdict.assumptions, verdict.outcome),
        (Vec::new(), Answer::Holds)
    );
    let [fault] = verdict.faults.as_slice() else {
        panic!("one fault: {:?}", verdict.faults)
    };
    assert_eq!(
        (fault.fault.as_str(), fault.on.as_slice()),
        ("pause", ["c1".to_owned()].as_slice())
    );
    assert_eq!(
        (fault.injected_ns, fault.healed_ns),
        (Some(22_000_000), Some(33_000_000))
    );
    assert_eq!(
        (&fault.evidence["seen"], &fault.heal_evidence["seen"]),
        (&true.into(), &true.into())
    );
}

#[test]
fn a_fault_is_in_force_from_when_its_evidence_says() {
    let injected = |told: u64| {
        let inject = INJECT.replace("ok step=0", &format!("ok step=0 took_hold_ns={told}"));
        faulty(&inject, HEAL).verdict().faults.remove(0).injected_ns
    };
    assert_eq!(injected(21_000_000), Some(21_000_000));
    assert_eq!(
        injected(99_000_000),
        Some(22_000_000),
        "it was recorded by then"
    );
}

#[test]
fn a_planned_fault_is_injected_with_evidence() {
    let inject = |ending: &str| failures(&faulty(&INJECT.replace("ok step=0", ending), HEAL));
    let of = |inject: Vec<String>| inject.into_iter().next().unwrap_or_default();
    assert_eq!(
        of(inject("info error=nothing")),
        "fault `pause` on c1 has no evidence that it took hold: nothing"
    );
    assert_eq!(
        of(inject("ok evidence=no")),
        "fault `pause` on c1 has no evidence that it took hold"
    );
    assert_eq!(
        of(inject("fail error=refused")),
        "fault `pause` on c1 was not injected: refused"
    );
    let never = failures(&with("").planned("pause", "c1", 10));
    assert_eq!(
        never,
        [
            "fault `pause` on c1 was never injected: its trigger (0 ms after the start) was not reached",
        ]
    );
}

#[test]
fn what_is_injected_is_what_was_planned() {
    let planned = |inject: &str, heal: &str| failures(&faulty(inject, heal)).remove(0);
    let other_host = INJECT.replace("on=c1", "on=c2");
    assert_eq!(
        planned(&other_host, HEAL),
        "fault `pause` on c2 is not what was planned: `pause` on c1"
    );
    let other_fault = INJECT.replace("fault=pause", "fault=delay");
    assert_eq!(
        planned(&other_fault, HEAL),
        "fault `delay` on c1 is not what was planned: `pause` on c1"
    );
    let at_its_end = INJECT.replace(" ok", " ok on=c2");
    assert_eq!(
        planned(&at_its_end, HEAL),
        "fault `pause` on c2 is not what was planned: `pause` on c1"
    );
    let at_its_beginning = at_its_end
        .replace("on=c1", "on=c3")
        .replace("on=c2", "on=c1");
    assert_eq!(
        planned(&at_its_beginning, HEAL),
        "fault `pause` on c1 is not what was planned: `pause` on c1"
    );
    let only_its_end = HEAL.lines().last().unwrap_or_default();
    assert_eq!(
        planned(INJECT, &only_its_end.replace("ok", "ok fault=pause on=c1")),
        "fault `pause` on c1 was injected or healed (op 2) without having begun to be"
    );
    let twice = INJECT
        .replace("#1", "#7")
        .replace("20 ", "23 ")
        .replace("22 ", "24 ");
    assert_eq!(
        planned(&format!("{INJECT}\n{twice}"), HEAL),
        "fault `pause` on c1 was injected twice"
    );
    assert_eq!(
        failures(&with(&INJECT.replace("step=0", "")))[0],
        "fault `pause` on c1 was not planned"
    );
}

#[test]
fn evidence_says_what_the_plan_asks_of_it() {
    let shows = |expectation| faulty(INJECT, HEAL).shows("seen", expectation);
    let met = shows(Expectation::equals(true));
    assert_eq!(met.verdict().outcome, Answer::Holds);
    assert_eq!(
        failures(&shows(Expectation::only('T'))),
        ["fault `pause` on c1 has evidence that does not show it: `seen` is true"]
    );
    assert_eq!(
        failures(&faulty(INJECT, HEAL).shows("states", Expectation::there())),
        ["fault `pause` on c1 has evidence that does not show it: `states` is missing"]
    );
}

#[test]
fn faults_of_one_trigger_strike_in_the_plan_s_order() {
    let both = |first: u64, second: u64| {
        with(&format!(
            "{first} nemesis inject#1 step=0 fault=pause on=c1\n{first} nemesis inject#1 ok step=0
             {second} nemesis inject#3 step=1 fault=crash on=c3\n{second} nemesis inject#3 ok step=1\n1 c3 read#31\n{HEAL}"
        ))
        .planned("pause", "c1", 5)
        .planned("crash", "c3", 0)
    };
    assert_eq!(both(20, 21).verdict().outcome, Answer::Holds);
    assert_eq!(
        failures(&both(21, 20)),
        ["fault `crash` on c3 struck before a fault of the same trigger that the plan has first"]
    );
}

#[test]
fn a_planned_fault_heals_in_its_time() {
    let heal = |heal: &str| failures(&faulty(INJECT, heal)).remove(0);
    assert_eq!(heal(""), "fault `pause` on c1 was not seen to heal");
    assert_eq!(
        heal("32 nemesis heal#2 step=0\n33 nemesis heal#2 info error=stuck"),
        "fault `pause` on c1 was not seen to heal: stuck"
    );
    assert_eq!(
        heal("23 nemesis heal#2 step=0\n24 nemesis heal#2 ok"),
        "fault `pause` on c1 healed after 1.000 ms of its 10 ms"
    );
    assert_eq!(
        with(&INJECT.replace("pause on=c1", "crash on=c3"))
            .and("1 c3 read#31")
            .planned("crash", "c3", 0)
            .verdict()
            .outcome,
        Answer::Holds,
        "it was never to heal"
    );
}

#[test]
fn a_fault_lasts_until_what_it_waits_for() {
    let until = |client: &str| {
        faulty(INJECT, &HEAL.replace("32", "46.5").replace("33", "46.7"))
            .until(client, "write", "ok")
    };
    let after = "60 c1 acquire#21\n61 c1 acquire#21 ok token=9 validity=360\n62 c1 write#22 grant=21 based_on=2\n63 c1 write#22 ok version=3";
    assert_eq!(until("c2").and(after).verdict().outcome, Answer::Holds);
    assert_eq!(
        failures(&until("c3").and(after)),
        [
            "fault `pause` on c1 healed after 24.5 ms, before c3 completed the `write` (ok) that it was to last for",
        ]
    );
}

#[test]
fn what_was_begun_before_a_fault_is_not_what_it_lasts_for() {
    let heal = HEAL.replace("32", "60").replace("33", "61");
    let until = |begun: u64| {
        faulty(INJECT, &heal)
            .until("c2", "read", "ok")
            .and(&format!("{begun} c2 read#21 grant=11\n50 c2 read#21 ok version=2"))
            .and("70 c1 acquire#31\n71 c1 acquire#31 ok token=9 validity=370\n72 c1 write#32 grant=31 based_on=2 value=c\n73 c1 write#32 info")
            .and("80 storage log#9\n81 storage accepted#3 version=1\n81 storage accepted#13 version=2")
            .and("81 storage accepted#32 version=3\n82 storage log#9 ok entries=3")
    };
    assert_eq!(until(49).verdict().assumptions, Vec::<String>::new());
    let early = until(19).verdict().assumptions;
    assert!(
        early
            .iter()
            .any(|failure| failure.contains("before c2 completed the `read` (ok)")),
        "{early:?}"
    );
}

#[test]
fn a_healing_is_of_what_was_injected() {
    for (word, other) in [("fault=pause", "fault=delay"), ("on=c1", "on=c2")] {
        let healed = failures(&faulty(INJECT, &HEAL.replace(word, other))).remove(0);
        assert!(
            healed.starts_with("fault `pause` on c1 was healed by what is not its healing: "),
            "{healed}"
        );
    }
}

#[test]
fn a_fault_lasts_from_when_it_took_hold_until_its_healing_is_asked_for() {
    let asked_early = HEAL.replace("32 n", "31.9 n");
    assert_eq!(
        failures(&faulty(INJECT, &asked_early)),
        ["fault `pause` on c1 healed after 9.900 ms of its 10 ms"]
    );
}

#[test]
fn a_client_that_is_held_goes_on_with_nothing() {
    let inject = INJECT.replace("pause", "long-work");
    let history = with(&format!("{inject}\n{}", HEAL.replace("pause", "long-work"))).planned(
        "long-work",
        "c1",
        10,
    );
    assert_eq!(history.verdict().outcome, Answer::Holds);
    let kept_alive = history
        .clone()
        .and("25 c1 renewed#9 info grant=1 validity=325");
    assert_ne!(kept_alive.verdict().outcome, Answer::Violated);
    let goes_on = "24 c1 read#31\n25 c1 read#31 ok version=1";
    assert_eq!(
        failures(&history.and(goes_on)),
        ["c1 did something at 0.024 s, while fault `long-work` on c1 kept it from that"]
    );
}

#[test]
fn something_works_before_the_first_fault_and_after_the_last() {
    let early = |text: &str| text.replace("20 n", "1 n").replace("22 n", "2 n");
    assert_eq!(
        failures(&faulty(&early(INJECT), HEAL)),
        ["no lock was granted before the first fault"]
    );
    let late = |heal: &str| heal.replace("32 n", "60 n").replace("33 n", "61 n");
    assert_eq!(
        failures(&faulty(INJECT, &late(HEAL))),
        [
            "no lock was granted after the last fault was over",
            "no write was accepted after the last fault was over",
        ]
    );
}
