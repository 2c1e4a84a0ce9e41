//! The board: what the watchers of clients and the courses of faults know of each other.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use containers::agent::monotonic_ns;
use histories::{Named, Until};

use crate::trigger::{Reached, Trigger};

/// See the module. All times are nanoseconds of CLOCK_MONOTONIC.
pub(crate) struct Board {
    state: Mutex<State>,
    news: Condvar,
}

/// What stands on the board.
pub(crate) struct State {
    /// What clients reached, by client and rule, in the order in which it was told.
    reached: HashMap<String, HashMap<u32, OfRule>>,
    /// The points that clients reached, in the same order: client and rule.
    points: Vec<(String, u32)>,
    /// Points at which clients were let go on: client and rule.
    let_go: HashMap<(String, u32), u64>,
    steps: Vec<Step>,
    begun: Begun,
    /// Clients that cannot be watched, and why.
    unwatched: Vec<String>,
    stopping: Option<Haste>,
}

/// What a client reached by one rule.
#[derive(Default)]
struct OfRule {
    reached: Vec<Reached>,
    /// The latest time at which one was reached, of each and those before it.
    reached_max_ns: Vec<u64>,
    /// The latest invocation of one.
    invoked_max_ns: u64,
}

/// The faults from the first one on that were all injected, or given up.
#[derive(Clone, Copy, Default)]
struct Begun {
    count: usize,
    /// When the last one of them was injected.
    in_place_max_ns: Option<u64>,
}

/// How far the course of one fault has come.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    in_place_ns: Option<u64>,
    /// It has healed, or was given up.
    over: bool,
    /// Nothing more will be recorded of it.
    closed: bool,
}

/// How the run comes to its end, from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Haste {
    /// Clients are about to end, and nothing may keep them from that or disturb them in it.
    ClientsFirst,
    /// Servers are to be found healthy by the next run.
    Orderly,
    /// Everything is about to be removed.
    AtOnce,
}

