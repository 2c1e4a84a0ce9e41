//! The list of the models, by which they are asked for.

use histories::entries::Value;

use super::cas_register::CasRegister;
use super::fenced_mutex::FencedMutex;
use super::fenced_register::FencedRegister;
use super::lease_mutex::LeaseMutex;
use super::map::StringMap;
use super::mutex::Mutex;
use super::owner_aware_mutex::OwnerAwareMutex;
use super::recorded::{Misfit, Recorded};
use super::reentrant_fenced_mutex::ReentrantFencedMutex;
use super::reentrant_mutex::ReentrantMutex;
use super::register::Register;
use super::semaphore::Semaphore;
use crate::closed_forms as locks;
use crate::linearizability::{Gathering, Judge, Stream};

/// A model that can be asked for by name.
pub struct Kind {
    /// Its name: `cas-register`.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// The operations that it has, as histories spell them.
    pub functions: &'static [&'static str],
    /// Which fields of the setup it heeds.
    pub options: &'static [&'static str],
    begin: fn(&Setup) -> Result<Box<dyn Judge>, Misfit>,
    /// What judges it as it comes, where that can be.
    stream: Option<locks::Kind>,
}

/// How a model is set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// `initial`: what a register holds at first; nil if nothing is said.
    pub initial: Option<Value<'static>>,
    /// `permits`: how many a semaphore has.
    pub permits: Option<u32>,
    /// `depth`: how often its owner may hold a reentrant lock; any number of times if nothing is said.
    pub depth_max: Option<u32>,
    /// `busy`: whether a lock that was refused as busy proves that somebody held it.
    pub refusals_count: bool,
    /// `failed-cas`: whether a compare-and-set that failed proves that another value was there.
    pub failed_cas_is_a_read: bool,
    /// Whether the history is judged as it comes, with memory for what is in flight alone.
    pub streaming: bool,
    /// Whether a read of nil is always legal, as it is in Jepsen's histories.
    pub nil_read_tells_nothing: bool,
}

impl Kind {
    /// A judge of one history by this model.
    ///
    /// # Errors
    /// When the model cannot do without something that the setup does not say.
    pub fn judge(&self, setup: &Setup) -> Result<Box<dyn Judge>, Misfit> {
        if !setup.streaming {
            return (self.begin)(setup);
        }
        match self.stream {
            Some(kind) => Ok(Box::new(Stream::new(kind, setup))),
            None => Err(Misfit(format!(
                "a {} cannot be judged as it comes",
                self.name
            ))),
        }
    }
}

const LOCK: &[&str] = &["acquire", "release", "lock", "unlock", "lost"];

const KINDS: &[Kind] = &[
    Kind {
        name: "register",
        summary: "one value that is read and written",
        functions: &["read", "write"],
        options: &["initial"],
        stream: None,
        begin: |setup| gather(Register::new(initial(setup)), setup),
    },
    Kind {
        name: "cas-register",
        summary: "a register with compare-and-set",
        functions: &["read", "write", "cas"],
        options: &["initial", "failed-cas"],
        stream: None,
        begin: |setup| {
            let mut register = CasRegister::new(initial(setup));
            register.failed_cas_is_a_read = setup.failed_cas_is_a_read;
            gather(register, setup)
        },
    },
    Kind {
        name: "fenced-register",
        summary: "a register that rejects a write under a lower token than one that wrote",
        functions: &["read", "write"],
        options: &["initial"],
        stream: None,
        begin: |setup| gather(FencedRegister::new(initial(setup)), setup),
    },
    Kind {
        name: "map",
        summary: "a map of strings, each empty at first, with append",
        functions: &["get", "put", "append"],
        options: &[],
        stream: None,
        begin: |setup| gather(StringMap::default(), setup),
    },
    Kind {
        name: "mutex",
        summary: "a lock that anybody may release",
        functions: LOCK,
        options: &["busy"],
        stream: None,
        begin: |setup| gather(Mutex::new(setup.refusals_count), setup),
    },
    Kind {
        name: "owner-aware-mutex",
        summary: "a lock that its owner alone releases",
        functions: LOCK,
        options: &["busy"],
        stream: Some(locks::Kind::OwnerAware),
        begin: |setup| gather(OwnerAwareMutex::new(setup.refusals_count), setup),
    },
    Kind {
        name: "reentrant-mutex",
        summary: "a lock that its owner may acquire again while holding it",
        functions: LOCK,
        options: &["busy", "depth"],
        stream: None,
        begin: |setup| {
            gather(
                ReentrantMutex::new(setup.depth_max, setup.refusals_count),
                setup,
            )
        },
    },
    Kind {
        name: "fenced-mutex",
        summary: "a lock whose tokens rise from grant to grant",
        functions: LOCK,
        options: &["busy"],
        stream: Some(locks::Kind::Fenced),
        begin: |setup| gather(FencedMutex::new(setup.refusals_count), setup),
    },
    Kind {
        name: "reentrant-fenced-mutex",
        summary: "a reentrant lock whose tokens rise, and are equal within a reentry",
        functions: LOCK,
        options: &["busy", "depth"],
        stream: None,
        begin: |setup| {
            gather(
                ReentrantFencedMutex::new(setup.depth_max, setup.refusals_count),
                setup,
            )
        },
    },
    Kind {
        name: "lease-mutex",
        summary: "a lock whose grants also end by themselves once their validity is over",
        functions: &[
            "acquire", "release", "extend", "renew", "lock", "unlock", "lost", "renewed",
        ],
        options: &["busy"],
        stream: Some(locks::Kind::Lease),
        begin: |setup| gather(LeaseMutex::new(setup.refusals_count), setup),
    },
    Kind {
        name: "semaphore",
        summary: "a lock that so many may hold at once",
        functions: LOCK,
        options: &["permits", "busy"],
        stream: None,
        begin: |setup| {
            let missing = || Misfit("a semaphore needs to know how many permits it has".to_owned());
            let permits = setup.permits.ok_or_else(missing)?;
            gather(Semaphore::new(permits, setup.refusals_count), setup)
        },
    },
];

/// All models, in the order in which they are listed.
pub fn kinds() -> &'static [Kind] {
    KINDS
}

fn initial(setup: &Setup) -> &Value<'static> {
    setup.initial.as_ref().unwrap_or(&Value::Nil)
}

fn gather<M: Recorded + 'static>(model: M, setup: &Setup) -> Result<Box<dyn Judge>, Misfit> {
    Ok(Box::new(Gathering::new(
        model,
        setup.nil_read_tells_nothing,
    )))
}
