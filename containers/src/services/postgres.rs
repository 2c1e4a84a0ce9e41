//! Postgres, one server alone, whose data directory is a copy of the template in the image, on a tmpfs.
//!
//! Clients come in as user [`USER`] to database [`DATABASE`], without a password.

use std::time::Duration;

use super::{ASK_TIMEOUT, Member, SERVER, Service, ask, ask_within, clock, command, odd};
use crate::Error;
use crate::agent::Agent;

/// Postgres.
pub struct Postgres;

/// As whom clients come in; the superuser.
pub const USER: &str = "postgres";

/// The database that clients use.
pub const DATABASE: &str = "postgres";

/// Where the image keeps a data directory that initdb made.
const TEMPLATE: &str = "/usr/lib/fencepost/postgres-template";

/// The server's data directory in its host.
const DATA: &str = "/data/postgres";

/// What its log says when somebody has ended the server, a session or a statement by hand, which nothing here does: faults
/// kill.
const ALARMS: [&str; 3] = [
    "shutdown request",
    "due to administrator command",
    "canceling statement due to user request",
];

/// How long the copy of the template may take; 0.1 s is usual.
const COPY_TIMEOUT: Duration = Duration::from_secs(60);

impl Service for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn port(&self) -> u16 {
        5432
    }

    fn start(&self, agent: &mut Agent, _me: &Member, _all: &[Member]) -> Result<(), Error> {
        clock::prepare(agent)?;
        ask_within(
            COPY_TIMEOUT,
            self,
            agent,
            &["cp", "--archive", TEMPLATE, DATA],
        )?;
        // Else it starts its processes anew when somebody kills one of them: it would go through a crash, and only its log
        // would tell.
        let ends = "restart_after_crash=off";
        let mut server = command(&["postgres", "-D", DATA, "-c", ends]);
        server.env = clock::environment();
        server.user = Some(USER.to_owned());
        server.alarms = ALARMS.map(str::to_owned).to_vec();
        agent.start(SERVER, server)?;
        Ok(())
    }

    fn ready(&self, agent: &mut Agent) -> Result<bool, Error> {
        let ran = agent.run(psql("select 1"), ASK_TIMEOUT)?;
        Ok(ran.code == Some(0) && ran.stdout.trim() == "1")
    }

    fn version(&self, agent: &mut Agent) -> Result<String, Error> {
        let argv = psql("show server_version");
        let answer = ask(self, agent, &argv)?;
        // `17.6 (Debian 17.6-0+deb13u1)`: the distribution's own number is no part of the version.
        let version = answer.split_whitespace().next().map(str::to_owned);
        version.ok_or_else(|| odd(self, agent, &argv, &answer))
    }

    fn wall_clock_ns(&self, agent: &mut Agent) -> Result<u128, Error> {
        let argv =
            psql("select (extract(epoch from clock_timestamp()) * 1000000000)::numeric(30, 0)");
        let answer = ask(self, agent, &argv)?;
        answer.parse().map_err(|_| odd(self, agent, &argv, &answer))
    }
}

/// psql over the loopback, so that no fault of the network touches it; only the answer is written.
fn psql(statement: &str) -> [&str; 11] {
    [
        "psql",
        "-X",
        "-q",
        "-A",
        "-t",
        "-h",
        "127.0.0.1",
        "-U",
        USER,
        "-c",
        statement,
    ]
}
