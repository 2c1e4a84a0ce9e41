//! What the reader makes of every kind of file.

use super::*;
use crate::{Place, Writer};

const EVENT: &str = r#"{"t":1,"process":"c1","op":7,"type":"invoke","f":"read","document":"d"}"#;

/// The header of a real history.
fn header() -> &'static str {
    include_str!("../../corpus/v1/paused-client.jsonl")
        .lines()
        .next()
        .unwrap()
}

/// A history of these lines, each with its newline.
fn history(lines: &[&str]) -> String {
    [&[header()], lines]
        .concat()
        .iter()
        .map(|line| format!("{line}\n"))
        .collect()
}

fn read(text: impl AsRef<[u8]>) -> Result<Ending, ReadError> {
    let mut reader = Reader::new(text.as_ref())?;
    while reader.next()?.is_some() {}
    Ok(reader.ending().unwrap())
}

fn error(text: impl AsRef<[u8]>) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn borrows_texts_from_the_line_unless_they_have_escapes() {
    use std::borrow::Cow;
    // A space takes the long way, through serde.
    for event in [EVENT.to_owned(), EVENT.replace(",", ", ")] {
        let text = history(&[&event, &event.replace("c1", "c\\u0031")]);
        let mut reader = Reader::new(text.as_bytes()).unwrap();
        let event = reader.next().unwrap().unwrap();
        assert!(matches!(event.process, Cow::Borrowed("c1")));
        assert!(matches!(event.document, Some(Cow::Borrowed("d"))));
        let event = reader.next().unwrap().unwrap();
        assert!(matches!(event.process, Cow::Owned(name) if name == "c1"));
        assert_eq!(reader.line(), 3);
    }
}

