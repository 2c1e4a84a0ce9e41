use super::PROPERTY;
use crate::timeline::{Timeline, timeline};

const NAME: &str = PROPERTY.name;

fn after_a_write(text: &str) -> Timeline {
    timeline(&format!(
        "10 c1 write#1 value=a\n12 c1 write#1 ok version=1\n{text}"
    ))
}

const LOG: &str = "900 storage log#9\n901 storage accepted#1 ok version=1 value=a\n902 storage log#9 ok entries=1";

#[test]
fn spares_reads_that_overlap_a_write_either_way() {
    after_a_write(
        "20 c2 write#2 value=b
         21 c1 read#3
         22 c3 read#4
         23 c1 read#3 ok version=2 value=b
         24 c3 read#4 ok version=1 value=a
         25 c2 write#2 ok version=2
         26 c1 read#5
         27 c1 read#5 ok version=2 value=b",
    )
    .holds(NAME);
}

#[test]
fn identifies_a_read_that_goes_back_in_time() {
    let witness = after_a_write("20 c2 read#2\n21 c2 read#2 ok version=0 value=").witness(NAME);
    assert_eq!(witness.operations, [1, 2]);
    assert_eq!(
        witness.sentence,
        "a read went back in time: c2's read (op 2), begun at 0.020 s, returned version 0 of document `d`, though \
         c1's write (op 1) had made version 1 by 0.012 s"
    );
    // One that only another read had shown.
    after_a_write(
        "20 c2 write#2 value=b
         21 c1 read#3
         22 c1 read#3 ok version=2 value=b
         23 c3 read#4
         24 c3 read#4 ok version=1 value=a
         25 c2 write#2 ok version=2",
    )
    .witness(NAME);
}

#[test]
fn identifies_a_read_of_what_was_not_yet_written() {
    let witness = after_a_write(
        "20 c2 read#2
         21 c2 read#2 ok version=2 value=b
         22 c1 write#3 value=b
         23 c1 write#3 ok version=2",
    )
    .witness(NAME);
    assert_eq!(
        witness.sentence,
        "c2's read (op 2) returned version 2 of document `d` at 0.021 s, before c1's write (op 3), which made it, began at \
         0.022 s"
    );
}

#[test]
fn identifies_writes_against_the_order_of_versions() {
    after_a_write("20 c2 write#2 value=b\n21 c2 write#2 ok version=3\n22 c1 write#3 value=c\n23 c1 write#3 ok version=2")
        .witness(NAME);
    after_a_write("20 c2 write#2 value=b\n21 c1 write#3 value=c\n22 c2 write#2 ok version=3\n23 c1 write#3 ok version=2")
        .holds(NAME);
}

#[test]
fn identifies_two_writers_of_one_version_and_two_versions_of_one_write() {
    let shared = timeline(
        "10 c1 write#1 value=a
         11 c2 write#2 value=b
         12 c1 write#1 ok version=1
         13 c2 write#2 ok version=1",
    );
    assert!(
        shared
            .witness(NAME)
            .sentence
            .contains("both made version 1")
    );
    let twice = after_a_write(
        "900 storage log#9
         901 storage accepted#1 ok version=1 value=a
         901 storage accepted#1 ok version=2 value=a
         902 storage log#9 ok entries=2",
    );
    assert!(
        twice
            .witness(NAME)
            .sentence
            .contains("twice, as version 1 and as version 2")
    );
}

