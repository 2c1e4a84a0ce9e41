//! Histories of all formats: those that other projects ship, any that are written, and any that are damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use histories::entries::{Entries, Entry, Export, Format, Keys, Value};
use histories::{Ending, Kind, ReadError};
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name)
}

fn drain<R: std::io::BufRead>(
    mut entries: Entries<R>,
) -> Result<(Vec<Entry<'static>>, Ending), ReadError> {
    let mut read = Vec::new();
    while let Some(entry) = entries.next()? {
        read.push(entry.into_owned());
    }
    Ok((
        read,
        entries.ending().expect("an ending after the last entry"),
    ))
}

fn read(bytes: &[u8]) -> Result<(Vec<Entry<'static>>, Ending), ReadError> {
    drain(Entries::new(bytes)?)
}

fn exported(entries: &[Entry<'_>]) -> String {
    let mut export = Export::new(Vec::new());
    for entry in entries {
        export.write(entry).unwrap();
    }
    String::from_utf8(export.finish().unwrap()).unwrap()
}

/// How often each function is of each kind in the files of a folder, which are all of this format.
fn counts(folder: &str, format: Format) -> (usize, BTreeMap<(String, &'static str), usize>) {
    let (mut files, mut counts) = (0, BTreeMap::new());
    for file in fs::read_dir(corpus(folder)).unwrap() {
        let path = file.unwrap().path();
        let entries = Entries::open(&path).unwrap();
        assert_eq!(entries.format(), format, "{}", path.display());
        let (entries, ending) = drain(entries).unwrap();
        let events = entries.len() as u64;
        assert_eq!(ending, Ending::Complete { events }, "{}", path.display());
        let compressed = zstd::encode_all(&fs::read(&path).unwrap()[..], 1).unwrap();
        assert_eq!(read(&compressed).unwrap().0, entries);
        for entry in entries {
            *counts
                .entry((entry.f.into_owned(), entry.kind.name()))
                .or_default() += 1;
        }
        files += 1;
    }
    (files, counts)
}

fn counted(counts: &[(&str, &'static str, usize)]) -> BTreeMap<(String, &'static str), usize> {
    counts
        .iter()
        .map(|(f, kind, count)| (((*f).to_owned(), *kind), *count))
        .collect()
}

#[test]
fn porcupines_logs_of_etcd() {
    let (files, found) = counts("porcupine/jepsen", Format::PorcupineEtcd);
    let expected = counted(&[
        ("read", "invoke", 1732),
        ("read", "ok", 1732),
        ("write", "invoke", 1561),
        ("write", "ok", 1202),
        ("write", "info", 359),
        ("cas", "invoke", 1730),
        ("cas", "ok", 259),
        ("cas", "fail", 1066),
        ("cas", "info", 405),
    ]);
    assert_eq!(found, expected);
    assert_eq!(found.values().sum::<usize>(), 10_046);
    assert_eq!(files, 60);
}

#[test]
fn every_file_of_porcupines_corpus_has_a_verdict() {
    let expected = fs::read_to_string(corpus("porcupine/expected.tsv")).unwrap();
    for line in expected.lines() {
        let (name, verdict) = line.split_once('\t').unwrap();
        assert!(["ok", "illegal"].contains(&verdict));
        let (entries, _) = drain(Entries::open(corpus("porcupine").join(name)).unwrap()).unwrap();
        assert!(!entries.is_empty());
    }
}

#[test]
fn porcupines_logs_of_maps() {
    let (files, found) = counts("porcupine/kv", Format::PorcupineKv);
    assert_eq!(files, 4);
    let expected = [("append", 415), ("get", 378), ("put", 45)];
    for (f, count) in expected {
        assert_eq!(found[&(f.to_owned(), "invoke")], count);
        assert_eq!(found[&(f.to_owned(), "ok")], count);
    }
    let path = corpus("porcupine/kv/c01-ok.txt");
    let (entries, _) = drain(Entries::open(path).unwrap()).unwrap();
    assert_eq!(entries[0].key, Some(Value::Text("0".into())));
    assert_eq!(entries[0].value, Value::Text("x 0 0 y".into()));
}

#[test]
fn our_own_histories() {
    let (plain, ending) = drain(Entries::open(corpus("v1/paused-client.jsonl")).unwrap()).unwrap();
    assert_eq!(ending, Ending::Complete { events: 84 });
    let count = |f: &str, kind| {
        plain
            .iter()
            .filter(|entry| entry.f == f && entry.kind == kind)
            .count()
    };
    assert_eq!(
        (count("write", Kind::Invoke), count("write", Kind::Ok)),
        (6, 6)
    );
    assert!(
        plain
            .iter()
            .all(|entry| entry.key.is_some() && entry.op.is_some())
    );
    let late = plain
        .iter()
        .rfind(|entry| entry.f == "release" && entry.kind == Kind::Fail)
        .unwrap();
    assert_eq!(late.key, Some(Value::Text("lock".into())));
    assert_eq!(late.error.as_deref(), Some("no longer held"));

    let compressed = Entries::open(corpus("v1/paused-client.jsonl.zst")).unwrap();
    assert_eq!(compressed.format(), Format::Fencepost);
    assert_eq!(drain(compressed).unwrap(), (plain, ending));
    let truncated = Entries::open(corpus("v1/paused-client-truncated.jsonl")).unwrap();
    assert_eq!(drain(truncated).unwrap().1.events(), 49);
}

#[test]
fn our_own_histories_exported_are_jepsens() {
    let (own, _) = drain(Entries::open(corpus("v1/paused-client.jsonl")).unwrap()).unwrap();
    let text = exported(&own);
    let first = "{:index 0, :time 2000137, :process 0, :type :invoke, :f :acquire, :value [\"lock\" {:client \"c1\"}]}";
    assert_eq!(text.lines().next().unwrap(), first);
    let (jepsen, _) = read(text.as_bytes()).unwrap();
    let numbers = BTreeMap::from([("c1", "0"), ("c2", "1")]);
    assert_eq!(jepsen.len(), own.len());
    for (jepsen, own) in jepsen.iter().zip(&own) {
        assert_eq!(jepsen.process, numbers[&*own.process]);
        assert_eq!(
            (jepsen.kind, &jepsen.f, &jepsen.key),
            (own.kind, &own.f, &own.key)
        );
        assert_eq!((jepsen.time, &jepsen.error), (own.time, &own.error));
        let client = jepsen.value.get("client");
        match &*own.f {
            "read" | "write" => assert_eq!(jepsen.value, own.value),
            _ => assert_eq!(client, Some(&Value::Text(own.process.clone()))),
        }
    }
}

#[test]
fn a_file_of_no_known_format_is_told_what_is_accepted() {
    let accepted =
        "give fencepost's `history.jsonl`, Jepsen's `history.edn`, or one of Porcupine's logs";
    for (text, why) in [
        ("hello\n", "it begins as none of the formats that are known"),
        (" \n\n", "there is nothing in it but white"),
        (
            "{\"events\":1}\n",
            "its first line has no field `fencepost`",
        ),
    ] {
        let error = Entries::new(text.as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the history is not a history: {why}; {accepted}")
        );
    }
    assert!(matches!(
        Entries::new(&b""[..]),
        Err(ReadError::Empty { .. })
    ));
    let error = Entries::open(corpus("nowhere.edn")).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("corpus/nowhere.edn (check the path)")
    );
}

/// Any value that EDN writes as it is read.
fn value() -> impl Strategy<Value = Value<'static>> {
    let scalar = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Integer),
        any::<String>().prop_map(|text| Value::Text(text.into())),
        "[a-z]{1,3}".prop_map(|name| Value::Keyword(name.into())),
        Just(Value::Other("#inst \"2020\"".into())),
    ];
    scalar.prop_recursive(2, 8, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::List),
            prop::collection::vec(pair, 0..3).prop_map(Value::Map),
        ]
    })
}

