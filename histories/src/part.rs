//! What one process recorded by itself, and the order of all that several did.

use std::path::Path;

use crate::Event;
use crate::error::ReadError;
use crate::line::{self, Found, Source};

/// The events that one process wrote to a file of its own: one a line, without header or footer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// What it wrote, in its order.
    pub events: Vec<Event<'static>>,
    /// Whether a last line was dropped since it was not whole: the process was killed while it wrote.
    pub cut: bool,
}

/// Reads a part file, plain or compressed. An empty file is a part without events.
///
/// # Errors
/// [`ReadError::Io`] when it is not there; otherwise the errors that [`Reader::next`](crate::Reader::next) has for lines.
pub fn read_part(path: impl AsRef<Path>) -> Result<Part, ReadError> {
    let mut source = Source::open(path.as_ref())?;
    let (mut part, mut line) = (Part::default(), Vec::new());
    loop {
        match source.read_line(&mut line)? {
            Found::Line => {}
            Found::Cut(_) => {
                part.cut = true;
                return Ok(part);
            }
            Found::End => return Ok(part),
        }
        match line::event(source.text(&line)?) {
            Ok(event) => part.events.push(event.into_owned()),
            Err(error) if error.is_eof() && source.is_at_end()? => part.cut = true,
            Err(error) => return Err(source.broken(&error)),
        }
    }
}

/// Puts the events of several sources into one order, that of their times.
///
/// Events of the same time keep the order of their source, and sources the order in which they are given: an invocation
/// stays before its completion, and a completion before the next invocation of its process. Sources that are sorted
/// already, or nearly so, take time in proportion to their length (the standard library's stable sort merges the runs
/// that it finds).
pub fn merge<'a>(sources: impl IntoIterator<Item = Vec<Event<'a>>>) -> Vec<Event<'a>> {
    let mut events: Vec<_> = sources.into_iter().flatten().collect();
    events.sort_by_key(|event| event.t);
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Function, Kind};

    fn event(t: u64, process: &'static str, kind: Kind) -> Event<'static> {
        Event::new(t, process, 7, kind, Function::Read)
    }

    fn part(text: &[u8]) -> Result<Part, ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c1.jsonl");
        std::fs::write(&path, text).unwrap();
        read_part(&path)
    }

    #[test]
    fn a_part_may_be_empty_or_cut_but_not_broken() {
        let events = vec![event(1, "c1", Kind::Invoke), event(2, "c1", Kind::Ok)];
        let text: String = events
            .iter()
            .map(|event| serde_json::to_string(event).unwrap() + "\n")
            .collect();
        let whole = Part { events, cut: false };
        assert_eq!(part(b"").unwrap(), Part::default());
        assert_eq!(part(text.as_bytes()).unwrap(), whole);
        let cut = Part { cut: true, ..whole };
        assert_eq!(part((text.clone() + "{\"t\"").as_bytes()).unwrap(), cut);
        assert_eq!(part((text.clone() + "{\"t\"\n").as_bytes()).unwrap(), cut);
        let broken = part((text.clone() + "{\"t\"\n" + &text).as_bytes()).unwrap_err();
        assert_eq!(broken.place().line, 3);
        assert!(broken.place().path.is_some());
        assert!(matches!(read_part("/nowhere"), Err(ReadError::Io { .. })));
    }

    #[test]
    fn a_client_s_next_invocation_stays_after_its_completion_of_the_same_time() {
        let c1 = vec![
            event(1, "c1", Kind::Invoke),
            event(5, "c1", Kind::Ok),
            event(5, "c1", Kind::Invoke),
        ];
        let c2 = vec![
            event(5, "c2", Kind::Invoke),
            event(4, "c2", Kind::Info),
            event(5, "c2", Kind::Ok),
        ];
        let merged = merge([c1, c2]);
        let order: Vec<_> = merged
            .iter()
            .map(|event| (event.t, &*event.process, event.kind))
            .collect();
        assert_eq!(
            order,
            [
                (1, "c1", Kind::Invoke),
                (4, "c2", Kind::Info),
                (5, "c1", Kind::Ok),
                (5, "c1", Kind::Invoke),
                (5, "c2", Kind::Invoke),
                (5, "c2", Kind::Ok),
            ]
        );
    }
}