impl Board {
    pub fn new(steps: usize) -> Board {
        Board {
            state: Mutex::new(State {
                reached: HashMap::new(),
                points: Vec::new(),
                let_go: HashMap::new(),
                steps: vec![Step::default(); steps],
                begun: Begun::default(),
                unwatched: Vec::new(),
                stopping: None,
            }),
            news: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what stands here, in one piece.
    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.news.notify_all();
        changed
    }

    /// Waits until `check` finds something; `None` if it does not until `until_ns`.
    pub fn wait<T>(
        &self,
        until_ns: Option<u64>,
        mut check: impl FnMut(&State) -> Option<T>,
    ) -> Option<T> {
        self.wait_for(until_ns, |state| check(state).ok_or(None))
    }

    /// Waits until `check` finds something; `None` if it does not until `until_ns`. What it finds may come by time as
    /// well as by news: it then says when to check again.
    pub fn wait_for<T>(
        &self,
        until_ns: Option<u64>,
        mut check: impl FnMut(&State) -> Result<T, Option<u64>>,
    ) -> Option<T> {
        let mut state = self.state();
        loop {
            let again_ns = match check(&state) {
                Ok(found) => return Some(found),
                Err(again_ns) => again_ns,
            };
            let now_ns = monotonic_ns();
            if until_ns.is_some_and(|until_ns| now_ns >= until_ns) {
                return None;
            }
            state = match again_ns.into_iter().chain(until_ns).min() {
                None => self
                    .news
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(next_ns) => {
                    let left = Duration::from_nanos(next_ns.saturating_sub(now_ns));
                    let waited = self.news.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    pub fn unwatched(&self, why: String) {
        self.change(|state| state.unwatched.push(why));
    }

    pub fn stop(&self, haste: Haste) {
        self.change(|state| state.stopping = state.stopping.max(Some(haste)));
    }

    /// What the board says now.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state())
    }

    pub fn let_go_ns(&self, client: &str, rule: u32) -> Option<u64> {
        let key = (client.to_owned(), rule);
        self.state().let_go.get(&key).copied()
    }

    /// The completions of a client in a span of time; points are none.
    pub fn completed(&self, client: &str, from_ns: u64, to_ns: u64) -> Vec<Reached> {
        let state = self.state();
        let mut completed: Vec<Reached> = state
            .reached
            .get(client)
            .into_iter()
            .flat_map(HashMap::values)
            .flat_map(|of_rule| of_rule.since(from_ns))
            .filter(|reached| {
                let in_time = (from_ns..=to_ns).contains(&reached.reached_ns);
                in_time && reached.reached_ns != reached.invoked_ns
            })
            .cloned()
            .collect();
        completed.sort_by_key(|reached| reached.reached_ns);
        completed
    }
}

impl OfRule {
    fn push(&mut self, reached: Reached) {
        let latest_ns = self.reached_max_ns.last().copied().unwrap_or(0);
        self.reached_max_ns.push(latest_ns.max(reached.reached_ns));
        self.invoked_max_ns = self.invoked_max_ns.max(reached.invoked_ns);
        self.reached.push(reached);
    }

    /// Those from the first one on that was reached at `from_ns` or later.
    fn since(&self, from_ns: u64) -> &[Reached] {
        let first = self.reached_max_ns.partition_point(|&ns| ns < from_ns);
        &self.reached[first..]
    }
}

impl State {
    /// Notes what a client reached; whether it is new here.
    pub fn reached(&mut self, reached: Reached, once: bool) -> bool {
        let of_client = self.reached.entry(reached.client.clone()).or_default();
        let of_rule = of_client.entry(reached.rule).or_default();
        if once && !of_rule.reached.is_empty() {
            return false;
        }
        if once {
            self.points.push((reached.client.clone(), reached.rule));
        }
        of_rule.push(reached);
        true
    }

    /// The fault of this step was injected.
    pub fn in_place(&mut self, step: usize, at_ns: u64) {
        self.steps[step].in_place_ns = Some(at_ns);
        self.count_begun();
    }

    /// The fault of this step has healed, or was given up.
    pub fn over(&mut self, step: usize) {
        self.steps[step].over = true;
        self.count_begun();
    }

    /// Nothing more will be recorded of this step.
    pub fn close(&mut self, step: usize) {
        self.steps[step].over = true;
        self.steps[step].closed = true;
        self.count_begun();
    }

    fn count_begun(&mut self) {
        while self.begun.count < self.steps.len() && self.is_begun(self.begun.count) {
            let in_place_ns = self.steps[self.begun.count].in_place_ns;
            self.begun.in_place_max_ns = self.begun.in_place_max_ns.max(in_place_ns);
            self.begun.count += 1;
        }
    }

    /// The points that clients reached after the first `known` ones: client and rule.
    pub fn points_after(&self, known: usize) -> &[(String, u32)] {
        &self.points[known..]
    }

    /// Notes that a client is let go on from a point; whether it waits there and was not let go before.
    pub fn let_go(&mut self, client: &str, rule: u32) -> bool {
        let waits = self.first_at(client, rule).is_some();
        let key = (client.to_owned(), rule);
        if !waits || self.let_go.contains_key(&key) {
            return false;
        }
        self.let_go.insert(key, monotonic_ns());
        true
    }

    pub fn stopping(&self) -> Option<Haste> {
        self.stopping
    }

    pub fn unwatched_clients(&self) -> &[String] {
        &self.unwatched
    }

    /// Whether a fault was injected, or given up.
    pub fn is_begun(&self, step: usize) -> bool {
        self.steps[step].in_place_ns.is_some() || self.steps[step].over
    }

    /// Whether nothing more will be recorded of a step; or it is in place, for one that lasts longer.
    pub fn is_settled(&self, step: usize, lasts: bool) -> bool {
        let step = self.steps[step];
        step.closed || (lasts && step.in_place_ns.is_some())
    }

    pub fn is_over(&self, step: usize) -> bool {
        self.steps[step].over
    }

    fn of_rule(&self, client: &str, rule: u32) -> Option<&OfRule> {
        self.reached.get(client)?.get(&rule)
    }

    fn first_at(&self, client: &str, rule: u32) -> Option<&Reached> {
        self.of_rule(client, rule)?.reached.first()
    }

    /// What a point set off.
    pub fn at_point(&self, client: &str, rule: u32) -> Option<Trigger> {
        self.first_at(client, rule).cloned().map(Trigger::Reached)
    }

    /// The first completion after all faults before `step` were injected. To be asked of a fault that was not injected yet.
    pub fn after_others(&self, client: &str, rule: u32, step: usize) -> Option<Trigger> {
        if self.begun.count < step {
            return None;
        }
        let from_ns = self.begun.in_place_max_ns.map_or(0, |ns| ns + 1);
        let later = self.of_rule(client, rule)?.since(from_ns).first();
        later.cloned().map(Trigger::Reached)
    }

    /// Whether a client completed something that it invoked at `from_ns` or later.
    pub fn completed_since(&self, client: &str, rule: u32, from_ns: u64) -> bool {
        let of_rule = self.of_rule(client, rule);
        of_rule.is_some_and(|of_rule| of_rule.invoked_max_ns >= from_ns)
    }
}

/// What an `until` still waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it has come.
    Nothing,
    /// It did not come in time.
    TooLong,
    /// Until this time, or for news.
    UntilNs(u64),
    /// For news alone.
    News,
}

/// How an `until` stands at `now_ns`, for a fault in place since `from_ns`, with the event that it names come or not.
pub(crate) fn standing(until: &Until, event_came: bool, from_ns: u64, now_ns: u64) -> Wait {
    let at = |ms: u64| from_ns.saturating_add(ms.saturating_mul(1_000_000));
    let after_ns = until.after_ms.map(at);
    let at_most_ns = until.at_most_ms.map(at);
    let long_enough = after_ns.is_none_or(|after_ns| now_ns >= after_ns);
    if until.after_ms.is_none() && until.event.is_none() {
        return Wait::News;
    }
    if long_enough && (until.event.is_none() || event_came) {
        return Wait::Nothing;
    }
    if at_most_ns.is_some_and(|at_most_ns| now_ns >= at_most_ns) {
        return Wait::TooLong;
    }
    let after_ns = after_ns.filter(|_| !long_enough);
    match after_ns.into_iter().chain(at_most_ns).min() {
        Some(next_ns) => Wait::UntilNs(next_ns),
        None => Wait::News,
    }
}

/// An event as a message names it: `c2` completes `write` with `ok`.
pub(crate) fn phrase(named: &Named) -> String {
    format!(
        "`{}` completed a {} with `{}`",
        named.client, named.f, named.outcome
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn until(after_ms: Option<u64>, event: bool, at_most_ms: Option<u64>) -> Until {
        let event = event.then(|| Named {
            client: "c2".to_owned(),
            f: "write".to_owned(),
            outcome: "ok".to_owned(),
        });
        Until {
            after_ms,
            event,
            at_most_ms,
        }
    }

    #[test]
    fn a_time_comes() {
        let until = until(Some(5), false, None);
        assert_eq!(standing(&until, false, MS, 5 * MS), Wait::UntilNs(6 * MS));
        assert_eq!(standing(&until, false, MS, 6 * MS), Wait::Nothing);
    }

    #[test]
    fn a_time_and_an_event_both_have_to_come() {
        let until = until(Some(5), true, Some(20));
        assert_eq!(standing(&until, true, 0, 4 * MS), Wait::UntilNs(5 * MS));
        assert_eq!(standing(&until, false, 0, 6 * MS), Wait::UntilNs(20 * MS));
        assert_eq!(standing(&until, true, 0, 6 * MS), Wait::Nothing);
    }

    #[test]
    fn an_event_that_does_not_come_is_given_up() {
        let until = until(Some(5), true, Some(20));
        assert_eq!(standing(&until, false, 0, 20 * MS), Wait::TooLong);
        assert_eq!(standing(&until, true, 0, 20 * MS), Wait::Nothing);
    }

    #[test]
    fn nothing_named_lasts_until_the_run_ends() {
        assert_eq!(
            standing(&until(None, false, None), true, 0, u64::MAX),
            Wait::News
        );
        assert_eq!(standing(&until(None, true, None), false, 0, 1), Wait::News);
    }

    fn reached(client: &str, rule: u32, invoked_ns: u64, reached_ns: u64) -> Reached {
        Reached {
            client: client.to_owned(),
            rule,
            reached_ns,
            invoked_ns,
            stopped_ns: None,
            states: String::new(),
        }
    }

    #[test]
    fn an_event_counts_only_after_every_earlier_fault() {
        let board = Board::new(3);
        board.change(|state| state.reached(reached("c2", 1, 10, 20), false));
        let after = |step| {
            board
                .state()
                .after_others("c2", 1, step)
                .map(|trigger| trigger.at_ns())
        };
        assert_eq!(after(0), Some(20));
        assert_eq!(after(1), None);
        board.change(|state| state.in_place(0, 20));
        assert_eq!(after(1), None);
        board.change(|state| state.reached(reached("c2", 1, 15, 30), false));
        assert_eq!(after(1), Some(30));
        assert_eq!(after(2), None);
        board.change(|state| state.close(1));
        assert_eq!(after(2), Some(30));
    }

    #[test]
    fn an_operation_invoked_before_the_fault_does_not_end_it() {
        let board = Board::new(1);
        board.change(|state| state.reached(reached("c2", 1, 10, 30), false));
        assert!(!board.state().completed_since("c2", 1, 20));
        board.change(|state| state.reached(reached("c2", 1, 20, 40), false));
        assert!(board.state().completed_since("c2", 1, 20));
    }

    #[test]
    fn the_end_is_never_put_off_again() {
        let board = Board::new(0);
        for (haste, expected) in [
            (Haste::ClientsFirst, Haste::ClientsFirst),
            (Haste::Orderly, Haste::Orderly),
            (Haste::ClientsFirst, Haste::Orderly),
            (Haste::AtOnce, Haste::AtOnce),
            (Haste::Orderly, Haste::AtOnce),
        ] {
            board.stop(haste);
            assert_eq!(board.state().stopping(), Some(expected));
        }
    }

    #[test]
    fn a_client_is_let_go_once() {
        let board = Board::new(1);
        let let_go = || board.change(|state| state.let_go("c1", 1));
        assert!(!let_go(), "it is not there yet");
        assert!(board.change(|state| state.reached(reached("c1", 1, 5, 5), true)));
        assert!(!board.change(|state| state.reached(reached("c1", 1, 9, 9), true)));
        assert!(let_go());
        assert!(!let_go());
        assert!(board.let_go_ns("c1", 1).is_some());
    }
}
