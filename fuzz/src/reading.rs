//! Any bytes as a history's file.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};

use histories::entries::{Entries, Entry, Export, Keys};
use histories::{Ending, Event, ReadError, Reader, Writer};

/// What is kept of a history: a few bytes of a compressed file can stand for millions of entries, and the target is not to
/// be what takes the memory.
const MOST_KEPT: usize = 2000;

/// So few bytes come at a time that every form is cut somewhere.
const FEW_BYTES: usize = 7;

/// A history as it was read.
type Read = Result<(Vec<Entry<'static>>, Ending), ReadError>;

/// Reads with all settings of the keys, as a whole and a few bytes at a time. What is read whole is exported and read again.
pub fn every_setting(bytes: &[u8]) {
    for keys in [Keys::Guess, Keys::Yes, Keys::No] {
        let read = entries(bytes, keys);
        let in_pieces = entries(BufReader::with_capacity(FEW_BYTES, bytes), keys);
        assert_eq!(told(&read), told(&in_pieces), "with {keys:?}, in pieces");
        match read {
            Ok((entries, ending)) if ending.events() <= MOST_KEPT as u64 => round_trip(&entries),
            _ => {}
        }
    }
}

/// Reads as a history of ours. What is read whole is written and read again.
pub fn events(bytes: &[u8]) {
    let Ok(reader) = Reader::new(bytes) else {
        return;
    };
    let header = reader.header().clone();
    let Ok((read, Ending::Complete { events })) = our_events(reader) else {
        return;
    };
    if events > MOST_KEPT as u64 {
        return;
    }
    let mut writer = Writer::new(Vec::new(), &header).expect("memory takes all bytes");
    for event in &read {
        writer.write(event).expect("what was read can be written");
    }
    let written = writer.finish().expect("memory takes all bytes");
    let reader = Reader::new(&written[..]).expect("what was written can be read");
    let again = our_events(reader).expect("what was written can be read");
    assert_eq!(again, (read, Ending::Complete { events }));
}

/// Entries as text, for errors cannot be compared.
fn told(read: &Read) -> String {
    match read {
        Ok(read) => format!("{read:?}"),
        Err(error) => error.to_string(),
    }
}

/// The first entries, and how the history ends.
fn entries<R: BufRead>(source: R, keys: Keys) -> Read {
    let mut entries = Entries::new(source)?.with_keys(keys);
    let mut read = Vec::new();
    while let Some(entry) = entries.next()? {
        if read.len() < MOST_KEPT {
            read.push(entry.into_owned());
        }
    }
    assert!(entries.next().is_ok_and(|more| more.is_none()));
    let ending = entries.ending();
    Ok((read, ending.expect("an ending after the last entry")))
}

fn our_events<R: BufRead>(
    mut reader: Reader<R>,
) -> Result<(Vec<Event<'static>>, Ending), ReadError> {
    let mut read = Vec::new();
    while let Some(event) = reader.next()? {
        if read.len() < MOST_KEPT {
            read.push(event.into_owned());
        }
    }
    let ending = reader.ending();
    Ok((read, ending.expect("an ending after the last event")))
}

fn exported(entries: &[Entry<'_>]) -> String {
    let mut export = Export::new(Vec::new());
    for entry in entries {
        export.write(entry).expect("memory takes all bytes");
    }
    let bytes = export.finish().expect("memory takes all bytes");
    String::from_utf8(bytes).expect("entries are text")
}

/// Holds an export to say what the entries say. Numbers of processes are the export's own; written once they stay.
fn round_trip(entries: &[Entry<'static>]) {
    let Some(keys) = keys_of(entries) else {
        return;
    };
    if entries.iter().any(|entry| !is_exportable(entry)) {
        return;
    }
    let text = exported(entries);
    let (again, ending) = self::entries(text.as_bytes(), keys)
        .unwrap_or_else(|error| panic!("{error}, in the export\n{text}"));
    assert_eq!(ending.events(), entries.len() as u64, "{text}");
    assert!(matches!(ending, Ending::Complete { .. }), "{text}");
    for (before, after) in entries.iter().zip(&again) {
        assert_eq!(what_is_said(before), what_is_said(after), "{text}");
        let is_grant = before.op.is_some() && before.value != after.value;
        assert!(is_grant || before.value == after.value, "{text}");
    }
    assert_eq!(exported(&again), text);
}

/// Whether all values are pairs of a key and a value, if all entries say the same of that.
fn keys_of(entries: &[Entry<'_>]) -> Option<Keys> {
    let keyed: HashSet<bool> = entries.iter().map(|entry| entry.key.is_some()).collect();
    match (keyed.contains(&true), keyed.contains(&false)) {
        (true, false) => Some(Keys::Yes),
        (false, true) => Some(Keys::No),
        _ => None,
    }
}

/// Whether EDN has numbers as great as those of an entry, and an export has greater ones left to give.
fn is_exportable(entry: &Entry<'_>) -> bool {
    let is_great = |process: &str| process.parse::<u64>().is_ok_and(|number| number >> 62 > 0);
    entry.time.is_none_or(|time| i64::try_from(time).is_ok()) && !is_great(&entry.process)
}

/// What an export leaves as it is.
fn what_is_said<'e>(entry: &'e Entry<'_>) -> impl PartialEq + std::fmt::Debug + use<'e> {
    (
        entry.kind,
        entry.f.to_string(),
        entry.key.clone().map(|key| key.into_owned()),
        entry.time,
        entry.error.clone().map(|error| error.into_owned()),
    )
}
