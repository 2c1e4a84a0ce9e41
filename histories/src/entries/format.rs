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
    let rest = significant(start, ended)?;
    let told = match rest {
        [] if ended && start.iter().all(u8::is_ascii_whitespace) => {
            return Some(Err("there is nothing in it but white"));
        }
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
        Told::Nothing if ended && start.starts_with("\u{feff}".as_bytes()) => Some(Err(
            "it begins with a byte order mark, which is of no format that is known: take that away",
        )),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_format_however_few_come_at_a_time() {
        use Format::*;
        for (start, expected) in [
            ("{\"fencepost\":1}", Some(Fencepost)),
            (" {\n\"fencepost\":1}", Some(Fencepost)),
            ("{:process 0}", Some(Jepsen)),
            ("{}", Some(Jepsen)),
            ("; {\"a\n ,, { ; x\n :process 0}", Some(Jepsen)),
            ("[", Some(Jepsen)),
            ("(\n{:process 0}", Some(Jepsen)),
            ("[;a\n#jepsen.history.Op{}", Some(Jepsen)),
            ("#jepsen.history.Op{}", Some(Jepsen)),
            ("#_ {} {}", Some(Jepsen)),
            ("; no operation", Some(Jepsen)),
            ("INFO  jepsen.util - 0", Some(PorcupineEtcd)),
            ("[main] x\n{ INFO  jepsen.util - 0", Some(PorcupineEtcd)),
            ("# log\nINFO  jepsen.util - 0", Some(PorcupineEtcd)),
            ("INFO  jepsen.core - 0", None),
            ("[2020-01-01]", None),
            ("# heading", None),
            ("{1 2}", None),
            ("{", None),
            ("\u{feff}x", None),
        ] {
            let bytes = start.as_bytes();
            let decided = (0..=bytes.len())
                .map(|length| of_start(&bytes[..length], length == bytes.len()))
                .find_map(|told| told);
            let told = decided.expect("a decision at the end");
            assert_eq!(told.ok(), expected, "{start}");
            let at_once = of_start(bytes, true).expect("a decision at the end");
            assert_eq!(at_once.ok(), expected, "{start}");
        }
        let long = "x".repeat(FARTHEST);
        assert!(matches!(of_start(long.as_bytes(), false), Some(Err(_))));
    }
}
