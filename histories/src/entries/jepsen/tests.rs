//! What is made of Jepsen's histories, whole, cut and broken.

use std::borrow::Cow;
use std::io::BufReader;

use super::*;
use crate::Kind;
use crate::entries::{Entries, Format, Value};

fn read_with(
    text: impl AsRef<[u8]>,
    keys: Keys,
) -> Result<(Vec<Entry<'static>>, Ending), ReadError> {
    let mut entries = Entries::new(text.as_ref())?.with_keys(keys);
    let mut read = Vec::new();
    while let Some(entry) = entries.next()? {
        read.push(entry.into_owned());
    }
    Ok((read, entries.ending().unwrap()))
}

fn read(text: impl AsRef<[u8]>) -> (Vec<Entry<'static>>, Ending) {
    read_with(text, Keys::Guess).unwrap()
}

fn error(text: impl AsRef<[u8]>) -> String {
    read_with(text, Keys::Guess).unwrap_err().to_string()
}

fn value(text: &'static str) -> Value<'static> {
    Value::parse(text).unwrap()
}

/// What an operation is, wherever it stands.
fn anywhere(entries: Vec<Entry<'static>>) -> Vec<Entry<'static>> {
    let nowhere = |entry| Entry { line: 0, ..entry };
    entries.into_iter().map(nowhere).collect()
}

/// `(key, value)` of each entry, as EDN.
fn values(entries: &[Entry<'_>]) -> Vec<(Option<String>, String)> {
    entries
        .iter()
        .map(|entry| {
            (
                entry.key.as_ref().map(Value::to_string),
                entry.value.to_string(),
            )
        })
        .collect()
}

const TWO: &str = "{:process 0, :type :invoke, :f :read, :value nil, :time 12, :index 0}\n\
     {:process 0, :type :ok, :f :read, :value 3, :time 15, :index 1, :error nil}\n";

#[test]
fn all_parts_of_an_operation() {
    let (entries, ending) = read(TWO);
    assert_eq!(ending, Ending::Complete { events: 2 });
    let entry = Entry {
        line: 2,
        time: Some(15),
        process: "0".into(),
        op: None,
        kind: Kind::Ok,
        f: "read".into(),
        key: None,
        value: Value::Integer(3),
        token: None,
        validity: None,
        grant: None,
        error: None,
    };
    assert_eq!(entries[1], entry);
    assert_eq!((entries[0].kind, entries[0].time), (Kind::Invoke, Some(12)));

    let other = "#jepsen.history.Op {\"process\" \"c1\" :type \"info\" :f cas\n, :value (1 2) :time -1 \
         :error [:timeout \"x\"] :extra {:value 7}}";
    let (entries, _) = read(other);
    let entry = &entries[0];
    assert_eq!(
        (&*entry.process, entry.kind, &*entry.f),
        ("c1", Kind::Info, "cas")
    );
    assert_eq!((entry.time, &entry.value), (None, &value("[1 2]")));
    assert_eq!(entry.error.as_deref(), Some("[:timeout \"x\"]"));
    let (entries, _) = read("{:process 1 :type :fail :f :read :error :timeout}");
    assert_eq!(entries[0].error.as_deref(), Some("timeout"));
    assert_eq!(entries[0].value, Value::Nil);
}

#[test]
fn a_vector_a_list_and_one_after_another_are_the_same() {
    let (entries, _) = read(TWO);
    let one_line = TWO.replace('\n', " ");
    for text in [
        format!("[{TWO}]"),
        format!("({one_line})\n; the end\n"),
        format!(";first\n [ #_ #_ 1 2\n{}]", TWO.replace(", ", "\n  ")),
        one_line,
        TWO.replace("\n", ""),
        TWO.replace('\n', "\r\n"),
        TWO.replace("{:", "#knossos.op.Op{:"),
        TWO.replace("{:", "#_{:process 0}{:"),
    ] {
        let (again, ending) = read(&text);
        assert_eq!(anywhere(again), anywhere(entries.clone()), "{text}");
        assert_eq!(ending, Ending::Complete { events: 2 }, "{text}");
    }
    for empty in ["[]", "()", "; nothing\n", "[ #_ {} ]"] {
        assert_eq!(
            read(empty),
            (vec![], Ending::Complete { events: 0 }),
            "{empty}"
        );
    }
}

#[test]
fn borrows_from_the_text_and_tells_lines() {
    let text = format!("{TWO}\n  {TWO}");
    let mut entries = Entries::new(text.as_bytes()).unwrap();
    let mut places = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        assert!(matches!(entry.process, Cow::Borrowed(_)));
        assert!(matches!(entry.f, Cow::Borrowed(_)));
        let line = entry.line;
        let place = entries.place();
        places.push((line, entries.line(), place.line, place.column));
    }
    assert_eq!(
        places,
        [(1, 1, 1, 1), (2, 2, 2, 1), (4, 4, 4, 3), (5, 5, 5, 1)]
    );
}

#[test]
fn the_nemesis_and_its_like_are_left_out() {
    let text = format!(
        "{{:process :nemesis, :type :info, :f :start, :value [:isolated {{\"n1\" #{{\"n2\"}}}}]}}\n{TWO}\
         {{:process :other, :f nil}}"
    );
    let (entries, ending) = read(text);
    assert_eq!(anywhere(entries), anywhere(read(TWO).0));
    assert_eq!(ending, Ending::Complete { events: 4 });
}

fn operations(values: &[(&str, &str)]) -> String {
    values
        .iter()
        .map(|(f, value)| format!("{{:process 0, :type :invoke, :f {f}, :value {value}}}\n"))
        .collect()
}

#[test]
fn the_first_operation_tells_whether_values_are_pairs() {
    for (f, first, keyed) in [
        (":read", "[1 nil]", true),
        (":write", "(\"k\" [1 2])", true),
        (":read", "[1 nil 2]", false),
        (":read", "nil", false),
        (":write", "3", false),
        (":cas", "[1 2]", false),
        (":cas", "[1 [2 3]]", true),
        (":cas", "[1 [2 3 4]]", false),
        (":txn", "[[:r 1 nil] [:w 1 2]]", false),
    ] {
        let nemesis = "{:process :nemesis, :type :info, :f :x, :value [1 2]}\n";
        let text = nemesis.to_owned() + &operations(&[(f, first), (":read", "[7 8]")]);
        let (entries, _) = read(text);
        let second = if keyed {
            (Some("7".into()), "8".into())
        } else {
            (None, "[7 8]".into())
        };
        assert_eq!(values(&entries)[1], second, "{first}");
        assert_eq!(entries[0].key.is_some(), keyed);
    }
    let text = operations(&[(":write", "[1 2]")]);
    let (entries, _) = read_with(&text, Keys::No).unwrap();
    assert_eq!(values(&entries), [(None, "[1 2]".into())]);
    let text = operations(&[(":cas", "[1 2]")]);
    let (entries, _) = read_with(&text, Keys::Yes).unwrap();
    assert_eq!(values(&entries), [(Some("1".into()), "2".into())]);
}

#[test]
fn a_history_with_keys_has_them_everywhere() {
    let first = "{:process 0, :type :invoke, :f :read, :value [:x nil]}\n";
    for bad in ["nil", "[1]", "[1 2 3]", "4"] {
        for kind in [":invoke", ":ok"] {
            let text = format!("{first}{{:process 0, :type {kind}, :f :read, :value {bad}}}");
            let expected = "expected `[key value]`, for the operations of this history have keys";
            assert!(error(text).contains(expected), "{bad}");
        }
        for kind in [":fail", ":info"] {
            let text = format!("{first}{{:process 0, :type {kind}, :f :read, :value {bad}}}");
            assert_eq!(values(&read(text).0)[1], (None, bad.to_owned()));
        }
    }
    let text = format!("{first}{{:process 0, :type :info, :f :read, :value [:x nil]}}");
    assert_eq!(values(&read(text).0)[1], (Some(":x".into()), "nil".into()));
    let text = format!("{first}  {{:process 0, :type :invoke,\n :f :read, :value 4}}");
    assert!(error(text).starts_with("line 3, column 19: expected `[key value]`"));
}

#[test]
fn a_key_of_its_own_is_porcupines() {
    let text = "{:process 0, :type :invoke, :f :put, :key \"3\", :value [\"a\" 1]}";
    let mut entries = Entries::new(text.as_bytes()).unwrap();
    assert_eq!(entries.format(), Format::PorcupineKv);
    assert!(!entries.format().nil_read_tells_nothing());
    let entry = entries.next().unwrap().unwrap();
    assert_eq!(
        (entry.key, entry.value),
        (Some(value("\"3\"")), value("[\"a\" 1]"))
    );
    assert_eq!(
        Entries::new(TWO.as_bytes()).unwrap().format(),
        Format::Jepsen
    );
}

/// What is put in the place of what in [`TWO`], and how the error begins.
const BROKEN: [(&str, &str, &str); 11] = [
    (":ok", ":done", "line 2, column 20: unknown `:type` `done`"),
    (
        ":type :ok,",
        "",
        "line 2, column 1: the operation has no `:type`",
    ),
    (
        ":f :read",
        "",
        "line 1, column 1: the operation has no `:f`",
    ),
    (
        ":process 0",
        "",
        "line 1, column 1: the operation has no `:process`",
    ),
    (
        "0, :type",
        "[], :type",
        "line 1, column 11: expected a process",
    ),
    (
        ":value 3",
        ":f 3",
        "line 2, column 35: this key stands twice",
    ),
    (
        ":value 3",
        ":value",
        "line 2, column 73: a key without a value",
    ),
    ("3,", "[3},", "line 2, column 44: expected `]`, found `}`"),
    (
        ":f :read",
        ":f 3",
        "line 1, column 32: expected a name, found 3",
    ),
    ("0}", "0", "line 1, column 1: a bracket or a quote"),
    ("nil,", "\"nil,", "line 1, column 1: a bracket or a quote"),
];

#[test]
fn what_is_broken_is_told_with_its_place() {
    for (right, wrong, expected) in BROKEN {
        let error = error(TWO.replace(right, wrong));
        assert!(error.starts_with(expected), "{error}\n{right} as {wrong}");
    }
    let mut bytes = TWO.as_bytes().to_vec();
    bytes[75] = 0xff;
    assert!(error(bytes).starts_with("line 2, column 6: not UTF-8"));
}

#[test]
fn what_is_more_than_operations_is_told_with_its_place() {
    let expected = "line 3, column 1: expected the map";
    assert!(error(format!("{TWO}7")).starts_with(expected));
    assert!(error(format!("{TWO}]")).starts_with(expected));
    assert!(error(format!("[{TWO}] {TWO}")).starts_with("line 3, column 3: there is more after"));
}

#[test]
fn nothing_is_given_after_an_error() {
    let text = format!("{TWO}7 {TWO}");
    let mut entries = Entries::new(text.as_bytes()).unwrap();
    assert!(entries.next().unwrap().is_some() && entries.next().unwrap().is_some());
    assert!(entries.next().is_err());
    assert!(entries.next().unwrap().is_none());
    assert_eq!(entries.ending(), None);
}

#[test]
fn a_file_that_is_cut_anywhere_gives_its_whole_operations() {
    let cut = |text: &str, at: usize| {
        let text = text.replace('3', "\"ä\"");
        let read = read_with(&text.as_bytes()[..at.min(text.len())], Keys::Guess);
        read.map(|(entries, ending)| {
            assert!(entries.len() as u64 == ending.events());
            (entries.len(), ending)
        })
    };
    let first = TWO.find('\n').unwrap();
    for at in 3..TWO.len() + 3 {
        let events = if at < first {
            0
        } else {
            1 + u64::from(at >= TWO.len() + 2)
        };
        let (found, ending) = cut(TWO, at).unwrap();
        assert_eq!(found as u64, events, "{at}");
        let whole = at == first || at == first + 1 || events == 2;
        let why = Cut::PartialLine;
        let expected = match whole {
            true => Ending::Complete { events },
            false => Ending::Truncated { events, why },
        };
        assert_eq!(ending, expected, "{at}");
    }
    let vector = format!("[{TWO}]");
    for at in 3..=vector.len() + 3 {
        let (_, ending) = cut(&vector, at).unwrap();
        assert_eq!(
            matches!(ending, Ending::Complete { .. }),
            at == vector.len() + 3
        );
    }
    let printed = "{:process 0\n :value\n {:a 1\n  :b {:process";
    let (events, why) = (0, Cut::PartialLine);
    assert_eq!(read(printed).1, Ending::Truncated { events, why });
    let (events, why) = (2, Cut::Unclosed);
    assert_eq!(read(format!("[{TWO}")).1, Ending::Truncated { events, why });
}

#[test]
fn a_text_that_comes_byte_by_byte_is_the_same() {
    let text = format!("; ä\n[{}]", TWO.repeat(3).replace('3', "{:a \"ä😀\\n\"}"));
    let mut entries = Entries::new(BufReader::with_capacity(1, text.as_bytes())).unwrap();
    let mut read = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        read.push((entry.into_owned(), entries.line()));
    }
    let lines: Vec<u64> = read.iter().map(|(_, line)| *line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7]);
    assert_eq!(read[5].0.value, value("{:a \"ä😀\\n\"}"));
    assert_eq!(entries.ending(), Some(Ending::Complete { events: 6 }));
}

