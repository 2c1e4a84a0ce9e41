//! What a history must be like for the checker to say of anything that it holds.
//!
//! A failed assumption never hides a violation. So that no flaw of the record makes one up, a flawed event may end a
//! hold, but never begins one and never adds a write; and what is proven by the absence of an event (nobody holds the
//! lock, no write made this version) is not proven by a record that lost some.

use crate::faults::{Faults, Quiet};
use crate::operations::Record;
use crate::sentences::count;
use crate::storage::StorageOrder;

/// The kinds of flaws that single events have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flaw {
    /// Two operations have one id.
    Duplicate,
    /// An operation completed that was not in flight.
    Uninvoked,
    /// A completion contradicts its invocation.
    Mismatch,
    /// A client began an operation while another of its kind was in flight.
    Overlap,
    /// An operation was done under a grant that its process did not have.
    NotGranted,
    /// The storage answered without a version.
    NoVersion,
    /// The storage's log has a write that no client began.
    Stranger,
}

/// The flaws that were found: of each kind the first, and how many there are.
#[derive(Default)]
pub(crate) struct Flaws {
    found: Vec<(Flaw, String, u64)>,
}

impl Flaws {
    /// Notes a flaw. The sentence is made for the first of its kind only.
    pub(crate) fn note(&mut self, flaw: Flaw, sentence: impl FnOnce() -> String) {
        match self.found.iter_mut().find(|(kind, ..)| *kind == flaw) {
            Some((.., times)) => *times += 1,
            None => self.found.push((flaw, sentence(), 1)),
        }
    }

    /// Whether events were left aside, so that what they told is not known.
    pub(crate) fn lose_events(&self) -> bool {
        let lost = |flaw: Flaw| matches!(flaw, Flaw::Duplicate | Flaw::Uninvoked | Flaw::Mismatch);
        self.found.iter().any(|&(flaw, ..)| lost(flaw))
    }

    /// Whether clients may have held locks by other grants than those that are known.
    pub(crate) fn hide_holds(&self) -> bool {
        self.lose_events()
            || self
                .found
                .iter()
                .any(|&(flaw, ..)| flaw == Flaw::NotGranted)
    }

    fn sentences(mut self) -> impl Iterator<Item = String> {
        self.found.sort_by_key(|(flaw, ..)| *flaw);
        self.found.into_iter().map(|(_, first, times)| match times {
            1 => first,
            _ => format!("{first} (and {} more like it)", times - 1),
        })
    }
}

/// The assumptions that failed, the gravest first.
pub(crate) fn failures(
    record: &Record,
    storage: &StorageOrder,
    faults: &Faults,
    flaws: Flaws,
    complete: bool,
) -> Vec<String> {
    let mut failures = Vec::new();
    if !complete {
        failures.push(format!(
            "the history is cut after {}",
            count(record.events, "event")
        ));
    }
    if record.operations == 0 {
        failures.push("no client did anything".to_owned());
    }
    failures.extend(flaws.sentences());
    failures.extend(faults.failures());
    if record.operations > 0 {
        failures.extend(idle_before(record, faults));
        failures.extend(idle_after(record, storage, faults));
    }
    failures
}

/// Whether nothing worked before the first fault: then it may have been broken from the start.
fn idle_before(record: &Record, faults: &Faults) -> Option<String> {
    let first = faults.first()?;
    let worked = if record.locks.is_empty() {
        let read = record
            .reads
            .iter()
            .any(|read| read.call.ok() && read.call.completed <= first);
        read || record
            .writes
            .iter()
            .any(|write| write.call.ok() && write.call.completed <= first)
    } else {
        let granted = record
            .acquires
            .iter()
            .any(|acquire| acquire.granted() && acquire.call.completed <= first);
        granted || record.first_point.is_some_and(|point| point <= first)
    };
    let what = if record.locks.is_empty() {
        "no read or write succeeded"
    } else {
        "no lock was granted"
    };
    (!worked).then(|| format!("{what} before the first fault"))
}

/// What did not work after the last fault was over, of those things that clients tried at all.
fn idle_after(record: &Record, storage: &StorageOrder, faults: &Faults) -> Vec<String> {
    let (since, when) = match (faults.first(), faults.quiet()) {
        (None, _) => (0, ""),
        (Some(_), Quiet::Since(since)) => (since, " after the last fault was over"),
        // That a fault did not heal is a failure of its own.
        (Some(_), Quiet::Never(_)) => return Vec::new(),
    };
    let mut idle = Vec::new();
    let granted = || {
        record
            .acquires
            .iter()
            .any(|acquire| acquire.granted() && acquire.call.completed >= since)
    };
    if !record.locks.is_empty() && !granted() {
        idle.push(format!("no lock was granted{when}"));
    }
    let accepted = || {
        storage.accepted.iter().any(|accepted| {
            let call = &record.writes[accepted.write as usize].call;
            call.invoked >= since || (call.ok() && call.completed >= since)
        })
    };
    let stored = !record.reads.is_empty() || !record.writes.is_empty();
    if stored && !accepted() {
        idle.push(format!("no write was accepted{when}"));
    }
    idle
}

#[cfg(test)]
mod tests {
    use crate::Answer;
    use crate::timeline::{Timeline, timeline};

