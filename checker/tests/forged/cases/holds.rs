//! Certain holds and beliefs.

use super::tale::{Tale, tale};

const MUTEX: &str = "mutual-exclusion";
const BELIEF: &str = "exclusive-belief";

/// `c1` holds from 102 on; then what is told; `c2` is granted the lock at a time, and releases it at once.
fn then_granted(told: &str, at: f64) -> &'static str {
    let text = format!(
        "101 c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity=201
         {told}
         {} c2 20 invoke acquire lock=L ttl_ms=100
         {at} c2 20 ok acquire validity={}
         {} c2 21 invoke release lock=L grant=20
         {} c2 21 ok release",
        at - 0.5,
        at + 99.0,
        at + 0.5,
        at + 0.6,
    );
    let tale = may_reject(tale(&text));
    tale.assert_whole();
    tale.outcome(MUTEX)
}

/// The same as a history of version 1, which does not say by what its storage rejects writes.
fn may_reject(tale: Tale) -> Tale {
    tale.header(|header| header["fencepost"] = 1.into())
}

#[test]
fn a_tale_of_nothing_is_whole_and_kept() {
    let tale = tale("");
    tale.assert_whole();
    assert_eq!(tale.says(MUTEX), ("holds", "kept"));
}

#[test]
fn a_hold_ends_with_its_validity() {
    assert_eq!(then_granted("", 200.0), "violated");
    assert_eq!(then_granted("", 201.0), "holds");
}

#[test]
fn a_hold_ends_with_the_invocation_of_a_release() {
    let release = "110 c1 3 invoke release lock=L grant=1\n112 c1 3 ok release";
    assert_eq!(then_granted(release, 109.6), "violated");
    assert_eq!(then_granted(release, 110.0), "holds");
    let unknown = "110 c1 3 invoke release lock=L grant=1\n112 c1 3 info release";
    assert_eq!(then_granted(unknown, 111.0), "holds");
}

#[test]
fn who_asks_to_release_a_lock_believes_no_longer_that_it_holds_it() {
    let acts = |told: &str| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             103 c1 2 invoke release lock=L grant=1
             104 c1 2 fail release error=refused
             210 c2 20 invoke acquire lock=L ttl_ms=100
             211 c2 20 ok acquire validity=310
             300 c2 21 invoke release lock=L grant=20
             301 c2 21 ok release
             {told}"
        ))
        .outcome("exclusive-belief")
    };
    assert_eq!(acts(""), "holds");
    let works = "250 c1 5 invoke work grant=1\n260 c1 5 ok work";
    assert_eq!(acts(works), "violated");
}

#[test]
fn a_release_that_failed_counts_only_where_the_lock_was_lost() {
    let failed = "110 c1 3 invoke release lock=L grant=1\n112 c1 3 fail release";
    assert_eq!(then_granted(failed, 120.0), "violated");
    let lost = "110 c1 3 invoke release lock=L grant=1\n112 c1 3 fail release lost=true";
    assert_eq!(then_granted(lost, 111.0), "holds");
}

#[test]
fn an_extension_moves_the_validity() {
    let extended = "150 c1 3 invoke extend lock=L grant=1\n152 c1 3 ok extend validity=250";
    assert_eq!(then_granted(extended, 240.0), "violated");
    assert_eq!(then_granted(extended, 251.0), "holds");
    let failed = "150 c1 3 invoke extend lock=L grant=1\n152 c1 3 fail extend error=refused";
    assert_eq!(then_granted(failed, 160.0), "violated");
}

#[test]
fn an_extension_that_succeeded_late_closes_the_gap() {
    let late = "220 c1 3 invoke extend lock=L grant=1\n222 c1 3 ok extend validity=320";
    assert_eq!(then_granted(late, 210.0), "violated");
}

#[test]
fn an_extension_that_shortens_may_have_done_so_at_once() {
    let shortened = "150 c1 3 invoke extend lock=L grant=1\n155 c1 3 ok extend validity=152";
    assert_eq!(then_granted(shortened, 151.0), "violated");
    assert_eq!(then_granted(shortened, 153.0), "holds");
    let into_the_past = "150 c1 3 invoke extend lock=L grant=1\n155 c1 3 ok extend validity=140";
    assert_eq!(then_granted(into_the_past, 145.0), "violated");
    assert_eq!(then_granted(into_the_past, 151.0), "holds");
}

