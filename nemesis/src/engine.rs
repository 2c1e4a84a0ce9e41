//! The engine: watches the clients, has each planned fault run in a course of its own, and heals them all in the end.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use containers::agent::monotonic_ns;
use containers::agent::protocol::{Action, Notice, Rule, Signal};
use histories::{Event, Plan};

use crate::board::{Board, Haste, State};
use crate::faults::{self, FaultError};
use crate::hands::Hands;
use crate::hosts::{CLIENT, Hosts};
use crate::recorder::Recorder;
use crate::rules::{Armed, Rules};
use crate::starter::{Mistake, Starter};
use crate::trigger::Reached;

/// How long a watcher looks for notices before it looks whether it is still wanted.
const WATCH: Duration = Duration::from_millis(50);

/// The faults of one run, each waiting for its trigger or at work.
///
/// Dropping it heals everything at once, without waiting until that shows.
pub struct Nemesis {
    engine: Arc<Engine>,
    /// None when it has ended.
    starter: Option<JoinHandle<Vec<Mistake>>>,
    watchers: Vec<JoinHandle<()>>,
    /// So many faults from the first one on are known to be settled.
    settled: AtomicUsize,
}

impl Nemesis {
    /// Sets out to inject the faults of `plan`. To be called when the clients' rules are armed (see
    /// [`rules_for`](crate::rules_for)) and the clients start: triggers by time count from here.
    ///
    /// `base_ns` is the run's base, in nanoseconds of CLOCK_MONOTONIC; `sink` is given the events as they become known,
    /// which is not quite the order of their times. With `sabotage` nothing is done to any host, and no evidence must
    /// show.
    pub fn start(
        plan: Plan,
        hosts: Arc<dyn Hosts>,
        base_ns: u64,
        sink: impl Fn(Event<'static>) + Send + Sync + 'static,
        sabotage: bool,
    ) -> Nemesis {
        let board = Arc::new(Board::new(plan.faults.len()));
        let engine = Arc::new(Engine {
            rules: Rules::new(&plan, sabotage),
            recorder: Recorder::new(base_ns, sink),
            gate: Mutex::new(Hands::new(Arc::clone(&hosts), Arc::clone(&board), false)),
            zero_ns: monotonic_ns(),
            unwanted: AtomicBool::new(false),
            plan,
            hosts,
            board,
            sabotage,
        });
        let watchers = engine.clients().into_iter().map(|client| {
            let engine = Arc::clone(&engine);
            thread::spawn(move || engine.watch(&client))
        });
        let watchers = watchers.collect();
        let starter = Starter::new(Arc::clone(&engine));
        Nemesis {
            engine,
            starter: Some(thread::spawn(move || starter.run())),
            watchers,
            settled: AtomicUsize::new(0),
        }
    }

    /// Whether every fault was injected and has healed, or was given up. One that lasts until the run ends counts as
    /// soon as it is in place.
    pub fn settled(&self) -> bool {
        let faults = &self.engine.plan.faults;
        let is_settled = |state: &State, step: usize| {
            let until = &faults[step].until;
            let open = until.after_ms.is_none() && until.event.is_none();
            state.is_settled(step, open && !self.engine.is_momentary(step))
        };
        // What is settled stays so.
        let mut settled = self.settled.load(Ordering::Relaxed);
        self.engine.board.look(|state| {
            while settled < faults.len() && is_settled(state, settled) {
                settled += 1;
            }
        });
        self.settled.store(settled, Ordering::Relaxed);
        settled == faults.len()
    }

    /// Ends every fault that could keep a client from ending, waits within bounds until that shows, and lets all clients go
    /// on that are held anywhere. What disturbs clients by its healing stays, until [`Nemesis::heal_all_and_stop`].
    pub fn heal_for_clients_to_end(&self) {
        let engine = &self.engine;
        engine.board.stop(Haste::ClientsFirst);
        let mut steps = (0..engine.plan.faults.len()).peekable();
        let settled = |state: &State| {
            let is_settled =
                |step: &usize| state.is_settled(*step, engine.waits_for_clients(*step));
            while steps.next_if(is_settled).is_some() {}
            steps.peek().is_none().then_some(())
        };
        engine.board.wait(None, settled);
        engine.disarm();
    }

    /// Ends every fault, waits within bounds until that shows, and lets all clients go on that are held anywhere. To be
    /// called when the clients have ended.
    ///
    /// # Panics
    ///
    /// If a course panicked, which is our own mistake; everything has been healed by then.
    pub fn heal_all_and_stop(mut self) {
        let mistakes = self.stop(Haste::Orderly);
        if let Some(mistake) = mistakes.into_iter().next() {
            std::panic::resume_unwind(mistake);
        }
    }

    /// What makes [`Nemesis::heal_all_and_stop`] wait for nothing any more, wherever it has got to.
    pub fn hurry(&self) -> impl Fn() + Send + Sync + use<> {
        let board = Arc::clone(&self.engine.board);
        move || board.stop(Haste::AtOnce)
    }

    fn stop(&mut self, haste: Haste) -> Vec<Mistake> {
        self.engine.board.stop(haste);
        let starter = self.starter.take().map(JoinHandle::join);
        let mut mistakes = match starter {
            Some(Ok(mistakes)) => mistakes,
            Some(Err(mistake)) => vec![mistake],
            None => Vec::new(),
        };
        self.engine.disarm();
        self.engine.unwanted.store(true, Ordering::Relaxed);
        let watchers = std::mem::take(&mut self.watchers);
        mistakes.extend(
            watchers
                .into_iter()
                .filter_map(|watcher| watcher.join().err()),
        );
        mistakes
    }
}

impl Drop for Nemesis {
    fn drop(&mut self) {
        if self.starter.is_some() || !self.watchers.is_empty() {
            self.stop(Haste::AtOnce);
        }
    }
}

/// What all courses and watchers share.
pub(crate) struct Engine {
    pub plan: Plan,
    pub hosts: Arc<dyn Hosts>,
    pub board: Arc<Board>,
    pub recorder: Recorder,
    pub sabotage: bool,
    /// When the clients started.
    pub zero_ns: u64,
    pub rules: Rules,
    /// The hands that let clients go on; never tied.
    gate: Mutex<Hands>,
    /// Whether the watchers may end.
    unwanted: AtomicBool,
}

impl Engine {
    /// Whether the fault of a step is over as soon as it has happened.
    pub fn is_momentary(&self, step: usize) -> bool {
        let fault = faults::find(&self.plan.faults[step].fault);
        fault.is_some_and(|fault| fault.lasting() == faults::Lasting::Moment)
    }