#[test]
fn identifies_an_acknowledged_write_that_vanished() {
    after_a_write(LOG).holds(NAME);
    let vanished = after_a_write(&format!(
        "20 c2 write#2 value=b\n21 c2 write#2 ok version=2\n{LOG}"
    ));
    assert!(
        vanished
            .witness(NAME)
            .sentence
            .starts_with("an acknowledged write vanished: c2's write (op 2)")
    );
    // A log of which rows are lacking shows nothing by what it lacks.
    let incomplete = LOG.replace("entries=1", "entries=2");
    after_a_write(&format!(
        "20 c2 write#2 value=b\n21 c2 write#2 ok version=2\n{incomplete}"
    ))
    .spares(NAME);
    // One that was acknowledged when the reading began may have come after it.
    let at_once = "20 c2 write#2 value=b\n900 c2 write#2 ok version=2";
    after_a_write(&format!("{at_once}\n{LOG}")).spares(NAME);
    // Of several readings the last complete one counts, be it of this document alone.
    let of_document = LOG
        .replace("log#9 ok", "log#8 ok")
        .replace("log#9", "log#8 document=d");
    let of_document = of_document.replace("90", "80");
    after_a_write(&format!(
        "20 c2 write#2 value=b\n850 c2 write#2 ok version=2\n{of_document}\n{LOG}"
    ))
    .witness(NAME);
    let of_document = of_document.replace("80", "95");
    after_a_write(&format!(
        "20 c2 write#2 value=b\n920 c2 write#2 ok version=2\n{LOG}\n{of_document}"
    ))
    .witness(NAME);
    // One that was acknowledged while the log was read may have come after it.
    after_a_write(&format!(
        "20 c2 write#2 value=b\n{LOG}\n950 c2 write#2 ok version=2"
    ))
    .spares(NAME);
}

#[test]
fn identifies_a_failed_write_that_was_accepted() {
    let text = "20 c2 write#2 value=b\n21 c2 write#2 fail error=rejected";
    let logged = LOG
        .replace("902", "901 storage accepted#2 ok version=2 value=b\n902")
        .replace("entries=1", "entries=2");
    let history = after_a_write(&format!("{text}\n{logged}"));
    assert!(
        history
            .witness(NAME)
            .sentence
            .contains("was told that it failed")
    );
    let read = "30 c1 read#3\n31 c1 read#3 ok version=2 value=b";
    let witness = after_a_write(&format!("{text}\n{read}")).witness(NAME);
    assert!(
        witness
            .sentence
            .contains("yet a read returned it as version 2"),
        "{}",
        witness.sentence
    );
}

#[test]
fn identifies_values_that_do_not_fit() {
    let read = |version: u64, value: &str| {
        after_a_write(&format!(
            "20 c2 read#2\n21 c2 read#2 ok version={version} value={value}"
        ))
    };
    read(1, "a").holds(NAME);
    assert!(
        read(1, "x")
            .witness(NAME)
            .sentence
            .contains("as `x`, while c1's write (op 1) had written it as `a`")
    );
    timeline("1 c2 read#2\n2 c2 read#2 ok version=0 value=x").witness(NAME);
    // One of the two records is wrong, and nobody knows which.
    after_a_write(&LOG.replace("value=a", "value=x")).spares(NAME);
}

#[test]
fn identifies_a_write_based_on_what_came_after_it_and_one_of_nothing() {
    let back = "20 c1 write#2 based_on=5 value=b\n22 c1 write#2 ok version=3";
    timeline(&format!(
        "10 c2 write#1 value=a\n12 c2 write#1 ok version=5\n{back}"
    ))
    .witness(NAME);
    // Its own version it cannot have read: that is the record's fault and not the storage's.
    timeline("10 c1 write#1 based_on=1 value=a\n12 c1 write#1 ok version=1").spares(NAME);
    timeline("10 c1 write#1 value=a\n12 c1 write#1 ok version=0").witness(NAME);
}

#[test]
fn a_write_of_unknown_outcome_may_be_seen_at_any_time_since() {
    let info = "20 c2 write#2 value=b\n21 c2 write#2 info\n30 c1 read#3\n31 c1 read#3 ok version=1 value=a";
    after_a_write(info).spares(NAME);
    let seen = format!("{info}\n40 c1 read#4\n41 c1 read#4 ok version=2 value=b");
    after_a_write(&seen).spares(NAME);
    after_a_write(&format!(
        "{seen}\n50 c1 read#5\n51 c1 read#5 ok version=1 value=a"
    ))
    .witness(NAME);
    // A complete log says that it did not happen, whatever a read says.
    assert!(
        after_a_write(&format!("{seen}\n{LOG}"))
            .witness(NAME)
            .sentence
            .contains("c2's write (op 2), and the storage's log lacks it")
    );
}

