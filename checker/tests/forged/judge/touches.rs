//! Which hazards touch whom.

use super::Facts;
use super::assumptions::fits::works_as_planned;
use super::beliefs::{Party, own_acquire};
use super::hazards::{HOLDS_UP, Hazard, is_about_as_long_as_the_lease, planned_work};
use super::history::{FOREVER, host_of, is_server};
use super::operations::Op;
use super::progress::length_in;
use super::spans::{Span, common, span, united};

/// A hazard that touches a grant: its name and when it began. `perhaps` where it is not shown, or nobody knows.
pub struct Touch {
    /// The hazard's name.
    pub name: &'static str,
    /// When it began.
    pub from: u64,
    /// Whether it may as well not touch it.
    pub perhaps: bool,
}

/// All hazards that touch a party.
pub fn touches(facts: &Facts, party: &Party) -> Vec<Touch> {
    let near = near(facts, party);
    let explained_by = |hazards: &[Hazard]| {
        let times = hazards
            .iter()
            .filter(|one| holds_up(one))
            .map(|one| one.time);
        explained(facts, party, times.collect()).filter(|_| is_late(party))
    };
    let shown: Vec<Hazard> = near.iter().filter(|one| one.is_shown).cloned().collect();
    let is_explained = explained_by(&near).is_some();
    let certainly = explained_by(&shown).is_some_and(|(left, held)| left <= held);
    let mut all: Vec<Touch> = near
        .iter()
        .filter(|hazard| hazard.time.meets(party.lifetime))
        .filter(|hazard| is_explained || !holds_up(hazard))
        .map(|hazard| Touch {
            name: hazard.name,
            from: hazard.time.from,
            perhaps: !hazard.is_shown || holds_up(hazard) && !certainly,
        })
        .collect();
    if is_late(party) && !is_explained && !facts.history.records_stalls() {
        all.push(Touch {
            name: "client-stopped",
            from: party.validity.unwrap_or(FOREVER),
            perhaps: true,
        });
    }
    all
}

/// Whether its client may have been made late. Whoever acts under a grant that it has given back does that for itself.
fn is_late(party: &Party) -> bool {
    party.is_outlived() && !party.acts_on
}

/// What touches a party where it matters when its writes land: nobody knows for how long one of unknown outcome was under
/// way.
pub fn touches_of_landing(facts: &Facts, party: &Party) -> Vec<Touch> {
    let Some(grant) = party.grant.map(|grant| &facts.grants[grant].acquire) else {
        return Vec::new();
    };
    let unknown = facts.ops.with("write").filter(|write| {
        !write.ok()
            && !write.failed()
            && own_acquire(&facts.ops, write).is_some_and(|own| own.places == grant.places)
    });
    let mut all = Vec::new();
    for write in unknown {
        all.push(Touch {
            name: "write-held",
            from: write.start,
            perhaps: true,
        });
        let in_flight = span(write.start, write.end.unwrap_or(FOREVER));
        let near = facts.hazards.iter().filter(|hazard| is_near(party, hazard));
        all.extend(
            near.filter(|hazard| hazard.name == "write-held" && hazard.time.meets(in_flight))
                .map(|hazard| Touch {
                    name: hazard.name,
                    from: hazard.time.from,
                    perhaps: !hazard.is_shown,
                }),
        );
    }
    all
}

fn holds_up(hazard: &Hazard) -> bool {
    HOLDS_UP.contains(&hazard.name)
}

/// The hazards on the party's own host, on servers and on the storage, while they are in force on that party.
fn near(facts: &Facts, party: &Party) -> Vec<Hazard> {
    let near = facts.hazards.iter().filter(|hazard| is_near(party, hazard));
    near.flat_map(|hazard| in_force_on(facts, party, hazard))
        .chain(held_by_waits(facts, party))
        .collect()
}

fn is_near(party: &Party, hazard: &Hazard) -> bool {
    match &hazard.host {
        None => true,
        Some(host) => host == host_of(party.process) || is_server(host) || host == "storage",
    }
}

/// A hazard while it is in force on a party. Only who reads or writes waits for the storage.
fn in_force_on(facts: &Facts, party: &Party, hazard: &Hazard) -> Vec<Hazard> {
    let times = match hazard.name {
        "write-held" => common(&[hazard.time], &asking_the_storage(facts, party)),
        _ => vec![hazard.time],
    };
    let with = |time| Hazard {
        time,
        ..hazard.clone()
    };
    times.into_iter().map(with).collect()
}

/// Waiting holds work that is about as long as the lease with it, for as long as the waiting is.
fn held_by_waits(facts: &Facts, party: &Party) -> Vec<Hazard> {
    let waits = waits(facts, party);
    let is_shown = works_as_planned(facts);
    let waited: u64 = waits.iter().map(|wait| wait.length()).sum();
    let work = planned_work(facts.history).saturating_add(waited);
    if !is_about_as_long_as_the_lease(facts.history, work) {
        return Vec::new();
    }
    let held = |time| Hazard {
        name: "work-held",
        host: None,
        time,
        until_healed: time,
        is_stall: false,
        is_shown,
    };
    waits.into_iter().map(held).collect()
}

/// When a grant's acquire, less what costs its client nothing of the lease, its reads and its writes were in flight.
fn waits(facts: &Facts, party: &Party) -> Vec<Span> {
    let Some(grant) = party.grant.map(|grant| &facts.grants[grant]) else {
        return Vec::new();
    };
    let validity = grant.acquire.answer("validity").as_u64().unwrap_or(0);
    let counts = validity.saturating_sub(facts.history.ttl());
    let mut waits = asking_the_storage(facts, party);
    waits.push(span(grant.acquire.start.max(counts), grant.returned));
    common(&united(waits), &[party.lifetime])
}

/// When a read or a write under a grant was in flight.
fn asking_the_storage(facts: &Facts, party: &Party) -> Vec<Span> {
    let Some(grant) = party.grant.map(|grant| &facts.grants[grant].acquire) else {
        return Vec::new();
    };
    let is_under = |op: &&Op| {
        (op.is("read") || op.is("write"))
            && own_acquire(&facts.ops, op).is_some_and(|own| own.places == grant.places)
    };
    let asked = facts.ops.all.iter().filter(is_under);
    asked
        .map(|op| span(op.start, op.end.unwrap_or(facts.end)))
        .collect()
}

/// How much of a belief's time after the validity is left unexplained by what held its client up, and how much was held up;
/// nothing where that explains it not at all.
fn explained(facts: &Facts, party: &Party, held_up: Vec<Span>) -> Option<(u64, u64)> {
    // What never ended is known until the history's end.
    let end = party.belief.to.min(facts.end);
    let acting = span(party.lifetime.from, end);
    let validity = party.validity.unwrap_or(FOREVER);
    if !held_up.iter().any(|time| time.overlaps(party.lifetime)) {
        return None;
    }
    let held = length_in(acting, held_up);
    let left = end.saturating_sub(held).saturating_sub(validity);
    (left <= facts.history.ttl() / 5).then_some((left, held))
}
