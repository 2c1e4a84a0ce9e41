//! The board: the rules that are armed, the clients that are held, and the notices that watchers read.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::lock;
use super::protocol::{Action, Notice, Rule};

/// How many notices are kept for a watcher that comes late.
const KEPT: usize = 65_536;

/// See the module.
#[derive(Default)]
pub struct Board {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    /// How many times rules were armed.
    arming: u64,
    rules: HashMap<u32, Action>,
    held: Vec<Held>,
    notices: VecDeque<(u64, Notice)>,
    /// The number of the next notice.
    next: u64,
    /// The number of the first notice since the arming.
    since_arming: u64,
}

/// A client that waits for its answer.
struct Held {
    connection: u64,
    rule: u32,
    answer_to: UnixStream,
}

/// A rule that a client found armed; it is of no effect after another arming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// What to do.
    pub action: Action,
    arming: u64,
}

/// The number of the notice that a watcher reads next; none for one that has not read yet.
#[derive(Default)]
pub struct Position(Option<u64>);

impl Board {
    /// Replaces all rules, forgets what clients reached, and lets all held clients go on, with `answer`. Ends of
    /// processes and stalls stay for those who watch already: nobody may miss one.
    pub fn arm(&self, rules: &[Rule], answer: &[u8]) {
        let mut state = lock(&self.state);
        state.arming += 1;
        state.rules = rules.iter().map(|rule| (rule.rule, rule.action)).collect();
        state.since_arming = state.next;
        state
            .notices
            .retain(|(_, notice)| !matches!(notice, Notice::Reached { .. }));
        let held = std::mem::take(&mut state.held);
        drop(state);
        answer_all(held, answer);
    }

    /// The rule of this number, if it is armed.
    pub fn armed(&self, rule: u32) -> Option<Armed> {
        let state = lock(&self.state);
        let action = *state.rules.get(&rule)?;
        let arming = state.arming;
        Some(Armed { action, arming })
    }

    /// Tells the watchers what came of a rule, unless rules were armed anew since.
    pub fn tell_of(&self, armed: Armed, notice: Notice) {
        self.put(Some(armed), notice, None);
    }

    /// Tells the watchers.
    pub fn tell(&self, notice: Notice) {
        self.put(None, notice, None);
    }

    /// Tells the watchers that a client is held, whose answer goes to `answer_to`. False if rules were armed anew since:
    /// nobody would ever let it go on.
    pub fn hold(
        &self,
        armed: Armed,
        notice: Notice,
        connection: u64,
        rule: u32,
        answer_to: UnixStream,
    ) -> bool {
        let held = Held {
            connection,
            rule,
            answer_to,
        };
        self.put(Some(armed), notice, Some(held))
    }

    fn put(&self, armed: Option<Armed>, notice: Notice, held: Option<Held>) -> bool {
        let mut state = lock(&self.state);
        if armed.is_some_and(|armed| armed.arming != state.arming) {
            return false;
        }
        state.held.extend(held);
        let number = state.next;
        state.next += 1;
        state.notices.push_back((number, notice));
        if state.notices.len() > KEPT {
            state.notices.pop_front();
        }
        drop(state);
        self.news.notify_all();
        true
    }

    /// Lets the clients go on that `rule` holds, with `answer`.
    pub fn proceed(&self, rule: u32, answer: &[u8]) {
        let mut state = lock(&self.state);
        let (go, stay) = std::mem::take(&mut state.held)
            .into_iter()
            .partition(|held| held.rule == rule);
        state.held = stay;
        drop(state);
        answer_all(go, answer);
    }

    /// The rules that hold a client now.
    pub fn held(&self) -> Vec<u32> {
        lock(&self.state)
            .held
            .iter()
            .map(|held| held.rule)
            .collect()
    }

    /// Forgets a client whose connection is gone.
    pub fn forget(&self, connection: u64) {
        let mut state = lock(&self.state);
        state.held.retain(|held| held.connection != connection);
    }