    /// Whether the fault of a step heals for the run's end only when the clients have ended.
    pub fn waits_for_clients(&self, step: usize) -> bool {
        let fault = faults::find(&self.plan.faults[step].fault);
        fault.is_some_and(|fault| fault.healing_disturbs_clients())
    }

    /// When a fault strikes that waits for a time.
    pub fn due_ns(&self, after_ms: u64) -> u64 {
        let after_ns = after_ms.saturating_mul(1_000_000);
        self.zero_ns.saturating_add(after_ns)
    }

    /// The faults that the same point sets off as that of `step`, itself included; none for another trigger.
    pub fn together(&self, step: usize) -> &[usize] {
        let point = self.rules.of_point(step);
        point.map_or(&[], |armed| armed.steps.as_slice())
    }

    /// The fault of a step was injected.
    pub fn in_place(&self, step: usize, at_ns: u64) {
        self.change(step, |state| state.in_place(step, at_ns));
    }

    /// The fault of a step has healed.
    pub fn over(&self, step: usize) {
        self.change(step, |state| state.over(step));
    }

    /// The course of a step has come to its end.
    pub fn close(&self, step: usize) {
        self.change(step, |state| state.close(step));
    }

    /// Changes how far a step has come, and lets the client go on that its point holds, if nothing else keeps it there.
    fn change(&self, step: usize, change: impl FnOnce(&mut State)) {
        let armed = self.rules.of_point(step);
        // In one piece, so that nobody sees the step changed and the client still kept.
        let goes = self.board.change(|state| {
            change(state);
            armed.filter(|armed| self.let_go(state, armed))
        });
        if let Some(armed) = goes {
            self.proceed(&armed.client, &armed.rule);
        }
    }

