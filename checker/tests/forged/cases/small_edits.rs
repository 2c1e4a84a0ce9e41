//! Small edits by which a broken promise was a known limit once, or kept.

use serde_json::json;

use super::tale::{Tale, outlived, tale};
use crate::honest::MS;

const BELIEF: &str = "exclusive-belief";

/// `c1` has a lease from 102 on, works from 103 until `ended`, and releases it 1 ms later. `c2` has it from 130 to 140.
fn double(ended: u64, more: &str) -> Tale {
    tale(&format!(
        "101 c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity=201
         103 c1 2 invoke work grant=1
         129 c2 20 invoke acquire lock=L ttl_ms=100
         130 c2 20 ok acquire validity=229
         139 c2 21 invoke release lock=L grant=20
         140 c2 21 ok release
         {ended} c1 2 ok work
         {} c1 3 invoke release lock=L grant=1
         {} c1 3 ok release
         {more}",
        ended + 1,
        ended + 2,
    ))
}

#[test]
fn one_lock_keeps_a_document() {
    let writes = "150 c1 5 invoke write grant=1 document=D value=u based_on=0
        151 c1 5 ok write version=1
        132 c2 22 invoke write grant=20 document=D value=v based_on=0
        133 c2 22 fail write error=unreachable";
    let renamed = |more: &str| {
        double(170, more).events(
            |e| (e["op"] == 20 || e["op"] == 21) && e["type"] == "invoke",
            |e| e["lock"] = "K".into(),
        )
    };
    assert_eq!(double(170, writes).says("mutual-exclusion").1, "broken");
    let of_both = "260 c1 30 invoke acquire lock=K ttl_ms=100
        261 c1 30 fail acquire error=busy";
    let both = format!("{writes}\n{of_both}");
    assert_eq!(renamed(&both).outcome("mutual-exclusion"), "unknown");
    // Nobody else asks for that lock.
    assert_eq!(renamed("").outcome("mutual-exclusion"), "unknown");
    assert_eq!(renamed(of_both).outcome("mutual-exclusion"), "holds");
}

#[test]
fn who_tells_too_short_a_validity_does_not_make_its_client_late() {
    let told = |validity: u64, ended: u64| {
        double(ended, &format!("{} c1 9 info stall stalled=50", ended - 1))
            .events(
                |e| e["op"] == 1 && e["type"] == "ok",
                |e| e["validity"] = (validity * MS).into(),
            )
            .says(BELIEF)
            .1
    };
    assert_eq!(told(120, 170), "broken");
    // Four fifths of 100 ms after 101 it may be over.
    assert_eq!(told(120, 180), "broken");
    assert_eq!(told(120, 181), "limit-shown");
}

#[test]
fn waiting_makes_work_long_only_if_it_is_as_long_as_planned() {
    let worked = |work: u64| {
        let tale = tale(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             103 c1 2 invoke work grant=1
             110 c1 3 invoke read grant=1 document=D
             170 c1 3 ok read version=0 value=
             171 c1 4 invoke write grant=1 document=D value=v based_on=0
             240 c1 4 ok write version=1
             241 c1 2 ok work
             242 c1 5 invoke release lock=L grant=1
             243 c1 5 fail release lost=true
             210 c2 20 invoke acquire lock=L ttl_ms=100
             211 c2 20 ok acquire validity=310
             250 c2 21 invoke release lock=L grant=20
             251 c2 21 ok release",
        );
        tale.header(|header| header["plan"]["workload"]["work_ms"] = work.into())
    };
    assert_eq!(worked(68).says(BELIEF).1, "limit-shown");
    assert_eq!(worked(69).says(BELIEF).1, "unspecified");
    worked(69).assert_lacks("somebody writes sooner");
    worked(80).assert_fails("somebody writes sooner");
}

#[test]
fn a_client_that_acts_again_is_stopped_no_more() {
    let healed = |done: u64, acts: u64| {
        outlived(&format!("{acts} c1 7 invoke held lock=L grant=1"))
            .fault("c1", "stops", 110, 150)
            .events(
                |e| e["f"] == "heal" && e["type"] == "ok",
                |e| e["t"] = (done * MS).into(),
            )
            .says(BELIEF)
            .1
    };
    assert_eq!(healed(395, 396), "limit-shown");
    assert_eq!(healed(395, 295), "limit-shown");
    assert_eq!(healed(395, 160), "broken");
}

