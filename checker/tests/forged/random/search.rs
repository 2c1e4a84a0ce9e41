//! Documents, judged by trying every order of their operations.

use histories::{Function, Kind};

use super::told::{Operation, Told};

/// An operation that may be given a place in the order.
struct Placed<'a> {
    told: &'a Operation,
    /// The version that a write is known to have made.
    version: Option<u64>,
    /// Whether it has to have a place.
    must: bool,
}

/// Whether there is an order of all operations that explains what they returned.
pub fn linearizable(told: &Told) -> bool {
    if !sensible(told) {
        return false;
    }
    let mut placed = Vec::new();
    for operation in &told.operations {
        let logged = told
            .rows
            .iter()
            .find(|(op, ..)| *op == operation.op)
            .map(|(_, version, _)| *version);
        let version = operation.version.or(logged);
        match (operation.f, operation.outcome) {
            (Function::Read, Some(Kind::Ok)) => placed.push(Placed {
                told: operation,
                version,
                must: true,
            }),
            (Function::Write, Some(Kind::Ok)) => placed.push(Placed {
                told: operation,
                version,
                must: true,
            }),
            (Function::Write, None | Some(Kind::Info)) => {
                placed.push(Placed {
                    told: operation,
                    version,
                    must: logged.is_some(),
                });
            }
            _ => {}
        }
    }
    let mut order = vec![false; placed.len()];
    search(told, &placed, &mut order, (0, ""))
}

/// What no order can explain.
fn sensible(told: &Told) -> bool {
    let writes = || told.of_function(Function::Write);
    let rows = |write: &Operation| -> Vec<_> {
        told.rows
            .iter()
            .filter(|(op, ..)| *op == write.op)
            .cloned()
            .collect()
    };
    writes().all(|write| {
        let rows = rows(write);
        let acknowledged = write.outcome == Some(Kind::Ok);
        let vanished = rows.is_empty()
            && told.log_read.is_some_and(|read| write.returned() < read)
            && acknowledged;
        let versions: Vec<u64> = rows
            .iter()
            .map(|(_, version, _)| *version)
            .chain(write.version)
            .collect();
        let one_version = versions.windows(2).all(|pair| pair[0] == pair[1]);
        let same_value = rows.iter().all(|(.., value)| *value == write.value);
        let failed = write.outcome == Some(Kind::Fail) && !rows.is_empty();
        let rises = versions
            .iter()
            .all(|&version| write.based_on.is_none_or(|based_on| based_on < version));
        let seen = seen_as(told, write)
            .is_none_or(|version| write.based_on.is_none_or(|based_on| based_on < version));
        !vanished && one_version && same_value && !failed && rises && seen
    })
}

/// The version as which a read returned a write of unknown outcome.
fn seen_as(told: &Told, write: &Operation) -> Option<u64> {
    let mut reads = told
        .operations
        .iter()
        .filter(|read| read.is(Function::Read, Kind::Ok));
    let seen = reads
        .find(|read| read.value == write.value && write.outcome != Some(Kind::Ok))?
        .version;
    seen.filter(|_| told.rows.iter().all(|(op, ..)| *op != write.op))
}

/// Goes on from a state of the document, with those in place that have their place already.
fn search(told: &Told, placed: &[Placed<'_>], order: &mut [bool], state: (u64, &str)) -> bool {
    if placed
        .iter()
        .zip(&*order)
        .all(|(operation, is_placed)| *is_placed || !operation.must)
    {
        return true;
    }
    for next in 0..placed.len() {
        let waits_for_another = placed.iter().zip(&*order).any(|(other, is_placed)| {
            !is_placed && other.must && other.told.returned() < placed[next].told.invoked
        });
        if order[next] || waits_for_another {
            continue;
        }
        order[next] = true;
        for after in outcomes(told, &placed[next], placed, state) {
            if search(told, placed, order, after) {
                return true;
            }
        }
        order[next] = false;
    }
    false
}

/// The states in which an operation can leave the document.
fn outcomes<'a>(
    told: &Told,
    next: &Placed<'a>,
    placed: &[Placed<'a>],
    state: (u64, &'a str),
) -> Vec<(u64, &'a str)> {
    let value = next.told.value.as_str();
    match (next.told.f, next.version) {
        (Function::Read, version) => {
            Vec::from_iter((version == Some(state.0) && value == state.1).then_some(state))
        }
        (_, Some(version)) => Vec::from_iter((version > state.0).then_some((version, value))),
        // A complete log that lacks it says that it did not happen before the log was read.
        (_, None) => {
            let reads = placed
                .iter()
                .filter(|read| read.told.f == Function::Read && read.told.value == value);
            let possible = reads.filter(|read| {
                told.log_read
                    .is_none_or(|logged| logged <= read.told.returned())
            });
            possible
                .filter_map(|read| Some((read.version?, value)))
                .filter(|after| after.0 > state.0)
                .collect()
        }
    }
}
