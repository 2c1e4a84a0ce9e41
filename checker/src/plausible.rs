//! Whether reads and writes tell what they have to, and fit the grants that they are under and the reads that they follow.
//! Where they do not, the record is at fault and not the storage.

use histories::Plan;

use crate::assumptions::{Flaw, Flaws};
use crate::contract::about_as_long_as;
use crate::names::{Map, NONE};
use crate::operations::{Acquire, Extend, NEVER, Read, Record, Work, Write};
use crate::sentences;
use crate::storage::StorageOrder;

/// The condition of a write that is its grant's token.
pub(crate) const TOKEN: &str = "token";

/// Notes all that does not fit, and marks the writes that are based on what their client cannot have read.
/// `states_condition` says whether the plan tells by what the storage rejects writes: in version 1 it did not.
pub(crate) fn note(
    record: &mut Record,
    storage: &StorageOrder,
    plan: &Plan,
    states_condition: bool,
    flaws: &mut Flaws,
) {
    note_two_locks(record, flaws);
    note_untold(record, flaws);
    note_short_work(record, plan, flaws);
    note_tokens(record, plan.write_condition.as_deref(), flaws);
    if states_condition {
        note_unprovoked(record, plan.write_condition.as_deref(), flaws);
    }
    note_endless(record, flaws);
    note_unread(record, storage, flaws);
}

/// Notes what is read or written under a grant of another lock than that document was before: one lock keeps it.
fn note_two_locks(record: &Record, flaws: &mut Flaws) {
    let mut keeps = vec![NONE; record.documents.len()];
    let reads = record
        .reads
        .iter()
        .map(|read| (read.call, read.document, read.grant));
    let writes = record
        .writes
        .iter()
        .map(|write| (write.call, write.document, write.grant));
    for (call, document, grant) in reads.chain(writes) {
        let of_grant = record.acquire(grant).map_or(NONE, |acquire| acquire.lock);
        if of_grant == NONE {
            continue;
        }
        let kept_by = &mut keeps[document as usize];
        if *kept_by != NONE && *kept_by != of_grant {
            flaws.note(Flaw::TwoLocks, || {
                format!(
                    "{}'s op {} is about {} under a grant of {}, and others are under grants of {}",
                    record.names.text(call.process),
                    call.op,
                    sentences::document(record, document),
                    sentences::lock(record, of_grant),
                    sentences::lock(record, *kept_by),
                )
            });
        }
        *kept_by = of_grant;
    }
}

/// Notes writes whose token is not that of their grant, and grants without a token where others have one.
fn note_tokens(record: &Record, condition: Option<&str>, flaws: &mut Flaws) {
    for write in &record.writes {
        let granted = record
            .acquire(write.grant)
            .filter(|acquire| acquire.granted());
        let of_grant = granted.map(|acquire| acquire.token);
        let other = write.token.is_some() && of_grant.is_some_and(|token| token != write.token);
        let lacks = write.token.is_none() && condition == Some(TOKEN);
        if other || lacks {
            let told = match write.token {
                Some(token) => format!("the token {token}, which is not that of its grant"),
                None => "no token, though the storage goes by it".to_owned(),
            };
            flaws.note(Flaw::OtherToken, || {
                format!("{} carries {told}", sentences::write(record, write))
            });
        }
    }
    if let Some(bare) = only_some_have(record, |acquire| acquire.token.is_some()) {
        flaws.note(Flaw::Tokenless, || {
            format!(
                "{} has no token, and others of {} have",
                sentences::holder(record, bare),
                sentences::lock(record, bare.lock)
            )
        });
    }
}