    const ROUND: &str = "10 c1 acquire#1
        12 c1 acquire#1 ok token=1 validity=310
        15 c1 write#3 grant=1 token=1 based_on=0 value=a
        16 c1 write#3 ok version=1
        17 c1 release#4 grant=1
        18 c1 release#4 ok";
    const LATER: &str = "40 c2 acquire#11
        42 c2 acquire#11 ok token=2 validity=350
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
            "50 c1 write#5 value=c\n51 c1 acquire#6\n52 c1 acquire#6 fail\n53 c1 write#5 fail",
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
        let many = with("50 c1 read#5 ok\n51 c1 read#6 ok\n52 c1 read#7 ok");
        assert_eq!(
            failures(&many),
            ["c1 completed op 5 (read), which was not in flight (and 2 more like it)"]
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
        assert!(
            failures(&acquire("info", "read"))[0].ends_with("of an acquire of unknown outcome")
        );
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
                "50 c1 acquire#5\n51 c1 acquire#5 ok token=5 validity=500\n{release}\n
                 54 c2 acquire#15\n55 c2 acquire#15 ok token=6 validity=400\n70 c2 write#16 grant=15 value=x based_on=2\n
                 71 c2 write#16 ok version=3"
            ).replace("\n\n", "\n")));
        }
    }

    #[test]
    fn what_is_unclear_of_a_client_leaves_clear_what_was_over_before() {
        let before = "50 c1 acquire#5
            51 c1 acquire#5 ok token=5 validity=500
            52 c2 acquire#15
            53 c2 acquire#15 ok token=6 validity=400
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
        let silent = timeline(
            "10 c1 acquire#1\n12 c1 acquire#1 ok\n13 c1 read#2\n14 c1 read#2 ok version=0",
        );
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
            failures(&with("50 c1 write#5\n51 c1 write#5 ok")),
            ["write 5 was accepted and returned no version"]
        );
        let log =
            "50 storage log#9\n51 storage accepted#77 version=3\n52 storage log#9 ok entries=1";
        let strange = with(log).verdict();
        assert_eq!(
            strange.assumptions,
            ["the storage's log has op 77 as version 3 of `d`, which no client began"]
        );
    }

    const INJECT: &str =
        "20 nemesis inject#1 step=0 fault=pause on=c1\n22 nemesis inject#1 ok step=0";
    const HEAL: &str = "30 nemesis heal#2 step=0 fault=pause on=c1\n31 nemesis heal#2 ok step=0";

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
            (Some(22_000_000), Some(31_000_000))
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
                "fault `pause` on c1 was never injected: its trigger (c1 at `before-write` of its 2nd grant) was not reached",
            ]
        );
        let again = faulty(
            &format!("19 nemesis inject#7 step=0\n19 nemesis inject#7 fail\n{INJECT}"),
            HEAL,
        );
        assert_eq!(again.verdict().outcome, Answer::Holds);
    }

    #[test]
    fn a_planned_fault_heals_in_its_time() {
        let heal = |heal: &str| failures(&faulty(INJECT, heal)).remove(0);
        assert_eq!(heal(""), "fault `pause` on c1 was not seen to heal");
        assert_eq!(
            heal("30 nemesis heal#2 step=0\n31 nemesis heal#2 info error=stuck"),
            "fault `pause` on c1 was not seen to heal: stuck"
        );
        assert_eq!(
            heal("23 nemesis heal#2 step=0\n24 nemesis heal#2 ok"),
            "fault `pause` on c1 healed after 4.000 ms of its 10 ms"
        );
        assert_eq!(
            with(INJECT).planned("crash", "c3", 0).verdict().outcome,
            Answer::Holds,
            "it was never to heal"
        );
    }

    #[test]
    fn a_fault_lasts_until_what_it_waits_for() {
        let until = |client: &str| {
            faulty(INJECT, &HEAL.replace("30", "46.5").replace("31", "46.7"))
                .until(client, "write", "ok")
        };
        let after = "60 c1 acquire#21\n61 c1 acquire#21 ok token=9\n62 c1 write#22 grant=21 based_on=2\n63 c1 write#22 ok version=3";
        assert_eq!(until("c2").and(after).verdict().outcome, Answer::Holds);
        assert_eq!(
            failures(&until("c3").and(after)),
            [
                "fault `pause` on c1 healed after 26.7 ms, before c3 completed the `write` (ok) that it was to last for",
            ]
        );
    }

    #[test]
    fn what_was_begun_before_a_fault_is_not_what_it_lasts_for() {
        let heal = HEAL.replace("30", "60").replace("31", "61");
        let until = |begun: u64| {
            faulty(INJECT, &heal)
                .until("c2", "read", "ok")
                .and(&format!("{begun} c2 read#21 grant=11\n50 c2 read#21 ok version=2"))
                .and("70 c1 acquire#31\n71 c1 acquire#31 ok token=9\n72 c1 write#32 grant=31 value=c\n73 c1 write#32 info")
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
    fn something_works_before_the_first_fault_and_after_the_last() {
        let early = |text: &str| text.replace("20 n", "1 n").replace("22 n", "2 n");
        assert_eq!(
            failures(&faulty(&early(INJECT), HEAL)),
            ["no lock was granted before the first fault"]
        );
        assert_eq!(
            faulty(&early(INJECT), HEAL)
                .and("0 c1 point#99")
                .verdict()
                .outcome,
            Answer::Holds
        );
        let late = |heal: &str| heal.replace("30 n", "60 n").replace("31 n", "61 n");
        assert_eq!(
            failures(&faulty(INJECT, &late(HEAL))),
            [
                "no lock was granted after the last fault was over",
                "no write was accepted after the last fault was over",
            ]
        );
    }
}
