//! `fencepost list`: what there is, from the same lists that everything else uses.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::run::OUT;
use super::{Format, Voice, say, tell};
use crate::exit::Exit;
use crate::{locks, report, storages};

#[derive(Args)]
pub struct ListArguments {
    /// Of what
    #[arg(value_enum)]
    what: What,

    /// Where the runs are
    #[arg(long, default_value = OUT, env = "FENCEPOST_OUT", value_name = "DIR")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Locks,
    Topologies,
    Storages,
    Policies,
    Faults,
    Scenarios,
    Properties,
    Models,
    Runs,
}

/// One line of a list: a name, and what goes with it.
struct Row {
    name: String,
    about: Vec<(&'static str, String)>,
}

impl Row {
    fn new(name: impl Into<String>, summary: impl Into<String>) -> Row {
        Row {
            name: name.into(),
            about: vec![("summary", summary.into())],
        }
    }

    fn and(mut self, what: &'static str, is: impl Into<String>) -> Row {
        self.about.push((what, is.into()));
        self
    }
}

pub fn list(arguments: &ListArguments, voice: Voice) -> Result<Exit> {
    let rows = match arguments.what {
        What::Locks => lock_rows(),
        What::Topologies => containers::topologies::TOPOLOGIES
            .iter()
            .map(|topology| Row::new(topology.name, topology.summary))
            .collect(),
        What::Storages => storages::STORAGES
            .iter()
            .map(|storage| Row::new(storage.name(), storage.summary()))
            .collect(),
        What::Policies => storages::POLICIES
            .iter()
            .map(|policy| Row::new(policy.name, policy.summary))
            .collect(),
        What::Faults => nemesis::faults::FAULTS
            .iter()
            .map(|fault| Row::new(fault.name(), fault.summary()))
            .collect(),
        What::Scenarios => scenario_rows()?,
        What::Properties => checker::properties()
            .iter()
            .map(|property| Row::new(property.name, property.summary))
            .collect(),
        What::Models => checker::models::kinds()
            .iter()
            .map(|kind| {
                Row::new(kind.name, kind.summary).and("operations", kind.functions.join(", "))
            })
            .collect(),
        What::Runs => run_rows(&arguments.out)?,
    };
    match voice.format {
        Format::Human => say(report::table(
            rows.into_iter()
                .map(|row| {
                    std::iter::once(row.name)
                        .chain(row.about.into_iter().map(|(_, is)| is))
                        .collect()
                })
                .collect(),
        )),
        Format::Json => say(serde_json::to_string_pretty(
            &rows.iter().map(object).collect::<Vec<_>>(),
        )?),
        Format::Jsonl => rows.iter().map(object).for_each(say),
    }
    Ok(Exit::Kept)
}

fn object(row: &Row) -> Value {
    let mut object = json!({ "schema_version": report::SCHEMA_VERSION, "name": row.name });
    for (what, is) in &row.about {
        object[*what] = json!(is);
    }
    object
}

fn lock_rows() -> Vec<Row> {
    let row = |lock: &&dyn locks::LockService| {
        let has = lock.has();
        let has: Vec<&str> = [
            (has.tokens, "tokens"),
            (has.expiry, "expiry"),
            (has.waiting, "waiting"),
            (has.notice, "notice of loss"),
        ]
        .into_iter()
        .filter_map(|(has, what)| has.then_some(what))
        .collect();
        let policies: Vec<&str> = storages::POLICIES
            .iter()
            .filter(|policy| lock.refuses(policy).is_none())
            .map(|policy| policy.name)
            .collect();
        Row::new(lock.name(), lock.summary())
            .and("has", has.join(", "))
            .and("policies", policies.join(", "))
    };
    locks::SERVICES.iter().map(row).collect()
}

fn scenario_rows() -> Result<Vec<Row>> {
    nemesis::scenarios()
        .iter()
        .map(|builtin| {
            let scenario = nemesis::load(builtin.name)?;
            Ok(Row::new(builtin.name, &scenario.summary).and("claims", scenario.claims.join(", ")))
        })
        .collect()
}

fn run_rows(out: &Path) -> Result<Vec<Row>> {
    // The usual place is made by the first run.
    let is_to_come = out == Path::new(OUT) && !out.exists();
    let verdicts = if is_to_come {
        Vec::new()
    } else {
        report::saved_verdicts(out)?
    };
    if verdicts.is_empty() {
        tell(format_args!(
            "fencepost: there are no runs in {} yet",
            out.display()
        ));
    }
    Ok(verdicts
        .into_iter()
        .map(|(path, verdict)| {
            let text = |key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
            Row::new(
                path.parent().unwrap_or(&path).display().to_string(),
                format!("{} {} {}", text("scenario"), text("lock"), text("policy")),
            )
            .and("outcome", text("outcome"))
        })
        .collect())
}
