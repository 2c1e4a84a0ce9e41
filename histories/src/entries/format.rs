//! The formats of histories, and how a file's first bytes tell them.

use super::porcupine::LOGGER;

/// How much of a file is looked at before it is said to be of no known format, in bytes: a log may begin with other
/// output.
const FARTHEST: usize = 64 << 10;

/// A format of histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Ours: a JSON object a line, with header and footer. Entries are what clients did to locks (`acquire`, `extend`,
    /// `release`; the key is the lock) and to documents (`read`, `write`; the key is the document).
    Fencepost,
    /// Jepsen's `history.edn`: a map an operation, in a vector, in a list, or one after another. Processes that are
    /// keywords (`:nemesis`) are no clients, and left out.
    Jepsen,
    /// Porcupine's logs of a map of strings: as Jepsen's, with `:key`.
    PorcupineKv,
    /// Porcupine's logs of a register in etcd: a line of Jepsen's logger an operation. Other lines are left out.
    PorcupineEtcd,
}

impl Format {
    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Fencepost => "fencepost",
            Format::Jepsen => "jepsen",
            Format::PorcupineKv => "porcupine-kv",
            Format::PorcupineEtcd => "porcupine-etcd",
        }
    }

    /// Whether a read that completed `ok` with nil says nothing of the object, and is legal in every state. It is so to
    /// Jepsen, whose models take it for a read whose value is not known. Elsewhere nil is a value like any other.
    pub fn nil_read_tells_nothing(self) -> bool {
        self == Format::Jepsen
    }
}

/// What a file is that begins so; as an error, why it is of no known format. `None` when more has to be seen.
pub(super) fn of_start(start: &[u8], ended: bool) -> Option<Result<Format, &'static str>> {
    let ended = ended || start.len() >= FARTHEST;
    let Some(rest) = significant(start, ended) else {
        return ended.then_some(Err("there is nothing in it but white and comments"));
    };
    let told = match rest {
        [] if start.is_empty() && ended => return Some(Err("it is empty")),
        [b'{', inner @ ..] => of_map(inner, ended),
        // Brackets that hold no map begin other logs, too.
        [b'[' | b'(', inner @ ..] => match significant(inner, ended) {
            Some([b'{', inner @ ..]) => of_map(inner, ended),
            Some([b'#' | b']' | b')', ..]) => Told::Format(Format::Jepsen),
            Some([]) | None if ended => Told::Format(Format::Jepsen),
            Some([_, ..]) => Told::Nothing,
            Some([]) | None => Told::Later,
        },
        [b'#', next, ..] if next.is_ascii_alphabetic() || *next == b'_' => {
            Told::Format(Format::Jepsen)
        }
        [] | [b'#'] if !ended => Told::Later,
        [] => Told::Format(Format::Jepsen),
        _ => Told::Nothing,
    };
    match told {
        Told::Format(format) => Some(Ok(format)),
        Told::Later => None,
        Told::Nothing if is_log(start) => Some(Ok(Format::PorcupineEtcd)),
        Told::Nothing if ended => Some(Err("it begins as none of the formats that are known")),
        Told::Nothing => None,
    }
}

/// What the first bytes tell.
enum Told {
    Format(Format),
    /// More of them would tell.
    Later,
    /// It is neither ours nor EDN.
    Nothing,
}

/// What a file is whose first bracket opens a map or an object: keys of ours are strings, and Jepsen's keywords.
fn of_map(inner: &[u8], ended: bool) -> Told {
    match significant(inner, ended) {
        Some([b'"', ..]) => Told::Format(Format::Fencepost),
        Some([b':' | b'#' | b'}', ..]) => Told::Format(Format::Jepsen),
        Some([]) | None if !ended => Told::Later,
        _ => Told::Nothing,
    }
}

/// What follows white and EDN's comments; `None` where a comment does not end.
fn significant(mut rest: &[u8], ended: bool) -> Option<&[u8]> {
    loop {
        rest = rest.trim_ascii_start();
        match rest {
            [b',', after @ ..] => rest = after,
            [b';', ..] => match rest.iter().position(|byte| *byte == b'\n') {
                Some(length) => rest = &rest[length..],
                None if ended => return Some(&[]),
                None => return None,
            },
            _ => return Some(rest),
        }
    }
}

fn is_log(start: &[u8]) -> bool {
    start
        .windows(LOGGER.len())
        .any(|window| window == LOGGER.as_bytes())
}
