//! Grants, and the times in which each was certainly held.

use super::faults::Strike;
use super::history::{Ending, FOREVER, History, is_server, number, text};
use super::lives::{deaths, events_of, kills};
use super::operations::{Op, Operations};
use super::spans::{Span, span};

/// An acquire that completed `ok`.
pub struct Grant<'a> {
    /// Its acquire.
    pub acquire: Op<'a>,
    /// When the acquire returned.
    pub returned: u64,
    /// The lock.
    pub lock: &'a str,
    /// Its token.
    pub token: Option<u64>,
    /// Its validity as its last extension or renewal said.
    pub validity: Option<u64>,
    /// Until when a lease of the plan's length lives at least.
    pub lives_until: u64,
    /// When it was certainly held.
    pub holds: Vec<Span>,
    /// When its validity was over, and it was held all the same, as an extension proves.
    pub overdue: Vec<Span>,
    /// When its client gave it up, learned that it lost it, or died, whichever was first.
    pub given_up: u64,
    /// When it was over, if that was when its acquire returned or earlier.
    pub over_on_arrival: Option<u64>,
}

/// All grants of a history.
pub fn grants<'a>(
    history: &'a History,
    ops: &Operations<'a>,
    strikes: &[Strike],
) -> Vec<Grant<'a>> {
    ops.with("acquire")
        .filter(|op| op.ok())
        .map(|acquire| grant(history, ops, strikes, acquire))
        .collect()
}

fn grant<'a>(
    history: &'a History,
    ops: &Operations<'a>,
    strikes: &[Strike],
    acquire: &Op<'a>,
) -> Grant<'a> {
    let returned = acquire.last();
    let first_validity = number_of(acquire, "validity");
    let given_up = [
        released(ops, acquire),
        learned(history, ops, acquire),
        died(history, strikes, acquire),
        taken_up_by_another(history, ops, acquire),
        cut_off(history, acquire.process),
    ]
    .into_iter()
    .min()
    .unwrap_or(FOREVER);
    let mut statements = statements(history, ops, acquire);
    statements.retain(|statement| statement.asked() < given_up);
    let mut end = given_up;
    if first_validity.is_none() {
        end = end.min(server_killed(strikes, acquire));
    }
    let (valid, overdue) = valid(returned, first_validity, &statements);
    let validity = valid.last().map(|last| last.to);
    let holds = valid
        .into_iter()
        .map(|hold| span(hold.from.max(returned), hold.to.min(end)))
        .filter(|hold| !hold.is_empty())
        .collect();
    Grant {
        acquire: acquire.clone(),
        returned,
        lock: acquire.text("lock").unwrap_or_default(),
        token: number_of(acquire, "token"),
        validity: validity.filter(|&validity| validity != FOREVER),
        lives_until: lives_until(acquire, &statements, history.ttl()),
        holds,
        overdue,
        given_up,
        over_on_arrival: first_validity
            .into_iter()
            .chain(killed_on_arrival(history, strikes, acquire))
            .chain(gone_on_arrival(history, ops, acquire))
            .min()
            .filter(|&over| over <= returned),
    }
}

/// When its client began to be killed, if that was not done when its acquire returned.
fn killed_on_arrival(history: &History, strikes: &[Strike], acquire: &Op) -> Option<u64> {
    strikes
        .iter()
        .filter(|strike| kills(history, strike, acquire.process))
        .filter(|strike| strike.inject.end.is_none_or(|end| acquire.last() <= end))
        .map(|strike| strike.inject.start)
        .min()
}

/// The instant at which it was released or lost, or its process ended, if that is the one at which its acquire returned.
fn gone_on_arrival(history: &History, ops: &Operations, acquire: &Op) -> Option<u64> {
    let gone = released(ops, acquire).min(learned(history, ops, acquire));
    let ended = history
        .remarks_of("exit")
        .filter(|exit| text(exit, "process") == Some(acquire.process))
        .filter_map(|exit| number(exit, "t"));
    ended.chain([gone]).find(|&gone| gone == acquire.last())
}

fn number_of(op: &Op, field: &str) -> Option<u64> {
    op.answer(field).as_u64()
}

/// What is said of a grant's validity after its acquire.
enum Statement {
    /// An extend that was done between both times.
    Extended {
        invoked: u64,
        at: u64,
        validity: Option<u64>,
        ttl: Option<u64>,
    },
    /// An extend that may have been done.
    Unknown { at: u64, ttl: Option<u64> },
    /// A renewal in the background.
    Renewed { at: u64, validity: Option<u64> },
}

