//! Redis, one server alone, which keeps nothing on disk: after a crash it starts empty.

use super::{ASK_TIMEOUT, Member, SERVER, Service, ask, clock, command, odd};
use crate::Error;
use crate::agent::Agent;

/// Redis.
pub struct Redis;

const CLI: &str = "redis-cli";

impl Service for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn port(&self) -> u16 {
        6379
    }

    fn start(&self, agent: &mut Agent, _me: &Member, _all: &[Member]) -> Result<(), Error> {
        clock::prepare(agent)?;
        let mut server = command(&["redis-server"]);
        for (name, value) in [
            ("--bind", "0.0.0.0"),
            ("--protected-mode", "no"),
            ("--save", ""),
            ("--appendonly", "no"),
            ("--dir", "/data"),
        ] {
            server.argv.extend([name.to_owned(), value.to_owned()]);
        }
        server.env = clock::environment();
        agent.start(SERVER, server)?;
        Ok(())
    }

    fn ready(&self, agent: &mut Agent) -> Result<bool, Error> {
        let ran = agent.run([CLI, "ping"], ASK_TIMEOUT)?;
        Ok(ran.stdout.trim() == "PONG")
    }

    fn version(&self, agent: &mut Agent) -> Result<String, Error> {
        let argv = [CLI, "info", "server"];
        let answer = ask(self, agent, &argv)?;
        let version = answer
            .lines()
            .find_map(|line| line.strip_prefix("redis_version:"));
        version
            .map(|version| version.trim().to_owned())
            .ok_or_else(|| odd(self, agent, &argv, &answer))
    }

    fn wall_clock_ns(&self, agent: &mut Agent) -> Result<u128, Error> {
        let argv = [CLI, "time"];
        let answer = ask(self, agent, &argv)?;
        // Two lines: whole seconds, and the microseconds of the running one.
        let parsed = answer.split_once('\n').and_then(|(seconds, micros)| {
            let seconds: u128 = seconds.trim().parse().ok()?;
            let micros: u128 = micros.trim().parse().ok()?;
            Some(seconds * 1_000_000_000 + micros * 1_000)
        });
        parsed.ok_or_else(|| odd(self, agent, &argv, &answer))
    }
}