    /// A client goes on once all faults of the point are in place, and those that consist in holding it are over.
    /// Whether this is the moment.
    fn let_go(&self, state: &mut State, armed: &Armed) -> bool {
        // The last ones first: they strike in order, and the first that is not in place settles it.
        let may_go = armed.steps.iter().rev().all(|step| {
            let holds = self.holds(*step, &armed.client) && !self.sabotage;
            state.is_begun(*step) && (!holds || state.is_over(*step))
        });
        // A client that was stopped goes on when its pause heals.
        may_go && state.let_go(&armed.client, armed.rule.rule) && armed.rule.action == Action::Hold
    }

    fn holds(&self, step: usize, client: &str) -> bool {
        let planned = &self.plan.faults[step];
        let holds = faults::find(&planned.fault).is_some_and(|fault| fault.holds_its_client());
        holds && planned.on == client
    }

    fn proceed(&self, client: &str, rule: &Rule) {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let done = match rule.action {
            Action::Stop => gate
                .act(client, |agent| agent.signal(CLIENT, Signal::Continue))
                .map(drop),
            Action::Hold | Action::Tell => {
                gate.act(client, |agent| agent.proceed(rule.rule)).map(drop)
            }
        };
        // A client that is gone waits for nothing.
        if let Err(error) = done {
            tracing::warn!("cannot let {client} go on: {error}");
        }
    }

    /// The clients that triggers wait for.
    fn clients(&self) -> Vec<String> {
        let mut clients: Vec<String> = self
            .rules
            .armed
            .iter()
            .map(|armed| armed.client.clone())
            .collect();
        clients.sort();
        clients.dedup();
        clients
    }

    /// No client will be stopped or held from now on, and none still is. Clients go on telling what they were asked to.
    fn disarm(&self) {
        for client in self.clients() {
            let own = |armed: &&Armed| armed.client == client;
            let stops = self
                .rules
                .armed
                .iter()
                .filter(own)
                .any(|armed| armed.rule.action == Action::Stop);
            let harmless = self.rules.armed.iter().filter(own).map(|armed| Rule {
                action: Action::Tell,
                ..armed.rule.clone()
            });
            let harmless = harmless.collect();
            let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = gate.act(&client, |agent| agent.arm(harmless)) {
                // Without its agent no client goes on, and the run tells of that itself.
                tracing::debug!("{client} was not disarmed: {error}");
            }
            if stops {
                // It may have been stopped since its course looked last; one that has ended cannot be woken.
                let woken = gate.act(&client, |agent| agent.signal(CLIENT, Signal::Continue));
                if let Err(error) = woken {
                    tracing::debug!("{client} was not woken: {error}");
                }
            }
        }
    }

    fn watch(&self, client: &str) {
        if let Err(error) = self.follow(client) {
            tracing::warn!("cannot watch {client}: {error}");
            self.board
                .unwatched(format!("{client} cannot be watched: {error}"));
        }
    }

    fn follow(&self, client: &str) -> Result<(), FaultError> {
        let agent = self.hosts.agent(client)?;
        let mut watch = agent.watch().map_err(containers::Error::from)?;
        while !self.unwanted.load(Ordering::Relaxed) {
            let Some(Notice::Reached {
                rule,
                reached_ns,
                invoked_ns,
                stopped_ns,
                states,
                ..
            }) = watch.next(WATCH).map_err(containers::Error::from)?
            else {
                continue;
            };
            self.take_in(Reached {
                client: client.to_owned(),
                rule,
                reached_ns,
                invoked_ns,
                stopped_ns,
                states,
            });
        }
        Ok(())
    }

    fn take_in(&self, reached: Reached) {
        let Some(armed) = self.rules.find(&reached.client, reached.rule) else {
            return;
        };
        let is_point = armed.rule.action != Action::Tell;
        let (is_new, goes) = self.board.change(|state| {
            let is_new = state.reached(reached, is_point);
            (is_new, is_new && self.let_go(state, armed))
        });
        // A client in its second life comes to the point again, which has done its duty.
        if goes || !is_new {
            self.proceed(&armed.client, &armed.rule);
        }
    }
}