/// Notes writes that were rejected though no write with a higher token was begun by then: a storage goes by nothing else.
fn note_unprovoked(record: &Record, condition: Option<&str>, flaws: &mut Flaws) {
    // By document: the invocations of writes that may have been accepted, and the highest token until then.
    let mut highest: Map<u32, Vec<(u64, Option<u64>)>> = Map::default();
    for write in record.writes.iter().filter(|write| !write.rejected) {
        let of_document = highest.entry(write.document).or_default();
        let before = of_document.last().and_then(|(_, token)| *token);
        of_document.push((write.call.invoked, before.max(write.token)));
    }
    for write in record.writes.iter().filter(|write| write.rejected) {
        let of_document = highest.get(&write.document).map_or(&[][..], Vec::as_slice);
        let begun = of_document.partition_point(|(invoked, _)| *invoked < write.call.completed);
        let token = of_document[..begun].last().and_then(|(_, token)| *token);
        let is_lower = write.token < token;
        if !is_lower || condition != Some(TOKEN) {
            flaws.note(Flaw::Unprovoked, || {
                let write = sentences::write(record, write);
                format!("{write} was rejected, and no write with a higher token was begun by then")
            });
        }
    }
}

/// Notes grants and extensions without a validity where others of the lock have one: a lease that nothing ends would be
/// held for as long as its client pleases.
fn note_endless(record: &Record, flaws: &mut Flaws) {
    let has_validity = |acquire: &Acquire| acquire.validity != NEVER;
    if let Some(endless) = only_some_have(record, has_validity) {
        flaws.note(Flaw::NoValidity, || {
            format!(
                "{} has no validity, and others of {} have",
                sentences::holder(record, endless),
                sentences::lock(record, endless.lock)
            )
        });
    }
    let tells_none = |extend: &&Extend| extend.call.ok() && extend.validity.is_none();
    for extend in record.extends.iter().filter(tells_none) {
        let acquire = record.acquire(extend.grant);
        if let Some(lease) = acquire.filter(|acquire| acquire.granted() && has_validity(acquire)) {
            flaws.note(Flaw::NoValidity, || {
                let holder = sentences::holder(record, lease);
                format!(
                    "the extension {} of {holder} tells no validity",
                    extend.call.op
                )
            });
        }
    }
}

/// The first grant that lacks what another grant of its lock has.
fn only_some_have(record: &Record, has: impl Fn(&Acquire) -> bool) -> Option<&Acquire> {
    let granted = || record.acquires.iter().filter(|acquire| acquire.granted());
    let mut others_have = vec![false; record.locks.len()];
    for acquire in granted().filter(|acquire| has(acquire)) {
        others_have[acquire.lock as usize] = true;
    }
    granted().find(|acquire| !has(acquire) && others_have[acquire.lock as usize])
}

/// Notes reads and writes that do not tell what they read or wrote, and writes that alone do not say what they were based
/// on: what nobody tells can't be compared.
fn note_untold(record: &Record, flaws: &mut Flaws) {
    let read = |read: &&Read| read.call.ok() && read.value == NONE;
    for read in record.reads.iter().filter(read) {
        let op = read.call.op;
        flaws.note(Flaw::NoValue, || format!("read {op} returned no value"));
    }
    for write in record.writes.iter().filter(|write| write.value == NONE) {
        flaws.note(Flaw::NoValue, || {
            format!(
                "{} does not say what it writes",
                sentences::write(record, write)
            )
        });
    }
    let is_based = |write: &&Write| write.based_on.is_some();
    if record.writes.iter().any(|write| is_based(&write)) {
        for write in record.writes.iter().filter(|write| !is_based(write)) {
            flaws.note(Flaw::Baseless, || {
                let write = sentences::write(record, write);
                format!("{write} does not say what it was based on, and others do")
            });
        }
    }
}

