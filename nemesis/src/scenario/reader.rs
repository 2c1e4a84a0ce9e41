//! Reads a scenario file, strictly: whatever is wrong with it is reported with its place and the nearest right name.

use containers::topologies::{TOPOLOGIES, Topology};
use toml::de::DeTable;

use super::error::ScenarioError;
use super::fault::{self, Surroundings};
use super::length::Length;
use super::table::{Found, Problems, Table};
use super::{Scenario, WantedWorkload};
use crate::validation::{Cast, ranges, scenario_name, sense};
use crate::words::{PROPERTIES, WORKLOADS};

/// The TTL where a scenario names none, in milliseconds.
const TTL_MS: i64 = 300;

/// How long an ungranted lock is tolerated where a scenario does not say: a dead holder's TTL, a service's own slack
/// before it ends a lease (etcd looks twice a second), and a busy machine.
const PROGRESS_BOUND: Length = Length::from_ttl_and_ms(1, 3_000);

/// The longest that a run may take where a scenario does not say.
const LIMIT: Length = Length::from_ttl_and_ms(30, 30_000);

/// Reads the text of a scenario called `name`; `file` names it in messages.
pub(super) fn read(name: &str, file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let problems = Problems::new(file, text);
    let scenario = match DeTable::parse(text) {
        Ok(document) => {
            let at = document.span();
            let table = Table::new(document.get_ref(), at, "the scenario", &problems);
            read_scenario(name, file, table, &problems)
        }
        Err(error) => {
            problems.add(&error.span().unwrap_or(0..0), error.message());
            None
        }
    };
    let problems = problems.into_sorted();
    match scenario {
        Some(scenario) if problems.is_empty() => Ok(scenario),
        _ => Err(ScenarioError::Invalid { problems }),
    }
}

/// `None` only where a problem was added.
fn read_scenario(
    name: &str,
    file: &str,
    mut table: Table<'_>,
    problems: &Problems<'_>,
) -> Option<Scenario> {
    problems.judge(&(0..0), scenario_name(name));
    let summary = table.text("summary");
    let summary = table.needs("summary", "say in one sentence what happens", summary);
    let claims = table.texts("claims");
    check_claims(&table, &claims);
    let controls = table.texts("controls");
    controls.iter().for_each(|control| {
        table.check_name(control, "property", PROPERTIES);
    });
    let topologies = read_topologies(&mut table);
    let clients = table.whole("clients", &ranges::CLIENTS);
    let clients = clients.map_or(2, |found| found.value as u32);
    let ttl_ms = read_ttl(&mut table);
    let named = named_topologies(&topologies);
    let surroundings = Surroundings {
        cast: Cast::new(clients, &named),
        ttl_ms,
        topologies: named,
        all_topologies: topologies.is_empty(),
    };
    let progress_bound = table.length("progress_bound", ttl_ms, &ranges::PROGRESS_BOUND_MS);
    let limit = table.length("limit", ttl_ms, &ranges::LIMIT_MS);
    let workload = read_workload(&mut table, ttl_ms);
    let faults: Vec<_> = table
        .tables("fault", |number| format!("fault {number}"))
        .into_iter()
        .filter_map(|fault| fault::read(fault, &surroundings, problems))
        .collect();
    for (index, message) in sense::stopped_twice(faults.iter().map(|fault| fault.value.sketch())) {
        problems.add(&faults[index].at, message);
    }
    table.finish();
    Some(Scenario {
        name: name.to_owned(),
        file: file.to_owned(),
        summary: summary?.value,
        claims: values(claims),
        controls: values(controls),
        topologies: values(topologies),
        clients,
        ttl_ms,
        progress_bound: progress_bound.map_or(PROGRESS_BOUND, |found| found.value),
        limit: limit.map_or(LIMIT, |found| found.value),
        workload,
        faults: faults.into_iter().map(|fault| fault.value).collect(),
    })
}

fn values(found: Vec<Found<String>>) -> Vec<String> {
    found.into_iter().map(|found| found.value).collect()
}

/// A claim is a letter for its page and a number: `L1`.
fn check_claims(table: &Table<'_>, claims: &[Found<String>]) {
    for claim in claims {
        let mut letters = claim.value.chars();
        let page = letters
            .next()
            .is_some_and(|letter| letter.is_ascii_uppercase());
        let number = letters.as_str();
        let digits = number.chars().all(|digit| digit.is_ascii_digit());
        if !page || number.is_empty() || !digits {
            let message = format!("`{}` is no claim: write it like `L1`", claim.value);
            table.complain(&claim.at, message);
        }
    }
}

fn read_topologies(table: &mut Table<'_>) -> Vec<Found<String>> {
    let names: Vec<&str> = TOPOLOGIES.iter().map(|topology| topology.name).collect();
    let topologies = table.texts("topologies");
    topologies
        .into_iter()
        .filter(|found| table.check_name(found, "topology", &names))
        .collect()
}

/// The topologies of these names; all where there is none.
fn named_topologies(names: &[Found<String>]) -> Vec<&'static Topology> {
    let named = |topology: &&'static Topology| {
        names.is_empty() || names.iter().any(|found| found.value == topology.name)
    };
    TOPOLOGIES.iter().copied().filter(named).collect()
}

fn read_ttl(table: &mut Table<'_>) -> u64 {
    let default = TTL_MS as u64;
    let Some(found) = table.length("ttl", default, &ranges::TTL_MS) else {
        return default;
    };
    if found.value.is_relative() {
        table.complain(
            &found.at,
            "`ttl` of the scenario cannot be in terms of itself",
        );
        return default;
    }
    found.value.ms(0).unsigned_abs()
}

fn read_workload(table: &mut Table<'_>, ttl_ms: u64) -> WantedWorkload {
    let mut wanted = WantedWorkload {
        name: "document".to_owned(),
        work: Length::from_ms(5),
        rest: Length::from_ms(10),
        retry: Length::from_ms(20),
        rounds: 2,
    };
    let example = "{ work = \"5ms\", rounds = 2 }";
    let Some(mut table) = table.table("workload", "the workload", example) else {
        return wanted;
    };
    if let Some(name) = table.name("name", "workload", WORKLOADS) {
        wanted.name = name.value;
    }
    for (key, length, range) in [
        ("work", &mut wanted.work, ranges::WORK_MS),
        ("rest", &mut wanted.rest, ranges::REST_MS),
        ("retry", &mut wanted.retry, ranges::RETRY_MS),
    ] {
        if let Some(found) = table.length(key, ttl_ms, &range) {
            *length = found.value;
        }
    }
    if let Some(rounds) = table.whole("rounds", &ranges::ROUNDS) {
        wanted.rounds = rounds.value;
    }
    table.finish();
    wanted
}