    /// Waits for notices after `position`, which moves on: none once `gone` says that nobody reads them any more, or when
    /// there was none for this long. One who has not read yet begins with those since the last arming.
    pub fn next(
        &self,
        position: &mut Position,
        within: Duration,
        gone: impl Fn() -> bool,
    ) -> Vec<Notice> {
        let limit = Instant::now() + within;
        let mut state = lock(&self.state);
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            if gone() || left == Duration::ZERO {
                return Vec::new();
            }
            let from = *position.0.get_or_insert(state.since_arming);
            let fresh = |(number, _): &&(u64, Notice)| *number >= from;
            let news: Vec<Notice> = state
                .notices
                .iter()
                .rev()
                .take_while(fresh)
                .map(|(_, notice)| notice.clone())
                .collect();
            if !news.is_empty() {
                position.0 = Some(state.next);
                return news.into_iter().rev().collect();
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Makes all watchers ask whether they are gone.
    pub fn rouse(&self) {
        // The lock is taken, so that no watcher is between asking and waiting.
        let _state = lock(&self.state);
        self.news.notify_all();
    }
}

/// A client that died meanwhile needs no answer.
fn answer_all(held: Vec<Held>, answer: &[u8]) {
    for mut held in held {
        let _ = held.answer_to.write_all(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::protocol::At;

    fn board(action: Action) -> Board {
        let board = Board::default();
        arm(&board, action);
        board
    }

    fn arm(board: &Board, action: Action) {
        let at = At::Point {
            point: "before-write".to_owned(),
            nth_grant: 1,
        };
        let rule = Rule {
            rule: 7,
            at,
            action,
        };
        board.arm(&[rule], b"done\n");
    }

    fn next(board: &Board, position: &mut Position) -> Vec<Notice> {
        board.next(position, Duration::from_secs(60), || false)
    }

    fn notice(op: u64) -> Notice {
        Notice::Reached {
            rule: 7,
            reached_ns: 1,
            invoked_ns: 1,
            op,
            stopped_ns: None,
            states: String::new(),
        }
    }

    #[test]
    fn every_watcher_gets_all_notices_since_the_arming_once() {
        let board = board(Action::Tell);
        let armed = board.armed(7).unwrap();
        board.tell_of(armed, notice(1));
        let (mut early, mut late) = (Position::default(), Position::default());
        assert_eq!(next(&board, &mut early), [notice(1)]);
        board.tell_of(armed, notice(2));
        assert_eq!(next(&board, &mut early), [notice(2)]);
        assert_eq!(next(&board, &mut late), [notice(1), notice(2)]);
    }

    #[test]
    fn an_arming_forgets_notices_and_those_of_rules_before_it() {
        let board = board(Action::Tell);
        let old = board.armed(7).unwrap();
        board.tell_of(old, notice(1));
        let mut position = Position::default();
        next(&board, &mut position);
        board.tell_of(old, notice(2));
        arm(&board, Action::Tell);
        board.tell_of(old, notice(3));
        board.tell_of(board.armed(7).unwrap(), notice(4));
        assert_eq!(next(&board, &mut position), [notice(4)]);
    }

    #[test]
    fn an_arming_forgets_no_end_and_no_stall_that_a_watcher_has_not_read() {
        let ended = |life| Notice::Ended {
            process: "client".to_owned(),
            life,
            at_ns: 1,
            ended: "signal 9".to_owned(),
            asked: false,
        };
        let stalled = Notice::Stalled {
            at_ns: 2,
            stalled_ns: 1,
        };
        let board = board(Action::Tell);
        let mut early = Position::default();
        board.tell(ended(1));
        assert_eq!(next(&board, &mut early), [ended(1)]);
        board.tell(ended(2));
        board.tell(stalled.clone());
        arm(&board, Action::Tell);
        board.tell(ended(3));
        assert_eq!(next(&board, &mut early), [ended(2), stalled, ended(3)]);
        let mut late = Position::default();
        assert_eq!(next(&board, &mut late), [ended(3)]);
    }

    #[test]
    fn a_watcher_that_fell_behind_goes_on_with_what_is_kept() {
        let board = board(Action::Tell);
        let mut position = Position::default();
        for op in 0..KEPT as u64 + 3 {
            board.tell(notice(op));
        }
        let read = next(&board, &mut position);
        assert_eq!((read.len(), &read[0]), (KEPT, &notice(3)));
        board.tell(notice(9));
        assert_eq!(next(&board, &mut position), [notice(9)]);
    }

    #[test]
    fn a_hold_after_another_arming_holds_nobody() {
        let board = board(Action::Hold);
        let old = board.armed(7).unwrap();
        arm(&board, Action::Hold);
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert!(!board.hold(old, notice(1), 1, 7, ours));
    }
}
