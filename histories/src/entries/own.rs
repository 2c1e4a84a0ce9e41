//! Our own histories, as a checker of sequential models sees them.

mod grants;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::BufRead;

use self::grants::Grants;
use super::{Entry, Value};
use crate::error::{Place, ReadError};
use crate::line::Source;
use crate::reader::{Ending, Glance, Reader};
use crate::{Event, Function, Header, Kind};

/// Streams what clients did to locks and documents, and if that is asked for, what else tells how long they held a lock.
pub(crate) struct Own<R: BufRead> {
    reader: Reader<R>,
    grants: Grants,
    tells_holds: bool,
    /// Entries that come from the event that was read last.
    behind: VecDeque<Entry<'static>>,
}

impl<R: BufRead> Own<R> {
    pub(crate) fn start(source: Source<R>) -> Result<Self, ReadError> {
        Ok(Own {
            reader: Reader::start(source)?,
            grants: Grants::default(),
            tells_holds: false,
            behind: VecDeque::new(),
        })
    }

    /// Tells of holds, too.
    pub(crate) fn tell_holds(&mut self) {
        self.tells_holds = true;
    }

    pub(crate) fn header(&self) -> &Header {
        self.reader.header()
    }

    pub(crate) fn ending(&self) -> Option<Ending> {
        self.reader.ending()
    }

    pub(crate) fn line(&self) -> u64 {
        self.reader.line()
    }

    pub(crate) fn place(&self) -> Place {
        self.reader.place()
    }

    /// Where the record does not fit itself, as far as that was seen.
    pub(crate) fn flaw(&self) -> Option<&str> {
        self.grants.flaw()
    }

    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        loop {
            if let Some(entry) = self.behind.pop_front() {
                return Ok(Some(entry));
            }
            let holds = self.tells_holds;
            let wanted = |f| is_operation(f) || (holds && is_about_holds(f));
            match self.reader.seek(wanted)? {
                None => return Ok(None),
                Some(Glance::Is(f)) if is_operation(f) => return self.operation(),
                Some(_) => self.remark()?,
            }
        }
    }

    /// The operation that was found.
    fn operation(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        let Some(event) = self.reader.event()? else {
            return Ok(None);
        };
        let holds = self.tells_holds.then_some(&mut self.behind);
        Ok(Some(operation(event, &mut self.grants, holds)))
    }

    /// What the event that was found tells beside operations.
    fn remark(&mut self) -> Result<(), ReadError> {
        let Some(mut event) = self.reader.event()? else {
            return Ok(());
        };
        if is_operation(event.f) {
            let holds = self.tells_holds.then_some(&mut self.behind);
            let entry = operation(event.into_owned(), &mut self.grants, holds);
            self.behind.push_front(entry);
        } else if self.tells_holds {
            self.grants.remark(&mut event, &mut self.behind);
        }
        Ok(())
    }
}

/// Whether a function does something to a lock or to a document.
fn is_operation(f: Function) -> bool {
    use Function::*;
    matches!(f, Acquire | Extend | Release | Read | Write)
}

/// Whether a function may tell that a hold ended, or goes on, without an operation that says so.
fn is_about_holds(f: Function) -> bool {
    use Function::*;
    matches!(f, Held | Lost | Renewed | Exit | Inject)
}

/// An operation's entry. `holds` gets what else its event tells of holds.
fn operation<'a>(
    mut event: Event<'a>,
    grants: &mut Grants,
    holds: Option<&mut VecDeque<Entry<'static>>>,
) -> Entry<'a> {
    if let Some(holds) = holds {
        grants.tell(&mut event, holds);
    }
    let key = match event.f {
        Function::Read | Function::Write => event.document.take(),
        _ => grants.lock_of(&mut event),
    };
    entry(event, key)
}

