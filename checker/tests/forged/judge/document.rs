//! A document is a register with versions: the writes in the order of their versions, each read between two of them.

use serde_json::Value;

use super::Facts;
use super::history::{Ending, FOREVER};
use super::operations::Op;
use super::storage::{Row, Write, covers, document};

/// A version, and what is known of the write that made it. `None` where it is a write of which nothing is believed.
struct Step<'f> {
    version: u64,
    made: Option<Made<'f>>,
}

#[derive(Clone)]
struct Made<'f> {
    start: u64,
    end: u64,
    value: Option<&'f str>,
}

/// Whether it is violated, also without what rests on processes that went on after their death.
///
/// Violated is: reads and writes are not linearizable, a complete log lacks an acknowledged write, or the log has a write
/// that the storage said it refused: of one that failed it is certain that it did not happen.
pub fn is_violated(facts: &Facts) -> bool {
    let mut names: Vec<&str> = touched(facts).map(|op| document(op)).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().any(|name| !is_linearizable(facts, name))
        || log_lacks_a_write(facts)
        || facts.storage.writes.iter().any(|write| {
            let is_accepted = write.op.failed() && write.version.is_some();
            // A document begins with version 0, which no write made.
            let base = write.op.number("based_on").unwrap_or(0);
            is_believed(facts, &write.op)
                && (is_accepted
                    || write.versions.len() > 1
                    || write.versions.iter().any(|version| base >= *version)
                    || is_read_and_not_logged(facts, write))
        })
}

/// Whether something can be concluded from a read or a write.
fn is_believed(facts: &Facts, op: &Op) -> bool {
    facts.can_be_based(op) && !facts.undead.contains(&op.process)
}

fn touched<'f, 'a>(facts: &'f Facts<'a>) -> impl Iterator<Item = &'f Op<'a>> {
    facts
        .ops
        .all
        .iter()
        .filter(|op| op.is("read") || op.is("write"))
}

fn log_lacks_a_write(facts: &Facts) -> bool {
    facts.storage.writes.iter().any(|write| {
        write.op.ok() && is_believed(facts, &write.op) && {
            let logged = facts.storage.rows.iter().any(|row| {
                row.event["op"].as_u64() == Some(write.op.id)
                    && [&row.event["version"], &Value::Null].contains(&write.op.answer("version"))
            });
            facts.storage.is_settled(&write.op) && !logged
        }
    })
}

/// Whether a read returned a write that a complete log lacks which was read later.
fn is_read_and_not_logged(facts: &Facts, write: &Write) -> bool {
    let name = document(&write.op);
    let Some(version) = write.version.filter(|_| write.op.unknown()) else {
        return false;
    };
    let own = |row: &Row| row.event["op"].as_u64() == Some(write.op.id);
    // What another write made, too, may be what the read returned, though nothing that its client says is believed.
    let is_anothers = facts.storage.writes.iter().any(|other| {
        other.op.id != write.op.id
            && document(&other.op) == name
            && other.versions.contains(&version)
    });
    let is_later = |log: &Op, read: &Op| covers(log, Some(name)) && log.start > read.last();
    !facts.storage.rows.iter().any(own)
        && !is_anothers
        && !facts.storage.rows_without_a_write(name).contains(&version)
        && facts.ops.with("read").any(|read| {
            read.ok()
                && document(read) == name
                && is_believed(facts, read)
                && read.answer("version").as_u64() == Some(version)
                && facts.storage.logs.iter().any(|log| is_later(log, read))
        })
}

fn is_linearizable(facts: &Facts, name: &str) -> bool {
    let reads: Vec<&Op> = touched(facts)
        .filter(|op| op.is("read") && op.ok() && document(op) == name && is_believed(facts, op))
        .collect();
    let (mut steps, open) = writes_of(facts, name);
    // Versions may be skipped, yet one that was read was made: by a write that is there, if the history is whole.
    let is_cut = facts.history.ending == Ending::Cut;
    let mut missing: Vec<u64> = reads
        .iter()
        .filter(|read| !is_cut || facts.storage.is_settled(read))
        .filter_map(|read| read.answer("version").as_u64())
        .filter(|version| *version > 0 && !steps.iter().any(|step| step.version == *version))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    fill(&mut steps, &missing, open, &reads, is_cut)
}