#[test]
fn an_unknown_extension_may_have_replaced_the_validity() {
    let with_ttl = "150 c1 3 invoke extend lock=L grant=1 ttl_ms=20\n152 c1 3 info extend";
    assert_eq!(then_granted(with_ttl, 165.0), "violated");
    assert_eq!(then_granted(with_ttl, 171.0), "holds");
    let longer = "150 c1 3 invoke extend lock=L grant=1 ttl_ms=100\n152 c1 3 info extend";
    assert_eq!(then_granted(longer, 202.0), "holds");
    let without = "150 c1 3 invoke extend lock=L grant=1\n152 c1 3 info extend";
    assert_eq!(then_granted(without, 151.0), "holds");
}

#[test]
fn a_renewal_counts_from_its_own_time_on() {
    let in_time = "190 c1 3 info renewed grant=1 validity=290";
    assert_eq!(then_granted(in_time, 280.0), "violated");
    let late = "220 c1 3 info renewed grant=1 validity=320";
    assert_eq!(then_granted(late, 210.0), "holds");
    assert_eq!(then_granted(late, 230.0), "violated");
}

#[test]
fn a_hold_ends_when_the_client_learns_of_the_loss() {
    for loss in [
        "110 c1 3 info lost grant=1",
        "109 c1 3 invoke extend lock=L grant=1\n110 c1 3 fail extend lost=true",
        "109 c1 3 invoke held lock=L grant=1\n110 c1 3 ok held held=false",
    ] {
        assert_eq!(then_granted(loss, 109.9), "violated", "{loss}");
        assert_eq!(then_granted(loss, 111.0), "holds", "{loss}");
    }
    let held = "109 c1 3 invoke held lock=L grant=1\n110 c1 3 ok held held=true";
    assert_eq!(then_granted(held, 111.0), "violated");
    let rejected = "105 c1 5 invoke write grant=1 document=E value=e
        106 c1 5 ok write version=1
        108 c1 4 invoke write grant=1 document=D value=x
        110 c1 4 fail write error=rejected";
    assert_eq!(then_granted(rejected, 111.0), "holds");
}

#[test]
fn a_grant_that_was_over_on_arrival_conflicts_inside_another_hold() {
    let late = |validity: u64, returned: u64| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             103 c2 2 invoke acquire lock=L ttl_ms=100
             {returned} c2 2 ok acquire validity={validity}
             260 c1 5 invoke release lock=L grant=1
             261 c1 5 ok release"
        ))
    };
    assert_eq!(late(150, 180).outcome(MUTEX), "violated");
    assert_eq!(late(150, 250).outcome(MUTEX), "holds");
    assert_eq!(late(102, 180).outcome(MUTEX), "violated");
    let asked = |t: u64| {
        let asks = move |e: &serde_json::Value| e["op"] == 2 && e["type"] == "invoke";
        late(102, 180).events(asks, |e| e["t"] = t.into())
    };
    assert_eq!(asked(102_000_000).outcome(MUTEX), "violated");
    assert_eq!(asked(101_999_999).outcome(MUTEX), "holds");
}

#[test]
fn a_lock_without_expiry_ends_with_its_server() {
    let told = "101 c1 1 invoke acquire lock=K
        102 c1 1 ok acquire
        115 c2 2 invoke acquire lock=K
        116 c2 2 ok acquire
        117 c2 3 invoke release lock=K grant=2
        118 c2 3 ok release
        140 c1 4 invoke release lock=K grant=1
        141 c1 4 fail release lost=true
        150 c1 5 invoke acquire lock=K
        151 c1 5 ok acquire
        152 c1 6 invoke release lock=K grant=5
        153 c1 6 ok release";
    assert_eq!(tale(told).outcome(MUTEX), "violated");
    assert_eq!(
        tale(told).fault("s1", "kills", 110, 125).outcome(MUTEX),
        "holds"
    );
    assert_eq!(
        tale(told).fault("s1", "kills", 50, 60).outcome(MUTEX),
        "violated",
        "it was killed before"
    );
    assert_eq!(
        tale(told).fault("s1", "stops", 110, 125).outcome(MUTEX),
        "violated"
    );
}

#[test]
fn a_release_that_names_another_lock_does_not_fit() {
    let tale = tale(
        "101 c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity=201
         110 c1 3 invoke release lock=M grant=1
         111 c1 3 ok release
         120 c2 4 invoke acquire lock=L ttl_ms=100
         121 c2 4 ok acquire validity=220",
    );
    tale.assert_fails("3 names another lock");
    assert_eq!(tale.outcome(MUTEX), "unknown");
}