fn entry<'a>(event: Event<'a>, key: Option<Cow<'a, str>>) -> Entry<'a> {
    let value = match (event.f, event.kind) {
        // An untouched document has the empty value.
        (Function::Read, Kind::Ok) => Value::Text(event.value.unwrap_or_default()),
        (Function::Write, Kind::Invoke) => event.value.map_or(Value::Nil, Value::Text),
        _ => Value::Nil,
    };
    Entry {
        line: 0,
        time: Some(event.t),
        process: event.process,
        op: Some(event.op),
        kind: event.kind,
        f: event.f.name().into(),
        key: key.map(Value::Text),
        value,
        token: event.token,
        validity: event.validity,
        grant: event.grant,
        error: event.error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Entries;

    /// A history of these lines after a header.
    pub(super) fn history(lines: &[&str]) -> String {
        let saved = include_str!("../../corpus/v1/paused-client.jsonl");
        let header = saved.lines().next().unwrap();
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        format!("{header}\n{lines}")
    }

    /// `(op, f, key, value)` of each entry, the latter as EDN, and where each stands.
    fn read(text: &str) -> Vec<(u64, String, String, String, u64)> {
        let mut entries = Entries::new(text.as_bytes()).unwrap();
        let mut read = Vec::new();
        while let Some(entry) = entries.next().unwrap() {
            let key = entry.key.as_ref().map_or(String::new(), Value::to_string);
            let (op, f, value) = (
                entry.op.unwrap(),
                entry.f.to_string(),
                entry.value.to_string(),
            );
            read.push((op, f, key, value, entries.line()));
        }
        read
    }

    #[test]
    fn a_lock_is_that_of_the_grant_where_an_event_tells_the_grant_alone() {
        let text = history(&[
            r#"{"t":1,"process":"c1","op":1,"type":"invoke","f":"acquire","lock":"a"}"#,
            r#"{"t":1,"process":"c2","op":2,"type":"invoke","f":"acquire","lock":"b"}"#,
            r#"{"t":2,"process":"c1","op":1,"type":"ok","f":"acquire","token":7,"validity":9}"#,
            r#"{"t":2,"process":"c2","op":2,"type":"fail","f":"acquire","error":"busy"}"#,
            r#"{"t":3,"process":"c1","op":3,"type":"invoke","f":"extend","grant":1}"#,
            r#"{"t":3,"process":"c1","op":4,"type":"invoke","f":"held","lock":"a","grant":1}"#,
            r#"{"t":4,"process":"c1","op":5,"type":"ok","f":"release","grant":1}"#,
            r#"{"t":4,"process":"c1","op":6,"type":"ok","f":"release","grant":1}"#,
            r#"{"t":5,"process":"c2","op":7,"type":"ok","f":"extend","grant":2}"#,
        ]);
        let keys: Vec<_> = read(&text)
            .into_iter()
            .map(|(op, _, key, _, line)| (op, key, line))
            .collect();
        let expected = [
            (1, "a", 2),
            (2, "b", 3),
            (1, "a", 4),
            (2, "b", 5),
            (3, "a", 6),
            (5, "a", 8),
            (6, "", 9),
            (7, "", 10),
        ];
        let quoted = |key: &str| match key {
            "" => String::new(),
            key => format!("\"{key}\""),
        };
        let expected = expected.map(|(op, key, line)| (op, quoted(key), line));
        assert_eq!(keys, expected);
    }

    /// `(time, process, f, kind, grant, validity)` of each entry that tells of a hold.
    fn holds(lines: &[&str]) -> Vec<String> {
        let text = history(lines);
        let mut entries = Entries::new(text.as_bytes()).unwrap().with_holds();
        let mut read = Vec::new();
        while let Some(entry) = entries.next().unwrap() {
            let (grant, validity) = (entry.grant.unwrap_or(0), entry.validity.unwrap_or(0));
            let (time, kind) = (entry.time.unwrap(), entry.kind.name());
            let Entry { process, f, .. } = entry;
            read.push(format!("{time} {process} {f} {kind} {grant} {validity}"));
        }
        read
    }

    const GRANTED: [&str; 2] = [
        r#"{"t":1,"process":"c1","op":1,"type":"invoke","f":"acquire","lock":"a"}"#,
        r#"{"t":2,"process":"c1","op":1,"type":"ok","f":"acquire","validity":90}"#,
    ];

    #[test]
    fn what_ends_a_hold_is_told_at_its_instant() {
        for (lines, told) in [
            (
                r#"{"t":5,"process":"c1","op":2,"type":"info","f":"lost","grant":1}"#,
                "5 c1 lost info 1 0",
            ),
            (
                r#"{"t":5,"process":"c1","op":2,"type":"info","f":"renewed","grant":1,"validity":95}"#,
                "5 c1 renewed info 1 95",
            ),
            (
                r#"{"t":5,"process":"c1","op":2,"type":"info","f":"exit"}"#,
                "5 c1 lost info 1 0",
            ),
            (
                r#"{"t":5,"process":"nemesis","op":2,"type":"invoke","f":"inject","on":["c1"],"does":[{"effect":"restarts"}]}"#,
                "5 c1 lost info 1 0",
            ),
            (
                r#"{"t":4,"process":"c1","op":2,"type":"invoke","f":"held","grant":1}
{"t":5,"process":"c1","op":2,"type":"ok","f":"held","held":false}"#,
                "5 c1 lost info 1 0",
            ),
            (
                r#"{"t":4,"process":"c1","op":2,"type":"invoke","f":"write","document":"d","grant":1}
{"t":5,"process":"c1","op":2,"type":"fail","f":"write","document":"d","error":"rejected"}"#,
                "5 c1 lost info 1 0",
            ),
            (
                r#"{"t":4,"process":"c1","op":2,"type":"invoke","f":"extend","grant":1,"ttl_ms":1}
{"t":5,"process":"c1","op":2,"type":"fail","f":"extend","lost":true}"#,
                "5 c1 lost info 1 0",
            ),
            (
                r#"{"t":4,"process":"c1","op":2,"type":"invoke","f":"release","grant":1}
{"t":5,"process":"c1","op":2,"type":"fail","f":"release","lost":true}"#,
                "5 c1 release info 0 0",
            ),
        ] {
            let found = holds(&[GRANTED[0], GRANTED[1], lines]);
            assert_eq!(found.last().unwrap(), told, "{lines}");
        }
    }

    #[test]
    fn what_ends_no_hold_is_not_told() {
        for lines in [
            r#"{"t":5,"process":"c2","op":2,"type":"info","f":"exit"}"#,
            r#"{"t":5,"process":"c1","op":2,"type":"info","f":"lost","grant":7}"#,
            r#"{"t":5,"process":"nemesis","op":2,"type":"invoke","f":"inject","on":["c1"],"does":[{"effect":"stops"}]}"#,
            r#"{"t":5,"process":"nemesis","op":2,"type":"invoke","f":"inject","on":["s1"],"does":[{"effect":"kills"}]}"#,
            r#"{"t":5,"process":"c1","op":2,"type":"ok","f":"held","grant":1,"held":true}"#,
        ] {
            assert_eq!(holds(&[GRANTED[0], GRANTED[1], lines]).len(), 2, "{lines}");
        }
        let extend =
            r#"{"t":5,"process":"c1","op":2,"type":"invoke","f":"extend","grant":1,"ttl_ms":1}"#;
        let found = holds(&[GRANTED[0], GRANTED[1], extend]);
        assert_eq!(found.last().unwrap(), "5 c1 extend invoke 1 1000005");
    }

    #[test]
    fn an_operation_that_names_another_lock_than_its_grant_is_a_flaw() {
        let release =
            r#"{"t":5,"process":"c1","op":2,"type":"invoke","f":"release","grant":1,"lock":"b"}"#;
        let text = history(&[GRANTED[0], GRANTED[1], release]);
        let mut entries = Entries::new(text.as_bytes()).unwrap();
        while entries.next().unwrap().is_some() {}
        let flaw = entries.flaw().expect("a flaw");
        assert!(
            flaw.contains("op 2 (release of c1) names the lock \"b\""),
            "{flaw}"
        );
    }

    #[test]
    fn reads_and_writes_have_the_value_that_is_known() {
        let text = history(&[
            r#"{"t":1,"process":"c1","op":1,"type":"invoke","f":"read","document":"d"}"#,
            r#"{"t":2,"process":"c1","op":1,"type":"ok","f":"read","document":"d","version":0,"value":""}"#,
            r#"{"t":3,"process":"c1","op":2,"type":"ok", "f":"read","document":"d"}"#,
            r#"{"t":4,"process":"c1","op":3,"type":"invoke","f":"write","document":"d","value":"c1-\u0031"}"#,
            r#"{"t":5,"process":"c1","op":3,"type":"ok","f":"write","document":"d","value":"c1-1"}"#,
            r#"{"t":5,"process":"c1","op":4,"type":"fail","f":"read","document":"d","error":"lost"}"#,
            r#"{"t":6,"process":"storage","op":3,"type":"ok","f":"accepted","document":"d","value":"c1-1"}"#,
        ]);
        let values: Vec<_> = read(&text).into_iter().map(|read| read.3).collect();
        assert_eq!(values, ["nil", "\"\"", "\"\"", "\"c1-1\"", "nil", "nil"]);
    }

    #[test]
    fn events_that_are_left_out_are_read_all_the_same() {
        let work = r#"{"t":1,"process":"c1","op":1,"type":"invoke","f":"work","grant":1}"#;
        let read = r#"{"t":1,"process":"c1","op":2,"type":"invoke","f":"read","document":"d"}"#;
        let text = history(&[work, read, work, r#"{"events":3}"#]);
        let mut entries = Entries::new(text.as_bytes()).unwrap();
        assert_eq!(entries.next().unwrap().unwrap().op, Some(2));
        assert!(entries.next().unwrap().is_none());
        assert_eq!(entries.ending(), Some(Ending::Complete { events: 3 }));
        let broken = history(&[&work.replace("grant\":1", "grant\":x"), read]);
        let error = Entries::new(broken.as_bytes()).unwrap().next().unwrap_err();
        assert!(
            error.to_string().starts_with("line 2, column 65"),
            "{error}"
        );
    }

    #[test]
    fn an_unsealed_history_may_go_back_in_time() {
        let at =
            |t: u64| format!(r#"{{"t":{t},"process":"c1","op":{t},"type":"invoke","f":"read"}}"#);
        let text = history(&[&at(1), &at(3), &at(3), &at(2), &at(4)]);
        let mut entries = Entries::new(text.as_bytes()).unwrap();
        let mut sorted = Vec::new();
        while entries.next().unwrap().is_some() {
            sorted.push(entries.is_sorted());
        }
        assert_eq!(sorted, [true, true, true, false, false]);
    }
}
