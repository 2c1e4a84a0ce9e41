//! Starting a program as the leader of a session of its own.

use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::process::{Command as Program, Stdio};

use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::setsid;

use super::protocol::Command;

/// By this name a command means our own program.
const OURSELVES: &str = "fencepost";

/// Starts programs, our own among them.
pub struct Spawner {
    /// What starts our own program: itself, or its loader with what that needs.
    ourselves: Vec<String>,
}

impl Spawner {
    /// Finds out how this process was started. The kernel's record of it begins with the loader where one was named, our
    /// own view of it with our program.
    pub fn new() -> io::Result<Spawner> {
        let recorded = std::fs::read("/proc/self/cmdline")?;
        let whole: Vec<String> = String::from_utf8_lossy(&recorded)
            .split_terminator('\0')
            .map(str::to_owned)
            .collect();
        let arguments = std::env::args_os().len().saturating_sub(1);
        let prefix = whole.len().saturating_sub(arguments);
        let ourselves = match prefix {
            0 | 1 => vec![std::env::current_exe()?.display().to_string()],
            _ => whole[..prefix].to_vec(),
        };
        Ok(Spawner { ourselves })
    }

    /// Starts a command with its output going to the two pipes, and with more in its environment. The caller reaps it.
    pub fn start(
        &self,
        command: &Command,
        more: &[(&str, String)],
        stdout: PipeWriter,
        stderr: PipeWriter,
    ) -> io::Result<i32> {
        let argv = self.argv(command)?;
        // With another user, it is part of the arguments.
        let environment = command.env.iter().filter(|_| command.user.is_none());
        let mut program = Program::new(&argv[0]);
        program
            .args(&argv[1..])
            .envs(environment)
            .envs(more.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr);
        begin_session(&mut program);
        match program.spawn() {
            Ok(child) => Ok(child.id() as i32),
            Err(error) => Err(io::Error::new(
                error.kind(),
                format!("cannot start `{}`: {error}", argv.join(" ")),
            )),
        }
    }

    fn argv(&self, command: &Command) -> io::Result<Vec<String>> {
        let Some((program, arguments)) = command.argv.split_first() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the command is empty",
            ));
        };
        let mut argv = Vec::new();
        if let Some(user) = &command.user {
            let change = [
                "setpriv",
                "--reuid",
                user,
                "--regid",
                user,
                "--init-groups",
                "--",
                "env",
            ];
            argv.extend(change.map(str::to_owned));
            // Not for root's eyes: what libfaketime makes in a process of root, which it does before the change, it may
            // not open afterwards, and then waits for itself for ever.
            argv.extend(
                command
                    .env
                    .iter()
                    .map(|(name, value)| format!("{name}={value}")),
            );
        }
        if program == OURSELVES {
            argv.extend_from_slice(&self.ourselves);
        } else {
            argv.push(program.clone());
        }
        argv.extend_from_slice(arguments);
        Ok(argv)
    }
}

#[expect(
    unsafe_code,
    reason = "only the child itself can begin a session and unblock its signals"
)]
fn begin_session(program: &mut Program) {
    let begin = || {
        setsid()?;
        // The agent waits for its signals with all of them blocked, and a blocked signal stays so through exec.
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(())
    };
    // SAFETY: between fork and exec only what is async-signal-safe may be done: both are single system calls, and the
    // conversion of their error allocates nothing.
    unsafe { program.pre_exec(begin) };
}