impl Statement {
    /// When it was asked for: what is asked for when the hold is over changes nothing.
    fn asked(&self) -> u64 {
        match *self {
            Statement::Extended { invoked, .. } => invoked,
            Statement::Unknown { at, .. } | Statement::Renewed { at, .. } => at,
        }
    }

    fn at(&self) -> u64 {
        match *self {
            Statement::Extended { at, .. }
            | Statement::Unknown { at, .. }
            | Statement::Renewed { at, .. } => at,
        }
    }
}

fn statements(history: &History, ops: &Operations, acquire: &Op) -> Vec<Statement> {
    let mut all: Vec<Statement> = ops
        .with("extend")
        .filter(|op| op.grant() == Some(acquire.id) && !op.failed())
        .map(|op| match op.ok() {
            true => Statement::Extended {
                invoked: op.start,
                at: op.last(),
                validity: number_of(op, "validity"),
                ttl: op.number("ttl_ms").map(|ttl| ttl.saturating_mul(1_000_000)),
            },
            false => Statement::Unknown {
                at: op.start,
                ttl: op.number("ttl_ms").map(|ttl| ttl * 1_000_000),
            },
        })
        .collect();
    all.extend(
        history
            .remarks_of("renewed")
            .filter(|event| is_of(event, acquire))
            .map(|event| Statement::Renewed {
                at: number(event, "t").unwrap_or_default(),
                validity: number(event, "validity"),
            }),
    );
    all.sort_by_key(Statement::at);
    all
}

fn is_of(event: &serde_json::Value, acquire: &Op) -> bool {
    number(event, "grant") == Some(acquire.id) && text(event, "process") == Some(acquire.process)
}

/// Until when a lease lives at least: four fifths of what was asked for, from then on; and as long as it was renewed for.
fn lives_until(acquire: &Op, statements: &[Statement], planned: u64) -> u64 {
    let least = |asked: u64, ttl: u64| asked.saturating_add(ttl / 5 * 4);
    let from = least(acquire.start, planned);
    statements
        .iter()
        .fold(from, |until, statement| match *statement {
            Statement::Extended { invoked, ttl, .. } => least(invoked, ttl.unwrap_or(planned)),
            Statement::Renewed { validity, .. } => until.max(validity.unwrap_or(0)),
            Statement::Unknown { .. } => until,
        })
}

/// The times in which the lease was certainly valid, as one statement after the other leaves them.
fn valid(returned: u64, first: Option<u64>, statements: &[Statement]) -> (Vec<Span>, Vec<Span>) {
    let mut overdue = Vec::new();
    let mut spans = vec![span(returned, first.unwrap_or(FOREVER))];
    for statement in statements {
        let last = *spans.last().expect("the first stays");
        if let Statement::Extended { invoked, .. } = *statement {
            let gaps = spans.windows(2).map(|pair| span(pair[0].to, pair[1].from));
            overdue.extend(gaps.chain([span(last.to, invoked.max(last.to))]));
        }
        match *statement {
            Statement::Extended {
                invoked,
                validity: Some(validity),
                ..
            } => spans = vec![span(returned, validity.max(invoked))],
            // One that tells no validity leaves it as it was.
            Statement::Extended { .. } => {}
            Statement::Unknown { at, ttl } => {
                let replaced = ttl.map_or(at, |ttl| at.saturating_add(ttl));
                spans.last_mut().expect("the first stays").to = last.to.min(replaced);
            }
            Statement::Renewed { at, validity } => {
                let validity = validity.unwrap_or(FOREVER);
                if at < last.to {
                    spans.last_mut().expect("the first stays").to = validity.max(at);
                } else {
                    spans.push(span(at, validity.max(at)));
                }
            }
        }
    }
    (spans, overdue)
}

/// The invocation of the first release that may have been done.
fn released(ops: &Operations, acquire: &Op) -> u64 {
    releases(ops, acquire)
        .map(|op| op.start)
        .min()
        .unwrap_or(FOREVER)
}

/// The releases of a grant that may have been done.
pub fn releases<'o, 'a>(ops: &'o Operations<'a>, acquire: &Op) -> impl Iterator<Item = &'o Op<'a>> {
    let id = acquire.id;
    ops.with("release")
        .filter(move |op| op.grant() == Some(id) && (!op.failed() || op.lost()))
}

/// When its client learned that the lock is lost.
fn learned(history: &History, ops: &Operations, acquire: &Op) -> u64 {
    let told = history
        .remarks_of("lost")
        .filter(|event| is_of(event, acquire))
        .filter_map(|event| number(event, "t"));
    let answered = ops
        .all
        .iter()
        .filter(|op| op.grant() == Some(acquire.id) && op.process == acquire.process)
        .filter(|op| tells_of_loss(op))
        .map(Op::last);
    told.chain(answered).min().unwrap_or(FOREVER)
}

