//! Writing entries as Jepsen's `history.edn`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::Write;

use super::{Entry, Value};
use crate::error::WriteError;
use crate::{Kind, visible};

/// Writes entries as maps of EDN, one a line, which Jepsen, Knossos and [`Entries`](super::Entries) read:
///
/// ```text
/// {:index 0, :time 31000355, :process 0, :type :invoke, :f :acquire, :value ["lock" {:client "c1"}]}
/// {:index 1, :time 31402274, :process 0, :type :ok, :f :acquire, :value ["lock" {:client "c1", :fence 3}]}
/// ```
///
/// - **Processes** are numbers to Jepsen, and each does one operation at a time, the last of which is one of unknown outcome.
///   A process that is a number keeps it; others get numbers in the order in which they appear. What a process does after an
///   `info`, or while an operation of its own goes on, is written under another number.
/// - **Keys** are written as Jepsen's independent keys: the value is `[key value]`.
/// - **Grants**: what our histories tell of `acquire`, `extend` and `release` is written as the map that the mutexes with owner
///   and with fence read, which Jepsen's tests of Hazelcast brought: `:client` is the process, and `:fence` the token.
pub struct Export<W: Write> {
    output: W,
    index: u64,
    line: Vec<u8>,
    /// What each process is called there now.
    numbers: HashMap<String, Vec<Number>>,
    taken: HashSet<u64>,
    /// A number above all that were taken.
    free: u64,
}

/// A process of Jepsen's.
struct Number {
    number: u64,
    /// Whether an operation goes on, and its number in our history, if it has one.
    busy: Option<Option<u64>>,
}

impl<W: Write> Export<W> {
    /// Begins with nothing: a history of no entries is an empty text. Give a buffered writer.
    pub fn new(output: W) -> Self {
        Export {
            output,
            index: 0,
            line: Vec::new(),
            numbers: HashMap::new(),
            taken: HashSet::new(),
            free: 0,
        }
    }

    /// Writes one entry; they have to come in the order of time.
    ///
    /// # Errors
    /// [`WriteError::Io`].
    pub fn write(&mut self, entry: &Entry<'_>) -> Result<(), WriteError> {
        let number = self.number(entry);
        let line = Line {
            index: self.index,
            number,
            entry,
        };
        self.line.clear();
        // Text with controls in it may go to a terminal; its escapes are those of EDN, too.
        writeln!(self.line, "{}", visible(&line.to_string()))
            .and_then(|()| self.output.write_all(&self.line))
            .map_err(|source| WriteError::Io { path: None, source })?;
        self.index += 1;
        Ok(())
    }

    /// Flushes, and gives back what was written to.
    ///
    /// # Errors
    /// [`WriteError::Io`].
    pub fn finish(mut self) -> Result<W, WriteError> {
        match self.output.flush() {
            Ok(()) => Ok(self.output),
            Err(source) => Err(WriteError::Io { path: None, source }),
        }
    }

    /// The number of the process that an entry is written under.
    fn number(&mut self, entry: &Entry<'_>) -> u64 {
        let known = self.numbers.get(&*entry.process);
        let known = known.map_or(&[][..], Vec::as_slice);
        let found = match entry.kind {
            Kind::Invoke => known.iter().position(|number| number.busy.is_none()),
            _ => known
                .iter()
                .position(|number| number.busy == Some(entry.op)),
        };
        let at = found.unwrap_or(known.len());
        if found.is_none() {
            let is_first = !self.numbers.contains_key(&*entry.process);
            let own = entry.process.parse().ok().filter(|_| is_first);
            let number = self.take(own);
            let numbers = self.numbers.entry(entry.process.to_string()).or_default();
            numbers.push(Number { number, busy: None });
        }
        let Some(numbers) = self.numbers.get_mut(&*entry.process) else {
            return self.free;
        };
        let number = numbers[at].number;
        match entry.kind {
            Kind::Invoke => numbers[at].busy = Some(entry.op),
            Kind::Ok | Kind::Fail => numbers[at].busy = None,
            Kind::Info => drop(numbers.remove(at)),
        }
        number
    }

    /// A number that no process has had, the wanted one if it is such.
    fn take(&mut self, wanted: Option<u64>) -> u64 {
        let wanted = wanted.filter(|number| *number < u64::MAX / 2 && !self.taken.contains(number));
        let number = wanted.unwrap_or(self.free);
        self.taken.insert(number);
        self.free = self.free.max(number + 1);
        number
    }
}

impl<W: Write> fmt::Debug for Export<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("entries", &self.index)
            .finish_non_exhaustive()
    }
}

/// An entry's line.
struct Line<'l, 'a> {
    index: u64,
    number: u64,
    entry: &'l Entry<'a>,
}

impl fmt::Display for Line<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.entry;
        write!(f, "{{:index {}", self.index)?;
        if let Some(time) = entry.time {
            write!(f, ", :time {time}")?;
        }
        write!(
            f,
            ", :process {}, :type :{}",
            self.number,
            entry.kind.name()
        )?;
        let f_name = Name(&entry.f);
        write!(f, ", :f {f_name}, :value ")?;
        match &entry.key {
            Some(key) => write!(f, "[{key} {}]", Grant(entry))?,
            None => write!(f, "{}", Grant(entry))?,
        }
        if let Some(error) = &entry.error {
            write!(f, ", :error {}", Value::Text(error.as_ref().into()))?;
        }
        f.write_str("}")
    }
}

