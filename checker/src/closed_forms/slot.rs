//! What is remembered of one owner of one lock.

/// What an owner asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Acquire,
    Release,
    Extend,
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Pending {
    pub request: Request,
    pub id: u64,
    pub invoked: u32,
    /// For an acquire, from where on its hold may end; for others, from where on the hold may end if they fail.
    pub end_from: u32,
    /// For an extension, from where on the hold may end if nobody learns what came of it, if that is earlier.
    pub asked_from: u32,
    /// How many ends of validity passed meanwhile.
    pub expired: u32,
    /// Whether it is of the hold that is remembered.
    pub of_hold: bool,
}

/// A grant whose acquire returned, and that no certain release ended.
#[derive(Debug)]
pub(super) struct Hold {
    pub id: u64,
    /// Where its acquire returned.
    pub start: u32,
    /// And when.
    pub since: u64,
    /// From where on it may have ended, or [`NEVER`](crate::linearizability::NEVER).
    pub end_from: u32,
    /// Where and when its owner gave it up or learned that it was lost, if leases are named.
    pub given_up: Option<(u32, u64)>,
    /// What it cannot have lasted beyond.
    pub conflict: Option<Box<Conflict>>,
}

/// What a hold cannot have lasted beyond.
#[derive(Debug)]
pub(super) struct Conflict {
    pub position: u32,
    pub time: u64,
    /// The call of another owner that says so.
    pub with: u64,
    /// It, and the calls that prove that it was in force.
    pub calls: Vec<u64>,
    /// Whether the hold may instead have outlasted that call's own.
    pub undecided: bool,
}

/// What is remembered of one owner of one lock.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub pending: Option<Pending>,
    pub hold: Option<Hold>,
    /// The releases that may yet end a hold: unknown ones and ends of validity that nothing has used.
    pub releases: u32,
    /// The unknown acquires that nothing has used.
    pub acquires: u32,
    /// Whether its latest grant is that of an unknown acquire.
    pub latest_unknown: bool,
    /// The acquires between which unknown releases must have taken effect.
    pub spent_releases: Vec<u64>,
    /// The releases between which unknown acquires must have taken effect.
    pub spent_acquires: Vec<u64>,
    pub last_release: Option<u64>,
    /// Whether a release of it ever succeeded.
    pub ever_released: bool,
}

impl Slot {
    /// The fewest calls that prove, with those of a conflict, that a release came too late.
    ///
    /// What the release ends was begun before the conflict, if no unknown acquire can have been made in between: there
    /// was none, or others needed them all. Otherwise the hold's own acquire proves it, if no unknown release is left that
    /// could have ended it. `interrupts` says that an unknown acquire is left.
    pub(super) fn lasting(
        &self,
        hold: &Hold,
        call: &Pending,
        conflict: &Conflict,
        interrupts: bool,
    ) -> Vec<u64> {
        let mut by_acquires = conflict.calls.clone();
        by_acquires.push(call.id);
        let mut by_releases = by_acquires.clone();
        by_acquires.extend(&self.spent_acquires);
        by_releases.push(hold.id);
        by_releases.extend(&self.spent_releases);
        if interrupts || (self.releases == 0 && by_releases.len() < by_acquires.len()) {
            by_releases
        } else {
            by_acquires
        }
    }

    /// Begins a grant whose release no call before it can be: a lease's.
    pub(super) fn begin_lease(&mut self) {
        self.spent_acquires.clear();
        self.last_release = None;
    }
}
