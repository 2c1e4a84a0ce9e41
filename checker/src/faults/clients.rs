//! What clients did, as far as faults wait for it, last until it, or make it impossible.

use std::collections::HashMap;

use histories::{Deed, Event, Function, Named, PlannedFault, Role, When, host_of};

use super::act::Act;
use super::{Faults, does, has};
use crate::names::Map;
use crate::operations::NEVER;
use crate::segment_tree::SegmentTree;

/// What faults wait for or last until, each once however many faults name it, and when clients did it.
#[derive(Default)]
pub(super) struct Awaited {
    completions: Vec<Completions>,
    points: Vec<Stays>,
    /// By client, function and outcome: which of the completions.
    named: Tree<Tree<Map<String, usize>>>,
    /// By client, point and grant: which of the points.
    places: Tree<Tree<Map<u64, usize>>>,
    /// By the operation that reached it: a stay at a point, of which point and as which there.
    stays: Map<u64, (usize, usize)>,
}

type Tree<T> = Map<String, T>;

/// When clients completed what one name means, in order.
#[derive(Default)]
struct Completions {
    came: Vec<u64>,
    /// The latest invocation of those so far.
    invoked_max: Vec<u64>,
}

/// When clients were at a point, by when they came.
#[derive(Default)]
struct Stays {
    came: Vec<u64>,
    /// [`NEVER`] for a point that its client did not leave. When all is known: the latest of those so far.
    left: Vec<u64>,
}

impl Awaited {
    pub(super) fn new(planned: &[PlannedFault]) -> Awaited {
        let mut awaited = Awaited::default();
        for fault in planned {
            if let When::Event(named) = &fault.when {
                awaited.add(named);
            }
            if let Some(named) = &fault.until.event {
                awaited.add(named);
            }
            if let When::Point {
                client,
                point,
                nth_grant,
            } = &fault.when
            {
                let points = awaited.places.entry(client.clone()).or_default();
                let grants = points.entry(point.clone()).or_default();
                grants.entry(*nth_grant).or_insert_with(|| {
                    awaited.points.push(Stays::default());
                    awaited.points.len() - 1
                });
            }
        }
        awaited
    }

    fn add(&mut self, named: &Named) {
        let functions = self.named.entry(named.client.clone()).or_default();
        let outcomes = functions.entry(named.f.clone()).or_default();
        outcomes.entry(named.outcome.clone()).or_insert_with(|| {
            self.completions.push(Completions::default());
            self.completions.len() - 1
        });
    }

    pub(super) fn saw(&mut self, process: &str, invoked: u64, event: &Event<'_>) {
        let host = host_of(process);
        for client in [Some(process), Some(host).filter(|host| *host != process)] {
            let which =
                client.and_then(|client| self.which(client, event.f.name(), event.kind.name()));
            if let Some(which) = which {
                self.completions[which].push(event.t, invoked);
            }
        }
    }

    fn which(&self, client: &str, f: &str, outcome: &str) -> Option<usize> {
        self.named.get(client)?.get(f)?.get(outcome).copied()
    }

    fn place(&self, client: &str, point: &str, nth: u64) -> Option<usize> {
        self.places.get(client)?.get(point)?.get(&nth).copied()
    }

    pub(super) fn waits_at(&self, client: &str, point: &str, nth: u64) -> bool {
        self.place(client, point, nth).is_some()
    }

    pub(super) fn wait_at_points(&self) -> bool {
        !self.points.is_empty()
    }

    pub(super) fn saw_point(&mut self, event: &Event<'_>) {
        let (client, point) = (host_of(&event.process), event.point.as_deref());
        let place = point
            .zip(event.nth)
            .and_then(|(point, nth)| self.place(client, point, nth));
        if let Some(place) = place {
            let stays = &mut self.points[place];
            self.stays.insert(event.op, (place, stays.came.len()));
            stays.came.push(event.t);
            stays.left.push(NEVER);
        }
    }

    pub(super) fn left_point(&mut self, event: &Event<'_>) {
        if let Some(&(place, stay)) = self.stays.get(&event.op) {
            self.points[place].left[stay] = event.t;
        }
    }

    pub(super) fn finish(mut self) -> Awaited {
        for point in &mut self.points {
            let mut latest = 0;
            for left in &mut point.left {
                latest = latest.max(*left);
                *left = latest;
            }
        }
        self
    }

    /// When the operation first completed that a fault lasts for, of those that were invoked at `from` or later.
    pub(super) fn first_since(&self, named: &Named, from: u64) -> Option<u64> {
        let which = self.which(&named.client, &named.f, &named.outcome)?;
        let completions = &self.completions[which];
        let first = completions
            .invoked_max
            .partition_point(|&invoked| invoked < from);
        completions.came.get(first).copied()
    }
}

impl Completions {
    fn push(&mut self, came: u64, invoked: u64) {
        let latest = self.invoked_max.last().copied().unwrap_or(0);
        self.came.push(came);
        self.invoked_max.push(latest.max(invoked));
    }

    fn came_within(&self, from: u64, to: u64) -> bool {
        let first = self.came.partition_point(|&came| came < from);
        self.came.get(first).is_some_and(|&came| came <= to)
    }
}