/// Any entries as other formats have them, each process doing one operation at a time, all with keys or none.
fn entries() -> impl Strategy<Value = Vec<Entry<'static>>> {
    let entry = (
        0..4_u64,
        any::<Option<u64>>(),
        select(vec!["read", "cas", "a b", ""]),
        value(),
        value(),
        0..3_usize,
        any::<Option<String>>(),
    );
    (any::<bool>(), prop::collection::vec(entry, 0..12)).prop_map(|(keyed, made)| {
        let (mut busy, mut names) = ([false; 4], [0, 1, 2, 3]);
        let mut entries = Vec::new();
        for (process, time, f, key, value, completion, error) in made {
            let at = process as usize;
            let completion = [Kind::Ok, Kind::Fail, Kind::Info][completion];
            let kind = if busy[at] { completion } else { Kind::Invoke };
            busy[at] = !busy[at];
            entries.push(Entry {
                line: 0,
                time: time.map(|time| time / 2),
                process: names[at].to_string().into(),
                op: None,
                kind,
                f: f.into(),
                key: keyed.then_some(key),
                value,
                token: None,
                validity: None,
                grant: None,
                error: error.map(Into::into),
            });
            if kind == Kind::Info {
                names[at] += 100; // So that it is another process, as it is to Jepsen.
            }
        }
        entries
    })
}

