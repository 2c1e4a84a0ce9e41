//! What was struck: somebody of this run who was there, and who did nothing that he could not do.

use super::super::Facts;
use super::super::faults::Strike;
use super::super::history::{FOREVER, host_of, is_client, is_server, number, text};
use super::super::lives::{began, kills, life, processes, starts};
use super::super::shown::{delays_to_hosts_of_this_run, does_what_he_cannot, is_of_this_run};
use super::super::spans::{Span, span};
use super::Failures;

pub(super) fn check(facts: &Facts, failures: &mut Failures) {
    for strike in &facts.strikes {
        for host in &strike.on {
            failures.unless(is_of_this_run(facts.history, host), || {
                format!("{host} was struck, and is not of this run")
            });
            failures.unless(something_was_there(facts, strike, host), || {
                format!(
                    "{host} was struck by inject {}, and was gone",
                    strike.inject.id
                )
            });
        }
        failures.unless(delays_to_hosts_of_this_run(facts.history, strike), || {
            format!(
                "inject {} delays packets to no host of this run",
                strike.inject.id
            )
        });
        failures.0.extend(does_what_he_cannot(facts, strike));
    }
    for stall in facts.history.remarks_of("stall") {
        let host = host_of(text(stall, "process").unwrap_or_default());
        let is_told = is_server(host) || host == "storage";
        failures.unless(!is_told || is_of_this_run(facts.history, host), || {
            format!("{host} stood still, and is not of this run")
        });
    }
}

/// Whether what a fault struck on this host was not dead, or was being started again.
fn something_was_there(facts: &Facts, strike: &Strike, host: &str) -> bool {
    let Some(struck) = strike.inject.end.filter(|_| strike.inject.ok()) else {
        return true;
    };
    let starts = starts(facts, host);
    deaths_on(facts, strike, host)
        .iter()
        .filter(|death| death.to < strike.inject.start)
        .all(|death| {
            // What restarts starts again what it kills.
            starts.iter().any(|start| {
                let is_after = start.asked >= death.to || start.asked == death.from;
                start.inject != strike.inject.id && is_after && start.asked <= struck
            })
        })
}

/// The deaths of a host's latest process when a fault struck it. Of a server and the storage only what killed it tells.
fn deaths_on(facts: &Facts, strike: &Strike, host: &str) -> Vec<Span> {
    if !is_client(host) {
        let killed = |other: &&Strike| other.kills() && other.on.contains(&host);
        return killed_by(facts.strikes.iter().filter(killed));
    }
    let Some(process) = latest_process(facts, host, strike.inject.start) else {
        return Vec::new();
    };
    let killed = killed_by(
        facts
            .strikes
            .iter()
            .filter(|other| kills(facts.history, other, process)),
    );
    // An exit while it was being killed tells of that death.
    let exits = facts
        .history
        .remarks_of("exit")
        .filter(|exit| text(exit, "process") == Some(process))
        .filter_map(|exit| number(exit, "t"))
        .filter(|t| {
            !killed
                .iter()
                .any(|death| (death.from..=death.to).contains(t))
        })
        .map(|t| span(t, t));
    exits.chain(killed.iter().copied()).collect()
}

fn killed_by<'s, 'a: 's>(strikes: impl Iterator<Item = &'s Strike<'a>>) -> Vec<Span> {
    strikes
        .map(|strike| span(strike.inject.start, strike.inject.end.unwrap_or(FOREVER)))
        .collect()
}

/// The latest process of a host that had begun by this time.
fn latest_process<'a>(facts: &Facts<'a>, host: &str, by: u64) -> Option<&'a str> {
    processes(facts.history)
        .into_iter()
        .filter(|process| host_of(process) == host)
        .filter(|process| began(facts.history, process) <= Some(by))
        .max_by_key(|process| life(process))
}