/// Notes work within which its client writes sooner than the plan has it: such work does not take as long as the plan says.
/// That is a flaw where the plan makes it about as long as the lease: then it would excuse by itself.
fn note_short_work(record: &mut Record, plan: &Plan, flaws: &mut Flaws) {
    let work_ms = plan.workload.work_ms;
    let is_long = about_as_long_as(work_ms, plan);
    let mut written = vec![Vec::new(); record.processes.len()];
    for write in &record.writes {
        written[write.call.process as usize].push(write.call.invoked);
    }
    for Work { call, .. } in &record.works {
        let done = call
            .invoked
            .saturating_add(work_ms.saturating_mul(1_000_000));
        let written = &written[call.process as usize];
        let next = written.partition_point(|&at| at < call.invoked);
        if written
            .get(next)
            .is_some_and(|&at| at < done.min(call.completed))
        {
            record.has_short_work = true;
            if !is_long {
                return;
            }
            flaws.note(Flaw::ShortWork, || {
                let process = record.names.text(call.process);
                format!(
                    "{process} writes within its work (op {}) before that has lasted the plan's {work_ms} ms",
                    call.op
                )
            });
        }
    }
}

/// Notes and marks the writes that are based on what their client cannot have read.
fn note_unread(record: &mut Record, storage: &StorageOrder, flaws: &mut Flaws) {
    let unread: Vec<u32> = {
        let seen = Seen::new(record);
        (0..record.writes.len() as u32)
            .filter(|&row| {
                let write = &record.writes[row as usize];
                write.based_on.is_some_and(|based_on| {
                    !existed(record, storage, write, based_on) || !seen.allows(write, based_on)
                })
            })
            .collect()
    };
    for row in unread {
        record.writes[row as usize].unread = true;
        let write = &record.writes[row as usize];
        flaws.note(Flaw::Unread, || {
            format!(
                "{} is based on version {} of {}, which its client cannot have read",
                sentences::write(record, write),
                write.based_on.unwrap_or_default(),
                sentences::document(record, write.document)
            )
        });
    }
}

/// Whether a version can have been there when a write was invoked, as far as the storage's order is known.
fn existed(record: &Record, storage: &StorageOrder, write: &Write, version: u64) -> bool {
    if version == 0 || storage.strangers.contains(&(write.document, version)) {
        return true;
    }
    let before = |row: u32| {
        let other = &record.writes[row as usize];
        other.document == write.document
            && other.call.op != write.call.op
            && other.call.invoked <= write.call.invoked
    };
    let writers = storage.writers(write.document, version).iter();
    let open = storage.unsettled.iter().copied();
    let mut candidates = writers.map(|accepted| accepted.write).chain(open);
    candidates.any(before)
}

/// What was read and written under each grant.
struct Seen<'a> {
    /// By acquire: its successful reads, in order.
    reads: Map<u32, Vec<&'a Read>>,
    /// By acquire: its accepted writes.
    writes: Map<u32, Vec<&'a Write>>,
}

impl Seen<'_> {
    fn new(record: &Record) -> Seen<'_> {
        let mut seen = Seen {
            reads: Map::default(),
            writes: Map::default(),
        };
        for read in record
            .reads
            .iter()
            .filter(|read| read.call.ok() && read.grant != NONE)
        {
            seen.reads.entry(read.grant).or_default().push(read);
        }
        for write in record
            .writes
            .iter()
            .filter(|write| write.call.ok() && write.grant != NONE)
        {
            seen.writes.entry(write.grant).or_default().push(write);
        }
        seen
    }

    /// Whether a client can have read a version, by what the same grant read and wrote before. A grant that did not read that
    /// document says nothing.
    fn allows(&self, write: &Write, version: u64) -> bool {
        let Some(reads) = self.reads.get(&write.grant) else {
            return true;
        };
        let before = |call: &crate::operations::Call| call.completed <= write.call.invoked;
        let of_document = |read: &&&Read| read.document == write.document && before(&read.call);
        let mut read = reads.iter().filter(of_document).peekable();
        if read.peek().is_none() {
            return true;
        }
        let found =
            |document: u32, made: Option<u64>| document == write.document && made == Some(version);
        let wrote = self.writes.get(&write.grant).into_iter().flatten();
        read.any(|read| found(read.document, read.version))
            || wrote
                .filter(|other| before(&other.call))
                .any(|other| found(other.document, other.version))
    }
}
