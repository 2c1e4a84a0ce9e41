//! `fencepost replay`: the plan of a saved history again, and how often it comes to the same.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use histories::{Plan, Seal};

use super::run::{HowArguments, carry_out, conclude};
use super::{Format, Voice, beside, say, tell};
use crate::exit::Exit;
use crate::report::judge;
use crate::runner::{Cell, Order};

#[derive(Args)]
pub struct ReplayArguments {
    /// The history, or its run directory
    file: PathBuf,

    /// How many times to run its plan
    #[arg(long, default_value_t = 1, env = "FENCEPOST_TIMES", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    times: u32,

    #[command(flatten)]
    how: HowArguments,
}

pub fn replay(arguments: &ReplayArguments, voice: Voice) -> Result<Exit> {
    let file = super::histories::one(&arguments.file)?;
    let plan = histories::Reader::open(&file)?.header().plan.clone();
    let seed = plan.seed;
    let cell = Cell::of_plan(plan).with_context(|| file.display().to_string())?;
    tell_of_another_plan(&file, &cell.plan(seed));
    let before = judge(&file)?;
    if before.seal == Seal::Edited {
        tell(format_args!(
            "fencepost: {} was edited after its run had closed it: the plan that is run again is what it says now",
            file.display()
        ));
    }
    let order = Order {
        seed: before.seed,
        cells: vec![cell],
        times: arguments.times,
        out: arguments.how.make_out()?,
        jobs: 1,
        keep_running: arguments.how.keep_running,
        sabotage: arguments.how.sabotage,
    };
    let suite = carry_out(order, voice)?;
    let exit = conclude(&suite, &arguments.how, voice)?;
    if voice.format == Format::Human {
        let same = suite
            .judgements()
            .filter(|again| again.same_as(&before))
            .count();
        say(format!(
            "{same} of {} came to the same as the saved history: {}",
            suite.judgements().count(),
            before.in_short()
        ));
    }
    Ok(exit)
}

/// What is wrong with a TOML file, without the picture of the line that it comes with.
fn in_one_line(content: &[u8], wrong: &toml::de::Error) -> anyhow::Error {
    let before = content.get(..wrong.span().unwrap_or_default().start);
    let line = 1 + before.map_or(0, |before| {
        before.iter().filter(|byte| **byte == b'\n').count()
    });
    anyhow!("line {line}: {}", wrong.message())
}

/// Says where the `plan.toml` beside the history is not the plan that is run again, which is the history's own.
fn tell_of_another_plan(file: &Path, own: &Plan) {
    let Some(path) = beside::find(file, beside::PLAN) else {
        return;
    };
    // What this build adds to a saved plan is no difference.
    let plan = |content: &[u8]| {
        let plan: Plan = toml::from_slice(content).map_err(|wrong| in_one_line(content, &wrong))?;
        let seed = plan.seed;
        Ok(Cell::of_plan(plan)?.plan(seed))
    };
    let what = match beside::read(&path, plan) {
        Ok(plan) if plan == *own => return,
        Ok(_) => format!(
            "{} is not the plan of the history beside it",
            path.display()
        ),
        Err(unreadable) => format!("{unreadable:#}"),
    };
    tell(format_args!(
        "fencepost: {what}; what is run again is the plan that stands in {}. To run another, write a scenario file and \
         give it to `fencepost run`",
        file.display()
    ));
}