#[test]
fn a_form_that_never_ends_fills_no_memory() {
    let long = format!("{{:process 0, :value \"{}", "x".repeat(40 << 20));
    assert!(error(long).starts_with("line 1, column 1: longer than 16777216 bytes"));
}

#[test]
fn memory_is_for_one_operation_where_all_are_on_one_line() {
    let text = format!("[{}]", TWO.replace('\n', " ").repeat(20_000));
    let mut jepsen = Jepsen::start(Source::new(text.as_bytes()).unwrap()).unwrap();
    let mut longest = 0;
    while jepsen.next().unwrap().is_some() {
        longest = longest.max(jepsen.text.capacity());
    }
    assert!(text.len() > 2 << 20 && longest < 1 << 20, "{longest}");
}

#[test]
fn what_stands_before_a_cut_operation_is_no_part_of_it() {
    let whole = "{:process 0, :type :invoke, :f :read, :value nil}\n";
    for before in ["; x\n", "#_ {}\n", "; x\n#_ {:process 1}\n  "] {
        let (entries, ending) = read(format!("{whole}{before}{{:process 0, :ty"));
        assert_eq!(entries.len(), 1, "{before}");
        let why = Cut::PartialLine;
        assert_eq!(ending, Ending::Truncated { events: 1, why }, "{before}");
    }
}