/// `c1` has the lock from 102 to its release at 110, `c2` from 121 to 130; and what is told.
fn beside(told: &str) -> &'static str {
    let text = format!(
        "101 c1 1 invoke acquire lock=L ttl_ms=100
         102 c1 1 ok acquire validity=201
         110 c1 3 invoke release lock=L grant=1
         111 c1 3 ok release
         120 c2 20 invoke acquire lock=L ttl_ms=100
         121 c2 20 ok acquire validity=220
         130 c2 21 invoke release lock=L grant=20
         131 c2 21 ok release
         {told}"
    );
    may_reject(tale(&text)).outcome(BELIEF)
}

#[test]
fn a_belief_lasts_until_the_last_act() {
    assert_eq!(beside(""), "holds");
    assert_eq!(
        beside("105 c1 4 invoke work grant=1\n115 c1 4 ok work"),
        "holds"
    );
    assert_eq!(
        beside("105 c1 4 invoke work grant=1\n125 c1 4 ok work"),
        "violated"
    );
    assert_eq!(beside("105 c1 4 invoke work grant=1"), "holds");
    assert_eq!(beside("125 c1 4 invoke work grant=1"), "violated");
}

#[test]
fn a_write_counts_as_long_as_it_may_have_been_accepted() {
    let write = |from: u64, answer: &str| {
        beside(&format!(
            "105 c1 5 invoke write grant=1 document=E value=e
             106 c1 5 ok write version=1
             {from} c1 4 invoke write grant=1 document=D value=x
             {answer}"
        ))
    };
    assert_eq!(
        write(112, "125 c1 4 ok write document=D version=1"),
        "violated"
    );
    assert_eq!(write(112, "125 c1 4 info write"), "holds");
    assert_eq!(write(112, "125 c1 4 fail write error=rejected"), "holds");
    assert_eq!(write(125, "126 c1 4 info write"), "violated");
}

#[test]
fn a_write_that_a_release_committed_counts_at_its_invocation() {
    let told = |answer: &str| {
        tale(&format!(
            "101 c1 1 invoke acquire lock=L ttl_ms=100
             102 c1 1 ok acquire validity=201
             103 c1 2 invoke write grant=1 document=D value=x
             110 c1 3 invoke release lock=L grant=1
             {answer} c1 2 ok write document=D version=1
             130 c1 3 ok release
             112 c2 20 invoke acquire lock=L ttl_ms=100
             113 c2 20 ok acquire validity=212
             114 c2 21 invoke release lock=L grant=20
             115 c2 21 ok release"
        ))
        .outcome(BELIEF)
    };
    assert_eq!(told("129"), "holds");
    assert_eq!(told("131"), "violated");
}

#[test]
fn acts_without_a_grant_are_beliefs_of_their_own() {
    for (from, outcome) in [(115, "unknown"), (125, "violated")] {
        let write = format!("{from} c1 4 invoke work\n{from}.5 c1 4 ok work");
        assert_eq!(beside(&write), outcome, "without a grant");
        let missing = format!("{from} c1 4 invoke work grant=77\n{from}.5 c1 4 ok work");
        assert_eq!(beside(&missing), outcome, "of an acquire that is not there");
        let others = format!("{from} c1 4 invoke work grant=20\n{from}.5 c1 4 ok work");
        assert_eq!(
            beside(&others),
            "unknown",
            "of another's grant, of which nothing is known then"
        );
    }
    let refused = "112 c1 5 invoke acquire lock=L\n113 c1 5 fail acquire\n";
    assert_eq!(
        beside(&format!("{refused}125 c1 4 invoke work grant=5")),
        "violated"
    );
    let unknown = "112 c1 5 invoke acquire lock=L\n113 c1 5 info acquire\n";
    assert_eq!(beside(unknown), "holds");
    assert_eq!(
        beside(&format!("{unknown}125 c1 4 invoke work grant=5")),
        "violated"
    );
    let from_first_to_last = "114 c1 4 invoke work grant=5\n140 c1 6 invoke work grant=5";
    assert_eq!(
        beside(&format!("{unknown}{from_first_to_last}")),
        "violated"
    );
}

#[test]
fn a_client_that_acts_beside_its_own_grant_excludes_itself_from_nothing() {
    assert_eq!(beside("105 c1 4 invoke work\n106 c1 4 ok work"), "unknown");
}

#[test]
fn of_two_locks_nobody_knows_in_which_an_act_without_a_grant_is() {
    let other = "140 c1 5 invoke acquire lock=M ttl_ms=100
        141 c1 5 ok acquire validity=240
        142 c1 6 invoke release lock=M grant=5
        143 c1 6 ok release\n";
    assert_eq!(
        beside(&format!("{other}125 c1 4 invoke work\n126 c1 4 ok work")),
        "unknown"
    );
}
