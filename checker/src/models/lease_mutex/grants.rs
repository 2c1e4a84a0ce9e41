//! Which grant an operation is of.
//!
//! Our histories name it. In others a release is of its owner's latest grant; where it is open which one that is, for the
//! owner's requests overlap, or the latest acquire has an unknown outcome, it is of whichever its owner holds.

use super::{Grant, Operation};
use crate::models::locking::Owner;
use crate::models::recorded::Told;
use crate::names::{Map, NONE};

/// Stands for an operation under a grant that its client gave up or lost before.
const GIVEN_UP: u32 = 1;

/// All grants.
#[derive(Default)]
pub(super) struct Grants {
    grants: Vec<Given>,
    /// By the number of the acquire.
    named: Map<u64, Grant>,
    owners: Vec<Asking>,
    /// How many times a lease was extended.
    extensions: u32,
}

struct Given {
    by: Owner,
    /// Its latest lease.
    lease: u32,
    /// Until when it was valid at last, as far as that was told.
    valid: Option<u64>,
    /// Whether its client gave it up, or lost it.
    given_up: bool,
}

/// What an owner asks for, in histories that do not name grants.
#[derive(Clone, Copy, Default)]
struct Asking {
    latest: Option<Grant>,
    in_flight: u32,
    /// Whether requests overlapped since there was none.
    overlapped: bool,
    /// Whether it may hold another grant than the latest.
    unsure: bool,
}

/// What an operation is of.
#[derive(Clone, Copy)]
pub(super) enum Of {
    Grant(Grant),
    Owner(Owner),
}

impl Grants {
    pub(super) fn owner(&self, grant: Grant) -> Option<Owner> {
        self.grants.get(grant as usize).map(|given| given.by)
    }

    /// Until when a grant was valid at last, as far as that was told.
    pub(super) fn valid(&self, grant: Grant) -> Option<u64> {
        self.grants.get(grant as usize)?.valid
    }

    pub(super) fn tell_validity(&mut self, of: Of, until: Option<u64>) {
        if let (Of::Grant(grant), Some(_)) = (of, until) {
            self.grants[grant as usize].valid = until;
        }
    }

    /// The next lease of what an extension is of.
    pub(super) fn next_lease(&mut self, of: Of) -> u32 {
        self.extensions += 1;
        if let Of::Grant(grant) = of {
            self.grants[grant as usize].lease = self.extensions;
        }
        self.extensions
    }

    /// A new grant to an owner.
    pub(super) fn add(&mut self, by: Owner, told: &Told<'_>, certain: bool) -> Grant {
        let grant = self.grants.len() as Grant;
        self.grants.push(Given {
            by,
            lease: 0,
            valid: None,
            given_up: false,
        });
        match told.op {
            // Nothing is proved under an acquire of unknown outcome.
            Some(_) if !certain => {}
            Some(op) => drop(self.named.insert(op, grant)),
            None => {
                let former = self.asking(by).latest;
                let held = former.is_some_and(|former| !self.grants[former as usize].given_up);
                let asking = self.asking(by);
                asking.unsure = asking.overlapped || (!certain && (held || asking.unsure));
                asking.latest = Some(grant);
            }
        }
        grant
    }

    /// An operation begins that names its grant, if it has one.
    pub(super) fn begin_named(&mut self, told: &Told<'_>) -> u32 {
        let gives_up = matches!(told.f, "release" | "lost");
        let Some(given) = self.named(told) else {
            return 0;
        };
        let given_up = given.given_up;
        given.given_up |= gives_up;
        if given_up { GIVEN_UP } else { 0 }
    }

    /// An operation of an owner begins.
    pub(super) fn begin(&mut self, by: Owner) -> u32 {
        let asking = self.asking(by);
        asking.in_flight += 1;
        asking.overlapped |= asking.in_flight > 1;
        asking.latest.unwrap_or(NONE)
    }

    /// An operation that names its grant did nothing.
    pub(super) fn refused(&mut self, told: &Told<'_>) {
        if let Some(given) = self.named(told) {
            given.given_up = told.begun == GIVEN_UP;
        }
    }

    /// An operation of an owner is over.
    pub(super) fn over(&mut self, by: Owner) {
        let asking = self.asking(by);
        asking.in_flight = asking.in_flight.saturating_sub(1);
        asking.overlapped &= asking.in_flight > 0;
    }

    /// The grant that an operation names, with its latest lease, if that was made and is still its client's.
    pub(super) fn of_named(&mut self, told: &Told<'_>) -> Option<(Grant, u32)> {
        let grant = *self.named.get(&told.grant?)?;
        let open = told.begun != GIVEN_UP;
        open.then(|| (grant, self.grants[grant as usize].lease))
    }

    /// What an operation is of that names no grant. Of an owner that has none it is of a new one, which nothing acquires.
    pub(super) fn of_owner(&mut self, by: Owner, told: &Told<'_>, certain: bool) -> Of {
        let asking = *self.asking(by);
        // One that may never have happened is of what was there when it began.
        let begun = Some(told.begun).filter(|&begun| !certain && begun != NONE);
        match begun.or(asking.latest) {
            _ if asking.unsure || (certain && asking.overlapped) => Of::Owner(by),
            Some(grant) if self.owner(grant) == Some(by) => Of::Grant(grant),
            _ => Of::Grant(self.add(by, told, true)),
        }
    }

    /// A grant was given back for certain.
    pub(super) fn gave_back(&mut self, of: Of) {
        if let Of::Grant(grant) = of {
            self.grants[grant as usize].given_up = true;
        }
    }

    fn named(&mut self, told: &Told<'_>) -> Option<&mut Given> {
        let grant = *self.named.get(&told.grant?)?;
        self.grants.get_mut(grant as usize)
    }

    fn asking(&mut self, by: Owner) -> &mut Asking {
        let by = by as usize;
        if self.owners.len() <= by {
            self.owners.resize(by + 1, Asking::default());
        }
        &mut self.owners[by]
    }
}

impl Of {
    pub(super) fn release(self) -> Operation {
        match self {
            Of::Grant(grant) => Operation::Release(grant),
            Of::Owner(by) => Operation::ReleaseAny(by),
        }
    }

    pub(super) fn extend(self, lease: u32) -> Operation {
        match self {
            Of::Grant(grant) => Operation::Extend { grant, lease },
            Of::Owner(by) => Operation::ExtendAny { by, lease },
        }
    }
}
