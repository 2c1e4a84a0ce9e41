//! Starts the course of each fault when its trigger is near: a course is a thread with connections to hosts, of which neither
//! this machine nor a host has thousands.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use containers::agent::monotonic_ns;
use histories::When;

use crate::board::State;
use crate::course::Course;
use crate::engine::Engine;

/// How long before its time a course starts, so that what it needs is at hand then.
const LEAD: Duration = Duration::from_secs(1);

/// How many courses that wait for what clients do are started ahead, in the plan's order. The others start when their point is
/// reached, or when it is their turn.
const AHEAD: usize = 32;

/// How many courses are started at most whose trigger has come, or is near, and whose fault is not in place yet.
const NEAR: usize = 16;

/// A panic of a course, which is our own mistake.
pub(crate) type Mistake = Box<dyn Any + Send>;

/// See the module.
pub(crate) struct Starter {
    engine: Arc<Engine>,
    started: Vec<bool>,
    /// The faults that wait for a time, the last one first, with the times from which on they are near.
    timed: Vec<(u64, usize)>,
    /// The other faults, in the plan's order.
    others: VecDeque<usize>,
    /// The faults whose trigger has come, or is near.
    due: VecDeque<usize>,
    /// How many of the points that clients reached were looked at.
    points: usize,
    /// Those that were started as their trigger came, and as there was room, and are not in place yet.
    near: Vec<usize>,
    ahead: Vec<usize>,
    courses: Vec<JoinHandle<()>>,
    mistakes: Vec<Mistake>,
}

/// What is to be done next.
enum Next {
    Start(Vec<usize>),
    /// All are started, or the run ends.
    Finish,
}

impl Starter {
    pub fn new(engine: Arc<Engine>) -> Starter {
        let faults = &engine.plan.faults;
        let mut timed = Vec::new();
        let mut others = VecDeque::new();
        for (step, planned) in faults.iter().enumerate() {
            match planned.when {
                When::Time { after_ms } => {
                    let due_ns = engine.due_ns(after_ms);
                    timed.push((due_ns.saturating_sub(LEAD.as_nanos() as u64), step));
                }
                When::Point { .. } | When::Event(_) => others.push_back(step),
            }
        }
        timed.sort_unstable_by_key(|&near| std::cmp::Reverse(near));
        Starter {
            started: vec![false; faults.len()],
            timed,
            others,
            due: VecDeque::new(),
            points: 0,
            near: Vec::new(),
            ahead: Vec::new(),
            courses: Vec::new(),
            mistakes: Vec::new(),
            engine,
        }
    }

    /// Starts the courses, until all are or the run ends, and waits for their ends.
    pub fn run(mut self) -> Vec<Mistake> {
        let board = Arc::clone(&self.engine.board);
        while let Some(Next::Start(steps)) = board.wait_for(None, |state| self.next(state)) {
            for step in steps {
                self.start(step);
            }
            let (over, going) = std::mem::take(&mut self.courses)
                .into_iter()
                .partition(|course: &JoinHandle<()>| course.is_finished());
            self.courses = going;
            self.join(over);
        }
        let left = (0..self.started.len()).filter(|&step| !self.started[step]);
        for step in left {
            Course::new(&self.engine, step).never_start(None);
        }
        let courses = std::mem::take(&mut self.courses);
        self.join(courses);
        self.mistakes
    }

    fn join(&mut self, courses: Vec<JoinHandle<()>>) {
        let mistakes = courses.into_iter().filter_map(|course| course.join().err());
        self.mistakes.extend(mistakes);
    }

    fn start(&mut self, step: usize) {
        let engine = Arc::clone(&self.engine);
        let course = move || Course::new(&engine, step).run();
        match thread::Builder::new().spawn(course) {
            Ok(course) => self.courses.push(course),
            Err(error) => Course::new(&self.engine, step)
                .never_start(Some(format!("no thread can be had for it: {error}"))),
        }
    }

    /// What is to be done as the board stands, or else when to look again.
    fn next(&mut self, state: &State) -> Result<Next, Option<u64>> {
        if state.stopping().is_some() {
            return Ok(Next::Finish);
        }
        self.near.retain(|&step| !state.is_begun(step));
        self.ahead.retain(|&step| !state.is_begun(step));
        self.take_due(state);
        let mut steps = Vec::new();
        while self.near.len() < NEAR
            && let Some(step) = self.due.pop_front()
        {
            if !std::mem::replace(&mut self.started[step], true) {
                self.near.push(step);
                steps.push(step);
            }
        }
        while self.ahead.len() < AHEAD
            && let Some(step) = self.others.pop_front()
        {
            if !std::mem::replace(&mut self.started[step], true) {
                self.ahead.push(step);
                steps.push(step);
            }
        }
        let all = self.timed.is_empty() && self.others.is_empty() && self.due.is_empty();
        match steps.as_slice() {
            [] if all => Ok(Next::Finish),
            // There is no room before there is news.
            [] if self.near.len() >= NEAR => Err(None),
            [] => Err(self.timed.last().map(|&(near_ns, _)| near_ns)),
            _ => Ok(Next::Start(steps)),
        }
    }

    /// Takes in whose time is near, and whose point was reached.
    fn take_due(&mut self, state: &State) {
        let now_ns = monotonic_ns();
        while let Some((_, step)) = self.timed.pop_if(|&mut (near_ns, _)| near_ns <= now_ns) {
            self.due.push_back(step);
        }
        let points = state.points_after(self.points);
        self.points += points.len();
        for (client, rule) in points {
            let armed = self.engine.rules.find(client, *rule);
            self.due.extend(armed.iter().flat_map(|armed| &armed.steps));
        }
    }
}
