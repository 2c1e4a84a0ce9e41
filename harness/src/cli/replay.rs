//! `fencepost replay`: the plan of a saved history again, and how often it comes to the same.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use super::run::{HowArguments, carry_out, conclude};
use super::{Format, Voice, say};
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
    let cell = Cell::of_plan(plan).with_context(|| file.display().to_string())?;
    let before = judge(&file)?;
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