proptest! {
    #[test]
    fn what_is_exported_is_read_as_the_same(entries in entries()) {
        let text = exported(&entries);
        let keys = if entries.iter().any(|entry| entry.key.is_some()) { Keys::Yes } else { Keys::No };
        for text in [format!("; all\n{text}"), format!("[{text}]")] {
            let (read, ending) = drain(Entries::new(text.as_bytes()).unwrap().with_keys(keys)).unwrap();
            prop_assert_eq!(ending, Ending::Complete { events: entries.len() as u64 });
            let lines: Vec<u64> = read.iter().map(|entry| entry.line).collect();
            let first = u64::from(text.starts_with(';'));
            prop_assert_eq!(lines, (1 + first..).take(entries.len()).collect::<Vec<_>>());
            let read: Vec<_> = read.into_iter().map(|entry| Entry { line: 0, ..entry }).collect();
            prop_assert_eq!(&read, &entries);
        }
    }

    /// Whatever is done to a file, its reader comes to an end, and what it gives before the damage is as it was.
    #[test]
    fn a_damaged_file_is_read_or_refused(
        name in select(vec!["porcupine/kv/c01-ok.txt", "porcupine/jepsen/etcd_000.log", "v1/paused-client.jsonl"]),
        damage in prop::collection::vec((any::<Index>(), select(&b"{}[]()\"\\;#_: \n\t0a\xff\xc3"[..])), 1..4),
        cut in any::<Index>(),
    ) {
        let mut bytes = fs::read(corpus(name)).unwrap();
        let (whole, _) = read(&bytes).unwrap();
        let cut = cut.index(bytes.len() + 1);
        if let Ok((entries, _)) = read(&bytes[..cut]) {
            prop_assert_eq!(&entries[..], &whole[..entries.len()]);
        }
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes[..cut]);
        let _ = read(&bytes);
        let compressed = zstd::encode_all(&bytes[..], 1).unwrap();
        let _ = read(&compressed[..cut.min(compressed.len())]);
    }

    #[test]
    fn any_bytes_are_read_or_refused(start in select(vec!["", "{:", "[", "#a.B{", "x jepsen.util - 0 ", "{\"fencepost\":1"]), bytes in any::<Vec<u8>>()) {
        let _ = read(&[start.as_bytes(), &bytes].concat());
    }
}