#[test]
fn a_value_that_was_read_tells_which_write_made_its_version() {
    let pending = "20 c2 write#2 value=b";
    let read = "30 c1 read#3\n31 c1 read#3 ok version=1 value=b";
    let witness = after_a_write(&format!("{pending}\n{read}")).witness(NAME);
    assert!(
        witness.sentence.contains("both made version 1"),
        "{}",
        witness.sentence
    );
    // A writer of which no value is known may have written that one.
    timeline(&format!(
        "10 c1 write#1\n12 c1 write#1 ok version=1\n{pending}\n{read}"
    ))
    .spares(NAME);
}

#[test]
fn a_version_of_unknown_origin_is_no_violation_unless_the_history_is_whole() {
    let strange = "20 c2 read#2\n21 c2 read#2 ok version=5";
    after_a_write(strange).witness(NAME);
    let candidate = "13 c3 write#4 value=x\n14 c3 write#4 info";
    let reason = after_a_write(&format!("{candidate}\n{strange}")).reason(NAME);
    assert_eq!(
        reason,
        "read 2 returned version 5, and nothing tells which write made it"
    );
    after_a_write(&format!("{strange} value=x")).witness(NAME);
    after_a_write(&format!("{strange} value=x"))
        .cut()
        .reason(NAME);
    let two_candidates =
        "13 c2 write#3 value=x\n14 c3 write#4 value=x\n15 c2 write#3 info\n16 c3 write#4 info";
    after_a_write(&format!("{two_candidates}\n{strange} value=x")).reason(NAME);
}

#[test]
fn a_version_that_only_the_log_knows_is_no_violation() {
    let log = LOG
        .replace("902", "901 storage accepted#77 version=2 value=b\n902")
        .replace("entries=1", "entries=2");
    let read = "20 c2 read#2\n21 c2 read#2 ok version=2 value=b";
    after_a_write(&format!("{read}\n{log}")).reason(NAME);
}

#[test]
fn instants_that_coincide_are_concurrent() {
    after_a_write("12 c2 read#2\n14 c2 read#2 ok version=0").holds(NAME);
}

#[test]
fn a_write_that_its_client_cannot_have_based_so_proves_nothing() {
    let read = "30 c1 read#3\n31 c1 read#3 ok version=1 value=a";
    let write = |based_on: u64| {
        format!("20 c2 write#2 based_on={based_on} value=b\n21 c2 write#2 ok version=2")
    };
    after_a_write(&format!("{}\n{read}", write(1))).witness(NAME);
    after_a_write(&format!("{}\n{read}", write(7))).spares(NAME);
}

#[test]
fn what_a_process_did_that_went_on_after_its_death_proves_nothing() {
    let write = "20 c2 write#2 value=b\n21 c2 write#2 ok version=2";
    let read = "30 c1 read#3\n31 c1 read#3 ok version=1 value=a";
    after_a_write(&format!("19 c2 exit#8 info\n{write}\n{read}")).spares(NAME);
}

#[test]
fn a_row_of_no_write_may_be_that_of_a_write_which_was_read() {
    let seen = "20 c2 write#2 value=b\n30 c1 read#3\n31 c1 read#3 ok version=2 value=b";
    after_a_write(&format!("{seen}\n{LOG}")).witness(NAME);
    let log = LOG
        .replace("902", "901 storage accepted#77 version=2 value=b\n902")
        .replace("entries=1", "entries=2");
    after_a_write(&format!("{seen}\n{log}")).spares(NAME);
}

#[test]
fn a_value_that_only_a_row_of_no_write_explains_is_no_violation() {
    let read = "20 c2 read#2\n21 c2 read#2 ok version=1 value=b";
    after_a_write(&format!("{read}\n{LOG}")).witness(NAME);
    let log = LOG
        .replace("902", "901 storage accepted#77 version=1 value=b\n902")
        .replace("entries=1", "entries=2");
    after_a_write(&format!("{read}\n{log}")).spares(NAME);
}