/// A name as a keyword, or as a string where it can be none.
struct Name<'l>(&'l str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*+!?<>=/".contains(&byte);
        if !self.0.is_empty() && self.0.bytes().all(plain) {
            write!(f, ":{}", self.0)
        } else {
            write!(f, "{}", Value::Text(self.0.into()))
        }
    }
}

/// An entry's value, or what is known of its grant.
struct Grant<'l, 'a>(&'l Entry<'a>);

impl fmt::Display for Grant<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.0;
        // Only our histories number their operations, and others' acquires are left as they are.
        let ours = entry.op.is_some() && entry.value == Value::Nil;
        if !ours || !matches!(&*entry.f, "acquire" | "extend" | "release") {
            return write!(f, "{}", entry.value);
        }
        let client = Value::Text(entry.process.as_ref().into());
        write!(f, "{{:client {client}")?;
        for (name, number) in [("fence", entry.token), ("validity", entry.validity)] {
            if let Some(number) = number {
                write!(f, ", :{name} {number}")?;
            }
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Entries;

    fn entry(
        process: &'static str,
        op: Option<u64>,
        kind: Kind,
        f: &'static str,
    ) -> Entry<'static> {
        Entry {
            line: 0,
            time: None,
            process: process.into(),
            op,
            kind,
            f: f.into(),
            key: None,
            value: Value::Nil,
            token: None,
            validity: None,
            grant: None,
            error: None,
        }
    }

    fn export(entries: &[Entry<'_>]) -> String {
        let mut export = Export::new(Vec::new());
        for entry in entries {
            export.write(entry).unwrap();
        }
        String::from_utf8(export.finish().unwrap()).unwrap()
    }

    /// The numbers that reads of these processes are written under.
    fn numbers(entries: &[(&'static str, Option<u64>, Kind)]) -> Vec<u64> {
        let mut export = Export::new(Vec::new());
        entries
            .iter()
            .map(|(process, op, kind)| export.number(&entry(process, *op, *kind, "read")))
            .collect()
    }

    #[test]
    fn a_line_is_as_jepsen_writes_it() {
        let mut read = entry("7", None, Kind::Fail, "read");
        (read.time, read.value) = (Some(5), Value::Keyword("x".into()));
        read.key = Some(Value::Text("k\n".into()));
        read.error = Some("\"gone\"".into());
        let odd = entry("7", None, Kind::Invoke, "no name");
        let expected = r#"{:index 0, :time 5, :process 7, :type :fail, :f :read, :value ["k\n" :x], :error "\"gone\""}
{:index 1, :process 7, :type :invoke, :f "no name", :value nil}
"#;
        assert_eq!(export(&[read, odd]), expected);
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_reads_back() {
        let mut read = entry("7", None, Kind::Ok, "read");
        read.value = Value::Text("\x1b]0;x\x07\u{9b}\u{202e}".into());
        let text = export(&[read.clone()]);
        assert!(
            text.contains(r#":value "\u001b]0;x\u0007\u009b\u202e""#),
            "{text}"
        );
        let mut entries = Entries::new(text.as_bytes()).unwrap();
        assert_eq!(entries.next().unwrap().unwrap().value, read.value);
    }

    #[test]
    fn grants_are_maps_with_client_fence_and_validity() {
        let mut granted = entry("c1", Some(4), Kind::Ok, "acquire");
        (granted.token, granted.validity) = (Some(3), Some(90));
        let extend = entry("c1", Some(5), Kind::Invoke, "extend");
        let others = entry("0", None, Kind::Invoke, "acquire");
        let text = export(&[granted, extend, others]);
        let values: Vec<_> = text
            .lines()
            .map(|line| line.split_once(":value ").unwrap().1)
            .collect();
        assert_eq!(
            values,
            [
                "{:client \"c1\", :fence 3, :validity 90}}",
                "{:client \"c1\"}}",
                "nil}"
            ]
        );
    }

    #[test]
    fn a_process_that_goes_on_after_an_info_has_another_number() {
        use Kind::*;
        let named = [
            ("c1", None, Invoke),
            ("c2", None, Invoke),
            ("c1", None, Info),
            ("c2", None, Ok),
            ("c1", None, Invoke),
            ("c1", None, Fail),
            ("c1", None, Invoke),
            ("c2", None, Invoke),
            ("c1", None, Info),
            ("c1", None, Invoke),
        ];
        assert_eq!(numbers(&named), [0, 1, 0, 1, 2, 2, 2, 1, 2, 3]);
        let numbered = [
            ("4", None, Invoke),
            ("4", None, Info),
            ("4", None, Invoke),
            ("5", None, Invoke),
            ("4", None, Ok),
            ("4", None, Invoke),
            ("18446744073709551615", None, Invoke),
        ];
        assert_eq!(numbers(&numbered), [4, 4, 5, 6, 5, 5, 7]);
    }

    #[test]
    fn operations_of_a_process_at_the_same_time_have_numbers_of_their_own() {
        use Kind::*;
        let extends_while_it_writes = [
            ("c1", Some(1), Invoke),
            ("c1", Some(2), Invoke),
            ("c1", Some(1), Ok),
            ("c1", Some(3), Invoke),
            ("c1", Some(2), Info),
            ("c1", Some(3), Ok),
            ("c1", Some(4), Invoke),
            ("c1", Some(5), Invoke),
        ];
        assert_eq!(numbers(&extends_while_it_writes), [0, 1, 0, 0, 1, 0, 0, 2]);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let file = std::fs::File::create("/dev/full").unwrap();
        let mut export = Export::new(file);
        let error = export
            .write(&entry("c1", None, Kind::Invoke, "read"))
            .unwrap_err();
        assert!(matches!(error, WriteError::Io { path: None, .. }));
    }
}