impl Stays {
    /// Whether a client was there at this instant.
    fn at(&self, t: u64) -> bool {
        let came = self.came.partition_point(|&came| came <= t);
        came > 0 && t <= self.left[came - 1]
    }
}

/// What clients did since the first injection, by host, of those hosts whose clients a planned fault keeps from something.
pub(super) struct Deeds(HashMap<String, OnHost>);

#[derive(Default)]
struct OnHost {
    at: Vec<u64>,
    /// When the process that did it began, and whether it was work.
    by: Vec<(u64, bool)>,
    /// Of all, and of work: how long before the end of time the process began, 0 for what does not count.
    any: Option<SegmentTree<u64>>,
    work: Option<SegmentTree<u64>>,
}

impl Deeds {
    pub(super) fn new(planned: &[PlannedFault]) -> Deeds {
        let keeps = |fault: &&PlannedFault| {
            let mut does = fault.does.iter();
            does.any(|effect| matches!(effect.effect, Deed::Stops | Deed::HoldsWork))
        };
        let hosts = planned
            .iter()
            .filter(keeps)
            .map(|fault| &fault.on)
            .filter(|host| Role::of(host) == Some(Role::Client));
        Deeds(
            hosts
                .map(|host| (host.clone(), OnHost::default()))
                .collect(),
        )
    }

    pub(super) fn note(&mut self, since: u64, event: &Event<'_>) {
        if let Some(here) = self.0.get_mut(host_of(&event.process)) {
            here.at.push(event.t);
            here.by.push((since, is_work(event.f)));
        }
    }

    pub(super) fn finish(mut self) -> Deeds {
        for here in self.0.values_mut() {
            let any = here.by.iter().map(|(since, _)| NEVER - since);
            let work = here
                .by
                .iter()
                .map(|(since, is_work)| if *is_work { NEVER - since } else { 0 });
            here.any = Some(SegmentTree::of(any));
            here.work = Some(SegmentTree::of(work));
        }
        self
    }

    /// The first that was done on a host after `after`, by a process that had begun at `by`.
    fn first(&self, host: &str, after: u64, by: u64, work_alone: bool) -> Option<u64> {
        let here = self.0.get(host)?;
        let later = here.at.partition_point(|&at| at <= after);
        let tree = if work_alone { &here.work } else { &here.any };
        let found = tree.as_ref()?.find(later..here.at.len(), NEVER - by)?;
        Some(here.at[found])
    }
}

impl Faults {
    /// When a client did something from which this injection certainly kept it.
    pub(super) fn impossible_deed(&self, at: usize) -> Option<u64> {
        let act = &self.injections[at];
        if !act.took_place() {
            return None;
        }
        let work_alone = self.keeps_from_work_alone(act)?;
        let until = self.healing(at).map_or(NEVER, |heal| heal.invoked);
        let hosts = act.on.iter();
        let first = hosts
            .filter_map(|host| {
                self.deeds
                    .first(host, act.in_force(), act.invoked, work_alone)
            })
            .min();
        first.filter(|&t| t < until)
    }

    /// By the hosts of an injection: when a client did again first from which this had kept it, once its healing began.
    pub(super) fn acts_again(&self, at: usize) -> Vec<Option<u64>> {
        let act = &self.injections[at];
        let heal = self.healing(at).map(|heal| heal.invoked);
        let kept = heal.zip(self.keeps_from_work_alone(act));
        let hosts = act.on.iter();
        let again = hosts.map(|host| {
            kept.and_then(|(healed, work_alone)| {
                self.deeds.first(host, healed, NEVER - 1, work_alone)
            })
        });
        again.collect()
    }

    /// Whether an injection keeps clients from work alone, where it keeps them from anything.
    fn keeps_from_work_alone(&self, act: &Act) -> Option<bool> {
        let does = does(&self.plan.planned, act);
        match (has(&does, Deed::Stops), has(&does, Deed::HoldsWork)) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        }
    }

    /// Whether what an injection waited for had come when it was asked for, and was there still.
    pub(super) fn was_due(&self, act: &Act) -> bool {
        let Some((step, planned)) = act
            .step
            .and_then(|step| Some((step, self.plan.planned.get(step)?)))
        else {
            return true;
        };
        match &planned.when {
            When::Time { after_ms } => act.invoked >= after_ms.saturating_mul(1_000_000),
            When::Point {
                client,
                point,
                nth_grant,
            } => {
                let place = self.awaited.place(client, point, *nth_grant);
                place.is_some_and(|place| self.awaited.points[place].at(act.invoked))
            }
            When::Event(named) => {
                let which = self.awaited.which(&named.client, &named.f, &named.outcome);
                let from = self.links.asked_before(step);
                which.zip(from).is_some_and(|(which, from)| {
                    self.awaited.completions[which].came_within(from, act.invoked)
                })
            }
        }
    }
}

/// What a client does one after the other, and not while it is held. What keeps its lease alive goes on.
pub(crate) fn is_work(f: Function) -> bool {
    matches!(
        f,
        Function::Acquire | Function::Read | Function::Write | Function::Work | Function::Release
    )
}
