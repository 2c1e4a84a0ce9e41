//! What a person is told of a host that ended in the middle: how, and what it wrote last.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use containers::site::{End, Ended, Host};
use containers::{Engine, Error};

/// How much of a log is read for its last lines, in bytes.
const TAIL: u64 = 4096;

/// How many lines of a log are told.
const LINES: usize = 5;

/// The error of a run that lost a host; `log` is the log of what the host was there for.
pub async fn host_ended(end: &End, host: &Host, log: &Path, engine: &Engine) -> Error {
    const UNPLANNED: &str = "and no fault of the plan did that";
    let is_gone = end.ended == Ended::Host;
    let container = host.container_state(engine, is_gone).await;
    let how = &end.how;
    let how = match &end.ended {
        Ended::Process { name, .. } => format!("its {name} ended ({how}), {UNPLANNED}{container}"),
        Ended::Touched => format!("{how}, {UNPLANNED}"),
        Ended::Host => format!("{how}{container}"),
    };
    Error::HostEnded {
        host: end.host.clone(),
        how,
        log: last_words(log),
    }
}

/// The last lines of a log, as the end of a message.
fn last_words(log: &Path) -> String {
    match tail(log) {
        Ok(text) if text.trim().is_empty() => {
            format!("; it wrote nothing to {} in this run", log.display())
        }
        Ok(text) => {
            let lines: Vec<&str> = text.trim_end().lines().collect();
            let last: Vec<String> = lines[lines.len().saturating_sub(LINES)..]
                .iter()
                .map(|line| format!("\n    {}", printable(line)))
                .collect();
            format!("; the last lines of {}:{}", log.display(), last.concat())
        }
        Err(error) => format!("; its log {} cannot be read: {error}", log.display()),
    }
}

fn tail(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A line that a terminal shows and does not obey.
fn printable(line: &str) -> String {
    let shown = |letter: char| match letter {
        '\t' => ' ',
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    };
    line.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_and_no_terminal_obeys_them() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("server.log");
        let lines: String = (1..=2_000).map(|line| format!("line {line}\n")).collect();
        std::fs::write(&log, lines + "\x1b[2Jgone\r\x07\n").unwrap();
        let told = last_words(&log);
        assert!(
            told.ends_with(":\n    line 1997\n    line 1998\n    line 1999\n    line 2000\n    \u{fffd}[2Jgone\u{fffd}\u{fffd}"),
            "{told}"
        );
    }

    #[test]
    fn a_log_with_nothing_in_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("server.log");
        assert!(last_words(&log).contains("cannot be read"));
        std::fs::write(&log, "").unwrap();
        assert!(last_words(&log).starts_with("; it wrote nothing to "));
    }
}
