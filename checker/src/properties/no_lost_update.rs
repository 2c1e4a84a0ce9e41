//! `no-lost-update`: no accepted write replaces a version that its writer never saw.
//!
//! An accepted write that made version n from version v loses an update if another grant's write was accepted as some
//! version in between. Along the versions it is enough to know the highest earlier one that another grant made.

use crate::grants::Cuts;
use crate::operations::Record;
use crate::properties::{Case, Finding, Property, witness};
use crate::sentences;
use crate::storage::Accepted;
use crate::verdict::Witness;

pub(super) const PROPERTY: Property = Property {
    name: "no-lost-update",
    summary: "violated when an accepted write was based on a version that another grant's write had already replaced",
    silent: |case| {
        let based = case
            .record
            .writes
            .iter()
            .any(|write| write.based_on.is_some());
        case.no_documents()
            .or((!based).then_some("no write says which version it was based on"))
    },
    judge,
};

fn judge(case: &Case<'_>, cuts: &Cuts) -> Finding {
    let record = case.record;
    // One that is based on what its client cannot have read shows that the record is at fault, not the storage.
    let accepted: Vec<Accepted> = case
        .storage
        .in_its_own_order()
        .filter(|accepted| !record.writes[accepted.write as usize].unread)
        .collect();
    let lost: Vec<(Accepted, Accepted)> = (0..accepted.len())
        .filter_map(|at| {
            Some((
                accepted[at],
                replaced_unseen(record, cuts, &accepted[..at], accepted[at])?,
            ))
        })
        .collect();
    let returned = |(accepted, _): &&(Accepted, Accepted)| {
        (
            record.writes[accepted.write as usize].call.returned(),
            accepted.document,
            accepted.version,
        )
    };
    match lost.iter().min_by_key(returned) {
        Some(first) => Finding::violated(describe(record, first.0, first.1), lost.len() as u64),
        None => case
            .unsettled()
            .map_or_else(Finding::holds, Finding::unknown),
    }
}

/// The latest version after the one that a write was based on that another writer made, and that nothing excuses.
fn replaced_unseen(
    record: &Record,
    cuts: &Cuts,
    before: &[Accepted],
    accepted: Accepted,
) -> Option<Accepted> {
    let based_on = record.writes[accepted.write as usize].based_on?;
    let own = writer(record, accepted.write);
    let between = before
        .iter()
        .rev()
        .take_while(|other| other.document == accepted.document && other.version > based_on);
    // Writes that share a version do not replace each other.
    between
        .filter(|other| other.version < accepted.version && writer(record, other.write) != own)
        .find(|other| !is_excused(record, cuts, accepted, **other))
        .copied()
}

/// Whether something that was about explains that one write replaced another unseen.
fn is_excused(record: &Record, cuts: &Cuts, accepted: Accepted, other: Accepted) -> bool {
    let (write, replaced) = (
        &record.writes[accepted.write as usize],
        &record.writes[other.write as usize],
    );
    let at = write.call.known_at();
    cuts.leave_aside(write.grant, write.call.op, at)
        || cuts.leave_aside(replaced.grant, replaced.call.op, at)
}

/// Who writes: a process, with the acquire that it names, if it names one. What names another process's grant is not of it.
fn writer(record: &Record, write: u32) -> (u32, Option<u64>) {
    let write = &record.writes[write as usize];
    let acquire = record.acquire(write.grant);
    (write.call.process, acquire.map(|acquire| acquire.call.op))
}

fn describe(record: &Record, accepted: Accepted, other: Accepted) -> Witness {
    let (write, replaced) = (
        &record.writes[accepted.write as usize],
        &record.writes[other.write as usize],
    );
    let sentence = format!(
        "{} was accepted as version {} of {} although it was based on version {}: it overwrote version {}, {}, unseen",
        sentences::write(record, write),
        accepted.version,
        sentences::document(record, accepted.document),
        write.based_on.unwrap_or_default(),
        other.version,
        sentences::write(record, replaced),
    );
    let events = vec![
        record.write_events(other.write),
        record.write_events(accepted.write),
    ];
    witness(sentence, vec![replaced.call.op, write.call.op], events)
}

#[cfg(test)]
mod tests {
    use super::PROPERTY;
    use crate::timeline::{Timeline, timeline};

    const NAME: &str = PROPERTY.name;

    /// Two grants, then these writes, one a millisecond: grant, version based on, version made.
    fn writes(writes: &[(u32, u64, u64)]) -> Timeline {
        let mut text =
            String::from("1 c1 acquire#1\n2 c1 acquire#1 ok\n3 c2 acquire#2\n4 c2 acquire#2 ok\n");
        for (at, (grant, based_on, version)) in writes.iter().enumerate() {
            let (t, op) = (10 + at, 100 + at);
            text +=
                &format!("{t} c{grant} write#{op} grant={grant} based_on={based_on} value=v{op}\n");
            text += &format!("{t}.5 c{grant} write#{op} ok version={version}\n");
        }
        timeline(&text)
    }

    #[test]
    fn identifies_a_write_over_another_grant_s_unseen_one() {
        let witness = writes(&[(1, 0, 1), (2, 1, 2), (1, 1, 3)]).witness(NAME);
        assert_eq!(witness.operations, [101, 102]);
        assert_eq!(
            witness.sentence,
            "c1's write (op 102, grant 1) was accepted as version 3 of document `d` although it was based on version 1: \
             it overwrote version 2, c2's write (op 101, grant 2), unseen"
        );
    }

    #[test]
    fn identifies_it_behind_the_writer_s_own_writes() {
        writes(&[(1, 0, 1), (2, 1, 2), (1, 0, 3), (1, 0, 4)]).witness(NAME);
        assert_eq!(
            writes(&[(1, 0, 1), (2, 1, 2), (1, 0, 3), (1, 0, 4)])
                .verdict()
                .property(NAME)
                .unwrap()
                .violations,
            2
        );
    }

    #[test]
    fn spares_a_grant_that_writes_again_from_what_it_read() {
        writes(&[(1, 0, 1), (1, 0, 2), (1, 0, 3), (2, 3, 4), (2, 3, 5)]).holds(NAME);
    }

    #[test]
    fn processes_that_write_without_a_lock_are_writers_of_their_own() {
        let cas = |based_on: u64| {
            timeline(&format!(
                "10 c1 write#1 based_on=0 value=a
                 11 c1 write#1 ok version=1
                 12 c2 write#2 based_on={based_on} value=b
                 13 c2 write#2 ok version=2"
            ))
        };
        cas(1).holds(NAME);
        cas(0).witness(NAME);
    }

    #[test]
    fn documents_are_apart() {
        timeline(
            "10 c1 write#1 based_on=0 value=a
             11 c1 write#1 ok version=1
             12 c2 write#2 based_on=0 value=b document=other
             13 c2 write#2 ok version=2 document=other",
        )
        .holds(NAME);
    }

    #[test]
    fn a_write_counts_as_what_the_log_has_it_as() {
        // Its client was told version 5, which is after that of c2.
        let history = timeline(
            "10 c1 write#1 based_on=0 value=a
             11 c1 write#1 ok version=5
             12 c2 write#2 based_on=1 value=b
             13 c2 write#2 ok version=2
             20 storage log#9
             21 storage accepted#1 ok version=1
             21 storage accepted#2 ok version=2
             22 storage log#9 ok entries=2",
        );
        history.spares(NAME);
        history.witness("document");
    }
}