/// The accepted writes by their versions, and those that may have been accepted.
fn writes_of<'f>(facts: &'f Facts, name: &str) -> (Vec<Step<'f>>, Vec<Made<'f>>) {
    let (mut steps, mut open) = (Vec::new(), Vec::new());
    let writes = &facts.storage.writes;
    for write in writes.iter().filter(|write| document(&write.op) == name) {
        let believed = is_believed(facts, &write.op);
        for &version in &write.versions {
            let made = believed.then(|| made(write));
            steps.push(Step { version, made });
        }
        if facts.storage.is_open(write) {
            open.push(made(write));
        }
    }
    for version in facts.storage.rows_without_a_write(name) {
        steps.push(Step {
            version,
            made: None,
        });
    }
    (steps, open)
}

fn made<'f>(write: &'f Write) -> Made<'f> {
    Made {
        start: write.op.start,
        end: write.op.end.filter(|_| write.op.ok()).unwrap_or(FOREVER),
        value: write.op.text("value"),
    }
}

/// Tries every open write for every version that was read and nobody is known to have made.
fn fill<'f>(
    steps: &mut Vec<Step<'f>>,
    missing: &[u64],
    open: Vec<Made<'f>>,
    reads: &[&Op],
    can_be_missing: bool,
) -> bool {
    let Some((&version, rest)) = missing.split_first() else {
        return fits(steps, reads, can_be_missing);
    };
    (0..open.len()).any(|choice| {
        let mut others = open.clone();
        let made = Some(others.remove(choice));
        steps.push(Step { version, made });
        let fits = fill(steps, rest, others, reads, can_be_missing);
        steps.pop();
        fits
    })
}

fn fits(steps: &[Step], reads: &[&Op], can_be_missing: bool) -> bool {
    writes_fit(steps)
        && reads
            .iter()
            .all(|read| read_fits(steps, read, can_be_missing))
        && reads_fit(reads)
}

fn writes_fit(steps: &[Step]) -> bool {
    steps.iter().enumerate().all(|(place, one)| {
        steps.iter().enumerate().all(|(other_place, other)| {
            let (Some(a), Some(b)) = (&one.made, &other.made) else {
                return true;
            };
            place == other_place
                || one.version != other.version
                    && (one.version > other.version || a.start <= b.end)
                    && (one.version < other.version || b.start <= a.end)
        })
    })
}

fn read_fits(steps: &[Step], read: &Op, can_be_missing: bool) -> bool {
    let version = read.answer("version").as_u64().unwrap_or(0);
    let value = read.answer("value").as_str();
    let mut makers = steps
        .iter()
        .filter(|step| step.version == version)
        .peekable();
    let value_fits = match makers.peek() {
        _ if version == 0 => value.is_none_or(str::is_empty),
        None => can_be_missing,
        Some(_) => makers.any(|step| {
            let made = step.made.as_ref();
            made.is_none_or(|made| value.is_none() || made.value.is_none() || value == made.value)
        }),
    };
    value_fits
        && steps.iter().all(|step| {
            step.made
                .as_ref()
                .is_none_or(|made| match step.version <= version {
                    true => made.start <= read.last(),
                    false => read.start <= made.end,
                })
        })
}

/// No read goes back in time.
fn reads_fit(reads: &[&Op]) -> bool {
    let version = |read: &Op| read.answer("version").as_u64().unwrap_or(0);
    reads.iter().all(|early| {
        reads
            .iter()
            .all(|late| early.last() >= late.start || version(early) <= version(late))
    })
}
