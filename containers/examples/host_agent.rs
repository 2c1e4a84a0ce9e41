//! What tests start in hosts: an agent, and a client that does nothing but reach a rule.
//!
//! `host_agent agent --socket PATH`, and under it `host_agent reach RULE TIMES`.

use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::Duration;

use containers::agent::{Agent, ENV_AGENT, ENV_LIFE, monotonic_ns, serve};

/// Between two rounds a client has to be asleep, as one that waits for its work's end is.
const REST: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["agent", "--socket", socket] => match serve(Path::new(socket))? {},
        ["reach", rule, times] => reach(rule.parse()?, times.parse()?),
        _ => Err("usage: host_agent agent --socket PATH | reach RULE TIMES".into()),
    }
}

/// Reaches the rule so many times, as operations 1 and on, and says when it was let go on.
fn reach(rule: u32, times: u64) -> Result<(), Box<dyn Error>> {
    let mut agent = Agent::connect(Path::new(&std::env::var(ENV_AGENT)?))?;
    println!("life {}", std::env::var(ENV_LIFE)?);
    for op in 1..=times {
        thread::sleep(REST);
        let reached_ns = monotonic_ns();
        agent.reached(rule, reached_ns, reached_ns, op)?;
        println!("passed {op}");
    }
    Ok(())
}