#[test]
fn nothing_excuses_who_acts_on_after_its_release() {
    let acts = |at: u64| {
        let tale = tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             150 c1 3 invoke release lock=L grant=1
             151 c1 3 info release error=timeout
             {at} c1 2 invoke work grant=1
             400 c1 2 ok work
             399 c1 9 info stall stalled=240
             210 c2 20 invoke acquire lock=L ttl_ms=100
             211 c2 20 ok acquire validity=310
             300 c2 21 invoke release lock=L grant=20
             301 c2 21 ok release"
        ));
        tale.says(BELIEF).1
    };
    assert_eq!(acts(149), "limit-shown");
    assert_eq!(acts(152), "broken");
}

#[test]
fn a_storage_rejects_for_a_reason() {
    let rejected = |sent: &str, condition: Option<&str>| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201 token=3
             103 c1 3 invoke write grant=1 token=3 document=D value=u based_on=0
             104 c1 3 ok write version=1
             105 c1 5 invoke release lock=L grant=1
             106 c1 5 ok release
             110 c2 20 invoke acquire lock=L ttl_ms=100
             111 c2 20 ok acquire validity=210 token=4
             112 c2 21 invoke write grant=20 token=4 document=D value=v based_on=1
             113 c2 21 ok write version=2
             114 c2 22 invoke release lock=L grant=20
             115 c2 22 ok release
             {sent}"
        ))
        .header(|header| header["plan"]["write_condition"] = json!(condition))
    };
    let late = "120 c1 7 invoke write grant=1 token=3 document=D value=w based_on=1
        121 c1 7 fail write error=rejected";
    let highest = late
        .replace("c1 7", "c2 7")
        .replace("grant=1 token=3", "grant=20 token=4");
    rejected(late, Some("token")).assert_lacks("write 7 was rejected");
    rejected(late, None).assert_fails("write 7 was rejected");
    rejected(&highest, Some("token")).assert_fails("write 7 was rejected");
}

#[test]
fn what_was_not_held_explains_no_refusal() {
    let refused: String = (0..20)
        .map(|nth| {
            let (t, op) = (210 + 20 * nth, 30 + nth);
            format!(
                "{t} c2 {op} invoke acquire lock=L ttl_ms=100\n{} c2 {op} fail acquire error=busy\n",
                t + 1
            )
        })
        .collect();
    let stuck = |more: &str| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             {refused}
             {more}
             601 c1 3 invoke release lock=L grant=1
             602 c1 3 ok release"
        ))
        .outcome("progress")
    };
    assert_eq!(stuck(""), "violated");
    assert_eq!(
        stuck("600 c1 2 info renewed grant=1 validity=700"),
        "violated"
    );
    let extended =
        "600 c1 2 invoke extend lock=L grant=1 ttl_ms=100\n600.5 c1 2 ok extend validity=700";
    assert_eq!(stuck(extended), "violated");
    let in_time =
        "200 c1 2 info renewed grant=1 validity=300\n290 c1 4 info renewed grant=1 validity=390";
    assert_eq!(stuck(in_time), "holds");
}

#[test]
fn nobody_knows_when_a_write_of_unknown_outcome_lands() {
    let stale = |answer: &str| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             103 c1 3 invoke write grant=1 document=D value=u based_on=0
             {answer}
             121 c1 5 invoke release lock=L grant=1
             122 c1 5 ok release
             123 c2 20 invoke acquire lock=L ttl_ms=100
             124 c2 20 ok acquire validity=223
             125 c2 21 invoke write grant=20 document=D value=v based_on=0
             126 c2 21 ok write version=1
             127 c2 22 invoke release lock=L grant=20
             128 c2 22 ok release
             500 storage 800 invoke log
             501 storage 21 ok accepted document=D version=1 value=v
             502 storage 3 ok accepted document=D version=2 value=u
             503 storage 800 ok log entries=2"
        ))
    };
    let (answered, unknown) = ("129 c1 3 ok write version=2", "120 c1 3 info write");
    assert_eq!(stale(answered).says("no-stale-write").1, "broken");
    assert_eq!(stale(unknown).says("no-stale-write").1, "unspecified");
    let kept_waiting = format!("119 c1 9 info stall stalled=16 on=[\"storage\"]\n{unknown}");
    assert_eq!(stale(&kept_waiting).says("no-stale-write").1, "limit-shown");
}
