//! By which sequential model a history is judged, and how far a search may go.

use std::time::{Duration, Instant};

use anyhow::Result;
use checker::linearizability::Request;
use checker::models::{Kind, Setup, kinds};
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum, value_parser};
use histories::entries::{Keys, Value};

use crate::exit::UsageError;

#[derive(Args)]
pub struct ModelArguments {
    /// Judge whether the history is linearizable by this model (see `list models`); guessed for other people's histories
    #[arg(long, env = "FENCEPOST_MODEL", value_name = "NAME")]
    pub model: Option<String>,

    /// What a register holds at first, as EDN [default: nil; the empty text in our own histories]
    #[arg(long, env = "FENCEPOST_INITIAL", value_name = "VALUE")]
    initial: Option<String>,

    /// How many permits a semaphore has
    #[arg(long, env = "FENCEPOST_PERMITS", value_name = "N")]
    permits: Option<u32>,

    /// How often its owner may hold a reentrant lock at once [default: any number of times]
    #[arg(long, env = "FENCEPOST_DEPTH", value_name = "N")]
    depth: Option<u32>,

    /// Take a lock that was refused as busy for proof that somebody held it
    #[arg(long, env = "FENCEPOST_BUSY_IS_EVIDENCE")]
    busy_is_evidence: bool,

    /// Take a compare-and-set that failed for proof that another value was there
    #[arg(long, env = "FENCEPOST_FAILED_CAS_IS_EVIDENCE")]
    failed_cas_is_evidence: bool,

    /// Whether the values of a Jepsen history are pairs of an independent key and a value
    #[arg(
        long,
        value_enum,
        default_value_t,
        env = "FENCEPOST_KEYS",
        value_name = "WHETHER"
    )]
    keys: KeysArgument,

    /// Judge locks as they come, with memory for what is in flight alone, also from standard input (`-`)
    #[arg(long, env = "FENCEPOST_STREAM")]
    stream: bool,

    /// Give up a history after so many seconds, as unknown
    // No time at all is a mistake: a search looks at the clock only now and then, so that a short one would still decide.
    #[arg(long, env = "FENCEPOST_TIME_LIMIT", value_name = "SECONDS",
          value_parser = value_parser!(u64).range(1..))]
    time_limit: Option<u64>,

    /// Give up a history where the search needs more than so many MiB, as unknown
    #[arg(
        long,
        default_value_t = 2048,
        env = "FENCEPOST_MEMORY_LIMIT",
        value_name = "MIB",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..)
    )]
    memory_limit: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum KeysArgument {
    /// As the first operation looks
    #[default]
    Guess,
    /// They are
    Yes,
    /// They are not
    No,
}

impl ModelArguments {
    /// By what to judge.
    pub fn request(&self) -> Result<Request> {
        let model = self.model.as_deref().map(kind).transpose()?;
        let given = [
            ("initial", "--initial", self.initial.is_some()),
            ("permits", "--permits", self.permits.is_some()),
            ("depth", "--depth", self.depth.is_some()),
            ("busy", "--busy-is-evidence", self.busy_is_evidence),
            (
                "failed-cas",
                "--failed-cas-is-evidence",
                self.failed_cas_is_evidence,
            ),
        ];
        for (option, flag, _) in given.iter().filter(|(_, _, given)| *given) {
            match model {
                Some(model) if !model.options.contains(option) => {
                    return Err(
                        UsageError(format!("{flag} means nothing to a {}", model.name)).into(),
                    );
                }
                None if *option == "permits" || *option == "depth" => {
                    return Err(UsageError(format!("{flag} needs --model with it")).into());
                }
                _ => {}
            }
        }
        if let Some(model) = model
            && model.options.contains(&"permits")
            && self.permits.is_none()
        {
            let missing = format!(
                "a {} needs to know how many permits it has: --permits N",
                model.name
            );
            return Err(UsageError(missing).into());
        }
        let setup = Setup {
            initial: self.initial.as_deref().map(initial).transpose()?,
            permits: self.permits,
            depth_max: self.depth,
            refusals_count: self.busy_is_evidence,
            failed_cas_is_a_read: self.failed_cas_is_evidence,
            streaming: self.stream,
            nil_read_tells_nothing: false,
        };
        if let Some(model) = model
            && let Err(misfit) = model.judge(&setup)
        {
            return Err(UsageError(misfit.to_string()).into());
        }
        Ok(Request { model, setup })
    }

    /// Whether values are pairs.
    pub fn keys(&self) -> Keys {
        match self.keys {
            KeysArgument::Guess => Keys::Guess,
            KeysArgument::Yes => Keys::Yes,
            KeysArgument::No => Keys::No,
        }
    }

    /// How many bytes a search may keep.
    pub fn bytes(&self) -> usize {
        self.memory_limit.saturating_mul(1 << 20)
    }

    /// What stops a search that begins now, once its time is over.
    pub fn alarm(&self) -> impl Fn() -> Option<String> + Sync + use<> {
        let seconds = self.time_limit;
        let end =
            seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
        move || {
            let over = end.is_some_and(|end| Instant::now() >= end);
            over.then(|| {
                format!(
                    "the search took more than {} s",
                    seconds.unwrap_or_default()
                )
            })
        }
    }
}

fn kind(name: &str) -> Result<&'static Kind> {
    let names: Vec<&str> = kinds().iter().map(|kind| kind.name).collect();
    let known = kinds().iter().find(|kind| kind.name == name);
    known.ok_or_else(|| {
        let hint = nemesis::nearest(name, &names)
            .map(|near| format!(" (did you mean `{near}`?)"))
            .unwrap_or_default();
        UsageError(format!(
            "there is no model `{name}`{hint}; there are: {}",
            names.join(", ")
        ))
        .into()
    })
}

fn initial(text: &str) -> Result<Value<'static>> {
    match Value::parse(text) {
        Ok(value) => Ok(value.into_owned()),
        Err(mistake) => Err(UsageError(format!(
            "--initial {text}: {} (a text needs quotes of its own: '\"a\"')",
            mistake.message
        ))
        .into()),
    }
}
