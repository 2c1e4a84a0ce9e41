//! What tests start in hosts: an agent, the processes of faults, and a client that passes its points round after round.
//!
//! `nemesis_host agent --socket PATH`, `nemesis_host fault-process FAULT ARGUMENTS…`, and under an agent
//! `nemesis_host client RULES_FILE`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use containers::agent::protocol::{At, Rule};
use containers::agent::{Agent, ENV_AGENT, ENV_LIFE, monotonic_ns, serve};

/// How long an operation of the client takes.
const OPERATION: Duration = Duration::from_millis(1);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["agent", "--socket", socket] => match serve(Path::new(socket))? {},
        ["fault-process", fault, ..] => Ok(nemesis::fault_process(fault, &arguments[2..])?),
        ["client", rules] => client(Path::new(rules)),
        _ => Err(
            "usage: nemesis_host agent --socket PATH | fault-process FAULT … | client RULES_FILE"
                .into(),
        ),
    }
}

/// One round after another: it passes all points, and completes a write after `before-write`. It says what it does.
fn client(rules: &Path) -> Result<(), Box<dyn Error>> {
    let rules: Vec<Rule> = serde_json::from_slice(&fs::read(rules)?)?;
    let mut agent = Agent::connect(Path::new(&std::env::var(ENV_AGENT)?))?;
    println!("life {}", std::env::var(ENV_LIFE)?);
    let mut op = 0;
    for grant in 1.. {
        for point in nemesis::POINTS {
            let at = At::Point {
                point: (*point).to_owned(),
                nth_grant: grant,
            };
            let now_ns = monotonic_ns();
            reach(&mut agent, &rules, &at, now_ns, now_ns, op)?;
            if *point == "before-write" {
                op += 1;
                let invoked_ns = monotonic_ns();
                thread::sleep(OPERATION);
                println!("write {grant}");
                let at = At::Event {
                    f: "write".to_owned(),
                    outcome: "ok".to_owned(),
                };
                reach(&mut agent, &rules, &at, invoked_ns, monotonic_ns(), op)?;
            }
        }
        thread::sleep(OPERATION);
    }
    Ok(())
}

fn reach(
    agent: &mut Agent,
    rules: &[Rule],
    at: &At,
    invoked_ns: u64,
    reached_ns: u64,
    op: u64,
) -> Result<(), Box<dyn Error>> {
    if let Some(rule) = rules.iter().find(|rule| rule.at == *at) {
        agent.reached(rule.rule, reached_ns, invoked_ns, op)?;
    }
    Ok(())
}