fn tells_of_loss(op: &Op) -> bool {
    match op.f {
        "extend" | "release" => op.lost(),
        "held" => op.ok() && op.answer("held") == &serde_json::Value::Bool(false),
        "write" => op.failed() && op.answer("error").as_str() == Some("rejected"),
        _ => false,
    }
}

fn died(history: &History, strikes: &[Strike], acquire: &Op) -> u64 {
    deaths(history, strikes, acquire.process)
        .iter()
        .map(|death| death.from)
        .min()
        .unwrap_or(FOREVER)
}

/// The last event of a process in a history that is cut: what it did next is not there.
fn cut_off(history: &History, process: &str) -> u64 {
    let times = events_of(history, process).filter_map(|event| number(event, "t"));
    match history.ending {
        Ending::Cut => times.max().unwrap_or(FOREVER),
        _ => FOREVER,
    }
}

/// When something is done under it that is not its own: by another process, or before it was asked for.
fn taken_up_by_another(history: &History, ops: &Operations, acquire: &Op) -> u64 {
    let when = |t: u64, process: &str, is_before: bool| match is_before {
        true => Some(0),
        false => Some(t).filter(|_| process != acquire.process),
    };
    let of_ops = ops.of_clients().filter(|op| op.grant() == Some(acquire.id));
    let of_ops = of_ops.filter_map(|op| when(op.start, op.process, op.places.0 < acquire.places.0));
    let remarks = ["lost", "renewed"]
        .into_iter()
        .flat_map(|f| history.remarks_of(f))
        .filter(|remark| number(remark, "grant") == Some(acquire.id));
    let of_remarks = remarks.filter_map(|remark| {
        let t = number(remark, "t")?;
        when(t, text(remark, "process")?, t < acquire.start)
    });
    of_ops.chain(of_remarks).min().unwrap_or(FOREVER)
}

/// When a server was killed that may have had the grant: before the grant was asked for, it cannot have had it. One that
/// was asked for or answered while a server was being killed may be of the server after that; nobody knows.
fn server_killed(strikes: &[Strike], acquire: &Op) -> u64 {
    strikes
        .iter()
        .filter(|strike| strike.kills() && strike.on.iter().any(|host| is_server(host)))
        .filter(|strike| strike.inject.end.is_none_or(|end| end >= acquire.start))
        .map(|strike| strike.inject.start)
        .min()
        .unwrap_or(FOREVER)
}

/// When certain holds of both began to overlap.
pub fn first_overlap(one: &Grant, other: &Grant) -> Option<u64> {
    let pairs = one
        .holds
        .iter()
        .flat_map(|a| other.holds.iter().map(move |b| (a, b)));
    pairs
        .filter(|(a, b)| a.overlaps(**b))
        .map(|(a, b)| a.from.max(b.from))
        .min()
}

/// When a grant arrived that was over by then, if the service can have granted it at no instant, since another was held
/// from before all of them until after it arrived.
pub fn conflict_on_arrival(late: &Grant, holder: &Grant) -> Option<u64> {
    let over = late.over_on_arrival?;
    holder
        .holds
        .iter()
        .any(|hold| {
            let is_before = hold.from < over || hold.from <= late.acquire.start;
            is_before && late.returned < hold.to
        })
        .then_some(late.returned)
}

/// Whether nothing shows that two held the lock at once.
fn excludes(of_lock: &[&Grant]) -> bool {
    of_lock.iter().all(|one| {
        of_lock.iter().all(|other| {
            one.acquire.places == other.acquire.places
                || first_overlap(one, other).is_none() && conflict_on_arrival(one, other).is_none()
        })
    })
}

/// When a grant began at the earliest.
pub fn began(grants: &[Grant], grant: &Grant) -> u64 {
    let of_lock: Vec<&Grant> = grants.iter().filter(|g| g.lock == grant.lock).collect();
    let is_held = grant
        .holds
        .iter()
        .any(|hold| hold.from == grant.returned && !hold.is_empty());
    let is_exclusive = is_held && excludes(&of_lock);
    let ended = of_lock
        .iter()
        .filter(|other| other.acquire.places != grant.acquire.places)
        .flat_map(|other| &other.holds)
        .map(|hold| hold.to)
        .filter(|&end| is_exclusive && end <= grant.returned)
        .max();
    grant.acquire.start.max(ended.unwrap_or(0))
}
