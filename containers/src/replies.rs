//! What Docker, or whatever answers in its place, said when something went wrong: one plain sentence of a sane length.

use std::error::Error as _;
use std::io;
use std::path::Path;

use bollard::errors::Error as Reply;

use crate::Error;
use crate::docker::{REQUEST_LIMIT, usual_address};
use crate::error::is_limit_of_files;

/// How much of somebody else's words stands in an error, in characters: their beginning, and their end, where the cause
/// often stands.
const BEGINNING: usize = 120;
const END: usize = 60;

/// What Docker said, without what the client puts around it.
pub(crate) fn words(reply: &Reply) -> String {
    match reply {
        Reply::DockerResponseServerError {
            status_code,
            message,
        } if message.trim().is_empty() => format!("it answered with status {status_code}"),
        Reply::DockerResponseServerError { message, .. } => in_short(message),
        Reply::DockerStreamError { error } => in_short(error),
        Reply::JsonDataError { message, .. } => unreadable(message),
        Reply::JsonSerdeError { err } => unreadable(&err.to_string()),
        reply if is_of_http(reply) => of_http(reply),
        Reply::RequestTimeoutError => "it did not answer in time".to_owned(),
        other => in_short(&innermost(other)),
    }
}

fn unreadable(why: &str) -> String {
    format!("its answer cannot be read ({})", in_short(why))
}

/// The error of a request in the middle that got no answer of Docker's, if this is one: the daemon is gone, does not answer
/// in time, or is none.
pub(crate) fn lost(doing: &str, reply: &Reply) -> Option<Error> {
    match reply {
        Reply::RequestTimeoutError => {
            return Some(Error::Slow {
                doing: doing.to_owned(),
                waited: REQUEST_LIMIT,
            });
        }
        Reply::JsonDataError { .. } | Reply::JsonSerdeError { .. } => {
            return Some(Error::NotDocker {
                address: usual_address(),
                reason: format!("{doing}: {}", words(reply)),
            });
        }
        _ => {}
    }
    let met = io_error(reply);
    if let Some(met) = met.filter(|met| is_limit_of_files(met)) {
        return Some(too_few(doing, met));
    }
    let reason = match met {
        Some(met) => of_connection(met),
        None if is_of_http(reply) => of_http(reply),
        None => return None,
    };
    Some(Error::Lost {
        doing: doing.to_owned(),
        reason,
        address: usual_address(),
    })
}

/// Why a daemon at this address cannot be used at all, by its first answers.
pub(crate) fn unusable(address: &str, reply: Reply) -> Error {
    let met = io_error(&reply);
    if let Some(met) = met.filter(|met| is_limit_of_files(met)) {
        return too_few("asking Docker for its version", met);
    }
    let address = address.to_owned();
    let reason = match (met, &reply) {
        (Some(met), _) if met.kind() == io::ErrorKind::PermissionDenied => {
            return Error::NoPermission { address };
        }
        (None, Reply::SocketNotFoundError(path)) => return missing(address, Path::new(path)),
        (Some(met), _) => of_connection(met),
        (None, reply) => complaint(reply),
    };
    // Where nothing listens there is no connection to be closed.
    match met.is_some() && reason != HUNG_UP {
        true => Error::NoDaemon { address, reason },
        false => Error::NotDocker { address, reason },
    }
}

/// What is wrong with an answer to a first question, which Docker answers without fail.
fn complaint(reply: &Reply) -> String {
    match reply {
        Reply::DockerResponseServerError {
            status_code,
            message,
        } if !message.trim().is_empty() => {
            format!(
                "it answered with status {status_code} ({})",
                in_short(message)
            )
        }
        reply => words(reply),
    }
}

/// A socket that does not show may be in a folder that this user may not look into.
fn missing(address: String, socket: &Path) -> Error {
    match socket.metadata().map_err(|error| error.kind()) {
        Err(io::ErrorKind::PermissionDenied) => Error::NoPermission { address },
        _ => Error::NoDaemon {
            address,
            reason: "no such socket".to_owned(),
        },
    }
}

/// The error of a connection for which this process may open no more files.
fn too_few(doing: &str, met: &io::Error) -> Error {
    Error::TooFewDescriptors {
        doing: doing.to_owned(),
        source: io::Error::new(met.kind(), met.to_string()),
    }
}

const HUNG_UP: &str = "it closed the connection";

fn of_connection(met: &io::Error) -> String {
    match met.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::NotFound => "no such socket".to_owned(),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => HUNG_UP.to_owned(),
        _ if is_hang_up(&met.to_string()) => HUNG_UP.to_owned(),
        _ => in_short(&met.to_string()),
    }
}

/// What the HTTP library has met, in plain words.
fn of_http(reply: &Reply) -> String {
    let said = innermost(reply);
    match is_hang_up(&said) {
        true => HUNG_UP.to_owned(),
        false => format!(
            "it does not speak HTTP as Docker does ({})",
            in_short(&said)
        ),
    }
}

/// Whether the HTTP library says of a connection that its other end closed it.
fn is_hang_up(said: &str) -> bool {
    let signs = [
        "connection closed",
        "connection error",
        "reading a body",
        "end of file",
    ];
    signs.iter().any(|sign| said.contains(sign))
}

fn is_of_http(reply: &Reply) -> bool {
    matches!(
        reply,
        Reply::HyperLegacyError { .. } | Reply::HyperResponseError { .. }
    )
}

/// The text of the cause of all causes.
fn innermost(reply: &Reply) -> String {
    let mut cause: &dyn std::error::Error = reply;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The system's error that an answer is or comes from, if any.
fn io_error(reply: &Reply) -> Option<&io::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = match reply {
        // Transparent: its own source is that of the error in it.
        Reply::IOError { err } => Some(err),
        reply => reply.source(),
    };
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}

/// A text in one line and of a sane length.
fn in_short(said: &str) -> String {
    let words: Vec<&str> = said.split_whitespace().collect();
    let letters: Vec<char> = words.join(" ").chars().collect();
    if letters.len() <= BEGINNING + END {
        return letters.iter().collect();
    }
    let (beginning, end) = (&letters[..BEGINNING], &letters[letters.len() - END..]);
    format!(
        "{} … {}",
        String::from_iter(beginning),
        String::from_iter(end)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_permission_says_how_to_get_it() {
        let denied = Reply::from(io::Error::from(io::ErrorKind::PermissionDenied));
        let error = unusable("unix:///var/run/docker.sock", denied);
        assert!(matches!(error, Error::NoPermission { .. }), "{error:?}");
        assert!(error.to_string().contains("usermod -aG docker"), "{error}");
    }

    #[test]
    fn long_words_keep_their_beginning_and_their_end_in_one_line() {
        assert_eq!(in_short(" two\n\tlines "), "two lines");
        let page = format!("<html>\n{}\nthe cause", "nothing ".repeat(10_000));
        let short = in_short(&page);
        assert!(short.starts_with("<html> nothing"), "{short}");
        assert!(short.ends_with("the cause"), "{short}");
        assert!(short.chars().count() < 300, "{short}");
    }
}