#[test]
fn ignores_fields_that_it_does_not_know() {
    let event = EVENT.replace('{', r#"{"new":[{"t":2}],"#);
    assert_eq!(
        read(history(&[&event, r#"{"events":1,"new":null}"#])).unwrap(),
        Ending::Complete { events: 1 }
    );
    let (head, rest) = header().split_once('{').unwrap();
    assert!(read(format!("{head}{{\"new\":[],{rest}\n")).is_ok());
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_with_its_place() {
    for (broken, expected) in [
        (
            EVENT.replace("read", "dream"),
            "line 2, column 56: unknown variant `dream`",
        ),
        (
            EVENT.replace("invoke", "begin"),
            "line 2, column 43: unknown variant `begin`",
        ),
        (
            EVENT.replace("7", "\"7\""),
            "line 2, column 30: invalid type: string \"7\", expected u64",
        ),
        (
            EVENT.replace(r#""op":7,"#, ""),
            "line 2, column 64: missing field `op`",
        ),
        (
            EVENT.replace("7", "7,\"op\":7"),
            "line 2, column 33: duplicate field `op`",
        ),
        (
            EVENT[..20].to_owned(),
            "line 2, column 20: EOF while parsing a string",
        ),
        (
            format!("{EVENT}{EVENT}"),
            "line 2, column 72: trailing characters",
        ),
        (String::new(), "line 2, column 1: EOF while parsing a value"),
        (
            "[1,\"c1\",7,\"ok\",\"read\"]".to_owned(),
            "line 2, column 1: expected an object",
        ),
        (
            "{\"events\":-1}".to_owned(),
            "line 2, column 12: invalid value: integer `-1`",
        ),
    ] {
        let message = error(history(&[&broken, EVENT]));
        assert!(message.starts_with(expected), "{broken}: {message}");
    }
    let mut bytes = history(&[EVENT, EVENT]).into_bytes();
    let at = header().len() + 3;
    bytes[at] = 0xff;
    assert!(
        error(&bytes).starts_with("line 2, column 3: not UTF-8"),
        "{}",
        error(&bytes)
    );
}

#[test]
fn an_unfinished_last_line_is_dropped_with_its_newline_or_without() {
    let truncated = |why| Ending::Truncated { events: 1, why };
    let cut = truncated(Cut::PartialLine);
    assert_eq!(read(history(&[EVENT])).unwrap(), truncated(Cut::NoFooter));
    assert_eq!(read(history(&[EVENT]) + EVENT).unwrap(), cut);
    assert_eq!(
        read([history(&[EVENT]).as_bytes(), b"\xff\0"].concat()).unwrap(),
        cut
    );
    assert_eq!(
        read(history(&[EVENT, &EVENT[..20]])).unwrap(),
        cut,
        "an editor adds the newline"
    );
    assert_eq!(read(history(&[EVENT, ""])).unwrap(), cut);
    assert_eq!(read(history(&[EVENT, "{\"events\":"])).unwrap(), cut);
    assert!(error(history(&[EVENT, "garbage"])).starts_with("line 3, column 1: expected"));
}

#[test]
fn the_footer_counts_and_is_the_last() {
    let footer = "{\"events\":1}";
    assert_eq!(
        read(history(&[EVENT, footer])).unwrap(),
        Ending::Complete { events: 1 }
    );
    assert_eq!(
        read(history(&[EVENT, " { \"events\" : 1 }\r"])).unwrap(),
        Ending::Complete { events: 1 }
    );
    let message = error(history(&[EVENT, EVENT, footer]));
    assert!(
        message.starts_with("line 4: the footer counts 1 events, and there are 2"),
        "{message}"
    );
    for more in [EVENT, footer, "", "x"] {
        let message = error(history(&[EVENT, footer, more]));
        assert!(
            message.starts_with("line 4: there is more after the footer"),
            "{message}"
        );
    }
    assert!(error(history(&[EVENT, footer]) + " ").starts_with("line 4: there is more"));
}

#[test]
fn what_is_no_history_is_told_apart() {
    for text in [
        "",
        "\n",
        "hello\n",
        "\u{7f}ELF\0",
        "[]\n",
        "{}\n",
        "{}",
        "{\"a\":1}\n",
        "{\"fencepost\":0}\n",
    ] {
        let error = read(text).unwrap_err();
        let empty = matches!(error, ReadError::Empty { .. });
        assert!(
            if text.is_empty() {
                empty
            } else {
                matches!(error, ReadError::Foreign { .. })
            },
            "{text}: {error}"
        );
    }
    assert!(error([0xff; 100]).contains("is not a fencepost history"));
    assert!(error("{\"fencepost\":1}\n").starts_with("line 1, column 15: missing field `run`"));
    assert!(error("{\"fencepost\":1,}\n").starts_with("line 1, column 16: trailing comma"));
    assert!(error("{\n\"fencepost\":1\n}\n").starts_with("line 1, column 1: EOF"));
    assert!(error("{\"fencepost\":1}").contains("ends within its header"));
}

#[test]
fn a_newer_format_names_the_build_that_reads_it() {
    let own = env!("CARGO_PKG_VERSION");
    let newer = "{\"fencepost\":3,\"plan\":\"of another kind\"";
    assert_eq!(
        error(format!("{newer},\"build\":\"7.8.9\"}}\n")),
        format!(
            "the history has format version 3, and fencepost {own} reads up to 2: \
             use fencepost 7.8.9, which wrote it, or a later one"
        )
    );
    assert!(error(format!("{newer}}}\n")).ends_with("use a build that reads that version"));
}

#[test]
fn errors_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let place = |line, column| Place {
        path: Some(path.clone()),
        line,
        column,
    };
    let missing = Reader::open(&path).unwrap_err();
    assert_eq!(missing.place(), &place(0, 0));
    assert_eq!(
        missing.to_string(),
        format!("cannot read {} (check the path)", path.display())
    );

    std::fs::write(&path, history(&[EVENT, "garbage", EVENT])).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    reader.next().unwrap();
    let error = reader.next().unwrap_err();
    assert_eq!(error.place(), &place(3, 1));
    assert!(
        error
            .to_string()
            .starts_with(&format!("{}:3:1: expected an object", path.display()))
    );
    assert!(
        reader.next().unwrap().is_none() && reader.ending().is_none(),
        "nothing after an error"
    );
    assert!(
        Reader::open(folder.path())
            .unwrap_err()
            .to_string()
            .ends_with("(name the file in it)")
    );
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let endless = || BufReader::new(std::io::repeat(b'x'));
    assert!(matches!(
        Reader::new(endless()),
        Err(ReadError::Foreign { .. })
    ));
    let start = std::io::Cursor::new(history(&[EVENT]));
    let mut reader = Reader::new(std::io::Read::chain(start, endless())).unwrap();
    reader.next().unwrap();
    assert!(matches!(reader.next(), Err(ReadError::TooLong { place }) if place.line == 3));
}

#[test]
fn a_damaged_stream_is_an_error_and_a_cut_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl.zst");
    let header = Reader::new(history(&[]).as_bytes())
        .unwrap()
        .header()
        .clone();
    let mut writer = Writer::create(&path, &header).unwrap();
    writer.write(&serde_json::from_str(EVENT).unwrap()).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(read(&bytes).unwrap(), Ending::Complete { events: 1 });

    let cut = Ending::Truncated {
        events: 1,
        why: Cut::PartialStream,
    };
    assert_eq!(
        read(&bytes[..bytes.len() - 1]).unwrap(),
        cut,
        "the checksum is not whole"
    );
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(matches!(read(&damaged), Err(ReadError::Damaged { .. })));
    let message = error([&bytes[..], &bytes[..]].concat());
    assert!(
        message.starts_with("line 4: there is more after the footer"),
        "{message}"
    );
}

/// How the reader finds a text to be sealed, at its end.
fn seal_of(text: &str) -> Option<crate::Seal> {
    let mut reader = Reader::new(text.as_bytes()).unwrap();
    while reader.next().unwrap().is_some() {}
    reader.seal()
}

#[test]
fn an_edited_history_is_told_from_a_sealed_one() {
    let saved = include_str!("../../corpus/v1/paused-client.jsonl");
    assert_eq!(seal_of(saved), Some(crate::Seal::Unsealed));
    let mut writer =
        crate::Writer::new(Vec::new(), &Reader::new(saved.as_bytes()).unwrap().header).unwrap();
    let mut reader = Reader::new(saved.as_bytes()).unwrap();
    while let Some(event) = reader.next().unwrap() {
        writer.write(&event).unwrap();
    }
    let sealed = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert_eq!(seal_of(&sealed), Some(crate::Seal::Sealed));
    let edited = sealed.replacen("\"seed\":", "\"seed\" :", 1);
    assert_eq!(
        seal_of(&edited),
        Some(crate::Seal::Edited),
        "the header counts"
    );
    let edited = sealed.replacen("\"type\":\"ok\"", "\"type\":\"info\"", 1);
    assert_eq!(seal_of(&edited), Some(crate::Seal::Edited));
    let cut = &sealed[..sealed.len() - 20];
    assert_eq!(seal_of(cut), Some(crate::Seal::Cut));
}
