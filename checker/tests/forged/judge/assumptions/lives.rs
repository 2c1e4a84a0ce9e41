//! Who is there, in which lives, and how each ended.

use super::super::Facts;
use super::super::history::{FOREVER, host_of, is_client, number, tells, text};
use super::super::lives::{
    Start, began, ends_by_others, events_of, is_killed_as_planned, kills, life, processes, starts,
};
use super::Failures;

pub(super) fn check(facts: &Facts, failures: &mut Failures) {
    clients_are_those_of_the_plan(facts, failures);
    clients_ended(facts, failures);
    clients_end_once(facts, failures);
    nobody_else_ended_them(facts, failures);
    lives_follow_each_other(facts, failures);
    for host in planned_clients(facts) {
        next_lives_were_started(facts, &host, failures);
    }
    nobody_acts_after_death(facts, failures);
}

fn clients_ended(facts: &Facts, failures: &mut Failures) {
    for process in processes(facts.history)
        .into_iter()
        .filter(|p| is_client(p))
    {
        let exited = facts
            .history
            .remarks_of("exit")
            .any(|exit| text(exit, "process") == Some(process));
        let killed = is_killed_as_planned(facts.history, &facts.strikes, process);
        failures.unless(exited || killed, || format!("{process} never ended"));
    }
}

/// A client ends well, or when it is asked to, and a server not at all; any other end is somebody else's doing.
fn nobody_else_ended_them(facts: &Facts, failures: &mut Failures) {
    for exit in ends_by_others(facts.history, &facts.strikes) {
        let process = text(exit, "process").unwrap_or_default();
        failures.unless(false, || format!("{process} was ended by somebody else"));
    }
}

/// A host has a next life for each time that it was started again, and none before that was asked for.
fn next_lives_were_started(facts: &Facts, host: &str, failures: &mut Failures) {
    let mut lives: Vec<(u64, u64)> = processes(facts.history)
        .into_iter()
        .filter(|process| host_of(process) == host)
        .filter_map(|process| Some((life(process)?, began(facts.history, process)?)))
        .collect();
    lives.sort_unstable();
    let all_there = lives.iter().zip(1..).all(|((life, _), n)| *life == n);
    failures.unless(all_there, || format!("{host} lacks a life"));

    let starts = starts(facts, host);
    let certain = starts.iter().filter(|start| start.is_certain).count();
    let next = lives.len().saturating_sub(1);
    failures.unless((certain..=starts.len()).contains(&next), || {
        format!("{host} has {next} next lives, and was started {certain} times")
    });
    let is_early = |(start, (_, began)): (&Start, &(u64, u64))| *began < start.asked;
    failures.unless(
        !starts.iter().zip(lives.iter().skip(1)).any(is_early),
        || format!("{host} lives again before that was asked for"),
    );
}

/// The names that the plan's clients may have.
fn planned_clients(facts: &Facts) -> Vec<String> {
    let clients = number(facts.history.plan(), "clients").unwrap_or(0);
    (1..=clients).map(|number| format!("c{number}")).collect()
}

/// Functions of clients, beside their ends and stalls.
const OF_CLIENTS: [&str; 10] = [
    "acquire", "extend", "release", "held", "lost", "renewed", "work", "read", "write", "point",
];

fn clients_are_those_of_the_plan(facts: &Facts, failures: &mut Failures) {
    let planned = planned_clients(facts);
    let all = processes(facts.history);
    for host in &planned {
        failures.unless(all.iter().any(|process| host_of(process) == host), || {
            format!("{host} is not there")
        });
    }
    for process in all {
        let acts = events_of(facts.history, process)
            .filter(|event| tells(event))
            .any(|event| OF_CLIENTS.contains(&text(event, "f").unwrap_or_default()));
        let is_planned =
            planned.iter().any(|host| host == host_of(process)) && life(process).is_some();
        failures.unless(is_planned || !(acts || is_client(process)), || {
            format!("{process} is no client of the plan")
        });
    }
}

fn clients_end_once(facts: &Facts, failures: &mut Failures) {
    for process in processes(facts.history)
        .into_iter()
        .filter(|p| is_client(p))
    {
        let exits: Vec<u64> = facts
            .history
            .remarks_of("exit")
            .filter(|exit| text(exit, "process") == Some(process))
            .filter_map(|exit| number(exit, "t"))
            .collect();
        failures.unless(exits.len() < 2, || format!("{process} ends twice"));
        let kills = facts
            .strikes
            .iter()
            .filter(|strike| kills(facts.history, strike, process));
        for gone in kills.filter_map(|strike| strike.inject.end) {
            failures.unless(exits.iter().all(|exit| *exit <= gone), || {
                format!("{process} ends after it was killed")
            });
        }
    }
}

fn lives_follow_each_other(facts: &Facts, failures: &mut Failures) {
    let all = processes(facts.history);
    for process in &all {
        let begins = began(facts.history, process).unwrap_or(FOREVER);
        for before in &all {
            let is_before = is_client(process)
                && host_of(before) == host_of(process)
                && life(before) < life(process);
            let died = facts
                .deaths(before)
                .iter()
                .any(|death| death.from <= begins);
            failures.unless(!is_before || died, || {
                format!("{process} began before {before} died")
            });
        }
    }
}

fn nobody_acts_after_death(facts: &Facts, failures: &mut Failures) {
    let all = facts.undead.iter();
    failures
        .0
        .extend(all.map(|process| format!("{process} goes on after its death")));
}
